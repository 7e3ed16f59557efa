package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"rdmarun/host/scenario"
	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/quantity"
)

const perfLong = `Measure without a scenario: bandwidth, latency or connections between two roles, "client"
and "server", with the tests that perftest has.  Several tests run one after another.

What runs is a scenario with one measure step a test.  --print prints it instead, to be kept,
changed and run by "rdmarun run"; "rdmarun explain measure" has all that such a step takes.

On soft both roles are on the embedded device; on hardware -P verbs takes the devices of this
machine, one for both roles or one each: -d server=mlx5_0 -d client=mlx5_1.

Tests:`

const perfExample = `  rdmarun perf write_bw
  rdmarun perf send_lat write_lat --sizes 2,64,4KiB --iterations 10000
  rdmarun perf write_bw --sizes 64..1MiB --duration 2s --qps 2 --bidirectional
  rdmarun perf connect --connections 1000
  rdmarun perf read_bw -P verbs -d server=mlx5_0 -d client=mlx5_1 -o csv=read.csv
  rdmarun perf write_lat --print > write_lat.yaml`

// perfKind is the kind of a measure step.
type perfKind string

const (
	perfBandwidth perfKind = "bandwidth"
	perfLatency   perfKind = "latency"
	perfConnect   perfKind = "connect"
)

// perfTest is a test by the name that perftest gives it.
type perfTest struct {
	name string
	kind perfKind
	op   string // the operation; none of connect
	doc  string
}

var perfTests = []perfTest{
	{"write_bw", perfBandwidth, "RDMA_WRITE", "bandwidth of RDMA WRITE"},
	{"read_bw", perfBandwidth, "RDMA_READ", "bandwidth of RDMA READ"},
	{"send_bw", perfBandwidth, "SEND", "bandwidth of SEND"},
	{"atomic_bw", perfBandwidth, "ATOMIC_FETCH_AND_ADD", "rate of FETCH AND ADD"},
	{"write_lat", perfLatency, "RDMA_WRITE", "latency of RDMA WRITE, half of a round trip"},
	{"read_lat", perfLatency, "RDMA_READ", "latency of RDMA READ"},
	{"send_lat", perfLatency, "SEND", "latency of SEND, half of a round trip"},
	{"atomic_lat", perfLatency, "ATOMIC_FETCH_AND_ADD", "latency of FETCH AND ADD"},
	{"connect", perfConnect, "", "connections made and ended"},
}

// perfFlags are the flags of perf beside those that it shares with run.
type perfFlags struct {
	sizes       sizesFlag
	duration    time.Duration
	iterations  uint64
	connections uint32
	warmup      time.Duration
	qps         uint8
	depth       uint16
	postList    uint16
	signalEvery uint16
	inline      byteSize
	inFlight    uint16
	bothWays    bool
	events      bool
	verify      bool
	print       bool
}

// perfGroups are the parts of the list of flags behind those of the tests themselves.
var perfGroups = []flagGroup{
	{"Target", []string{"provider", "device", "gid", "seed"}},
	{"Output", []string{"out", "out-dir", "baseline", "save-baseline", "verbose", "quiet", "units", "color", "log-file", "log-format"}},
	{"Limits", []string{"timeout"}},
}

// perfFlag is a flag of perf: its name, the tests that it is for, and how it is made.
type perfFlag struct {
	name string
	fits func(perfTest) bool
	make func(set *pflag.FlagSet, name string)
}

// Tests that flags are for.
func (t perfTest) any() bool         { return true }
func (t perfTest) connections() bool { return t.kind == perfConnect }
func (t perfTest) messages() bool    { return t.kind != perfConnect }
func (t perfTest) bandwidth() bool   { return t.kind == perfBandwidth }
func (t perfTest) atomic() bool      { return strings.HasPrefix(t.op, "ATOMIC") }

// payload is of messages that have any size, inlined of those whose data may be in the request (ibv_post_send(3)).
func (t perfTest) payload() bool { return t.messages() && !t.atomic() }
func (t perfTest) inlined() bool { return t.op == "SEND" || t.op == "RDMA_WRITE" }

