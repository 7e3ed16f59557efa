package record

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// few draws one of a few words, so that many are equal.
func few(t *rapid.T, what string) string {
	return rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, what)
}

// drawTallies draws the counts of a part of a case.
func drawTallies(t *rapid.T) Tallies {
	count := rapid.Uint64Range(0, 1<<20)
	return Tallies{
		Counters: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Counter {
			return Counter{
				Host: few(t, "host"), Device: few(t, "device"), Name: few(t, "name"), Grew: count.Draw(t, "n"),
			}
		}), 0, 6).Draw(t, "counters"),
		Faults: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Fault {
			return Fault{few(t, "name"), count.Draw(t, "n")}
		}), 0, 6).Draw(t, "faults"),
		Known: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) KnownStep {
			return KnownStep{
				Line: rapid.IntRange(1, 2).Draw(t, "line"), Action: few(t, "action"), Count: count.Draw(t, "n"),
			}
		}), 0, 6).Draw(t, "known"),
	}
}

// sums are the counts of tallies by what they count.
func sums(t *Tallies) map[string]uint64 {
	all := make(map[string]uint64)
	for _, each := range t.Counters {
		all["counter "+each.Host+each.Device+each.Name] += each.Grew
	}
	for _, each := range t.Faults {
		all["fault "+each.Name] += each.Count
	}
	for _, each := range t.Known {
		all[fmt.Sprint("step ", each.Line, each.Action)] += each.Count
	}
	return all
}

// TestSumOfTallies: counts of parts are not lost or duplicated in any order of the parts, and each name is there once.
func TestSumOfTallies(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOfN(rapid.Custom(drawTallies), 1, 5).Draw(t, "parts")
		want := make(map[string]uint64)
		var forward, back Tallies
		for i := range parts {
			for name, count := range sums(&parts[i]) {
				want[name] += count
			}
			forward.Add(&parts[i])
			back.Add(&parts[len(parts)-1-i])
		}
		for _, each := range []*Tallies{&forward, &back} {
			if got := sums(each); !maps.Equal(got, want) {
				t.Errorf("%v, not %v", got, want)
			}
			if n := len(each.Counters) + len(each.Faults) + len(each.Known); n != len(want) {
				t.Errorf("%d entries of %d names", n, len(want))
			}
		}
	})
}

// TestParts: the parts of a measurement that are shown while it runs add up to it, without gaps. Each is one that
// another process may report.
func TestParts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var before *Measure
		m := Measure{What: What{Type: rapid.SampledFrom([]string{"bandwidth", "latency"}).Draw(t, "type")}, Role: "a"}
		var messages, bytes, failed uint64
		var took time.Duration
		for range rapid.IntRange(1, 8).Draw(t, "parts") {
			now := m
			now.Messages += rapid.Uint64Range(0, 1000).Draw(t, "messages")
			now.Bytes += rapid.Uint64Range(0, 1<<20).Draw(t, "bytes")
			now.Errors += rapid.Uint64Range(0, 3).Draw(t, "errors")
			now.Took += time.Duration(rapid.Int64Range(0, int64(time.Second)).Draw(t, "took"))
			part := now.Since(before)
			if err := part.Check(); err != nil && part.Took > time.Millisecond {
				t.Errorf("%+v: %v", part, err)
			}
			if len(part.Intervals) != 1 || part.Intervals[0].Begin != took || part.Intervals[0].End != now.Took {
				t.Errorf("%v after %s", part.Intervals, took)
			}
			if m.Type != "bandwidth" && part.BitsPerSecond != 0 {
				t.Errorf("%s has %g bits a second", m.Type, part.BitsPerSecond)
			}
			messages, bytes, failed, took = messages+part.Messages, bytes+part.Bytes, failed+part.Errors, took+part.Took
			m = now
			before = &now
		}
		if messages != m.Messages || bytes != m.Bytes || failed != m.Errors || took != m.Took {
			t.Errorf("%d messages, %d bytes, %d errors in %s of %+v", messages, bytes, failed, took, m)
		}
	})
}

// TestIntervalRatesAddUp: the rate of both ends is the sum of theirs, for as many intervals as both have.
func TestIntervalRatesAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		end := func(what string) *Measure {
			m := &Measure{}
			for i, bytes := range rapid.SliceOfN(rapid.Uint64Range(0, 1<<40), 1, 6).Draw(t, what) {
				at := time.Duration(i) * time.Second
				m.Intervals = append(m.Intervals, Interval{Begin: at, End: at + time.Second, Bytes: bytes})
			}
			return m
		}
		a, b := end("a"), end("b")
		both, one, other := IntervalRates(a, b), IntervalRates(a), IntervalRates(b)
		if len(both) != min(len(one), len(other)) {
			t.Fatalf("%d rates of %d and %d", len(both), len(one), len(other))
		}
		for i, rate := range both {
			if math.Abs(rate-one[i]-other[i]) > 1 || one[i] != float64(a.Intervals[i].Bytes)*8 {
				t.Errorf("%d: %g of %g and %g", i, rate, one[i], other[i])
			}
		}
	})
}

