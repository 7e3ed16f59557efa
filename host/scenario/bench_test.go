package scenario_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"rdmarun/host/record"
	"rdmarun/host/scenario"
)

// BenchmarkValidate checks one file of 60 lines; a thousand of them must take 2 s at most.
func BenchmarkValidate(b *testing.B) {
	text, err := os.ReadFile("../../scenarios/rping.yaml")
	if err != nil {
		b.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	path := write(b, b.TempDir()+"/rping.yaml", string(text))
	for b.Loop() {
		if checked := scenario.Check([]string{path}, scenario.Params{}); checked.Errors.Len() > 0 {
			b.Fatal(checked.Errors.Sorted())
		}
	}
	perLine := float64(b.Elapsed().Nanoseconds()) / float64(b.N) / float64(len(lines))
	b.ReportMetric(perLine*60*1000/1e9, "s/1000x60-lines")
}

// BenchmarkRping runs rping.yaml with 10 pings: everything but the start of the process.
func BenchmarkRping(b *testing.B) {
	provider := soft(b)
	scenarios := load(b, nil, "../../scenarios/rping.yaml")
	steps := 0
	for b.Loop() {
		totals, err := scenario.Run(context.Background(), scenarios, scenario.RunConfig{Provider: provider})
		if err != nil || totals.Passed != 1 {
			b.Fatal(totals, err)
		}
		steps += 286
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(steps), "ns/step")
}

// BenchmarkStep is what the engine adds to a verb: a step that does next to nothing.
func BenchmarkStep(b *testing.B) {
	const rounds = 10_000
	path := write(b, b.TempDir()+"/steps.yaml", fmt.Sprintf(`rdmarun: v1
roles: {client: {buffers: {tx: {size: 16}}}}
steps:
  - repeat: %d
    as: i
    do:
      - {role: client, fill: {buffer: tx, fields: [{u32: $(i)}]}}
`, rounds))
	provider := soft(b)
	scenarios := load(b, nil, path)
	for b.Loop() {
		totals, err := scenario.Run(context.Background(), scenarios, scenario.RunConfig{Provider: provider})
		if err != nil || totals.Passed != 1 {
			b.Fatal(totals, err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/rounds, "ns/step")
}

// BenchmarkManySteps checks and runs a file of ten thousand steps written out: time must grow with their
// number and no faster.
func BenchmarkManySteps(b *testing.B) {
	for _, n := range []int{100, 1000, 10000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var text strings.Builder
			text.WriteString("rdmarun: v1\nroles: {client: {buffers: {tx: {size: 16}}}}\nsteps:\n")
			for i := range n {
				fmt.Fprintf(
					&text,
					"  - {role: client, decode: {buffer: tx, fields: [{u8: n}]}, as: r%d, expect: {n: $(%d - %d)}}\n",
					i, i, i,
				)
			}
			path := write(b, b.TempDir()+"/steps.yaml", text.String())
			provider := soft(b)
			for b.Loop() {
				var totals record.Totals
				totals, err := scenario.Run(
					context.Background(), load(b, nil, path), scenario.RunConfig{Provider: provider},
				)
				if err != nil || totals.Passed != 1 {
					b.Fatal(totals, err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/step")
		})
	}
}
