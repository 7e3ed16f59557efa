package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/meeting"
	"rdmarun/host/scenario/quantity"
)

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

func perfTestNames() (names []string) {
	for _, test := range perfTests {
		names = append(names, test.name)
	}
	return names
}

// findPerfTest is the index of a test, which may have the name of perftest's program; -1 for none.
func findPerfTest(name string) int {
	return slices.IndexFunc(perfTests, func(t perfTest) bool { return t.name == strings.TrimPrefix(name, "ib_") })
}

// perfFlags are the flags that perf does not share with run.
type perfFlags struct {
	sizes        sizesFlag
	all          bool
	duration     secondsFlag
	iterations   int64
	connections  int64
	warmup       secondsFlag
	qps          int64
	depth        int64
	receiveDepth int64
	postList     int64
	signalEvery  int64
	outstanding  int64
	inline       inlineFlag
	inFlight     int64
	bothWays     bool
	events       bool
	verify       bool
	print        bool
	loopback     bool
}

// secondsFlag is a duration, or a number of seconds as perftest has it.
type secondsFlag time.Duration

func (f *secondsFlag) String() string { return quantity.Time(time.Duration(*f)) }

func (*secondsFlag) Type() string { return "duration" }

// Set takes "2s", "250ms", "2" and "0.5".
func (f *secondsFlag) Set(text string) error {
	if _, err := strconv.ParseFloat(text, 64); err == nil {
		text += "s"
	}
	duration, err := time.ParseDuration(text)
	if err != nil {
		return fmt.Errorf("%q is neither a duration, such as 250ms or 2m, nor a number of seconds", text)
	}
	*f = secondsFlag(duration)
	return nil
}

// inlineFlag is a size, or "auto".
type inlineFlag string

func (f *inlineFlag) String() string { return string(*f) }

func (*inlineFlag) Type() string { return "size" }

func (f *inlineFlag) Set(text string) error {
	if text != "auto" {
		var size byteSize
		if err := size.Set(text); err != nil {
			return err
		}
		text = size.String()
	}
	*f = inlineFlag(text)
	return nil
}

// perfFlag is a flag of perf: its name, its letter in perftest, the tests that it is for, and how it is created.
type perfFlag struct {
	name, letter string
	fits         func(perfTest) bool
	make         func(set *pflag.FlagSet, name string)
}

// Tests that flags are for.
func (t perfTest) any() bool         { return true }
func (t perfTest) connections() bool { return t.kind == perfConnect }
func (t perfTest) messages() bool    { return t.kind != perfConnect }
func (t perfTest) bandwidth() bool   { return t.kind == perfBandwidth }
func (t perfTest) atomic() bool      { return strings.HasPrefix(t.op, "ATOMIC") }
func (t perfTest) receives() bool    { return t.op == "SEND" }

// payload marks tests with messages of any size, and inlined those with data that may be in the request
// (ibv_post_send(3)). limited marks those for which the responder limits how many are in flight.
func (t perfTest) payload() bool { return t.messages() && !t.atomic() }
func (t perfTest) inlined() bool { return t.op == "SEND" || t.op == "RDMA_WRITE" }
func (t perfTest) limited() bool { return t.bandwidth() && (t.atomic() || t.op == "RDMA_READ") }