// flags are those of the tests, in the order in which they help.
func (f *perfFlags) flags() []perfFlag {
	type set = *pflag.FlagSet
	messages, bandwidth, connections := perfTest.messages, perfTest.bandwidth, perfTest.connections
	return []perfFlag{
		{"sizes", perfTest.payload, func(s set, name string) {
			s.Var(&f.sizes, name, "bytes of a message, but of atomics: 64,4KiB or 64..1MiB in powers of two; 64KiB for bandwidth, 2 for latency unless said")
		}},
		{"duration", messages, func(s set, name string) {
			s.DurationVar(&f.duration, name, time.Second, "how long each size is measured")
		}},
		{"iterations", messages, func(s set, name string) {
			s.Uint64Var(&f.iterations, name, 0, "round trips, or messages of each direction, of each size; instead of a duration")
		}},
		{"connections", connections, func(s set, name string) { s.Uint32Var(&f.connections, name, 1000, "connect: how many are made") }},
		{"warmup", messages, func(s set, name string) {
			s.DurationVar(&f.warmup, name, 50*time.Millisecond, "time before what counts, for each size")
		}},
		{"qps", bandwidth, func(s set, name string) {
			s.Uint8Var(&f.qps, name, 1, "bandwidth: queue pairs that transmit at once, each with a thread at either end")
		}},
		{"depth", bandwidth, func(s set, name string) {
			s.Uint16Var(&f.depth, name, 128, "bandwidth: requests in flight of each queue pair")
		}},
		{"post-list", bandwidth, func(s set, name string) { s.Uint16Var(&f.postList, name, 1, "bandwidth: requests a post") }},
		{"signal-every", bandwidth, func(s set, name string) {
			s.Uint16Var(&f.signalEvery, name, 64, "bandwidth: every so many requests ask for a completion; at most the depth")
		}},
		{"inline", perfTest.inlined, func(s set, name string) {
			s.Var(&f.inline, name, "SEND and WRITE: messages up to so many bytes go inline")
		}},
		{"in-flight", connections, func(s set, name string) {
			s.Uint16Var(&f.inFlight, name, 1, "connect: connections under way at once")
		}},
		{"bidirectional", bandwidth, func(s set, name string) { s.BoolVar(&f.bothWays, name, false, "bandwidth: both ends transmit") }},
		{"events", messages, func(s set, name string) {
			s.BoolVar(&f.events, name, false, "sleep until a completion comes, instead of polling")
		}},
		{"verify", perfTest.payload, func(s set, name string) { s.BoolVar(&f.verify, name, false, "check what arrives (not of atomics)") }},
		{"print", perfTest.any, func(s set, name string) { s.BoolVar(&f.print, name, false, "print the scenario, and run nothing") }},
	}
}

func newPerfCommand(a *app) *cobra.Command {
	flags := newRunFlags()
	var perf perfFlags
	var tests strings.Builder
	var names []string
	for _, test := range perfTests {
		fmt.Fprintf(&tests, "\n  %-12s%s", test.name, test.doc)
		names = append(names, test.name)
	}
	command := &cobra.Command{
		Use:       "perf TEST...",
		Short:     "Measure bandwidth, latency or connections without a scenario",
		Long:      perfLong + tests.String(),
		Example:   perfExample,
		ValidArgs: names,
		RunE: func(command *cobra.Command, args []string) error {
			chosen, err := perf.choose(command, args)
			if err != nil {
				return err
			}
			text := perf.scenario(chosen)
			if perf.print {
				_, err := fmt.Fprint(a.stdout, text)
				return err
			}
			return runPerf(command.Context(), a, &flags, strings.Join(args, "-")+".yaml", text)
		},
	}
	flags.registerTarget(a, command)
	flags.registerOutput(command)
	flags.registerTimeout(command)
	groupFlags(command, append([]flagGroup{perf.register(command)}, perfGroups...))
	return command
}

// register makes the flags, and returns the part of the help that they are.
func (f *perfFlags) register(command *cobra.Command) flagGroup {
	group := flagGroup{title: "Test"}
	for _, flag := range f.flags() {
		flag.make(command.Flags(), flag.name)
		group.names = append(group.names, flag.name)
	}
	return group
}

// choose finds the tests of a command line, and refuses flags that mean nothing for any of them.
func (f *perfFlags) choose(command *cobra.Command, args []string) ([]perfTest, error) {
	if len(args) == 0 {
		return nil, withHint(usageError("what is to be measured?"), "one or several of: "+strings.Join(command.ValidArgs, ", "))
	}
	var chosen []perfTest
	for _, name := range args {
		at := slices.IndexFunc(perfTests, func(t perfTest) bool { return t.name == strings.TrimPrefix(name, "ib_") })
		if at < 0 {
			return nil, withHint(usageError("there is no test %q", name), diag.OneOf(name, command.ValidArgs))
		}
		chosen = append(chosen, perfTests[at])
	}
	for _, flag := range f.flags() {
		if command.Flags().Changed(flag.name) && !slices.ContainsFunc(chosen, flag.fits) {
			return nil, usageError("--%s means nothing for %s", flag.name, strings.Join(args, ", "))
		}
	}
	switch {
	case f.iterations > 0 && command.Flags().Changed("duration"):
		return nil, usageError("--iterations and --duration exclude each other")
	case command.Flags().Changed("iterations") && f.iterations == 0:
		return nil, usageError("--iterations 0: at least 1")
	case f.duration <= 0 || f.duration > 24*time.Hour:
		return nil, usageError("--duration %s: more than nothing, and a day at most", quantity.Time(f.duration))
	case f.warmup < 0 || f.warmup > time.Hour:
		return nil, usageError("--warmup %s: from 0 to an hour", f.warmup)
	}
	return chosen, nil
}

