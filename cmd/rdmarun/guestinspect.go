package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"rdmarun/host/guest"
	"rdmarun/host/guest/wasm"
	"rdmarun/host/printable"
	"rdmarun/host/scenario/quantity"
	"rdmarun/hostfuncs"
)

const guestInspectLong = `Show what a guest imports and exports, and which version of
the ABI and which capabilities it needs. Also its memory, its features of WebAssembly,
its custom sections and its compiler, and whether this host can run it. Nothing is run.
The exit code is 126 when the guest cannot be run.

A guest is a module of WebAssembly 2.0 with atomic instructions, tail calls and extended
constant expressions. An invalid module is rejected with the place in the file. So is
one with more than

`

// guestLimits are the lines of the limits of modules.
func guestLimits() string {
	var text strings.Builder
	for _, limit := range wasm.Limits() {
		fmt.Fprintf(&text, "  %9d  %s\n", limit.Most, limit.What)
	}
	return strings.TrimRight(text.String(), "\n")
}

// inspection is guest inspect's result, and its JSON form.
type inspection struct {
	Version      int             `json:"version"`
	File         string          `json:"file"`
	Size         int             `json:"size"` // of the file, in bytes
	Runnable     bool            `json:"runnable"`
	Reason       string          `json:"reason,omitempty"`
	ABI          string          `json:"abi,omitempty"` // the version that has all that it imports
	Capabilities []string        `json:"capabilities"`
	Memory       int64           `json:"memory"`     // bytes at the start
	MaxMemory    int64           `json:"max_memory"` // that it may grow to
	Features     []string        `json:"features"`
	Producers    []string        `json:"producers"`
	Custom       []customSection `json:"custom_sections"`
	Imports      []symbol        `json:"imports"`
	Exports      []symbol        `json:"exports"`
}

type customSection struct {
	Name string `json:"name"`
	Size int    `json:"size"`
}

type symbol struct {
	Module     string `json:"module,omitempty"`
	Name       string `json:"name"`
	Signature  string `json:"signature,omitempty"`
	Capability string `json:"capability,omitempty"` // of the functions of module rdma
	Since      string `json:"since,omitempty"`      // likewise, the version of the ABI
}

func newGuestInspectCommand(a *app) *cobra.Command {
	format := newFormatFlag("text", "json")
	command := &cobra.Command{
		Use:   "inspect FILE.wasm",
		Short: "Show what a guest needs and whether it can run here",
		Long:  guestInspectLong + guestLimits(),
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
		Version: 1, File: file, Size: facts.Size, Runnable: err == nil,
		Memory: int64(facts.MinPages) << 16, MaxMemory: int64(facts.MaxPages) << 16,
		Features: facts.Features.Names(), Producers: slices.Concat([]string{}, facts.Producers),
		Capabilities: []string{}, Custom: []customSection{}, Imports: []symbol{}, Exports: []symbol{},
	}
	if err != nil {
		result.Reason = err.Error()
	}
	functions := make(map[string]hostfuncs.Function)
	for _, function := range hostfuncs.Functions() {
		functions[function.Name] = function
	}
	var newest hostfuncs.Version
	for _, each := range facts.Imports {
		s := symbol{Module: each.Module, Name: each.Name, Signature: each.Signature.String()}
		if function, known := functions[each.Name]; known && each.Module == hostfuncs.ModuleName {
			s.Capability, s.Since = function.Capability.String(), function.Since.String()
			if function.Since.Number() > newest.Number() {
				newest = function.Since
			}
			if !slices.Contains(result.Capabilities, s.Capability) {
				result.Capabilities = append(result.Capabilities, s.Capability)
			}
		}
		result.Imports = append(result.Imports, s)
	}
	if newest.Number() > 0 {
		result.ABI = newest.String()
	}
	for _, each := range facts.Exports {
		result.Exports = append(result.Exports, symbol{Name: each.Name})
	}
	for _, each := range facts.Custom {
		result.Custom = append(result.Custom, customSection(each))
	}
	return result
}

func (i inspection) print(w io.Writer) {
	fmt.Fprintf(
		w, "%s: %s, %dKiB of memory at the start, %s at most\n", i.File, kibibytes(i.Size), i.Memory>>10,
		quantity.Size(i.MaxMemory),
	)
	if i.ABI != "" {
		fmt.Fprintf(
			w, "needs ABI %s of this host's %s, capabilities %s\n", i.ABI, hostfuncs.Current,
			strings.Join(i.Capabilities, ", "),
		)
	}
	// The names are the module's, and each is a part of one line.
	list := func(title string, items []string) {
		if len(items) > 0 {
			fmt.Fprintf(w, "%s: %s\n", title, printable.Line(strings.Join(items, ", ")))
		}
	}
	list("features", i.Features)
	list("made by", i.Producers)
	var sections []string
	for _, each := range i.Custom {
		sections = append(sections, fmt.Sprintf("%s (%s)", each.Name, kibibytes(each.Size)))
	}
	list("custom sections", sections)
	fmt.Fprintln(w, "imports:")
	for _, s := range i.Imports {
		fmt.Fprintf(w, "  %s.%s %s%s\n", printable.Line(s.Module), printable.Line(s.Name), s.Signature, s.note())
	}
	names := make([]string, len(i.Exports))
	for at, s := range i.Exports {
		names[at] = s.Name
	}
	fmt.Fprintf(w, "exports: %s\n", printable.Line(strings.Join(names, " ")))
	if i.Runnable {
		fmt.Fprintln(w, "this host can run it")
		return
	}
	fmt.Fprintln(w, i.Reason)
}

// kibibytes is the size of a file.
func kibibytes(bytes int) string { return fmt.Sprintf("%.1fKiB", float64(bytes)/1024) }

// note describes an import.
func (s symbol) note() string {
	switch {
	case s.Module != hostfuncs.ModuleName:
		return ""
	case s.Since == "":
		return " [unknown here]"
	case s.Since == "1.0":
		return " [" + s.Capability + "]"
	}
	return " [" + s.Capability + ", since " + s.Since + "]"
}
