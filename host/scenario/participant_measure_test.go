package scenario_test

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"rdmarun/host/record"
	"rdmarun/host/scenario"
	"rdmarun/host/scenario/meeting"
	"rdmarun/internal/address"
)

// measuredTogether runs a file in several parties at once, over sockets.
func measuredTogether(
	t *testing.T, path string, change func(i int, config *scenario.RunConfig), participants ...*scenario.Participant,
) []*measurements {
	t.Helper()
	joinFirst(t, participants)
	found := make([]*measurements, len(participants))
	var running sync.WaitGroup
	for i, participant := range participants {
		found[i] = &measurements{checked: make(map[string]record.Threshold)}
		running.Go(func() {
			err := play(t.Context(), path, participant, func(config *scenario.RunConfig) bool {
				config.Link, config.Consumers = "udp", []record.Consumer{found[i]}
				if change != nil {
					change(i, config)
				}
				return true
			})
			if err != nil {
				t.Errorf("%d: %v", i, err)
			}
		})
	}
	running.Wait()
	return found
}

// inFile are measurements in the order of the file: those of branches come as they end, in each process by itself.
func inFile(found []record.Measure) []record.Measure {
	found = slices.Clone(found)
	slices.SortStableFunc(found, func(a, b record.Measure) int { return cmp.Compare(a.Line, b.Line) })
	return found
}

// same holds what two processes have seen of one run against each other.
func same(t *testing.T, a, b *measurements) {
	t.Helper()
	if len(a.found) != len(b.found) {
		t.Fatalf("one has measured %d times, another %d", len(a.found), len(b.found))
	}
	one, other := inFile(a.found), inFile(b.found)
	for i := range one {
		if !reflect.DeepEqual(one[i], other[i]) {
			t.Errorf("one has measured\n%+v\nand another\n%+v", one[i], other[i])
		}
	}
	if !reflect.DeepEqual(a.checked, b.checked) {
		t.Errorf("one has checked\n%+v\nand another\n%+v", a.checked, b.checked)
	}
	for i := range max(len(a.results), len(b.results)) {
		if i >= len(a.results) || i >= len(b.results) || a.results[i].Status != b.results[i].Status {
			t.Fatalf("the results of one are\n%+v\nof another\n%+v", a.results, b.results)
		}
	}
}

// TestParticipantMeasure: each of two processes has its half of each measurement, and both the same figures and
// results.
func TestParticipantMeasure(t *testing.T) {
	for name, participants := range map[string][]*scenario.Participant{
		"two":              {{Roles: []string{"server"}}, {Roles: []string{"client"}}},
		"the client waits": {{Roles: []string{"client"}}, {Roles: []string{"server"}}},
	} {
		t.Run(name, func(t *testing.T) {
			seen := measuredTogether(t, "testdata/run/measure.yaml", nil, participants...)
			if len(seen[0].found) != 27 || len(seen[0].results) != 1 || !seen[0].results[0].FailedByThreshold() {
				t.Fatalf("%d measurements, %+v", len(seen[0].found), seen[0].results)
			}
			for i := range seen[0].found {
				checkMeasure(t, &seen[0].found[i])
			}
			checkThresholds(t, seen[0].checked)
			same(t, seen[0], seen[1])
		})
	}
}

// TestParticipantStages: each of two processes has its half of each stage.
func TestParticipantStages(t *testing.T) {
	seen := measuredTogether(
		t, "testdata/run/stages.yaml", nil, &scenario.Participant{Roles: []string{"server"}},
		&scenario.Participant{Roles: []string{"client"}},
	)
	if len(seen[0].results) != 1 || seen[0].results[0].Status != record.Passed {
		t.Fatalf("%+v", seen[0].results)
	}
	checkStages(t, inFile(seen[0].found))
	same(t, seen[0], seen[1])
}

