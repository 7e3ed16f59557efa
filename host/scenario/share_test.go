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

// TestSharedFixtures: cases share fixtures of the file as long as these are unchanged. A case that changes them ends
// them, and the next one has new ones, with memory as it was.
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

// TestSharedFailure: a fixture that cannot be set up is tried once, and is the error of each case that needs it. One
// that cannot be torn down is the error of the last.
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

// TestSharedByFiles: files that import a fixture of scope run share it, where it would be the same in each.
func TestSharedByFiles(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/lib.yaml", `rdmarun: v1
fixtures:
  base:
    scope: run
    setup: [{log: base}, {role: server, create_ep: {passive: true, port: 7471}, as: listener}]
    teardown: [{log: base no more}, {role: server, destroy_ep: {ep: listener}}]
  both: {scope: run, needs: [base], setup: [{log: both}], teardown: [{log: both no more}]}
`)
	const head = `rdmarun: v1
imports: {lib: lib.yaml}
params: {size: {type: size, default: 64}}
roles: {server: {buffers: {rx: {size: $(size)}}}}
`
	file := func(name, text string) string { return write(t, dir+"/"+name+".yaml", text) }
	one := file("one", head+`cases:
  - {name: a, needs: [lib.base], steps: [{role: server, fill: {buffer: rx, byte: 1}}]}
  - {name: b, needs: [lib.both], steps: [{role: server, check: {buffer: rx, all: 0}}]}
`)
	const needsBoth = "needs: [lib.both]\n" +
		"steps: [{role: server, check: {buffer: rx, all: 0}}, {assert: listener.port == 7471}]\n"
	two := file("two", head+needsBoth)
	for name, test := range map[string]struct {
		between []string
		after   string
		want    string
	}{
		"two files": {nil, two, "base, both, both no more, base no more"},
		"in between": {
			[]string{file("alone", "rdmarun: v1\nsteps: [{log: between}]\n")}, two,
			"base, both, both no more, base no more",
		},
		"a case that fails": {
			[]string{file("fails", head+"needs: [lib.base]\nsteps: [{assert: false}]\n")}, two,
			"base, both, both no more, base no more, base, both, both no more, base no more",
		},
		"another parameter": {
			nil, file("larger", strings.Replace(head, "default: 64", "default: 65", 1)+needsBoth),
			"base, both, both no more, base no more, base, both, both no more, base no more",
		},
		"another role": {
			nil, file("more", strings.Replace(head, "roles: {", "roles: {client: {}, ", 1)+needsBoth),
			"base, both, both no more, base no more, base, both, both no more, base no more",
		},
		"other defaults": {
			nil, file("defaults", head+"defaults: {within: 3s}\n"+needsBoth),
			"base, both, both no more, base no more, base, both, both no more, base no more",
		},
		"another link": {
			nil, file("link", head+"provider: {soft: {link: packets}}\n"+needsBoth),
			"base, both, both no more, base no more, base, both, both no more, base no more",
		},
		"a fixture of the file, too": {
			nil, file("own", head+"fixtures: {own: {scope: file, needs: [lib.base], setup: [{log: own}]}}\n"+
				"needs: [own]\nsteps: [{log: between}]\n"),
			"base, both, both no more, base no more, base, own, base no more",
		},
	} {
		t.Run(name, func(t *testing.T) {
			scenarios := load(t, nil, append(append([]string{one}, test.between...), test.after)...)
			for _, jobs := range []int{1, 3} {
				seen := &collector{}
				_, err := scenario.Run(t.Context(), scenarios, scenario.RunConfig{
					Open: scenario.OpenSoft, ProviderName: "soft", Jobs: jobs, Consumers: []record.Consumer{seen},
					Rerun: "rdmarun run", Warn: func(text string) { t.Error(text) },
				})
				if got := seen.ofFixtures(); err != nil || jobs == 1 && got != test.want ||
					strings.Count(got, "base no more") != strings.Count(test.want, "base no more") {
					t.Errorf("%d jobs: %v\n%s\nnot\n%s", jobs, err, got, test.want)
				}
				for _, result := range seen.results {
					for _, f := range result.Failures {
						if want := "rdmarun run " + one + " " + dir + "/fails.yaml"; f.Rerun != want {
							t.Errorf("it is repeated by %q, not %q", f.Rerun, want)
						}
					}
				}
			}
		})
	}
	for order := range uint64(8) {
		seen := &collector{}
		totals, err := scenario.Run(t.Context(), load(t, nil, one, two), scenario.RunConfig{
			Open: scenario.OpenSoft, ProviderName: "soft", Selection: scenario.Selection{Shuffle: &order},
			Consumers: []record.Consumer{seen}, Warn: func(text string) { t.Error(text) },
		})
		if err != nil || totals.Passed != 3 || strings.Count(seen.ofFixtures(), "base no more") != 1 {
			t.Errorf("order %d: %+v %v\n%s", order, totals, err, seen.ofFixtures())
		}
	}
}