// flags are those of the tests, in the order in which they help.
func (f *perfFlags) flags() []perfFlag {
	type set = *pflag.FlagSet
	messages, bandwidth, connections := perfTest.messages, perfTest.bandwidth, perfTest.connections
	return []perfFlag{
		{"sizes", "s", perfTest.payload, func(s set, name string) {
			s.Var(
				&f.sizes, name,
				"bytes of a message, but of atomics: 64,4KiB or 64..1MiB in powers of two (default 64KiB for "+
					"bandwidth, 2 for latency)",
			)
		}},
		{
			"all", "a", perfTest.payload,
			func(s set, name string) { s.BoolVar(&f.all, name, false, "the sizes 2..8MiB") },
		},
		{"duration", "D", messages, func(s set, name string) {
			s.Var(&f.duration, name, "how long each size is measured (in seconds without a unit)")
		}},
		{"iterations", "n", messages, func(s set, name string) {
			s.Int64Var(
				&f.iterations, name, 0,
				"round trips, or messages of each direction, of each size (instead of a duration)",
			)
		}},
		{
			"connections", "", connections,
			func(s set, name string) { s.Int64Var(&f.connections, name, 1000, "connect: how many are made") },
		},
		{"warmup", "", messages, func(s set, name string) {
			s.Var(&f.warmup, name, "unmeasured time at the start of each size")
		}},
		{"qps", "q", bandwidth, func(s set, name string) {
			s.Int64Var(
				&f.qps, name, 1, "bandwidth: queue pairs that transmit at once, each with a thread at either end",
			)
		}},
		{"depth", "t", bandwidth, func(s set, name string) {
			s.Int64Var(&f.depth, name, 128, "bandwidth: requests in flight of each queue pair")
		}},
		{"receive-depth", "r", perfTest.receives, func(s set, name string) {
			s.Int64Var(&f.receiveDepth, name, 0, "SEND: receives posted by each queue pair (default 128, latency 16)")
		}},
		{
			"post-list", "l", bandwidth,
			func(s set, name string) { s.Int64Var(&f.postList, name, 1, "bandwidth: requests a post") },
		},
		{"signal-every", "Q", bandwidth, func(s set, name string) {
			s.Int64Var(
				&f.signalEvery, name, 64,
				"bandwidth: every how many requests ask for a completion (at most as many as are in flight)",
			)
		}},
		{"outstanding", "", perfTest.limited, func(s set, name string) {
			s.Int64Var(
				&f.outstanding, name, 0,
				"bandwidth of READ and FETCH AND ADD: requests in flight, if fewer than --depth",
			)
		}},
		{"inline", "I", perfTest.inlined, func(s set, name string) {
			s.Var(&f.inline, name, "SEND and WRITE: messages up to this size, or auto, go inline")
		}},
		{"in-flight", "", connections, func(s set, name string) {
			s.Int64Var(&f.inFlight, name, 1, "connect: connections under way at once")
		}},
		{
			"bidirectional", "b", bandwidth,
			func(s set, name string) { s.BoolVar(&f.bothWays, name, false, "bandwidth: both ends transmit") },
		},
		{"events", "e", messages, func(s set, name string) {
			s.BoolVar(&f.events, name, false, "sleep until a completion comes, instead of polling")
		}},
		{
			"verify", "", perfTest.payload,
			func(s set, name string) { s.BoolVar(&f.verify, name, false, "check what arrives (not of atomics)") },
		},
		{
			"print", "", perfTest.any,
			func(s set, name string) { s.BoolVar(&f.print, name, false, "print the scenario, and run nothing") },
		},
		{
			"rdma_cm", "R", perfTest.any,
			func(s set, name string) { s.Bool(name, true, "nothing: perf always connects by rdma_cm") },
		},
		{"CPU-freq", "F", perfTest.any, func(s set, name string) {
			s.Bool(name, true, "nothing: perf needs no warning about the processor's frequency")
		}},
		{
			"report_gbits", "", perfTest.any,
			func(s set, name string) { s.Bool(name, true, "nothing: perf reports bits a second") },
		},
	}
}

// register makes the flags, and returns the part of the help that they are.
func (f *perfFlags) register(command *cobra.Command) flagGroup {
	group := flagGroup{title: "Test"}
	f.duration, f.warmup = secondsFlag(time.Second), secondsFlag(50*time.Millisecond)
	for _, each := range f.flags() {
		made := pflag.NewFlagSet("", pflag.ContinueOnError)
		each.make(made, each.name)
		flag := made.Lookup(each.name)
		flag.Shorthand = each.letter
		command.Flags().AddFlag(flag)
		group.names = append(group.names, each.name)
	}
	return group
}

