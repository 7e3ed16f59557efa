package main

import (
	"bufio"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"rdmarun/host/conformance"
	"rdmarun/host/scenario/diag"
)

const conformanceLong = `Compare the traces of two runs of the same cases, call by call.

The results of calls must be equal: events and their order, statuses, errno, private
data, negotiated values, attributes of queue pairs, completions. Numbers and addresses
that a device assigns are ignored, and so is time.

An accepted difference of a kernel or a device has an entry in a file (--known). The
entry has the case, the reason, a prefix of the kernel's release, and exactly what
differs. An entry without a difference is an error.

If the device's cases were run in parts, name the records of each part.

Exit code 1 when something else differs, or an entry is stale.`

func newConformanceCommand(a *app) *cobra.Command {
	format := newFormatFlag("text", "json")
	var known string
	command := &cobra.Command{
		Use:   "conformance BASE DEVICE...",
		Short: "Compare two runs of the same cases, call by call",
		Long:  conformanceLong,
		Example: "  rdmarun run scenarios/conformance --out jsonl=soft.jsonl\n" +
			"  rdmarun run scenarios/conformance -P verbs --out jsonl=verbs.jsonl\n" +
			"  rdmarun conformance soft.jsonl verbs.jsonl --known scenarios/conformance/known.yaml",
		Args: cobra.MinimumNArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			return a.conformance(args[0], args[1:], known, format.value)
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return []string{"jsonl"}, cobra.ShellCompDirectiveFilterFileExt
		},
	}
	command.Flags().StringVar(&known, "known", "", "YAML file of known differences")
	format.register(command)
	return command
}

func (a *app) conformance(basePath string, devicePaths []string, knownPath, format string) error {
	base, err := a.readTraces(basePath)
	if err != nil {
		return err
	}
	device, err := a.readTraces(devicePaths[0])
	if err != nil {
		return err
	}
	for _, path := range devicePaths[1:] {
		part, err := a.readTraces(path)
		if err != nil {
			return err
		}
		if err := device.Join(part); err != nil {
			return fmt.Errorf("join %s: %w", path, err)
		}
	}
	known, err := a.knownDifferences(knownPath)
	if err != nil {
		return err
	}
	result := conformance.Compare(base, device, known)
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

func (a *app) readTraces(name string) (*conformance.Run, error) {
	in, closing, err := a.openRecords(name)
	if err != nil {
		return nil, err
	}
	defer closing()
	run, err := conformance.Read(in, name)
	return run, recordsError(err)
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

// showConformance prints the differences and the counts.  A difference is printed as an entry of the file of known
// differences, ready to be explained there.
func showConformance(out io.Writer, result *conformance.Result) error {
	w := bufio.NewWriter(out)
	for i := range result.Cases {
		one := &result.Cases[i]
		switch one.Outcome {
		case conformance.Expected:
			fmt.Fprintf(w, "known      %s\n           %s\n", one.Case, one.Reason)
		case conformance.OneSided:
			fmt.Fprintf(w, "one-sided  %s\n           %s\n", one.Case, one.Reason)
		case conformance.Different:
			fmt.Fprintf(w, "DIFFERENT\n- case: %q\n  reason: ?\n  differences:\n", one.Case)
			for _, difference := range one.Differences {
				fmt.Fprintf(w, "    - %q\n", difference)
			}
		}
	}
	for _, stale := range result.Stale {
		fmt.Fprintf(w, "STALE      %s\n", stale)
	}
	fmt.Fprintf(w, "%d equal, %d known, %d different, %d one-sided, %d not run (%s and %s)\n",
		result.Count(conformance.Equal), result.Count(conformance.Expected), result.Count(conformance.Different),
		result.Count(conformance.OneSided), result.Count(conformance.NotRun), result.Runs[0], result.Runs[1])
	return w.Flush()
}