// TestIntervalRatesHoldTheAverage: the average rate of an end is not below its lowest rate, nor above its highest.
func TestIntervalRatesHoldTheAverage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, bytes := &Measure{}, uint64(0)
		for range rapid.IntRange(1, 8).Draw(t, "intervals") {
			took := time.Duration(rapid.Int64Range(1, int64(time.Second)).Draw(t, "took"))
			each := Interval{Begin: m.Took, End: m.Took + took, Bytes: rapid.Uint64Range(0, 1<<30).Draw(t, "bytes")}
			m.Intervals, m.Took, bytes = append(m.Intervals, each), each.End, bytes+each.Bytes
		}
		average := float64(bytes) * 8 / m.Took.Seconds()
		rates := IntervalRates(m)
		lowest, highest := slices.Min(rates), slices.Max(rates)
		if average < lowest*(1-1e-9) || average > highest*(1+1e-9) {
			t.Errorf("%g is not from %g to %g: %v", average, lowest, highest, m.Intervals)
		}
	})
}

// drawMeasure draws one of few measurements.
func drawMeasure(t *rapid.T) Measure {
	m := Measure{
		What: What{few(t, "name"), few(t, "type"), few(t, "operation")}, Role: few(t, "role"), Peer: few(t, "peer"),
		How: How{
			Size: rapid.Int64Range(0, 2).Draw(t, "size"), Depth: rapid.IntRange(0, 2).Draw(t, "depth"),
			QPs: rapid.IntRange(1, 3).Draw(t, "qps"), Both: rapid.Bool().Draw(t, "both"),
		},
	}
	if rapid.Bool().Draw(t, "tagged") {
		m.Tags = map[string]string{few(t, "tag"): few(t, "value")}
	}
	return m
}

// TestMeasureKeys: keys are equal only if all that identifies a measurement is equal, also when it was read from a
// file. Its results and its place do not count.
func TestMeasureKeys(t *testing.T) {
	identity := func(m Measure) string {
		return fmt.Sprint(m.What, m.Role, m.Peer, m.Size, m.Depth, m.QPs, m.Both, m.Tags)
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawMeasure(t), drawMeasure(t)
		if same := identity(a) == identity(b); (a.Key() == b.Key()) != same {
			t.Errorf("%+v and %+v", a.Key(), b.Key())
		}
		raw, err := json.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		var read Measure
		if err := json.Unmarshal(raw, &read); err != nil {
			t.Fatal(err)
		}
		read.Line, read.File, read.Messages, read.Took = 7, "other.yaml", 5, 9
		if read.Key() != a.Key() {
			t.Errorf("%+v was read as %+v", a.Key(), read.Key())
		}
	})
}

// TestEarlierKeepsTheLast: of repetitions the last counts, at the place of the first.
func TestEarlierKeepsTheLast(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var earlier Earlier
		last := make(map[MeasureKey]uint64)
		var order []MeasureKey
		for i, m := range rapid.SliceOfN(rapid.Custom(drawMeasure), 0, 20).Draw(t, "measures") {
			m.Messages = uint64(i + 1)
			if last[m.Key()] == 0 {
				order = append(order, m.Key())
			}
			last[m.Key()] = m.Messages
			earlier.Add(m)
			earlier.AddPair(m)
		}
		var got []MeasureKey
		for _, m := range earlier.Measures {
			got = append(got, m.Key())
			if m.Messages != last[m.Key()] {
				t.Errorf("measurement %d is kept, %d was the last", m.Messages, last[m.Key()])
			}
		}
		if !slices.Equal(got, order) {
			t.Errorf("%v, not %v", got, order)
		}
		if len(earlier.Pairs) != len(order) {
			t.Errorf("%d pairs of %d", len(earlier.Pairs), len(order))
		}
		for key, m := range earlier.Pairs {
			if m.Messages != last[key] {
				t.Errorf("pair %d is kept, %d was the last", m.Messages, last[key])
			}
		}
	})
}

