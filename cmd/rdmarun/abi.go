package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"rdmarun/hostfuncs/model"
)

const abiLong = `Print the ABI of guests as this rdmarun has it, for programs that make bindings or check
one version against another.

  json  all of it: functions with their parameters - which points to what, which counts
        what, units, what 0 means - errors, structs with offsets, constants, capabilities;
        version and hash.  The SDKs of "rdmarun sdk" are made of the same
  wit   the control plane in the component model's language, to be read; guests import
        the flat functions

What a guest needs of it, "rdmarun guest inspect" tells.`

func newABICommand(a *app) *cobra.Command {
	format := newFormatFlag("json", "wit")
	command := &cobra.Command{
		Use:         "abi",
		Short:       "Print the ABI of guests",
		Long:        abiLong,
		Example:     "  rdmarun abi --format json\n  rdmarun abi --format wit",
		Annotations: configOptional,
		Args:        cobra.NoArgs,
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
