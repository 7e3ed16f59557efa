package scenario_test

import (
	"fmt"
	"strings"
	"testing"

	"rdmarun/host/output/terminal"
	"rdmarun/host/record"
	"rdmarun/host/scenario"
)

// stepTexts keeps what the steps of each case were, by their roles.
type stepTexts struct{ byCase map[string][]string }

func (s *stepTexts) Wants(kind record.Kind) bool { return kind == record.StepEnd }

func (s *stepTexts) Record(r *record.Record) error {
	_, name, _ := strings.Cut(r.Case, "::")
	s.byCase[name] = append(s.byCase[name], r.Step.Role+" "+r.Step.Action)
	return nil
}

// TestInstances runs counted roles: steps of each instance and of one, results, branches, guests.
func TestInstances(t *testing.T) {
	seen, steps := &collector{}, &stepTexts{byCase: make(map[string][]string)}
	totals, err := scenario.Run(t.Context(), load(t, nil, "testdata/run/instances.yaml"), scenario.RunConfig{
		Open: scenario.OpenSoft, ProviderName: "soft", Consumers: []record.Consumer{seen, steps},
	})
	if err != nil || totals.Passed != len(seen.results)-1 || totals.Failed != 1 {
		for _, result := range seen.results {
			t.Errorf("%s: %s %+v", result.Name, result.Status, result.Failures)
		}
		t.Fatal(err)
	}
	if f := seen.results[4].Failures; len(f) != 1 || f[0].Role != "client[2]" {
		t.Errorf("the instance that failed: %+v", f)
	}
	want := "speaker[0] guest start, speaker[1] guest start, speaker[2] guest start, " +
		"speaker[0] guest wait, speaker[1] guest wait, speaker[2] guest wait, "
	if got := strings.Join(steps.byCase["guests start before the first is waited for"], ", "); !strings.HasPrefix(got, want) {
		t.Errorf("%s\nwant %s", got, want)
	}
}

// TestManyInstances wants as many instances as there may be to live at once, with what belongs to each.
func TestManyInstances(t *testing.T) {
	files := load(t, map[string]string{"clients": "1000"}, "testdata/run/many_instances.yaml")
	totals, err := scenario.Run(t.Context(), files, scenario.RunConfig{Open: scenario.OpenSoft, ProviderName: "soft"})
	if err != nil || totals.Passed != 1 {
		t.Errorf("%v %+v", err, totals)
	}
}

// TestWaitForListeners waits for instances that listen in branches beside, and for some that do not.
func TestWaitForListeners(t *testing.T) {
	var text strings.Builder
	totals := onOwn(t, "testdata/run/listening.yaml", terminal.NewHuman(&text, terminal.HumanOptions{}))
	if totals.Passed != 2 || totals.Failed+totals.Errors+totals.Skipped > 0 {
		t.Errorf("%+v\n%s", totals, &text)
	}
}

// TestSeveralUnderOneWord makes endpoints, queues, faults and results in loops and branches.
func TestSeveralUnderOneWord(t *testing.T) {
	var text strings.Builder
	totals := onOwn(t, "testdata/run/several.yaml", terminal.NewHuman(&text, terminal.HumanOptions{}))
	if totals.Passed != 4 || totals.Failed+totals.Errors+totals.Skipped > 0 {
		t.Errorf("%+v\n%s", totals, &text)
	}
	seen := &collector{}
	onOwn(t, "testdata/run/several_fails.yaml", seen)
	for i, want := range []string{`no endpoint "eps[3]"`, `"port" of`, "eps[0] to eps[65535]", `server doors[3]: an unread event: CONNECT_REQUEST`} {
		if i >= len(seen.results) || len(seen.results[i].Failures) == 0 {
			t.Fatalf("case %d did not fail", i)
		}
		f := seen.results[i].Failures[0]
		if said := fmt.Sprint(f.What, f.Got, f.Hint, f.Details); !strings.Contains(said, want) {
			t.Errorf("%s: %q is missing in %q", seen.results[i].Name, want, said)
		}
	}
}
