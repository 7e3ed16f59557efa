// Package mesh computes which nodes of a mesh measure with each other in which round. It also finds the pairs that are
// worse than the others, and what those have in common. It measures nothing itself: nodes are numbers, and the caller
// has the values.
package mesh

import (
	"math/rand/v2"
	"slices"
)

// Pair is two nodes by their numbers.  From begins: it sends, writes, reads, connects.
type Pair struct{ From, To int }

// Round is what is measured at once.  No node is in two pairs of it, but for the target of an incast.
type Round []Pair

// All are rounds in which each node meets each other once. There is one round less than nodes. For an odd number there
// are as many, and in each another node pauses. It is the circle method of tournaments: the first stays, the others
// move on.
func All(nodes int) []Round {
	order := make([]int, nodes)
	for i := range order {
		order[i] = i
	}
	return tournament(order)
}

// pause is the node that is none, with which an odd number is made even.
const pause = -1

func tournament(order []int) []Round {
	order = slices.Clone(order)
	if len(order)%2 == 1 {
		order = append(order, pause)
	}
	count := len(order)
	var rounds []Round
	for range count - 1 {
		var round Round
		for i := range count / 2 {
			pair := Pair{order[i], order[count-1-i]}
			// so that each begins about as often as it answers
			if (pair.From > pair.To) == ((pair.From-pair.To)%2 != 0) {
				pair.From, pair.To = pair.To, pair.From
			}
			if pair.From != pause && pair.To != pause {
				round = append(round, pair)
			}
		}
		rounds = append(rounds, round)
		last := order[count-1]
		copy(order[2:], order[1:count-1])
		order[1] = last
	}
	return rounds
}

// Ring are rounds in which each node meets the next, the last the first: two, or three of an odd number.
func Ring(nodes int) []Round {
	if nodes == 2 {
		return []Round{{{0, 1}}}
	}
	rounds := make([]Round, 2, 3)
	for i := range nodes - nodes%2 {
		rounds[i%2] = append(rounds[i%2], Pair{i, (i + 1) % nodes})
	}
	if nodes%2 == 1 {
		rounds = append(rounds, Round{{nodes - 1, 0}})
	}
	return rounds
}

// Bisection is one round in which each node of the first half meets one of the second, so that all traffic crosses the
// middle. Of an odd number the last one pauses.
func Bisection(nodes int) []Round {
	var round Round
	for i := range nodes / 2 {
		round = append(round, Pair{i, i + nodes/2})
	}
	return []Round{round}
}

// Random are so many rounds of random pairs, none twice. They are those of a tournament in random order, so there are
// no more than it has. The same seed draws the same.
func Random(nodes, count int, seed uint64) []Round {
	draw := rand.New(rand.NewPCG(seed, uint64(nodes)))
	rounds := tournament(draw.Perm(nodes))
	draw.Shuffle(len(rounds), func(i, j int) { rounds[i], rounds[j] = rounds[j], rounds[i] })
	return rounds[:min(count, len(rounds))]
}

// MaxRandom is how many rounds Random can draw.
func MaxRandom(nodes int) int { return nodes - 1 + nodes%2 }

// Incast are rounds, one a node, in which so many others send to it at once: the next ones.
func Incast(nodes, senders int) []Round {
	rounds := make([]Round, nodes)
	for target := range nodes {
		for i := range min(senders, nodes-1) {
			rounds[target] = append(rounds[target], Pair{(target + 1 + i) % nodes, target})
		}
	}
	return rounds
}

// List are rounds of given pairs: each in the first round in which both its nodes are free.
func List(pairs []Pair) []Round {
	var rounds []Round
	var busy []map[int]bool // in each round
	for _, pair := range pairs {
		at := slices.IndexFunc(busy, func(b map[int]bool) bool { return !b[pair.From] && !b[pair.To] })
		if at < 0 {
			at = len(rounds)
			rounds, busy = append(rounds, nil), append(busy, make(map[int]bool))
		}
		rounds[at] = append(rounds[at], pair)
		busy[at][pair.From], busy[at][pair.To] = true, true
	}
	return rounds
}

// Again are the rounds in which suspects are measured a second time: each alone, so that it shares nothing with
// others. With more suspects than nodes, that would take too long, and the cause is not one cable. Then it is enough
// that no node is in two pairs at once.
func Again(nodes int, suspects []Pair) []Round {
	if len(suspects) > nodes {
		return List(suspects)
	}
	rounds := make([]Round, len(suspects))
	for i, pair := range suspects {
		rounds[i] = Round{pair}
	}
	return rounds
}
