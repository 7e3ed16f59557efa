package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"rdmarun/host/scenario"
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

// perfGroups are the parts of the list of flags.
var perfGroups = []flagGroup{
	{"Test", []string{"sizes", "duration", "iterations", "connections", "warmup", "qps", "depth", "post-list", "signal-every",
		"inline", "in-flight", "bidirectional", "events", "verify", "print"}},
	{"Target", []string{"provider", "device", "gid", "seed"}},
	{"Output", []string{"out", "out-dir", "baseline", "save-baseline", "verbose", "quiet", "units", "color", "log-file", "log-format"}},
	{"Limits", []string{"timeout"}},
}

// perfKinds are the kinds of test that a flag is for; those that are not here are for all.
var perfKinds = map[string][]perfKind{
	"sizes":         {perfBandwidth, perfLatency},
	"duration":      {perfBandwidth, perfLatency},
	"iterations":    {perfBandwidth, perfLatency},
	"connections":   {perfConnect},
	"warmup":        {perfBandwidth, perfLatency},
	"qps":           {perfBandwidth},
	"depth":         {perfBandwidth},
	"post-list":     {perfBandwidth},
	"signal-every":  {perfBandwidth},
	"inline":        {perfBandwidth, perfLatency},
	"in-flight":     {perfConnect},
	"bidirectional": {perfBandwidth},
	"events":        {perfBandwidth, perfLatency},
	"verify":        {perfBandwidth, perfLatency},
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
	perf.register(command)
	groupFlags(command, perfGroups)
	return command
}

func (f *perfFlags) register(command *cobra.Command) {
	set := command.Flags()
	set.Var(&f.sizes, "sizes", "bytes of a message: 64,4KiB or 64..1MiB in powers of two; 64KiB for bandwidth, 2 for latency unless said")
	set.DurationVar(&f.duration, "duration", time.Second, "how long each size is measured")
	set.Uint64Var(&f.iterations, "iterations", 0, "round trips, or messages of each direction, of each size; instead of a duration")
	set.Uint32Var(&f.connections, "connections", 1000, "connect: how many are made")
	set.DurationVar(&f.warmup, "warmup", 50*time.Millisecond, "time before what counts, for each size")
	set.Uint8Var(&f.qps, "qps", 1, "bandwidth: queue pairs that transmit at once, each with a thread at either end")
	set.Uint16Var(&f.depth, "depth", 128, "bandwidth: requests in flight of each queue pair")
	set.Uint16Var(&f.postList, "post-list", 1, "bandwidth: requests a post")
	set.Uint16Var(&f.signalEvery, "signal-every", 64, "bandwidth: every so many requests ask for a completion; at most the depth")
	set.Var(&f.inline, "inline", "SEND and WRITE: messages up to so many bytes go inline")
	set.Uint16Var(&f.inFlight, "in-flight", 1, "connect: connections under way at once")
	set.BoolVar(&f.bothWays, "bidirectional", false, "bandwidth: both ends transmit")
	set.BoolVar(&f.events, "events", false, "sleep until a completion comes, instead of polling")
	set.BoolVar(&f.verify, "verify", false, "check what arrives (not of atomics)")
	set.BoolVar(&f.print, "print", false, "print the scenario, and run nothing")
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
			return nil, withHint(usageError("there is no test %q", name), "one or several of: "+strings.Join(command.ValidArgs, ", "))
		}
		chosen = append(chosen, perfTests[at])
	}
	for name, kinds := range perfKinds {
		if command.Flags().Changed(name) && !slices.ContainsFunc(chosen, func(t perfTest) bool { return slices.Contains(kinds, t.kind) }) {
			return nil, usageError("--%s means nothing for %s", name, strings.Join(args, ", "))
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

// limit is a time that the run cannot take unless it is stuck.
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
	case strings.HasPrefix(test.op, "ATOMIC"):
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
	atomic := strings.HasPrefix(test.op, "ATOMIC")
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
	if f.inline > 0 && (test.op == "SEND" || test.op == "RDMA_WRITE") {
		add("inline", f.inline.String())
	}
	if f.bothWays && test.kind == perfBandwidth {
		add("bidirectional", true)
	}
	if f.events {
		add("completion", "event")
	}
	if f.verify && !atomic {
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
	if err := a.reportChecked(checked, flags.color.style(a, a.stderr)); err != nil {
		return err
	}
	return runChecked(ctx, a, flags, config, checked)
}
