package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"rdmarun/host/doctor"
)

const doctorLong = `Look why RDMA will not work on this machine, and say what to type: kernel modules,
device files, ports, addresses, MTU, the limit of locked memory, what a container
lacks, a connection of this machine to itself over rdma_cm, and a self-test of the
embedded provider.  Each check ends ok, warn, fail or skip (it does not apply).
Use it first when "rdmarun devices" misses a device or registrations fail.

With --peer HOST it also asks rdma_cm for the way to another host: which device,
source address, GID and MTU a connection would have.

Exit code 4 when a check fails; warnings are no failure.`

// doctorVersion is raised when a field of the JSON changes its meaning or goes away.
const doctorVersion = 1

// diagnosis is what `doctor --format json` prints.
type diagnosis struct {
	Version int              `json:"version"`
	OK      bool             `json:"ok"`
	Checks  []doctor.Finding `json:"checks"`
}

func newDoctorCommand(a *app) *cobra.Command {
	format, peer := newFormatFlag("text", "json"), ""
	command := &cobra.Command{
		Use:     "doctor",
		Short:   "Say why RDMA will not work here, and what to type",
		Long:    doctorLong,
		Example: "  rdmarun doctor\n  rdmarun doctor --peer 192.0.2.2\n  rdmarun doctor --format json | jq '.checks[] | select(.status == \"fail\")'",
		Args:    cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			result := diagnosis{Version: doctorVersion, OK: true, Checks: doctor.Examine(command.Context(), thisMachine(peer))}
			for _, finding := range result.Checks {
				result.OK = result.OK && finding.Status != doctor.Fail
			}
			var err error
			if format.value == "json" {
				err = printJSON(a.stdout, result)
			} else {
				err = printFindings(a.stdout, result.Checks)
			}
			if err == nil && !result.OK {
				return reported(exitEnvironment)
			}
			return err
		},
	}
	format.register(command)
	command.Flags().StringVar(&peer, "peer", "", "also look for the way to this host, by name or address")
	completeFlag(command, "peer", cobra.NoFileCompletions)
	return command
}

func printFindings(w io.Writer, findings []doctor.Finding) error {
	table := newTable(w)
	counts := make(map[doctor.Status]int)
	for _, finding := range findings {
		counts[finding.Status]++
		word := string(finding.Status)
		if finding.Status == doctor.Fail {
			word = strings.ToUpper(word)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\n", word, finding.Title, finding.Detail)
		if finding.Fix != "" {
			fmt.Fprintf(table, "\t\tfix: %s\n", finding.Fix)
		}
	}
	fmt.Fprintf(table, "%s, %s\n", count(counts[doctor.Warn], "warning"), count(counts[doctor.Fail], "failure"))
	return table.Flush()
}
