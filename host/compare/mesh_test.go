package compare

import (
	"bytes"
	"slices"
	"testing"

	"rdmarun/host/output/jsonl"
	"rdmarun/host/record"
)

// meshOf is a run of one case with a mesh of three nodes, of which pairs have these bandwidths; 0 is lost.
func meshOf(t *testing.T, rates map[string]float64, outliers ...string) *Run {
	t.Helper()
	var file bytes.Buffer
	stream := record.NewStream(jsonl.To(&file, "test"))
	stream.Write(&record.Record{Kind: record.RunStart, Run: &record.Run{Provider: "verbs"}})
	found := &record.Mesh{
		What: record.What{Name: "fabric", Type: "bandwidth"}, How: record.How{Size: 4096}, Pattern: "all", Rounds: 3,
	}
	for _, to := range []string{"a", "b", "c"} {
		pair := record.MeshPair{From: "node", To: to, Outlier: slices.Contains(outliers, to)}
		if rate := rates[to]; rate > 0 {
			pair.First = &record.MeshFigures{Messages: 10, Took: 1, BitsPerSecond: rate}
		} else {
			pair.Lost = "no way"
		}
		found.Pairs = append(found.Pairs, pair)
	}
	stream.Write(&record.Record{Kind: record.Meshed, File: "a.yaml", Case: "a.yaml", Mesh: found})
	stream.Write(&record.Record{
		Kind: record.CaseEnd, File: "a.yaml", Case: "a.yaml", Result: &record.Result{Name: "a", Status: record.Passed},
	})
	run, err := Read(&file, "run")
	if err != nil || stream.Err() != nil {
		t.Fatal(err, stream.Err())
	}
	return run
}

// TestPairs: what became of each pair is compared, and its figures are the baseline's.
func TestPairs(t *testing.T) {
	before := meshOf(t, map[string]float64{"a": 100, "b": 40, "c": 99}, "b")
	after := meshOf(t, map[string]float64{"a": 50, "b": 98}, "a")
	result := Compare(before, after)
	want := []PairChange{
		{"a.yaml", "fabric node - a 4KiB", "good", "outlier", true, [2]float64{100, 50}, "bit/s"},
		{"a.yaml", "fabric node - b 4KiB", "outlier", "good", false, [2]float64{40, 98}, "bit/s"},
		{"a.yaml", "fabric node - c 4KiB", "good", "lost", true, [2]float64{99, 0}, "bit/s"},
	}
	if !slices.Equal(result.Pairs, want) || !result.Worse() {
		t.Errorf("%+v", result.Pairs)
	}
	ofPairs := 0
	for _, row := range result.Rows {
		if row.OfPair && row.Metric == "fabric node - a 4KiB bandwidth" && row.Before == 100 && row.After == 50 {
			ofPairs++
		}
	}
	if ofPairs != 1 {
		t.Errorf("%+v", result.Rows)
	}
	if same := Compare(before, before); len(same.Pairs) > 0 || same.Worse() {
		t.Errorf("a run and itself: %+v", same.Pairs)
	}
	pairs := before.Baseline()["a.yaml"].Pairs
	m := record.Measure{
		What: record.What{Name: "fabric", Type: "bandwidth"}, Role: "node", Peer: "b", How: record.How{Size: 4096},
	}
	if len(pairs) != 3 || pairs[m.Key()].BitsPerSecond != 40 {
		t.Errorf("%+v", pairs)
	}
}

// TestPairsOfHosts: a pair is the same where its hosts are, whatever roles they have.
func TestPairsOfHosts(t *testing.T) {
	run := func(pattern string, hosts ...string) *samples {
		found := &record.Mesh{What: record.What{Name: "fabric", Type: "bandwidth"}, Pattern: pattern}
		for i, host := range hosts {
			found.Nodes = append(found.Nodes, record.MeshNode{
				Role: string(rune('x' + i)), Host: host, Device: "mlx5_0",
			})
		}
		found.Pairs = []record.MeshPair{{From: "x", To: "y", First: &record.MeshFigures{Took: 1, BitsPerSecond: 1}}}
		s := newSamples()
		s.mesh(found)
		return s
	}
	for want, hosts := range map[string][]string{
		"fabric a - b": {"a", "b", "c"}, "fabric x - y": {"a", "a", "a"}, "fabric b - a": {"b", "a"},
	} {
		if got := run("list", hosts...).pairs; len(got) != 1 || got[want] != (pairState{"good", 1, "bit/s"}) {
			t.Errorf("%v: %v", hosts, got)
		}
	}
	// Which end is first the pattern alone has chosen.
	for want, hosts := range map[string][]string{
		"fabric a - b": {"b", "a", "c"}, "fabric a - y": {"a", "", "c"}, "fabric x - y": {"b", "b", "b"},
	} {
		if got := run("all", hosts...).pairs; len(got) != 1 || got[want] != (pairState{"good", 1, "bit/s"}) {
			t.Errorf("%v: %v", hosts, got)
		}
	}
}
