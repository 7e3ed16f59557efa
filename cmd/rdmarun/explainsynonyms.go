package main

import (
	"fmt"
	"io"
	"strings"
)

// synonym is what people look for under words that have no entry of their own.
type synonym struct {
	words   string // separated by spaces
	meaning string
	see     []string // words that rdmarun explains
	read    string   // a page of docs, or ""
}

const synonymTitle = "word without an entry of its own, and what does that here"

func synonyms() []synonym {
	return []synonym{
		{
			"soak endurance longevity",
			"repeat: {for: 1h} runs its steps for a time. With a name, reports show the count and the times of the " +
				"rounds, and totals of faults and counters",
			[]string{"repeat", "for", "rate"}, "docs/reference/language.md",
		},
		{
			"stress load",
			"measure with a depth and several queue pairs saturates a link. repeat: {for: 1m, rate: 1000/s} begins " +
				"a number of rounds a second. parallel runs steps at the same time",
			[]string{"measure", "repeat", "parallel"}, "docs/how-to/perftest.md",
		},
		{
			"ramp ramp-up rampup",
			"repeat: {stages: [{for: 10s, rate: 10/s}, {for: 30s, to: 1000/s}]} begins its rounds at a growing " +
				"rate, such as one connection each. measure: {stages: [{for: 10s, depth: 1}, {for: 30s, depth: 64}]} " +
				"raises the load step by step; of connections each stage has in_flight",
			[]string{"repeat", "stages", "measure"}, "docs/reference/language.md",
		},
		{
			"collect gather aggregate",
			"the results of a counted role are a list in expressions: map(client, .m.bytes) has a number of each " +
				"instance, for min, max, sum and count. assert: min(map(client, .m.bytes)) >= 0.9 * max(map(client, " +
				".m.bytes)) asks that all have nearly the same. A threshold on fairness or spread compares what the " +
				"instances have measured",
			[]string{"map", "sum", "count", "thresholds"}, "docs/reference/language.md",
		},
		{
			"fairness jain unfair",
			"fairness is a field of the metrics that thresholds limit: {metric: bandwidth, pass: [fairness > 0.95]} " +
				"compares all that was measured of one size. It is Jain's index, 1 where all have the same and 1/n " +
				"where one of n has everything. The field spread is the greatest divided by the least",
			[]string{"thresholds", "bandwidth", "loop"}, "docs/reference/language.md",
		},
		{
			"throughput bw goodput", "the metric bandwidth of measure {kind: bandwidth}, and of rdmarun perf write_bw",
			[]string{"bandwidth", "measure"}, "docs/how-to/perftest.md",
		},
		{
			"lat rtt ping", "the metric latency of measure {kind: latency}, and of rdmarun perf send_lat",
			[]string{"latency", "measure"}, "docs/how-to/perftest.md",
		},
		{
			"benchmark perf perftest", "rdmarun perf measures without a file; measure does in a scenario",
			[]string{"measure", "thresholds"}, "docs/how-to/perftest.md",
		},
		{
			"rerun replay reproduce",
			"a report ends each failure with the command that repeats it, and its seed. rdmarun run --last-failed " +
				"runs what failed last time",
			[]string{"seed"}, "docs/how-to/ci.md",
		},
		{
			"flaky intermittent",
			"rdmarun run --repeat until-fail runs until a case fails, --shuffle in another order; xfail marks a " +
				"failure that is known",
			[]string{"xfail", "repeat"}, "docs/how-to/ci.md",
		},
		{
			"hang hung stuck deadlock",
			"timeout of a file, a case or a step ends it, and the failure names the step; within bounds a wait. For " +
				"a guest that does not end, the failure names its function",
			[]string{"timeout", "within"}, "docs/how-to/failing-nic.md",
		},
		{
			"pcap pcapng tcpdump wireshark sniff",
			"rdmarun run --capture FILE writes the packets of soft, --capture-on-failure FOLDER those around failures",
			nil, "docs/reference/cli.md",
		},
		{
			"loss chaos netem inject", "fault drops, delays, duplicates, reorders or corrupts packets; heal ends it",
			[]string{"fault", "heal"}, "docs/how-to/fault-test.md",
		},
		{
			"cleanup teardown", "finally has steps that run however a case ends; fixtures have a teardown",
			[]string{"finally", "fixtures"}, "docs/reference/language.md",
		},
		{
			"parametrize sweep", "matrix makes a case for each combination of values; params are set by -p NAME=VALUE",
			[]string{"matrix", "params"}, "docs/reference/language.md",
		},
	}
}

func synonymRows() [][2]string {
	var rows [][2]string
	for _, each := range synonyms() {
		for word := range strings.FieldsSeq(each.words) {
			rows = append(rows, [2]string{word, each.meaning})
		}
	}
	return rows
}

func showSynonym(w io.Writer, word string) bool {
	for _, each := range synonyms() {
		for name := range strings.FieldsSeq(each.words) {
			if !strings.EqualFold(name, word) {
				continue
			}
			fmt.Fprintf(w, "%s: %s\n  %s\n", name, synonymTitle, each.meaning)
			for _, see := range each.see {
				fmt.Fprintf(w, "  see rdmarun explain %s\n", see)
			}
			if each.read != "" {
				fmt.Fprintf(w, "  see %s\n", each.read)
			}
			return true
		}
	}
	return false
}