// TestParticipantMeasureBystander: a process of neither role sees the results and the figures.
func TestParticipantMeasureBystander(t *testing.T) {
	seen := measuredTogether(t, "testdata/run/party_measure.yaml", nil,
		&scenario.Participant{Roles: []string{"watcher"}}, &scenario.Participant{Roles: []string{"server"}},
		&scenario.Participant{Roles: []string{"client"}})
	want := map[string]record.Status{
		"results": record.Passed, "refused there": record.Failed, "refused here": record.Failed, "after": record.Passed,
	}
	said := map[string]string{
		"refused there": "role server: receive_depth: post_list 4 needs at least 8",
		"refused here":  "outstanding: more than the 128 requests",
	}
	for i, each := range seen {
		same(t, seen[0], each)
		for _, result := range each.results {
			if want[result.Name] != result.Status {
				t.Errorf("%d: %+v", i, result)
			}
			if wanted := said[result.Name]; wanted != "" &&
				(len(result.Failures) != 1 || !strings.Contains(result.Failures[0].What, wanted)) {
				t.Errorf("%d: %+v", i, result)
			}
		}
		if len(each.results) != len(want) || len(each.found) != 3 {
			t.Errorf("%d: %d results, %+v", i, len(each.results), each.found)
		}
	}
}

// TestParticipantMeasureEndsEarly: a threshold ends both halves, and so does the death of either role.
func TestParticipantMeasureEndsEarly(t *testing.T) {
	seen := measuredTogether(
		t, "testdata/run/measure_abort.yaml", nil, &scenario.Participant{Roles: []string{"server"}},
		&scenario.Participant{Roles: []string{"client"}},
	)
	same(t, seen[0], seen[1])
	if len(seen[0].found) != 2 || !seen[0].results[0].FailedByThreshold() {
		t.Fatalf("%+v, %+v", seen[0].found, seen[0].results)
	}
	for i := range seen[0].found {
		if m := &seen[0].found[i]; !m.Cut || m.Messages == 0 || m.Took < 10*time.Millisecond {
			t.Errorf("%+v", m)
		}
	}
	for i, each := range seen {
		if len(each.results) != 2 || len(each.results[1].Failures) == 0 ||
			!strings.Contains(each.results[1].Failures[0].What, "role server died during a measurement") {
			t.Errorf("%d: %+v", i, each.results)
		}
	}
}

// TestParticipantMeasureBaseline: what one process has of an earlier run, all hold their figures against.
func TestParticipantMeasureBaseline(t *testing.T) {
	const path = "testdata/run/measure_baseline.yaml"
	participants := func() []*scenario.Participant {
		return []*scenario.Participant{{Roles: []string{"server"}}, {Roles: []string{"client"}}}
	}
	first := measuredTogether(t, path, nil, participants()...)
	same(t, first[0], first[1])
	earlier := &record.Earlier{}
	for _, m := range first[0].found {
		m.BitsPerSecond = 1e18
		earlier.Add(m)
	}
	for has := range 2 {
		second := measuredTogether(t, path, func(i int, config *scenario.RunConfig) {
			if i == has {
				config.Baseline = record.Baseline{path: earlier}
			}
		}, participants()...)
		same(t, second[0], second[1])
		if got, checked := second[0].checked["bandwidth avg >= baseline.avg * 0.97"]; !checked || got.OK ||
			got.Reason != "" || len(second[0].checked) != 4 {
			t.Errorf("process %d has the baseline: %+v", has, second[0].checked)
		}
	}
}

// TestParticipantMeasureLost: a process that goes in the middle of a measurement is named by the other, at once.
func TestParticipantMeasureLost(t *testing.T) {
	path := filepath.Join(t.TempDir(), "case.yaml")
	text := "rdmarun: v1\nroles: {server: {}, client: {}}\ntimeout: 2h\n" +
		"steps: [{measure: {kind: bandwidth, op: SEND, from: client, to: server, sizes: [64], duration: 1h}}]\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, leaves := range []string{"server", "client"} {
		t.Run(leaves, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			at := address.Free(t)
			var running sync.WaitGroup
			stays := newRoleRecords()
			for role, participant := range map[string]*scenario.Participant{
				"server": {Roles: []string{"server"}, MeetingConfig: meeting.Config{Listen: at}},
				"client": {Roles: []string{"client"}, MeetingConfig: meeting.Config{Peers: []string{at}}},
			} {
				running.Go(func() {
					ctx := ctxOf(t, ctx, role == leaves)
					if err := play(ctx, path, participant, func(config *scenario.RunConfig) bool {
						config.Link, config.Consumers = "udp", []record.Consumer{stays}
						if role == leaves {
							config.Consumers = []record.Consumer{endsMeasurement(cancel)}
						}
						return true
					}); err != nil {
						t.Error(err)
					}
				})
			}
			running.Wait()
			for _, result := range stays.results {
				if result.Status.OK() || len(result.Failures) == 0 ||
					!strings.Contains(result.Failures[0].What, leaves) {
					t.Errorf("%+v", result)
				}
			}
			if len(stays.results) != 1 {
				t.Errorf("%+v", stays.results)
			}
		})
	}
}