// drawMesh draws a mesh of nodes on few hosts, with results of their pairs.
func drawMesh(t *rapid.T) *Mesh {
	m := &Mesh{Pattern: rapid.SampledFrom([]string{"all", "ring", "list", "incast"}).Draw(t, "pattern")}
	m.Both = rapid.Bool().Draw(t, "both")
	for i := range rapid.IntRange(2, 5).Draw(t, "nodes") {
		m.Nodes = append(m.Nodes, MeshNode{
			Role: fmt.Sprintf("node[%d]", i), Host: rapid.SampledFrom([]string{"", "x", "y", "z"}).Draw(t, "host"),
			Device: few(t, "device"),
		})
	}
	for from := range m.Nodes {
		for to := range m.Nodes {
			if from == to {
				continue
			}
			pair := MeshPair{From: m.Nodes[from].Role, To: m.Nodes[to].Role}
			switch rapid.IntRange(0, 3).Draw(t, "result") {
			case 0:
				pair.Lost = "gone"
			case 1:
				pair.First, pair.Suspect = &MeshFigures{Messages: 1}, true
				pair.Again, pair.Outlier = &MeshFigures{Messages: 2}, rapid.Bool().Draw(t, "outlier")
				pair.OfBest = rapid.Float64Range(0, 1).Draw(t, "of best")
			default:
				pair.First, pair.OfBest = &MeshFigures{Messages: 3}, rapid.Float64Range(0, 1).Draw(t, "of best")
			}
			m.Pairs = append(m.Pairs, pair)
		}
	}
	return m
}

// TestMeshes: nodes with different names are different, the spread is of measured pairs, the worst are first, and the
// second look counts.
func TestMeshes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawMesh(t)
		named, ends := m.Named(), m.Ends()
		names := make(map[string]bool)
		for _, node := range m.Nodes {
			names[named(node.Role)] = true
			if again := named(named(node.Role)); again != named(node.Role) {
				t.Errorf("%s is called %s, which is called %s", node.Role, named(node.Role), again)
			}
		}
		if len(names) != len(m.Nodes) {
			t.Errorf("%v are the names of %d nodes", names, len(m.Nodes))
		}
		for i := range m.Pairs {
			from, to := m.Pairs[i].From, m.Pairs[i].To
			one, other := ends(from, to), ends(to, from)
			slices.Sort(one[:])
			slices.Sort(other[:])
			if one != other {
				t.Errorf("%q and %q", one, other)
			}
			if directed := m.Both || m.Pattern == "list" || m.Pattern == "incast"; directed &&
				ends(from, to) != [2]string{named(from), named(to)} {
				t.Errorf("the direction of %s is lost: %q", m.Pattern, ends(from, to))
			}
		}
		median, worst := m.Spread()
		measured := 0
		for pair, found := range m.Measures() {
			switch {
			case pair.Lost != "":
				if found.Messages != 0 {
					t.Errorf("a lost pair has results: %+v", found)
				}
				continue
			case pair.Again != nil && found.Messages != 2, pair.Again == nil && found.Messages != 3:
				t.Errorf("%+v has %d messages", pair, found.Messages)
			}
			measured++
			if pair.OfBest < worst {
				t.Errorf("%g is worse than %g", pair.OfBest, worst)
			}
		}
		if median < worst || measured == 0 && median != 0 {
			t.Errorf("median %g, worst %g of %d", median, worst, measured)
		}
		bad := m.Bad()
		if !slices.IsSortedFunc(bad, func(a, b *MeshPair) int { return cmp.Compare(a.OfBest, b.OfBest) }) {
			t.Errorf("%v are not in order", bad)
		}
		for _, pair := range bad {
			if status := pair.Status(); status != "lost" && status != "outlier" {
				t.Errorf("%s is bad", status)
			}
		}
	})
}

// TestTraffic: each operation is there once, with the sums of all processes.
func TestTraffic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var result Result
		want := make(map[string]Traffic)
		for range rapid.IntRange(0, 4).Draw(t, "processes") {
			more := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Traffic {
				count, bytes := rapid.IntRange(0, 9).Draw(t, "count"), rapid.Int64Range(0, 99).Draw(t, "bytes")
				return Traffic{few(t, "operation"), count, bytes}
			}), 0, 4).Draw(t, "traffic")
			for _, each := range more {
				sum := want[each.Operation]
				want[each.Operation] = Traffic{each.Operation, sum.Count + each.Count, sum.Bytes + each.Bytes}
			}
			result.AddTraffic(more)
		}
		got := make(map[string]Traffic)
		for _, each := range result.Traffic {
			got[each.Operation] = each
		}
		if len(result.Traffic) != len(want) || !maps.Equal(got, want) {
			t.Errorf("%v, not %v", result.Traffic, want)
		}
	})
}
