package scenario_test

import (
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"

	"rdmarun/host/record"
	"rdmarun/host/scenario"
)

// meshedTogether runs a file in several processes at once, over sockets. leaves is the one that leaves when the case
// begins. prepare changes how each runs (nil: no change).
func meshedTogether(
	t *testing.T, path string, leaves int, prepare func(i int, config *scenario.RunConfig),
	participants ...*scenario.Participant,
) []*meshes {
	t.Helper()
	joinFirst(t, participants)
	seen := make([]*meshes, len(participants))
	var running sync.WaitGroup
	for i, participant := range participants {
		seen[i] = &meshes{found: make(map[string][]record.Mesh), checked: make(map[string]record.Threshold)}
		running.Go(func() {
			err := play(t.Context(), path, participant, func(config *scenario.RunConfig) bool {
				config.Link, config.Consumers = "udp", []record.Consumer{seen[i]}
				if i == leaves {
					config.Consumers = append(config.Consumers, &leaver{participant: participant})
				}
				if prepare != nil {
					prepare(i, config)
				}
				return true
			})
			if err != nil && i != leaves {
				t.Errorf("%d: %v", i, err)
			}
		})
	}
	running.Wait()
	return seen
}

// leaver leaves the others when a case begins, as the end of a process would.
type leaver struct{ participant *scenario.Participant }

func (l *leaver) Wants(kind record.Kind) bool { return kind == record.CaseStart }

func (l *leaver) Record(*record.Record) error {
	l.participant.Close()
	return nil
}

// TestParticipantMesh: each process measures the pairs of its nodes, and all find the same.
func TestParticipantMesh(t *testing.T) {
	seen := meshedTogether(t, "testdata/run/party_mesh.yaml", -1, nil, &scenario.Participant{
		Roles: []string{"node[0]", "node[2]"},
	},
		&scenario.Participant{Roles: []string{"node[1]"}}, &scenario.Participant{Roles: []string{"node[3]"}},
		&scenario.Participant{Roles: []string{"watcher"}})
	want := map[string]record.Status{
		"all": record.Passed, "others": record.Passed, "cut by a threshold": record.Failed,
		"a pair that is cut": record.Passed, "too few": record.Failed, "refused": record.Failed,
	}
	for i, each := range seen {
		if !reflect.DeepEqual(each.found, seen[0].found) || !reflect.DeepEqual(each.checked, seen[0].checked) {
			t.Errorf(
				"%d has found\n%+v\n%+v\nand 0\n%+v\n%+v", i, each.found, each.checked, seen[0].found, seen[0].checked,
			)
		}
		if len(each.results) != len(want) {
			t.Errorf("%d: %+v", i, each.results)
		}
		few := each.checked["bandwidth{test=few} count > 0"]
		if few.OK || !strings.Contains(few.Reason, "too few samples") {
			t.Errorf("%d: %+v", i, few)
		}
		for _, result := range each.results {
			if result.Status != want[result.Name] {
				t.Errorf("%d: %s is %s: %+v", i, result.Name, result.Status, result.Failures)
			}
			if result.Name == "refused" &&
				(len(result.Failures) == 0 || !strings.Contains(result.Failures[0].What, "receive_depth")) {
				t.Errorf("%d: %+v", i, result.Failures)
			}
		}
	}
	all := seen[3].found["all"]
	if len(all) != 2 || len(all[0].Pairs) != 6 || all[0].Nodes[3].Labels["rack"] != "r2" ||
		all[0].Nodes[0].Device == "" || all[0].Pairs[0].First.Messages != 10 {
		t.Errorf("%+v", all)
	}
}

// TestParticipantMeshBaseline: pairs of hosts are compared with those of a run that had given the hosts other roles.
func TestParticipantMeshBaseline(t *testing.T) {
	const path, limit = "testdata/run/party_mesh_baseline.yaml", "bandwidth avg > baseline.avg * 0.5"
	run := func(hosts string, has int, earlier *record.Earlier) *meshes {
		seen := meshedTogether(t, path, -1, func(i int, config *scenario.RunConfig) {
			config.Places = make(map[string]scenario.Place)
			for j, host := range strings.Fields(hosts) {
				config.Places[fmt.Sprintf("node[%d]", j)] = scenario.Place{Host: host}
			}
			if i == has {
				config.Baseline = record.Baseline{path: earlier}
			}
		}, &scenario.Participant{Roles: []string{"node[0]"}},
			&scenario.Participant{Roles: []string{"node[1]", "node[2]"}})
		if !reflect.DeepEqual(seen[0].checked, seen[1].checked) {
			t.Errorf("%+v\n%+v", seen[0].checked, seen[1].checked)
		}
		return seen[0]
	}
	earlier := &record.Earlier{}
	for _, found := range run("a b c", -1, nil).found {
		for i := range found[0].Pairs {
			pair := &found[0].Pairs[i]
			pair.First.BitsPerSecond, pair.Again = 1, nil
			if pair.From == "node[0]" && pair.To == "node[2]" || pair.From == "node[2]" && pair.To == "node[0]" {
				pair.First.BitsPerSecond = 1e18
			}
		}
		earlier.AddMesh(&found[0])
	}
	for has, hosts := range []string{"c a b", "b c a"} {
		got := run(hosts, has, earlier).checked[limit]
		if len(earlier.Pairs) != 3 || got.OK || got.Reason != "" || !strings.Contains(got.Value, "64B, a and c)") {
			t.Errorf("%s: %d pairs, %+v", hosts, len(earlier.Pairs), got)
		}
	}
}

// TestParticipantMeshLost: a process that is there no more loses the pairs of its nodes, and the others are measured.
func TestParticipantMeshLost(t *testing.T) {
	seen := meshedTogether(t, "testdata/run/party_mesh_lost.yaml", 2, nil, &scenario.Participant{
		Roles: []string{"node[0]", "node[2]"},
	},
		&scenario.Participant{Roles: []string{"node[1]"}}, &scenario.Participant{Roles: []string{"node[3]"}})
	for _, i := range []int{0, 1} {
		if len(seen[i].found) != 1 || len(seen[i].results) != 1 {
			t.Fatalf("%d: %+v", i, seen[i])
		}
		for _, found := range seen[i].found {
			if found[0].Lost != 3 || found[0].Blame == nil || found[0].Blame.Kind != "node" ||
				found[0].Blame.Names[0] != "node[3]" {
				t.Errorf("%d: %+v", i, found)
			}
			for _, pair := range found[0].Pairs {
				if with := pair.From == "node[3]" || pair.To == "node[3]"; with != (pair.First == nil) ||
					with && !strings.Contains(pair.Lost, "node[3]") {
					t.Errorf("%d: %+v", i, pair)
				}
			}
		}
		if result := seen[i].results[0]; result.Status != record.Errored ||
			!strings.Contains(result.Reason, "node[3]") {
			t.Errorf("%d: %+v", i, result)
		}
	}
}
