package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"rdmarun/host/scenario"
	"rdmarun/host/scenario/diag"
)

const perfLong = `Measure without a scenario: bandwidth, latency or connections between two roles, "client"
and "server", with the tests that perftest has.  Several tests run one after another.

On one machine, one process plays both roles.  On two, type the same command on both:
with --server on the server, and with the server's name behind the tests on the client.
They meet at TCP port 18516 (--meet); with --server, whoever reaches that port may be the
client.  Both print the results, and each with -i of its own also figures while it runs.
--lab and --nats instead start both roles from here.

What runs is a scenario with one measure step a test.  --print prints it instead, to be kept,
changed and run by "rdmarun run"; "rdmarun explain measure" has all that such a step takes.

The flags have the letters that they have in perftest, and "rdmarun help perftest" has all of
perftest's flags.  On soft both roles are on the embedded device; on hardware -P verbs takes
the devices of this machine, one for both roles or one each: -d server=mlx5_0 -d client=mlx5_1.

Tests:`

const perfExample = `  rdmarun perf write_bw
  rdmarun perf write_bw --server           # on the host 192.0.2.1,
  rdmarun perf write_bw 192.0.2.1 -i 1s    # and on another
  rdmarun perf send_lat write_lat -s 2,64,4KiB -n 10000
  rdmarun perf write_bw -s 64..1MiB -D 2 -q 2 -b
  rdmarun perf connect --connections 1000
  rdmarun perf read_bw -P verbs -d server=mlx5_0 -d client=mlx5_1 -o csv=read.csv
  rdmarun perf write_bw --lab lab.yaml --place server=a,client=b
  rdmarun perf write_lat --print > write_lat.yaml`

// perfGroups are the parts of the list of flags behind those of the tests themselves.
var perfGroups = []flagGroup{
	{
		"Two hosts",
		[]string{
			"server", "meet", "wait", "role", "peer", "lab", "place", "nats", "nats-user", "creds", "nkey", "tlsca",
			"tlscert", "tlskey",
		},
	},
	{"Target", []string{"provider", "device", "gid", "link", "seed"}},
	{
		"Output",
		[]string{
			"interval", "out", "out-dir", "baseline", "save-baseline", "capture", "capture-snaplen", "verbose", "quiet",
			"units", "color", "log-file", "log-format",
		},
	},
	{"Limits", []string{"timeout"}},
}

func newPerfCommand(a *app) *cobra.Command {
	flags := newRunFlags()
	var perf perfFlags
	var tests strings.Builder
	for _, test := range perfTests {
		fmt.Fprintf(&tests, "\n  %-12s%s", test.name, test.doc)
	}
	command := &cobra.Command{
		Use:       "perf TEST... [HOST]",
		Short:     "Measure bandwidth, latency or connections without a scenario",
		Long:      perfLong + tests.String(),
		Example:   perfExample,
		ValidArgs: perfTestNames(),
		RunE: func(command *cobra.Command, args []string) error {
			args, host := perf.splitHost(args)
			chosen, err := perf.choose(command, args)
			if err != nil {
				return err
			}
			text := perf.scenario(chosen)
			if perf.print {
				_, err := fmt.Fprint(a.stdout, text)
				return err
			}
			if err := perf.assign(command, &flags.shared, host); err != nil {
				return err
			}
			flags.shared.settings = perf.settings(chosen)
			return runPerf(command, a, &flags, strings.Join(args, "-")+".yaml", text)
		},
	}
	flags.registerTarget(a, command, "x")
	flags.registerOutput(command, "")
	flags.registerTimeout(command)
	flags.shared.register(command, "p")
	flags.shared.ofPerf = true
	flags.registerLab(a, command)
	command.Flags().BoolVar(
		&perf.server, "server", false,
		"serve a client on this or another host (--role server --meet :18516 --wait 10m)",
	)
	groupFlags(command, append([]flagGroup{perf.register(command)}, perfGroups...))
	return command
}

// splitHost takes a host behind the tests of a command line apart: a last word that is no test, and looks like none.
func (f *perfFlags) splitHost(args []string) (tests []string, host string) {
	last := len(args) - 1
	if last < 1 || findPerfTest(args[last]) >= 0 || diag.Suggest(args[last], perfTestNames()) != "" {
		return args, ""
	}
	return args[:last], args[last]
}

// assign makes this process the server or the client of two.
func (f *perfFlags) assign(command *cobra.Command, shared *participantFlags, host string) error {
	switch {
	case f.server && host != "":
		return withHint(
			usageError("--server and the host %s: the server waits for the client, and needs no host", host),
			"leave one of them out",
		)
	case (f.server || host != "") && len(shared.roles) > 0:
		return withHint(
			usageError("--role %s: --server and a host say which role this process plays", shared.roles[0]),
			"leave --role out",
		)
	case f.server:
		shared.roles, shared.typed = []string{"server"}, "--server"
		if !strings.Contains(shared.meet, ":") {
			shared.meet = ":" + shared.meet
		}
		if !command.Flags().Changed("wait") {
			shared.wait = 10 * time.Minute
		}
	case host != "":
		shared.roles, shared.host, shared.typed = []string{"client"}, host, "host "+host
	}
	return nil
}

// runPerf runs a text as the scenario of that path.
func runPerf(command *cobra.Command, a *app, flags *runFlags, path, text string) error {
	folder, err := a.temporaryFolder("the scenario of the tests")
	if err != nil {
		return err
	}
	file := filepath.Join(folder, "perf.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return withExit(exitEnvironment, fmt.Errorf("the scenario of the tests: %w", err))
	}
	flags.unlisted = true
	defer flags.lab.end()
	config, err := flags.begin(command, a)
	if err != nil {
		return err
	}
	ctx := command.Context()
	checked, err := scenario.CheckIn(ctx, func(string) string { return file }, []string{path}, scenario.Params{})
	if err != nil {
		return err
	}
	if err := flagErrors(checked.Errors); err != nil {
		return err
	}
	if err := a.reportChecked(checked, flags.color.style(a, a.stderr)); err != nil {
		return err
	}
	return runChecked(ctx, a, flags, config, checked)
}

// flagErrors translates errors in the scenario that is made of the flags to errors of the
// flags: each flag but some is an argument of measure, in a line of its own.
func flagErrors(found *diag.List) error {
	var all []error
	for _, each := range found.Sorted() {
		key, _, isKey := strings.Cut(strings.TrimSpace(each.Span.Source.Line(each.Span.Line)), ":")
		if !isKey || each.Code.IsWarning() {
			continue
		}
		all = append(all, withHint(usageError("--%s: %s", strings.ReplaceAll(key, "_", "-"), each.Message), each.Hint))
	}
	return errors.Join(all...)
}