// limit is longer than the run can take, unless it is stuck.
func (f *perfFlags) limit(tests []perfTest) time.Duration {
	limit := time.Minute
	for _, test := range tests {
		each := f.duration + f.warmup
		if f.iterations > 0 || test.kind == perfConnect {
			each = 10 * time.Minute
		}
		limit += time.Duration(len(f.sizesOf(test))+1) * each
	}
	return limit.Round(time.Second)
}

func (f *perfFlags) sizesOf(test perfTest) []byteSize {
	switch {
	case test.kind == perfConnect:
		return nil
	case test.atomic():
		return []byteSize{8}
	case len(f.sizes) > 0:
		return f.sizes
	case test.kind == perfBandwidth:
		return []byteSize{64 << 10}
	}
	return []byteSize{2}
}

// scenario is the text of what runs.
func (f *perfFlags) scenario(tests []perfTest) string {
	var out strings.Builder
	limit := perfDuration(f.limit(tests))
	fmt.Fprintf(&out, "rdmarun: v1\nname: perf\ntags: [perf]\ntimeout: %s\nstall_timeout: %s\n\n", limit, limit)
	fmt.Fprint(&out, "roles: {server: {cpu: local_numa}, client: {cpu: local_numa}}\n\nsteps:\n")
	for _, test := range tests {
		fmt.Fprintf(&out, "  - name: %s\n    measure:\n", test.name)
		for _, argument := range f.arguments(test) {
			fmt.Fprintf(&out, "      %s: %s\n", argument[0], argument[1])
		}
		fmt.Fprintf(&out, "    tags: {test: %s}\n", test.name)
	}
	return out.String()
}

// arguments are those of a measure step, in the order in which they read best.
func (f *perfFlags) arguments(test perfTest) [][2]string {
	arguments := [][2]string{{"kind", string(test.kind)}, {"from", "client"}, {"to", "server"}}
	add := func(name string, value any) { arguments = append(arguments, [2]string{name, fmt.Sprint(value)}) }
	if test.kind == perfConnect {
		add("connections", f.connections)
		add("in_flight", f.inFlight)
		return arguments
	}
	add("op", test.op)
	add("sizes", sizesFlag(f.sizesOf(test)).list())
	if f.iterations > 0 {
		add("iterations", f.iterations)
	} else {
		add("duration", perfDuration(f.duration))
	}
	if f.warmup > 0 {
		add("warmup", perfDuration(f.warmup))
	}
	if test.kind == perfBandwidth {
		add("qps", f.qps)
		add("depth", f.depth)
		add("post_list", f.postList)
		add("signal_every", max(1, min(f.signalEvery, f.depth)))
	}
	if f.inline > 0 && test.inlined() {
		add("inline", f.inline.String())
	}
	if f.bothWays && test.bandwidth() {
		add("bidirectional", true)
	}
	if f.events {
		add("completion", "event")
	}
	if f.verify && test.payload() {
		add("verify", "data")
	}
	return arguments
}

// perfDuration writes a duration as the language reads it.
func perfDuration(d time.Duration) string {
	for _, unit := range []struct {
		name string
		of   time.Duration
	}{{"s", time.Second}, {"ms", time.Millisecond}, {"us", time.Microsecond}} {
		if d%unit.of == 0 {
			return fmt.Sprintf("%d%s", d/unit.of, unit.name)
		}
	}
	return fmt.Sprintf("%dns", d)
}

// runPerf runs a text as the scenario of that path.
func runPerf(ctx context.Context, a *app, flags *runFlags, path, text string) error {
	folder, err := a.temporaryFolder("the scenario of the tests")
	if err != nil {
		return err
	}
	file := filepath.Join(folder, "perf.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return withExit(exitEnvironment, fmt.Errorf("the scenario of the tests: %w", err))
	}
	flags.unlisted = true
	config, err := flags.config(a)
	if err != nil {
		return err
	}
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

// flagErrors says what is wrong with the values of flags, which the language has found in the scenario that is made of them:
// each flag but some is an argument of measure, in a line of its own.
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
