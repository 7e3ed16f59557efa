package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"rdmarun/host/guest"
	"rdmarun/host/printable"
	"rdmarun/hostfuncs"
)

const guestInspectLong = `Show what a guest imports and exports, how much memory it starts with, and whether
this host can run it.  Nothing is run.  Exits 126 when it cannot be run.`

// inspection is guest inspect's result, and its JSON form.
type inspection struct {
	Version  int      `json:"version"`
	File     string   `json:"file"`
	Runnable bool     `json:"runnable"`
	Reason   string   `json:"reason,omitempty"`
	Memory   int64    `json:"memory"` // bytes at the start
	Imports  []symbol `json:"imports"`
	Exports  []symbol `json:"exports"`
}

type symbol struct {
	Module     string `json:"module,omitempty"`
	Name       string `json:"name"`
	Signature  string `json:"signature,omitempty"`
	Capability string `json:"capability,omitempty"` // of the functions of module rdma
}

func newGuestInspectCommand(a *app) *cobra.Command {
	format := newFormatFlag("text", "json")
	command := &cobra.Command{
		Use:   "inspect FILE.wasm",
		Short: "Show what a guest needs and whether it can run here",
		Long:  guestInspectLong,
		Args:  cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			facts, err := guest.Inspect(args[0])
			if abi := (*guest.ABIError)(nil); err != nil && !errors.As(err, &abi) {
				return withExit(guestErrorCode(err), err)
			}
			result := inspect(args[0], facts, err)
			if format.value == "json" {
				if err := printJSON(a.stdout, result); err != nil {
					return err
				}
			} else {
				result.print(printable.NewWriter(a.stdout))
			}
			if !result.Runnable {
				return reported(exitNotAGuest)
			}
			return nil
		},
		ValidArgsFunction: completeGuests,
	}
	format.register(command)
	return command
}

func inspect(file string, facts guest.Facts, err error) inspection {
	result := inspection{
		Version: 1, File: file, Runnable: err == nil, Memory: int64(facts.MinPages) << 16,
		Imports: []symbol{}, Exports: []symbol{},
	}
	if err != nil {
		result.Reason = err.Error()
	}
	capabilities := make(map[string]string)
	for _, function := range hostfuncs.Functions() {
		capabilities[function.Name] = function.Capability.String()
	}
	for _, each := range facts.Imports {
		s := symbol{Module: each.Module, Name: each.Name, Signature: each.Signature.String()}
		if each.Module == hostfuncs.ModuleName {
			s.Capability = capabilities[each.Name]
		}
		result.Imports = append(result.Imports, s)
	}
	for _, each := range facts.Exports {
		result.Exports = append(result.Exports, symbol{Name: each.Name})
	}
	return result
}

func (i inspection) print(w io.Writer) {
	fmt.Fprintf(w, "%s: %d KiB of memory at the start\n", i.File, i.Memory>>10)
	fmt.Fprintln(w, "imports:")
	for _, s := range i.Imports {
		line := fmt.Sprintf("  %s.%s %s", s.Module, s.Name, s.Signature)
		if s.Capability != "" {
			line += " [" + s.Capability + "]"
		}
		fmt.Fprintln(w, line)
	}
	names := make([]string, len(i.Exports))
	for at, s := range i.Exports {
		names[at] = s.Name
	}
	fmt.Fprintf(w, "exports: %s\n", strings.Join(names, " "))
	if i.Runnable {
		fmt.Fprintln(w, "this host can run it")
		return
	}
	fmt.Fprintln(w, i.Reason)
}
