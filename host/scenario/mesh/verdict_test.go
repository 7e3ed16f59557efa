package mesh

import (
	"fmt"
	"slices"
	"testing"
)

func TestLimit(t *testing.T) {
	rate, latency := Limit{Tolerance: UsualRate}, Limit{Less: true, Tolerance: UsualTime}
	if best := rate.Best([]float64{90, 0, 100, 95}); best != 100 {
		t.Errorf("best rate %g", best)
	}
	if best := latency.Best([]float64{9, 0, 3, 4}); best != 3 {
		t.Errorf("best time %g", best)
	}
	for _, test := range []struct {
		limit        Limit
		figure, best float64
		misses       bool
	}{
		{rate, 93, 100, false}, {rate, 92.9, 100, true}, {rate, 0, 100, true}, {rate, 0, 0, true},
		{latency, 2.1, 1, false}, {latency, 2.2, 1, true}, {latency, 0, 1, true}, {latency, 5, 5, false},
	} {
		if got := test.limit.Misses(test.figure, test.best); got != test.misses {
			t.Errorf("%+v: %t", test, got)
		}
	}
}

// lab is two nodes on each of four hosts, one at each of two rails, and two hosts in each of two racks.
func lab() []Node {
	var nodes []Node
	for i := range 8 {
		nodes = append(nodes, Node{
			Name: fmt.Sprintf("node[%d]", i), Host: string(rune('a' + i/2)), Device: fmt.Sprintf("mlx5_%d", i%2),
			Labels: map[string]string{"rack": fmt.Sprintf("r%d", i/4+1), "row": "1"},
		})
	}
	return nodes
}

// racks is one node a host and two a rack.
func racks(count int) []Node {
	var nodes []Node
	for i := range 2 * count {
		nodes = append(nodes, Node{
			Name: fmt.Sprintf("node[%d]", i), Host: string(rune('a' + i)), Device: "mlx5_0",
			Labels: map[string]string{"rack": fmt.Sprintf("r%d", i/2)},
		})
	}
	return nodes
}

func TestExplain(t *testing.T) {
	all := func(nodes int) []Pair { return slices.Concat(sliceOf(All(nodes))...) }
	in := func(nodes ...int) func(Pair) bool {
		return func(p Pair) bool { return slices.Contains(nodes, p.From) || slices.Contains(nodes, p.To) }
	}
	between := func(p Pair, a, b []int) bool {
		return slices.Contains(a, p.From) && slices.Contains(b, p.To) ||
			slices.Contains(b, p.From) && slices.Contains(a, p.To)
	}
	for name, test := range map[string]struct {
		nodes    []Node
		measured []Pair
		bad      func(Pair) bool
		kind     Kind
		names    string
	}{
		"none":     {lab(), all(8), func(Pair) bool { return false }, Nothing, "[]"},
		"one node": {lab(), all(8), in(3), OneNode, "[node[3]]"},
		"one node with pairs of which one passed": {
			lab(), all(8), func(p Pair) bool { return in(3)(p) && !in(0)(p) }, OneNode, "[node[3]]",
		},
		"one host": {lab(), all(8), in(2, 3), OneHost, "[b]"},
		"one host, not within it": {
			lab(), all(8), func(p Pair) bool { return in(2)(p) != in(3)(p) }, OneHost, "[b]",
		},
		"one rail": {lab(), all(8), in(1, 3, 5, 7), Device, "[mlx5_1]"},
		"two rails, from one to the other": {
			lab(), all(8), func(p Pair) bool { return p.From%2 != p.To%2 }, Pairs, "[]",
		},
		"two racks": {
			lab(), all(8), func(p Pair) bool { return p.From/4 != p.To/4 }, Labels, "[rack=r1 rack=r2]",
		},
		"within one of two racks": {
			lab(), all(8), func(p Pair) bool { return p.From/4 == 0 && p.To/4 == 0 }, Pairs, "[]",
		},
		"one rack of four": {racks(4), all(8), in(2, 3), Label, "[rack=r1]"},
		"the way out of one rack of four": {
			racks(4), all(8), func(p Pair) bool { return in(2, 3)(p) && p.From/2 != p.To/2 }, Label, "[rack=r1]",
		},
		"two racks of four": {
			racks(4), all(8), func(p Pair) bool { return between(p, []int{0, 1}, []int{6, 7}) }, Labels,
			"[rack=r0 rack=r3]",
		},
		"single pair": {
			lab(), all(8), func(p Pair) bool { return between(p, []int{2}, []int{6}) }, Pairs, "[]",
		},
		"two pairs apart": {
			lab(), all(8),
			func(p Pair) bool { return between(p, []int{2}, []int{6}) || between(p, []int{1}, []int{4}) }, Pairs, "[]",
		},
		"two nodes":  {racks(4), all(8), in(0, 7), Pairs, "[]"},
		"everything": {lab(), all(8), func(Pair) bool { return true }, Pairs, "[]"},
		"two of two nodes, both ways": {
			racks(1), []Pair{{0, 1}, {1, 0}}, func(Pair) bool { return true }, Pairs, "[]",
		},
		"a ring": {
			racks(4), slices.Concat(sliceOf(Ring(8))...), in(5), OneNode, "[node[5]]",
		},
		"a ring's pair": {
			racks(4), slices.Concat(sliceOf(Ring(8))...), func(p Pair) bool { return p == Pair{4, 5} }, Pairs, "[]",
		},
		"a bisection's pair": {racks(4), slices.Concat(sliceOf(Bisection(8))...), in(5), Pairs, "[]"},
		"the target of an incast": {
			racks(4), slices.Concat(sliceOf(Incast(8, 3))...), func(p Pair) bool { return p.To == 5 }, OneNode,
			"[node[5]]",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var bad []Pair
			for _, pair := range test.measured {
				if test.bad(pair) {
					bad = append(bad, pair)
				}
			}
			blame := Explain(test.nodes, test.measured, bad)
			if names := fmt.Sprint(blame.Names); blame.Kind != test.kind || names != test.names {
				t.Errorf("%+v, want %s %s", blame, test.kind, test.names)
			}
			if (blame.Text == "") != (test.kind == Nothing) {
				t.Errorf("it says %q", blame.Text)
			}
		})
	}
}

func sliceOf(rounds []Round) [][]Pair {
	var lists [][]Pair
	for _, round := range rounds {
		lists = append(lists, round)
	}
	return lists
}
