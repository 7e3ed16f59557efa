package scenario_test

import (
	"slices"
	"strings"
	"testing"

	"rdmarun/host/record"
	"rdmarun/host/scenario"
)

// ofFixtures are the lines of the log, which the fixtures of shared.yaml write.
func (c *collector) ofFixtures() string {
	var lines []string
	for _, line := range c.lines {
		if line.Text != "between" {
			lines = append(lines, line.Text)
		}
	}
	return strings.Join(lines, ", ")
}

// TestSharedFixtures: cases share fixtures of the file as long as these are as they were; a case that changes them ends
// them, and the next one has them anew, with memory as it was.
func TestSharedFixtures(t *testing.T) {
	const (
		both  = "listens, connected, "
		ended = "connected no more, listens no more"
	)
	scenarios := load(t, nil, "testdata/run/shared.yaml")
	for _, jobs := range []int{1, 3} {
		seen := &collector{}
		totals, err := scenario.Run(t.Context(), scenarios, scenario.RunConfig{
			Open: scenario.OpenSoft, ProviderName: "soft", Jobs: jobs, Consumers: []record.Consumer{seen},
			Warn: func(text string) { t.Error(text) },
		})
		// The last case is left out: the report would not show how the providers of the one before end.
		want := both + "own, own no more, " + ended + ", listens, connected, " + ended + ", listens, connected"
		if err != nil || totals.Passed != 11 || totals.Skipped != 1 || seen.ofFixtures() != want {
			t.Errorf("%d jobs: %+v %v\n%s", jobs, totals, err, seen.ofFixtures())
		}
	}
	// Alone each has its own, and so has each attempt.
	seen := &collector{}
	totals, err := scenario.Run(t.Context(), scenarios, scenario.RunConfig{
		Open: scenario.OpenSoft, ProviderName: "soft", Selection: scenario.Selection{IDs: []string{"*::second"}},
		Repeat: 2, Consumers: []record.Consumer{seen},
	})
	if err != nil || totals.Passed != 2 || seen.ofFixtures() != both+ended+", "+both+ended {
		t.Errorf("%+v %v\n%s", totals, err, seen.ofFixtures())
	}
}

// TestSharedInAnyOrder: those that share run one after another, whatever the order.
func TestSharedInAnyOrder(t *testing.T) {
	scenarios := load(t, nil, "testdata/run/shared.yaml")
	for order := range uint64(5) {
		seen := &collector{}
		totals, err := scenario.Run(t.Context(), scenarios, scenario.RunConfig{
			Open: scenario.OpenSoft, ProviderName: "soft", Selection: scenario.Selection{Shuffle: &order},
			Consumers: []record.Consumer{seen},
			Warn:      func(text string) { t.Error(text) },
		})
		if err != nil || totals.Passed != 11 || strings.Count(seen.ofFixtures(), "listens no more") > 3 {
			t.Errorf("%+v %v\n%s", totals, err, seen.ofFixtures())
		}
	}
}

// TestSharedFailure: a fixture that cannot be set up is tried once, and is the error of each case that needs it; one
// that cannot be torn down is that of the last.
func TestSharedFailure(t *testing.T) {
	const text = `rdmarun: v1
roles: {server: {buffers: {rx: {size: 8}}}}
fixtures:
  sound: {scope: file, setup: [{log: sound}], teardown: [{assert: false}]}
  broken: {scope: file, setup: [{log: broken}, {role: server, check: {buffer: rx, all: 1}}], teardown: [{log: it is over}]}
cases:
  - {name: a, needs: [broken], steps: [{log: never}]}
  - {name: b, needs: [broken], steps: [{log: never}]}
`
	const more = "  - {name: c, needs: [sound], steps: [{log: c}]}\n  - {name: d, needs: [sound], steps: [{log: d}]}\n"
	run := func(text string) (record.Totals, *collector) {
		seen := &collector{}
		totals, err := scenario.Run(t.Context(),
			load(t, nil, write(t, t.TempDir()+"/shared.yaml", text)), scenario.RunConfig{
				Open: scenario.OpenSoft, ProviderName: "soft", Consumers: []record.Consumer{seen},
			})
		if err != nil {
			t.Error(err)
		}
		return totals, seen
	}
	totals, seen := run(strings.Replace(
		text, "  sound: {scope: file, setup: [{log: sound}], teardown: [{assert: false}]}\n", "", 1,
	))
	if totals.Errors != 2 || seen.ofFixtures() != "broken, it is over" {
		t.Errorf("%+v %s", totals, seen.ofFixtures())
	}
	for _, result := range seen.results {
		f := result.Failures[0]
		if !strings.Contains(f.What, "the fixture broken could not be set up: byte 0 of buffer") || f.Line != 4 {
			t.Errorf("%+v", f)
		}
	}
	cases := strings.Index(text, "  - {name: a")
	totals, seen = run(text[:cases] + more)
	if totals.Passed != 1 || totals.Errors != 1 ||
		!slices.ContainsFunc(seen.results[1].Failures, func(f record.Failure) bool {
			return strings.Contains(f.What, "the fixture sound could not be torn down")
		}) {
		t.Errorf("%+v %s", totals, seen.ofFixtures())
	}
}
