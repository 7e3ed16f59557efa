package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"rdmarun/host/doctor"
	"rdmarun/host/scenario"
)

const doctorLong = `Look why RDMA will not work on this machine, and say what to type: kernel modules,
device files, ports, addresses, MTU, the limit of locked memory, and a self-test of
the embedded provider.  Each check ends ok, warn, fail or skip (it does not apply).
Use it first when "rdmarun devices" misses a device or registrations fail.

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
	format := newFormatFlag("text", "json")
	command := &cobra.Command{
		Use:   "doctor",
		Short: "Say why RDMA will not work here, and what to type",
		Long:  doctorLong,
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			result := diagnosis{Version: doctorVersion, OK: true, Checks: doctor.Examine(command.Context(), thisMachine())}
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
	return command
}

func thisMachine() doctor.Machine {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &limit); err != nil {
		limit.Cur = 0
	}
	return doctor.Machine{
		Files: os.DirFS("/"),
		Open: func(path string) error {
			file, err := os.OpenFile(path, os.O_RDWR, 0)
			if err != nil {
				return err
			}
			return file.Close()
		},
		LockedMemory: limit.Cur,
		SelfTest:     selfTest,
	}
}

// selfTest runs the scenario that `new` writes: a connection, a message, and an orderly end.
func selfTest(ctx context.Context) (detail string, err error) {
	folder, err := os.MkdirTemp("", "rdmarun-doctor-*")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	text, err := templateFiles.ReadFile("templates/rping.yaml")
	if err != nil {
		return "", err
	}
	path := filepath.Join(folder, "self-test.yaml")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return "", err
	}
	checked := scenario.Check([]string{path}, scenario.Params{})
	if checked.Errors.Len() > 0 {
		return "", errors.New("the self-test is not valid")
	}
	begin := time.Now()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	totals, err := scenario.Run(ctx, checked.Scenarios, scenario.RunConfig{Open: scenario.OpenSoft, ProviderName: softProvider})
	if err != nil {
		return "", err
	}
	if totals.Passed != 1 {
		return "", errors.New("a connection and a message on provider soft did not come about")
	}
	return fmt.Sprintf("connected, sent and disconnected in %s", time.Since(begin).Round(10*time.Microsecond)), nil
}

func printFindings(w io.Writer, findings []doctor.Finding) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
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
