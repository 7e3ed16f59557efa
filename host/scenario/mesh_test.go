package scenario_test

import (
	"strings"
	"testing"

	"rdmarun/host/output/terminal"
	"rdmarun/host/record"
	"rdmarun/host/scenario"
)

// meshes keeps what meshes found.
type meshes struct {
	found   map[string][]record.Mesh // by cases
	results []record.Result
	single  int // measurements outside of meshes
	checked map[string]record.Threshold
}

func (m *meshes) Wants(record.Kind) bool { return true }

func (m *meshes) Record(r *record.Record) error {
	switch r.Kind {
	case record.Meshed:
		_, name, _ := strings.Cut(r.Case, "::")
		m.found[name] = append(m.found[name], *r.Mesh)
	case record.Measured:
		m.single++
	case record.Checked:
		m.checked[r.Threshold.Text] = *r.Threshold
	case record.CaseEnd:
		m.results = append(m.results, *r.Result)
	}
	return nil
}

func runMeshes(t *testing.T, config scenario.RunConfig, path string) (*meshes, record.Totals, string) {
	t.Helper()
	seen, text := &meshes{found: make(map[string][]record.Mesh), checked: make(map[string]record.Threshold)},
		&strings.Builder{}
	config.Consumers = []record.Consumer{seen, terminal.NewHuman(text, terminal.HumanOptions{})}
	if config.Provider == nil {
		config.Open, config.ProviderName = scenario.OpenSoft, "soft"
	}
	totals, err := scenario.Run(t.Context(), load(t, nil, path), config)
	if err != nil {
		t.Fatal(err)
	}
	return seen, totals, text.String()
}

// TestMesh holds meshes of good pairs to what is true at any speed.
func TestMesh(t *testing.T) {
	for name, config := range map[string]scenario.RunConfig{"virtual clock": {}, "wall clock": {Provider: soft(t)}} {
		t.Run(name, func(t *testing.T) {
			seen, totals, text := runMeshes(t, config, "testdata/run/mesh.yaml")
			if totals.Passed != 4 || totals.XFailed != 1 || totals.Failed+totals.Errors > 0 || seen.single != 0 {
				t.Fatalf("%+v, %d measurements\n%s", totals, seen.single, text)
			}
			all := seen.found["all"][0]
			if all.Type != "bandwidth" || all.Operation != "RDMA_WRITE" || all.Size != 64 || all.Pattern != "all" ||
				all.Rounds != 3 || all.Tolerance != 0.4 ||
				len(all.Nodes) != 4 || len(all.Pairs) != 6 || all.Nodes[3].Role != "node[3]" ||
				all.Nodes[3].Device != "soft0" || all.Blame != nil || all.Line == 0 {
				t.Errorf("%+v", all)
			}
			for _, pair := range all.Pairs {
				if f := pair.First; f.Messages != 20 || f.BitsPerSecond <= 0 || f.Bytes != 20*64 ||
					pair.OfBest < 0.4 || pair.Round < 1 || pair.Round > 3 {
					t.Errorf("%+v", pair)
				}
			}
			kinds := seen.found["kinds"]
			if len(kinds) != 4 || kinds[1].Size != 64 || kinds[0].Pairs[0].First.Latency == nil ||
				kinds[2].Pairs[0].First.MessagesPerSecond <= 0 || len(kinds[3].Pairs) != 12 {
				t.Fatalf("%+v", kinds)
			}
			if there, back := kinds[3].Pairs[0], kinds[3].Pairs[6]; there.From != back.To || there.To != back.From {
				t.Errorf("both directions: %+v, %+v", there, back)
			}
			cut := seen.found["a pair that is cut"][0]
			if lost := cut.Pairs[0]; cut.Lost != 1 || lost.Lost == "" || lost.First != nil || lost.OfBest != 0 ||
				cut.Blame == nil || cut.Blame.Kind != "pairs" {
				t.Errorf("%+v", cut)
			}
		})
	}
}

// TestMeshFindsFaults wants bad links to be found, and what they have in common.
func TestMeshFindsFaults(t *testing.T) {
	seen, totals, text := runMeshes(t, scenario.RunConfig{}, "testdata/run/mesh_fault.yaml")
	if totals.Passed != 3 || totals.Failed+totals.Errors > 0 {
		t.Fatalf("%+v\n%s", totals, text)
	}
	found := seen.found["one node"][0]
	if found.Outliers != 2 || found.Suspects < 2 || found.Blame == nil || found.Blame.Kind != "node" ||
		found.Blame.Names[0] != "three[2]" {
		t.Errorf("%+v", found)
	}
	for _, pair := range found.Pairs {
		if with := pair.From == "three[2]" || pair.To == "three[2]"; pair.Outlier != with ||
			with && (pair.Again == nil || !pair.Suspect || pair.OfBest >= 0.25) {
			t.Errorf("%+v", pair)
		}
	}
	for _, want := range []string{
		"3 pairs of 3 nodes in 3 rounds", "2 outliers", "three[2] (soft0) is in all of them",
		"all of them are between rack r1 and rack r2", "one pair alone is bad",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the terminal lacks %q\n%s", want, text)
		}
	}
}

// TestMeshLost: a pair that cannot be measured fails the step, unless that expects it, and says why.
func TestMeshLost(t *testing.T) {
	text := everywhere(t, `rdmarun: v1
roles: {node: {count: 3}}
steps:
  - fault: {link: ["node[0]", "node[1]"]}
  - mesh: {role: node, tolerance: 0.1%, measure: {kind: latency, op: SEND, sizes: [8], iterations: 3, completion: event}}
`)["terminal"]
	for _, want := range []string{"wrong lost", "node[0] and node[1]", "1 lost"} {
		if !strings.Contains(text, want) {
			t.Errorf("the terminal lacks %q\n%s", want, text)
		}
	}
}

// TestMeshBaseline: limits refer to what an earlier run has found of the same pair.
func TestMeshBaseline(t *testing.T) {
	const path, limit = "testdata/run/mesh.yaml", "bandwidth{test=all,peer=node[0]} avg < baseline.avg * 0.5"
	first, _, _ := runMeshes(t, scenario.RunConfig{}, path)
	earlier := &record.Earlier{}
	for _, found := range first.found["all"] {
		for i := range found.Pairs {
			found.Pairs[i].First.BitsPerSecond *= 10
			found.Pairs[i].Again = nil
		}
		earlier.AddMesh(&found)
	}
	if _, has := first.checked[limit]; has || len(earlier.Pairs) != 6 {
		t.Fatalf("%d pairs, %+v", len(earlier.Pairs), first.checked)
	}
	second, totals, text := runMeshes(t, scenario.RunConfig{Baseline: record.Baseline{path + "::all": earlier}}, path)
	if got := second.checked[limit]; !got.OK || got.Reason != "" || totals.Passed != 4 {
		t.Errorf("%+v\n%s", got, text)
	}
}
