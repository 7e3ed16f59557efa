package scenario_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"rdmarun/host/output/terminal"
	"rdmarun/host/record"
	"rdmarun/host/scenario"
	"rdmarun/rdmacore"
)

// TestCPUs: threads run on their CPUs, and the report has these; a missing CPU is a fault of the environment.
func TestCPUs(t *testing.T) {
	for cpu, want := range map[string]string{"0": "", "1023": "role server: cpu: there is no CPU 1023"} {
		seen, all := &places{}, &collector{}
		_, err := scenario.Run(t.Context(),
			load(t, map[string]string{"cpu": cpu}, "testdata/run/roles_cpu.yaml"), scenario.RunConfig{
				Open: scenario.OpenSoft, ProviderName: "soft", Consumers: []record.Consumer{seen, all},
			})
		if result := all.results[0]; err != nil || !strings.Contains(result.Reason, want) ||
			(result.Status == record.Passed) != (want == "") {
			t.Errorf("CPU %s: %v %s %q %+v", cpu, err, result.Status, result.Reason, result.Failures)
		}
		for _, role := range seen.roles {
			if role.CPUs != cpu {
				t.Errorf("%+v", role)
			}
		}
	}
}

// TestRoles runs what a role can be made of, and skips what this host or provider has not.
func TestRoles(t *testing.T) {
	const passed = ""
	huge := passed
	if pages, err := rdmacore.HugePages(); err != nil || pages.Free == 0 {
		huge = "huge pages"
	}
	for path, reasons := range map[string][]string{
		"roles.yaml": {
			passed, passed, "provider=verbs, and this is provider soft", "provider=verbs, and this is provider soft",
		},
		"counters.yaml":        {passed, passed},
		"roles_elsewhere.yaml": {"spread: host"},
		"roles_huge.yaml":      {huge, "30720 huge pages"},
	} {
		t.Run(path, func(t *testing.T) {
			seen := &collector{}
			onOwn(t, "testdata/run/"+path, seen)
			if len(seen.results) != len(reasons) {
				t.Fatalf("%d results", len(seen.results))
			}
			for i, want := range reasons {
				result := seen.results[i]
				good := result.Status == record.Passed
				if want != passed {
					good = result.Status == record.Skipped && strings.Contains(result.Reason, want)
				}
				if !good {
					t.Errorf("%s: %s %q %+v", result.Name, result.Status, result.Reason, result.Failures)
				}
			}
		})
	}
}

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
	if got := strings.Join(steps.byCase["guests start before the first is waited for"], ", "); !strings.HasPrefix(
		got, want,
	) {
		t.Errorf("%s\nwant %s", got, want)
	}
}

