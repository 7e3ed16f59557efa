package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"rdmarun/host/lab/agent"
	"rdmarun/host/scenario"
	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/shell"
	"rdmarun/rdmacore"
)

const perfLong = `Measure bandwidth, latency or connections between two roles, "client"
and "server", with the tests of perftest. It needs no scenario. Several tests run one
after another.

Without a host, perf is the server: it prints the command of the client, and waits for
it. With the server's name behind the tests, perf is the client. They meet at TCP port
18516 (--meet), and any process that reaches this port may be the client. Both print the
results. With -i, each also prints values while it runs. --loopback plays both roles in
this process; --lab and --nats start them on other hosts.

perf runs a scenario with one measure step a test. --print prints it instead, so that
you can save it, change it, and run it by "rdmarun run". "rdmarun explain measure" lists
the arguments of such a step.

The flags have the letters of perftest's, and "rdmarun help perftest" lists all of
perftest's flags. On soft both roles use the embedded device. With -P verbs they use the
devices of this host, one for both roles or one each: -d server=mlx5_0 -d client=mlx5_1.

Tests:`

const perfExample = `  rdmarun perf write_bw                    # on the host 192.0.2.1,
  rdmarun perf write_bw 192.0.2.1 -i 1s    # and on another
  rdmarun perf write_bw --loopback         # both roles here
  rdmarun perf send_lat write_lat -s 2,64,4KiB -n 10000 --loopback
  rdmarun perf write_bw -s 64..1MiB -D 2 -q 2 -b --loopback
  rdmarun perf connect --connections 1000 --loopback
  rdmarun perf read_bw --loopback -P verbs -d server=mlx5_0 -d client=mlx5_1 -o csv=read.csv
  rdmarun perf write_bw --lab lab.yaml --place server=a,client=b
  rdmarun perf write_lat --print > write_lat.yaml`

// perfOutput is the title of the flags that change what perf shows and writes.
const perfOutput = "Output"

// perfGroups are the parts of the list of flags behind those of the tests themselves.
var perfGroups = []flagGroup{
	{
		"Two hosts",
		[]string{
			"loopback", "meet", "wait", "role", "peer", "lab", "place", "nats", "nats-user", "creds", "nkey", "tlsca",
			"tlscert", "tlskey",
		},
	},
	{"Target", []string{"provider", "device", "gid", "link", "seed"}},
	{
		perfOutput,
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
			flags.whole = perfCommand(command.Flags(), args, showsOnly)
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
			if err := perf.assign(command, &flags, args, host); err != nil {
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
		&perf.loopback, "loopback", false, "play both roles in this process, instead of waiting for a client",
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

// serverWait is how long a server waits for its client by default.
const serverWait = 10 * time.Minute

// assign makes this process the server or the client of two, unless it plays both roles, or agents do.
func (f *perfFlags) assign(command *cobra.Command, flags *runFlags, tests []string, host string) error {
	shared := &flags.shared
	switch {
	case f.loopback && (host != "" || len(shared.roles) > 0 || flags.lab.active()):
		return withHint(
			usageError("--loopback plays both roles in this process, and needs no other"),
			"leave out --loopback, or the host, --role, --lab and --nats",
		)
	case host != "" && flags.lab.active():
		return withHint(
			usageError("%s: with a lab, its agents play both roles", host), "leave out the host, or --lab and --nats",
		)
	case command.Flags().Changed("link") && flags.link.value != rdmacore.LinkUDP &&
		!f.loopback && !flags.lab.active():
		return withHint(
			usageError("--link %s: the other role is in another process, which only udp reaches", flags.link.value),
			"leave --link out, or play both roles here: --loopback",
		)
	case host != "" && len(shared.roles) > 0:
		return withHint(
			usageError("--role %s: with a host behind the tests, this process is the client", shared.roles[0]),
			"leave --role out",
		)
	case f.loopback, len(shared.roles) > 0, host == "" && flags.lab.active():
		return nil
	case host != "":
		shared.roles, shared.host, shared.typed = []string{"client"}, host, "host "+host
	default:
		shared.roles, shared.typed = []string{"server"}, "server"
		if !strings.Contains(shared.meet, ":") {
			shared.meet = ":" + shared.meet
		}
		if !command.Flags().Changed("wait") {
			shared.wait = serverWait
		}
		shared.other = f.clientCommand(command.Flags(), shared, tests)
	}
	return flags.places.playedBy(shared.roles[0])
}

// clientCommand is what to type on the other host.
func (f *perfFlags) clientCommand(set *pflag.FlagSet, shared *participantFlags, tests []string) string {
	host, port, err := shared.meetingPlace()
	if err != nil {
		return "" // what follows reports it
	}
	words := perfCommand(set, tests, func(name string) bool { return showsOnly(name) || ofThisEnd[name] })
	if port != strconv.Itoa(meetPort) {
		words += " --meet " + port
	}
	if address := net.ParseIP(host); host == "" || address != nil && address.IsUnspecified() {
		host = ownHost()
	}
	return words + " " + shell.Word(host)
}

// ofThisEnd are the flags of one end that the other end does not repeat.
var ofThisEnd = map[string]bool{
	"meet": true, "wait": true, "device": true, "gid": true, "timeout": true, "baseline": true, "peer": true,
}

// ownHost is an address by which other hosts may reach this one.
func ownHost() string {
	if address := agent.Routed(); address.IsValid() {
		return address.String()
	}
	return "HOST"
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

// showsOnly reports whether a flag only changes what perf shows and writes, or is added to a command that repeats it.
func showsOnly(name string) bool {
	if name == "seed" || name == "print" {
		return true
	}
	for _, group := range perfGroups {
		if group.title == perfOutput && slices.Contains(group.names, name) {
			return name != "baseline"
		}
	}
	return false
}

// perfCommand is the command line of these words and of the flags that are set, but for those to leave out.
func perfCommand(set *pflag.FlagSet, args []string, without func(flag string) bool) string {
	words := []string{"rdmarun", "perf"}
	for _, word := range args {
		words = append(words, shell.Word(word))
	}
	set.Visit(func(flag *pflag.Flag) {
		values := []string{flag.Value.String()}
		if list, is := flag.Value.(pflag.SliceValue); is {
			values = list.GetSlice()
		}
		for _, value := range values {
			switch {
			case without(flag.Name):
			case flag.Value.Type() == "bool":
				words = append(words, "--"+flag.Name+map[bool]string{false: "=" + value}[value == "true"])
			default:
				words = append(words, "--"+flag.Name, shell.Word(strings.ReplaceAll(value, ", ", ",")))
			}
		}
	})
	return strings.Join(words, " ")
}

// flagErrors translates errors in the scenario that is made of the flags to errors of the flags. Each flag but some is
// an argument of measure, in a line of its own.
func flagErrors(found *diag.List) error {
	var all []error
	for _, each := range found.Sorted() {
		key, _, isKey := strings.Cut(strings.TrimSpace(each.Span.Source.Line(each.Span.Line)), ":")
		if !isKey || each.Code.IsWarning() {
			continue
		}
		message := strings.TrimPrefix(each.Message, key+": ")
		all = append(all, withHint(usageError("--%s: %s", strings.ReplaceAll(key, "_", "-"), message), each.Hint))
	}
	return errors.Join(all...)
}
