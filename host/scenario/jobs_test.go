package scenario_test

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"rdmarun/host/record"
	"rdmarun/host/scenario"
	"rdmarun/host/scenario/tags"
	"rdmarun/rdmacore"
)

// exact passes on a virtual clock only: no sleep on the wall is exact.
const exact = "rdmarun: v1\nprovider: {soft: {clock: wall}}\nsteps:\n  - {sleep: 2ms, took: {max: 2ms}}\n"

// opener opens soft, with a virtual clock from the given attempt on, and keeps the seeds it was given.
type opener struct {
	opened  atomic.Int32
	virtual int32
	seeds   []uint64
}

func (o *opener) open(how scenario.Opening) (*rdmacore.Provider, error) {
	if how.Seed != nil {
		o.seeds = append(o.seeds, *how.Seed)
	}
	if o.opened.Add(1) >= o.virtual {
		return rdmacore.Open("soft", rdmacore.WithVirtualClock())
	}
	return rdmacore.Open("soft")
}

func TestRetries(t *testing.T) {
	tests := map[string]struct {
		retries int
		virtual int32 // the first attempt that can pass
		want    record.Totals
		kinds   string
	}{
		"passes at once":  {2, 1, record.Totals{Passed: 1}, "case_end"},
		"flaky":           {2, 3, record.Totals{Passed: 1, Flaky: 1}, "case_retry case_retry case_end"},
		"never":           {1, 9, record.Totals{Failed: 1}, "case_retry case_end"},
		"without a retry": {0, 2, record.Totals{Failed: 1}, "case_end"},
	}
	scenarios := load(t, nil, write(t, t.TempDir()+"/exact.yaml", exact))
	for name, test := range tests {
		for _, jobs := range []int{1, 2} {
			t.Run(fmt.Sprint(name, " jobs ", jobs), func(t *testing.T) {
				seed, seen, open := uint64(40), &collector{}, &opener{virtual: test.virtual}
				totals, err := scenario.Run(t.Context(), scenarios, scenario.RunConfig{
					Open: open.open, ProviderName: "soft", Retries: test.retries, Jobs: jobs, Seed: &seed,
					Consumers: []record.Consumer{seen},
				})
				if err != nil || totals.Passed != test.want.Passed || totals.Failed != test.want.Failed ||
					totals.Flaky != test.want.Flaky {
					t.Error(totals, err)
				}
				var ends []string
				for _, kind := range seen.kinds {
					if strings.HasPrefix(string(kind), "case_") && kind != record.CaseStart {
						ends = append(ends, string(kind))
					}
				}
				if strings.Join(ends, " ") != test.kinds {
					t.Error(ends)
				}
				for i, seed := range open.seeds {
					if seed != uint64(40+i) {
						t.Error(open.seeds)
					}
				}
			})
		}
	}
}

// TestJobsDoNotMix runs cases at once, each of which has many records, and wants those of each together.
func TestJobsDoNotMix(t *testing.T) {
	var text strings.Builder
	text.WriteString("rdmarun: v1\ncases:\n")
	const cases = 20
	for i := range cases {
		fmt.Fprintf(&text, "  - {name: c%d, tags: [t%d], steps: [{repeat: 50, do: [{log: c%d}]}]}\n", i, i%2, i)
	}
	scenarios := load(t, nil, write(t, t.TempDir()+"/many.yaml", text.String()))
	seen := &collector{}
	totals, err := scenario.Run(t.Context(), scenarios, scenario.RunConfig{
		Open: scenario.OpenSoft, ProviderName: "soft", Jobs: 4, Repeat: 2, Consumers: []record.Consumer{seen},
	})
	if err != nil || totals.Passed != 2*cases {
		t.Fatal(totals, err)
	}
	lines := slices.Clone(seen.lines)
	if len(lines) != 2*cases*50 {
		t.Fatal(len(lines), "lines")
	}
	for len(lines) > 0 {
		for _, line := range lines[:50] {
			if line.Text != lines[0].Text {
				t.Fatalf("a line of %s among those of %s", line.Text, lines[0].Text)
			}
		}
		lines = lines[50:]
	}
	odd, err := tags.Parse("t1")
	if err != nil {
		t.Fatal(err)
	}
	selected, err := scenario.Select(scenarios, scenario.Selection{
		Tags: odd, Shard: scenario.Shard{Index: 2, Count: 5},
	})
	if err != nil || len(selected) != 2 || selected[0].Case.Name != "c3" || selected[1].Case.Name != "c13" {
		t.Error(len(selected), err)
	}
}

func TestFailFastAndStrict(t *testing.T) {
	dir := t.TempDir()
	scenarios := load(t, nil,
		write(t, dir+"/1.yaml", "rdmarun: v1\nparams: {p: {type: string}}\nsteps: [{log: $(p)}]\n"),
		write(t, dir+"/2.yaml", good))
	config := scenario.RunConfig{Open: scenario.OpenSoft, ProviderName: "soft", FailFast: true}
	for _, strict := range []bool{false, true} {
		config.Strict = strict
		totals, err := scenario.Run(t.Context(), scenarios, config)
		want := record.Totals{Skipped: 1, Passed: 1}
		if strict {
			want = record.Totals{Failed: 1, NotRun: 1}
		}
		totals.Took = 0
		if err != nil || totals != want {
			t.Errorf("strict %v: %+v, %v", strict, totals, err)
		}
	}
}

func TestParseShard(t *testing.T) {
	for text, want := range map[string]string{
		"": "not of the form", "1": "not of the form", "a/b": "not of the form", "0/2": "1/2 to 2/2",
		"3/2": "1/2 to 2/2", "1/0": "parts", "2/5": "",
	} {
		shard, err := scenario.ParseShard(text)
		if want == "" && (err != nil || shard != scenario.Shard{Index: 2, Count: 5}) ||
			want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, %v", text, shard, err)
		}
	}
}

// TestShuffle: two cases come in the same order whatever else is selected, so that a part of a run repeats.
func TestShuffle(t *testing.T) {
	scenarios := load(t, nil, "testdata/run/fail_cases.yaml", "testdata/run/pass_cases.yaml")
	order := func(seed uint64, ids ...string) (list []string) {
		selected, err := scenario.Select(scenarios, scenario.Selection{Shuffle: &seed, IDs: ids})
		if err != nil {
			t.Fatal(err)
		}
		for _, each := range selected {
			list = append(list, each.Case.ID)
		}
		return list
	}
	all := order(4)
	part := order(4, "*fail_cases*")
	of := slices.DeleteFunc(slices.Clone(all), func(id string) bool { return !slices.Contains(part, id) })
	if !slices.Equal(part, of) || len(part) == len(all) || slices.Equal(all, order(5)) {
		t.Errorf("%q\n%q\n%q", part, of, all)
	}
}