// ctxOf is the context of a process that leaves, or stays.
func ctxOf(t *testing.T, leaving context.Context, leaves bool) context.Context {
	if leaves {
		return leaving
	}
	return t.Context()
}

// TestParticipantBarrier: guests of two processes meet at a barrier, which opens in both when all have come, or
// in neither.
func TestParticipantBarrier(t *testing.T) {
	if _, err := os.Stat("../../guests/echo.wasm"); err != nil {
		t.Skip("make guests:", err)
	}
	failed := map[string]string{
		"one never comes": "barrier \"elsewhere\" stays closed",
	}
	for name, participants := range map[string][]*scenario.Participant{
		"the first waits":  {{Roles: []string{"left"}}, {Roles: []string{"right"}}},
		"the second waits": {{Roles: []string{"right"}}, {Roles: []string{"left"}}},
	} {
		t.Run(name, func(t *testing.T) {
			for i, each := range together(t, "testdata/run/party_barrier.yaml", participants...) {
				if each.err != nil || len(each.results) != 4 {
					t.Fatalf("%d: %v, %+v", i, each.err, each.results)
				}
				for name, result := range each.results {
					if what := failed[name]; (what == "") != result.Status.OK() ||
						what != "" && !strings.Contains(result.Failures[0].What, what) {
						t.Errorf("%d: %s: %+v", i, name, result)
					}
				}
			}
		})
	}
}

// TestParticipantMeasureAbortBoth: a threshold on both directions ends a measurement by what each process has done so
// far.
func TestParticipantMeasureAbortBoth(t *testing.T) {
	path := filepath.Join(t.TempDir(), "case.yaml")
	text := `rdmarun: v1
roles: {server: {}, client: {}}
timeout: 5m
steps:
  - {measure: {kind: bandwidth, op: RDMA_WRITE, from: client, to: server, sizes: [64, 128], duration: 10m, bidirectional: true}, expect: {cut: true}}
thresholds:
  - {metric: bandwidth, pass: ["avg > 1000Tbit/s"], abort_on_fail: {after: 10ms}}
`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	seen := measuredTogether(
		t, path, nil, &scenario.Participant{Roles: []string{"server"}},
		&scenario.Participant{Roles: []string{"client"}},
	)
	same(t, seen[0], seen[1])
	if len(seen[0].found) != 2 || !seen[0].results[0].FailedByThreshold() {
		t.Fatalf("%+v, %+v", seen[0].found, seen[0].results)
	}
	for i := range seen[0].found {
		if m := &seen[0].found[i]; !m.Cut || m.Messages == 0 || m.Took <= 0 {
			t.Errorf("%+v", m)
		}
	}
}

// TestParticipantSweep: the sweep that ships, with every kind of measurement, passes in two processes.
func TestParticipantSweep(t *testing.T) {
	if testing.Short() {
		t.Skip("it measures for a second or two")
	}
	seen := measuredTogether(
		t, "../../scenarios/sweep.yaml", nil, &scenario.Participant{Roles: []string{"server"}},
		&scenario.Participant{Roles: []string{"client"}},
	)
	same(t, seen[0], seen[1])
	if len(seen[0].results) != 1 || seen[0].results[0].Status != record.Passed || len(seen[0].found) < 20 {
		t.Errorf("%d measurements, %+v", len(seen[0].found), seen[0].results)
	}
}

