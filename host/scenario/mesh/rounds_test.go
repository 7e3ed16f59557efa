package mesh

import (
	"fmt"
	"reflect"
	"testing"
)

// meetings counts how often two nodes meet, in either direction. It reports a node that is in two pairs at once or in
// an invalid pair.
func meetings(t *testing.T, nodes int, rounds []Round) map[Pair]int {
	t.Helper()
	counts := make(map[Pair]int)
	for i, round := range rounds {
		busy := make(map[int]bool)
		if len(round) == 0 {
			t.Errorf("round %d is empty", i)
		}
		for _, pair := range round {
			if pair.From == pair.To || min(pair.From, pair.To) < 0 || max(pair.From, pair.To) >= nodes {
				t.Errorf("round %d has %v", i, pair)
			}
			if busy[pair.From] || busy[pair.To] {
				t.Errorf("round %d has one node in two pairs: %v", i, round)
			}
			busy[pair.From], busy[pair.To] = true, true
			counts[Pair{min(pair.From, pair.To), max(pair.From, pair.To)}]++
		}
	}
	return counts
}

func TestAll(t *testing.T) {
	for nodes := 2; nodes <= 41; nodes++ {
		rounds := All(nodes)
		if want := nodes - 1 + nodes%2; len(rounds) != want || want != MaxRandom(nodes) {
			t.Errorf("%d nodes: %d rounds, want %d", nodes, len(rounds), want)
		}
		counts := meetings(t, nodes, rounds)
		if want := nodes * (nodes - 1) / 2; len(counts) != want {
			t.Errorf("%d nodes: %d pairs, want %d", nodes, len(counts), want)
		}
		begins := make([]int, nodes)
		for _, round := range rounds {
			if len(round) != nodes/2 {
				t.Errorf("%d nodes: a round of %d pairs", nodes, len(round))
			}
			for _, pair := range round {
				begins[pair.From]++
			}
		}
		for pair, count := range counts {
			if count != 1 {
				t.Errorf("%d nodes: %v meets %d times", nodes, pair, count)
			}
		}
		for node, count := range begins {
			if nodes > 3 && (count == 0 || count == nodes-1) {
				t.Errorf("%d nodes: node %d begins %d times", nodes, node, count)
			}
		}
	}
}

func TestRing(t *testing.T) {
	for nodes, want := range map[int]int{2: 1, 3: 3, 4: 2, 5: 3, 8: 2, 9: 3} {
		rounds := Ring(nodes)
		counts := meetings(t, nodes, rounds)
		if len(rounds) != want {
			t.Errorf("%d nodes: %d rounds, want %d", nodes, len(rounds), want)
		}
		for i := range nodes {
			next := (i + 1) % nodes
			if counts[Pair{min(i, next), max(i, next)}] != 1 {
				t.Errorf("%d nodes: %d does not meet %d once: %v", nodes, i, next, rounds)
			}
		}
	}
}

func TestBisection(t *testing.T) {
	for nodes, want := range map[int]Round{2: {{0, 1}}, 5: {{0, 2}, {1, 3}}, 6: {{0, 3}, {1, 4}, {2, 5}}} {
		if got := Bisection(nodes); len(got) != 1 || !reflect.DeepEqual(got[0], want) {
			t.Errorf("%d nodes: %v", nodes, got)
		}
	}
}

func TestRandom(t *testing.T) {
	for _, test := range []struct{ nodes, count, rounds int }{{2, 1, 1}, {7, 3, 3}, {8, 7, 7}, {8, 99, 7}, {40, 5, 5}} {
		rounds := Random(test.nodes, test.count, 1)
		if len(rounds) != test.rounds {
			t.Errorf("%v: %d rounds", test, len(rounds))
		}
		for pair, count := range meetings(t, test.nodes, rounds) {
			if count != 1 {
				t.Errorf("%v: %v meets %d times", test, pair, count)
			}
		}
		if !reflect.DeepEqual(rounds, Random(test.nodes, test.count, 1)) {
			t.Errorf("%v: the same seed draws others", test)
		}
	}
	if reflect.DeepEqual(Random(40, 5, 1), Random(40, 5, 2)) {
		t.Error("another seed draws the same")
	}
}

func TestIncast(t *testing.T) {
	for _, test := range []struct{ nodes, senders, each int }{{2, 1, 1}, {5, 3, 3}, {5, 9, 4}} {
		rounds := Incast(test.nodes, test.senders)
		if len(rounds) != test.nodes {
			t.Errorf("%v: %d rounds", test, len(rounds))
		}
		sends := make(map[int]int)
		for target, round := range rounds {
			from := make(map[int]bool)
			for _, pair := range round {
				if pair.To != target || pair.From == target || from[pair.From] {
					t.Errorf("%v: to %d go %v", test, target, round)
				}
				from[pair.From] = true
				sends[pair.From]++
			}
		}
		for node, count := range sends {
			if count != test.each {
				t.Errorf("%v: node %d sends %d times", test, node, count)
			}
		}
	}
}

func TestList(t *testing.T) {
	pairs := []Pair{{0, 1}, {2, 3}, {1, 2}, {1, 0}, {4, 5}}
	if got, want := fmt.Sprint(List(pairs)), "[[{0 1} {2 3} {4 5}] [{1 2}] [{1 0}]]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestAgain(t *testing.T) {
	few := []Pair{{0, 1}, {2, 3}}
	if got, want := fmt.Sprint(Again(4, few)), "[[{0 1}] [{2 3}]]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	many := []Pair{{0, 1}, {2, 3}, {0, 2}, {1, 3}, {0, 3}}
	if got, want := fmt.Sprint(Again(4, many)), "[[{0 1} {2 3}] [{0 2} {1 3}] [{0 3}]]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
