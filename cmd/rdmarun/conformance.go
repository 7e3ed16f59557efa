package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"rdmarun/host/conformance"
	"rdmarun/host/scenario/diag"
)

const conformanceLong = `Hold the traces of two runs of the same cases against each other, call by call.

What a call returned must be equal: events and their order, statuses, errno, private
data, negotiated values, attributes of queue pairs, completions.  Numbers and addresses
that a device gives out are left out, and so is time.

A difference that stands, because a kernel or a device is so, has an entry in a file
(--known) with the case, its reason, a beginning of the kernel's release, and exactly
what differs.  An entry that is no difference any more is an error.

Exit code 1 when something else differs, or an entry is stale.`

func newConformanceCommand(a *app) *cobra.Command {
	format := newFormatFlag("text", "json")
	var known string
	command := &cobra.Command{
		Use:   "conformance BASE DEVICE",
		Short: "Hold two runs of the same cases against each other, call by call",
		Long:  conformanceLong,
		Example: "  rdmarun run scenarios/conformance --out jsonl=soft.jsonl\n" +
			"  rdmarun run scenarios/conformance -P verbs --out jsonl=verbs.jsonl\n" +
			"  rdmarun conformance soft.jsonl verbs.jsonl --known scenarios/conformance/known.yaml",
		Args: cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			return a.conformance(args[0], args[1], known, format.value)
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return []string{"jsonl"}, cobra.ShellCompDirectiveFilterFileExt
		},
	}
	command.Flags().StringVar(&known, "known", "", "YAML file of differences that stand")
	format.register(command)
	return command
}

func (a *app) conformance(base, device, knownPath, format string) error {
	var runs [2]*conformance.Run
	for i, name := range []string{base, device} {
		in, closing, err := a.openRecords(name)
		if err != nil {
			return err
		}
		runs[i], err = conformance.Read(in, name)
		closing()
		if err != nil {
			return err
		}
	}
	known, err := a.knownDifferences(knownPath)
	if err != nil {
		return err
	}
	result := conformance.Compare(runs[0], runs[1], known)
	if format == "json" {
		err = printJSON(a.stdout, result)
	} else {
		err = showConformance(a.stdout, result)
	}
	if err != nil {
		return fmt.Errorf("write the comparison: %w", err)
	}
	if !result.OK() {
		return reported(exitFailed)
	}
	return nil
}

func (a *app) knownDifferences(path string) ([]conformance.Known, error) {
	if path == "" {
		return nil, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read known differences: %w", err)
	}
	wrong := &diag.List{}
	known := conformance.ReadKnown(path, text, wrong)
	return known, a.settingsErrors(wrong)
}