// TestAllowed: no step does what the owner of a host does not allow, at any place of the file, and after any earlier
// checks. For a step of two processes both report the reason.
func TestAllowed(t *testing.T) {
	const measures = "{measure: {kind: latency, op: SEND, from: client, to: server, sizes: [64], iterations: 10}}"
	module, err := filepath.Abs("../../guests/echo.wasm")
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		text, refused, want string
		together            bool
	}{
		"nothing": {"roles: {server: {}, client: {}}\nsteps: [" + measures + "]\n", "", "", false},
		"a measurement": {
			"roles: {server: {}, client: {}}\nsteps: [{for_each: {i: [1]}, do: [{parallel: [{do: [" + measures +
				"]}, {role: client, log: x}]}]}]\n",
			"measure", "measure: refused: the step is a measure", false,
		},
		"a provider": {
			"roles: {client: {}}\nsteps: [{role: client, log: x}]\n", "soft", "refused: a role is on it", false,
		},
		"a guest": {
			"roles: {client: {guest: {module: " + module + "}}}\nsteps: [{role: client, guest: start}]\n", "guests",
			"guest start: refused: role client is one", false,
		},
		"of two": {
			"roles: {server: {}, client: {}}\nsteps: [" + measures + "]\n", "measure",
			"measure: refused: the step is a measure", true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "case.yaml")
			if err := os.WriteFile(path, []byte("rdmarun: v1\n"+test.text), 0o600); err != nil {
				t.Fatal(err)
			}
			allow := func(need scenario.Need) error {
				if need.What == test.refused {
					return errors.New("refused: " + need.For)
				}
				return nil
			}
			var all []*measurements
			if test.together {
				all = measuredTogether(t, path, func(i int, config *scenario.RunConfig) {
					if i == 0 {
						config.Allow = allow
					}
				}, &scenario.Participant{Roles: []string{"server"}}, &scenario.Participant{Roles: []string{"client"}})
			} else {
				seen, _ := runMeasured(t, t.Context(), scenario.RunConfig{Allow: allow}, path)
				all = append(all, seen)
			}
			for i, seen := range all {
				if len(seen.results) != 1 || (test.want == "") != (seen.results[0].Status == record.Passed) ||
					!strings.Contains(seen.results[0].Reason, test.want) {
					t.Errorf("%d: %+v", i, seen.results)
				}
			}
		})
	}
}

// TestParticipantIntervals: both processes show the intervals of a measurement while it runs, also the one without
// values of its own.
func TestParticipantIntervals(t *testing.T) {
	intervals := [2]*liveIntervals{{}, {}}
	measuredTogether(t, "testdata/run/intervals.yaml", func(i int, config *scenario.RunConfig) {
		config.Interval = 100 * time.Millisecond
		config.Consumers = append(config.Consumers, intervals[i])
	}, &scenario.Participant{Roles: []string{"server"}}, &scenario.Participant{Roles: []string{"client"}})
	for i, process := range []string{"server", "client"} {
		seen := make(map[string]time.Duration) // until when, by what is measured
		for _, each := range intervals[i].found {
			key := strings.Join([]string{each.Name, each.Role, each.Tags[record.StageTag]}, " ")
			span := each.Intervals[0]
			if span.Begin < seen[key] || span.End <= span.Begin || each.Size == 0 ||
				each.Type == "latency" && len(each.Latency) == 0 {
				t.Errorf(
					"the %s reports %s from %s to %s, after %s: %+v", process, key, span.Begin, span.End, seen[key],
					each,
				)
			}
			seen[key] = span.End
		}
		for _, key := range []string{
			"one way client ", "both ways client ", "both ways server ", "round trips client ", "staged client slow",
			"staged client fast",
		} {
			if seen[key] == 0 {
				t.Errorf("the %s reports nothing of %q, but of %v", process, key, seen)
			}
		}
		if seen["staged client fast"] <= seen["staged client slow"] {
			t.Errorf("the %s: the stages do not follow each other: %v", process, seen)
		}
	}
}

// liveIntervals keeps what is reported of measurements while they run.
type liveIntervals struct{ found []record.Measure }

func (l *liveIntervals) Wants(kind record.Kind) bool { return kind == record.Measuring }

func (l *liveIntervals) Record(r *record.Record) error {
	l.found = append(l.found, *r.Measure)
	return nil
}
