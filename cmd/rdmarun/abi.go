package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"rdmarun/hostfuncs/model"
)

const abiLong = `Print the ABI of guests as this rdmarun has it, for programs that make bindings or check
one version against another.

  json  the whole ABI: functions, errors, structs with offsets, constants, capabilities,
        version and hash. A parameter has its target or count, its unit, and the meaning
        of 0. The SDKs of "rdmarun sdk" are made from the same table
  wit   the control plane in the component model's language, for readers. Guests import
        the flat functions

"rdmarun guest inspect" shows which part of it a guest needs.`

func newABICommand(a *app) *cobra.Command {
	format := newFormatFlag("json", "wit")
	command := &cobra.Command{
		Use:         "abi",
		Short:       "Print the ABI of guests",
		Long:        abiLong,
		Example:     "  rdmarun abi --format json\n  rdmarun abi --format wit",
		Annotations: configOptional,
		Args:        noArguments,
		RunE: func(*cobra.Command, []string) error {
			m := model.Of()
			if format.value == "wit" {
				_, err := fmt.Fprint(a.stdout, m.WIT())
				return err
			}
			text, err := m.JSON()
			if err == nil {
				_, err = a.stdout.Write(text)
			}
			return err
		},
	}
	format.register(command)
	return command
}