// choose finds the tests of a command line, and refuses flags that mean nothing for any of them.
func (f *perfFlags) choose(command *cobra.Command, args []string) ([]perfTest, error) {
	if len(args) == 0 {
		return nil, withHint(
			usageError("what is to be measured?"), "one or several of: "+strings.Join(command.ValidArgs, ", "),
		)
	}
	var chosen []perfTest
	for i, name := range args {
		at := findPerfTest(name)
		if at < 0 {
			err := usageError("perf: %w", oneOf(name, command.ValidArgs))
			if others := slices.Delete(slices.Clone(args), i, i+1); len(others) > 0 && findPerfTest(others[0]) >= 0 &&
				diag.Suggest(name, command.ValidArgs) == "" {
				err = withHint(err, "a host is behind the tests: rdmarun perf "+strings.Join(append(others, name), " "))
			}
			return nil, err
		}
		chosen = append(chosen, perfTests[at])
	}
	for _, flag := range f.flags() {
		if command.Flags().Changed(flag.name) && !slices.ContainsFunc(chosen, flag.fits) {
			return nil, usageError("--%s means nothing for %s", flag.name, strings.Join(args, ", "))
		}
	}
	for _, each := range []struct { // of the others the measure step has a range
		name  string
		value int64
	}{
		{"iterations", f.iterations}, {"receive-depth", f.receiveDepth}, {"signal-every", f.signalEvery},
		{"outstanding", f.outstanding},
	} {
		if command.Flags().Changed(each.name) && each.value < 1 {
			return nil, usageError("--%s %d: must be at least 1", each.name, each.value)
		}
	}
	switch {
	case f.iterations > 0 && command.Flags().Changed("duration"):
		return nil, usageError("--iterations and --duration exclude each other")
	case f.all && len(f.sizes) > 0:
		return nil, usageError("--all and --sizes exclude each other")
	case f.duration <= 0 || f.duration > secondsFlag(24*time.Hour):
		return nil, usageError("--duration %s: must be greater than 0, at most 24h", &f.duration)
	case f.warmup < 0 || f.warmup > secondsFlag(time.Hour):
		return nil, usageError("--warmup %s: from 0 to an hour", &f.warmup)
	}
	return chosen, nil
}

// limit is longer than the run can take, unless it is stuck.
func (f *perfFlags) limit(tests []perfTest) time.Duration {
	limit := time.Minute
	for _, test := range tests {
		each := time.Duration(f.duration + f.warmup)
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
	case f.all:
		var sizes sizesFlag
		for size := byteSize(2); size <= 8<<20; size *= 2 {
			sizes = append(sizes, size)
		}
		return sizes
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
		add("duration", perfDuration(time.Duration(f.duration)))
	}
	if f.warmup > 0 {
		add("warmup", perfDuration(time.Duration(f.warmup)))
	}
	if test.kind == perfBandwidth {
		add("qps", f.qps)
		add("depth", f.depth)
		add("post_list", f.postList)
		every := min(f.signalEvery, f.depth)
		if f.outstanding > 0 && test.limited() {
			every = min(every, f.outstanding)
		}
		add("signal_every", max(1, every))
	}
	if f.receiveDepth > 0 && test.receives() {
		add("receive_depth", f.receiveDepth)
	}
	if f.outstanding > 0 && test.limited() {
		add("outstanding", f.outstanding)
	}
	if f.inline != "" && test.inlined() {
		add("inline", string(f.inline))
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

// settings are what must be equal at both ends: the tests, and each flag of any test, as the user writes it with its
// values.
func (f *perfFlags) settings(tests []perfTest) []meeting.Setting {
	var names []string
	for _, test := range tests {
		names = append(names, test.name)
	}
	all := []meeting.Setting{{Name: "tests", Value: strings.Join(names, " ")}}
	flags := f.flags()
	for _, test := range tests {
		for _, argument := range f.arguments(test) {
			name, value := argument[0], strings.Trim(argument[1], "[]")
			switch name {
			case "kind", "from", "to", "op":
				continue // the test's
			case "completion":
				name = "events"
			}
			name = strings.ReplaceAll(name, "_", "-")
			if at := slices.IndexFunc(flags, func(flag perfFlag) bool { return flag.name == name }); at >= 0 &&
				flags[at].letter != "" {
				name = "-" + flags[at].letter
			} else {
				name = "--" + name
			}
			at := slices.IndexFunc(all, func(s meeting.Setting) bool { return s.Name == name })
			if at < 0 {
				all = append(all, meeting.Setting{Name: name, Value: value})
			} else if !slices.Contains(strings.Split(all[at].Value, " and "), value) {
				all[at].Value += " and " + value
			}
		}
	}
	return all
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