// TestInstancesInParallel: each instance is a branch, with a step or with steps that all are of its role. The file has
// the time that they take on the virtual clock.
func TestInstancesInParallel(t *testing.T) {
	seen := &collector{}
	totals, err := scenario.Run(t.Context(), load(t, nil, "testdata/run/counted_parallel.yaml"), scenario.RunConfig{
		Open: scenario.OpenSoft, ProviderName: "soft", Consumers: []record.Consumer{seen},
	})
	if err != nil || totals.Passed != 6 {
		t.Errorf("%v %+v", err, seen.results)
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

// TestWaitForListeners waits for instances that listen in parallel branches, and for some that do not.
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
	for i, want := range []string{
		`no endpoint "eps[3]"`, `"port" has no value yet`, "eps[0] to eps[65535]",
		`server doors[3]: an unread event: CONNECT_REQUEST`,
	} {
		if i >= len(seen.results) || len(seen.results[i].Failures) == 0 {
			t.Fatalf("case %d did not fail", i)
		}
		f := seen.results[i].Failures[0]
		if said := fmt.Sprint(f.What, f.Got, f.Hint, f.Details); !strings.Contains(said, want) {
			t.Errorf("%s: %q is missing in %q", seen.results[i].Name, want, said)
		}
	}
}

// places keeps where roles were.
type places struct{ roles []record.RolePlace }

func (p *places) Wants(kind record.Kind) bool { return kind == record.CaseStart }

func (p *places) Record(r *record.Record) error {
	p.roles = r.Start.Roles
	return nil
}

func TestPlaces(t *testing.T) {
	for name, test := range map[string]struct {
		places map[string]scenario.Place
		want   string // addresses, or words of the error
	}{
		"default":        {nil, "127.0.0.1 127.0.0.2"},
		"device":         {map[string]scenario.Place{"client": {Device: "soft0"}}, "127.0.0.1 127.0.0.2"},
		"port":           {map[string]scenario.Place{"": {Device: "soft0", Port: 1}}, "127.0.0.1 127.0.0.2"},
		"GID by index":   {map[string]scenario.Place{"": {GID: "1"}}, "::1 ::1"},
		"GID by address": {map[string]scenario.Place{"": {GID: "::1"}}, "::1 ::1"},
		"mapped address": {map[string]scenario.Place{"": {GID: "::ffff:127.0.0.1"}}, "127.0.0.1 127.0.0.2"},
		"role before all": {
			map[string]scenario.Place{"": {GID: "1"}, "client": {GID: "0"}, "server": {GID: "0"}},
			"127.0.0.1 127.0.0.2",
		},
		"no such device": {
			map[string]scenario.Place{"server": {Device: "mlx5_9"}}, `no device "mlx5_9"; provider soft has soft0`,
		},
		"no such port": {
			map[string]scenario.Place{"server": {Device: "soft0", Port: 2}}, "device soft0 has no port 2",
		},
		"no such GID": {
			map[string]scenario.Place{"server": {GID: "7"}}, "has no GID 7; it has 0 127.0.0.1, 1 ::1",
		},
		"GID of a stranger": {map[string]scenario.Place{"server": {GID: "192.0.2.9"}}, "has no GID 192.0.2.9"},
	} {
		t.Run(name, func(t *testing.T) {
			seen := &places{}
			totals, all := runFiles(t, t.Context(), scenario.RunConfig{
				Places: test.places, Consumers: []record.Consumer{seen},
			},
				map[string]string{"count": "1"}, "../../scenarios/rping.yaml")
			var addresses []string
			for _, role := range seen.roles {
				addresses = append(addresses, role.Address)
			}
			got := strings.Join(addresses, " ") + all.results[0].Reason
			if !strings.Contains(got, test.want) {
				t.Errorf("%q; expected %q", got, test.want)
			}
			if passed := totals.Passed == 1; passed != (all.results[0].Reason == "") {
				t.Errorf("%+v", totals)
			}
		})
	}
}

// runSoft runs a file as the command line does on soft, with a provider for each case.
func runSoft(t *testing.T, config scenario.RunConfig, path string) record.Totals {
	t.Helper()
	config.Open, config.ProviderName = scenario.OpenSoft, "soft"
	totals, err := scenario.Run(t.Context(), load(t, nil, path), config)
	if err != nil {
		t.Fatal(err)
	}
	return totals
}

func TestTimeScaleAndStall(t *testing.T) {
	const wall, virtual = "testdata/run/slow_wall.yaml", "testdata/run/slow_virtual.yaml"
	for name, test := range map[string]struct {
		config scenario.RunConfig
		path   string
		passes bool
	}{
		"exact":     {scenario.RunConfig{}, wall, false},
		"stretched": {scenario.RunConfig{TimeScale: 100_000}, wall, true},
		"stalled":   {scenario.RunConfig{TimeScale: 100_000, Stall: 10 * time.Millisecond}, wall, false},
		"virtual":   {scenario.RunConfig{TimeScale: 100_000}, virtual, false}, // exact on every machine
	} {
		t.Run(name, func(t *testing.T) {
			if totals := runSoft(t, test.config, test.path); totals.Passed == 1 != test.passes {
				t.Errorf("%+v", totals)
			}
		})
	}
}

func TestNoThresholds(t *testing.T) {
	const path = "testdata/run/thresholds.yaml"
	held, ignored := runSoft(t, scenario.RunConfig{}, path), runSoft(t, scenario.RunConfig{NoThresholds: true}, path)
	if held.Thresholds == 0 || ignored.Thresholds != 0 {
		t.Errorf("%d and %d thresholds did not hold", held.Thresholds, ignored.Thresholds)
	}
}
