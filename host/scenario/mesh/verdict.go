package mesh

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// Limit decides which figures are too far from the best.
type Limit struct {
	// Less means that less of it is better: times.
	Less bool
	// Tolerance is what part of the best must be reached; of times, how many times the least they may be.
	Tolerance float64
}

// Usual tolerances: of rates, and of times.
const (
	UsualRate = 0.93
	UsualTime = 2.1
)

// Best is the best of figures; what is not above 0 is none.
func (l Limit) Best(figures []float64) float64 {
	best := 0.0
	for _, figure := range figures {
		if figure > 0 && (best == 0 || l.Less == (figure < best)) {
			best = figure
		}
	}
	return best
}

// Misses reports whether a figure is too far from the best.  None at all always is.
func (l Limit) Misses(figure, best float64) bool {
	switch {
	case figure <= 0:
		return true
	case l.Less:
		return figure > l.Tolerance*best
	}
	return figure < l.Tolerance*best
}

// Nearness is how near a figure comes to the best: 1 is as good.
func (l Limit) Nearness(figure, best float64) float64 {
	switch {
	case figure <= 0 || best <= 0:
		return 0
	case l.Less:
		return best / figure
	}
	return figure / best
}

// Node is a party of a mesh.
type Node struct {
	Name, Host, Device string
	Labels             map[string]string
}

// Kind is what explains the bad pairs.
type Kind string

// The kinds, the simplest explanation first.
const (
	Nothing Kind = "none"   // there are no bad pairs
	OneNode Kind = "node"   // one node, or one end of all of its connections
	OneHost Kind = "host"   // one host with several nodes
	Device  Kind = "device" // devices of one name, a rail
	Labels  Kind = "labels" // what lies between two values of one label
	Label   Kind = "label"  // one value of one label
	Pairs   Kind = "pairs"  // nothing that they have in common
)

// Blame is what explains all bad pairs.
type Blame struct {
	Kind Kind
	// Names are the node, the host, the device, or the label with its one or two values, "rack=r1".
	Names []string
	// Text is the sentence for people.
	Text string
}

const (
	// fewest is how many bad pairs have something in common: a single one has two ends, and either may be bad.
	fewest = 2
	// enough is what part of the pairs that an explanation speaks of must be bad.
	enough = 2.0 / 3
)

// candidate is a possible explanation.
type candidate struct {
	Blame
	concerns func(Pair) bool
}

// Explain finds what explains the bad ones of the pairs that were measured: it concerns all of them, and hardly any
// others.  Of several that do, it is the one with the fewest others, then the simplest.
func Explain(nodes []Node, measured, bad []Pair) Blame {
	if len(bad) == 0 {
		return Blame{Kind: Nothing}
	}
	best, part := candidate{}, 0.0
	for _, kind := range [][]candidate{
		oneNode(nodes), hosts(nodes, bad), devices(nodes, bad), betweenLabels(nodes), labels(nodes, bad),
	} {
		found, share, alone := candidate{}, 0.0, false
		for _, each := range kind {
			switch got := each.share(measured, bad); {
			case got > share:
				found, share, alone = each, got, true
			case got == share && !slices.Equal(each.Names, found.Names):
				alone = false // either may be it
			}
		}
		if alone && share > part {
			best, part = found, share
		}
	}
	if part >= enough && len(bad) >= fewest {
		return best.Blame
	}
	return Blame{Kind: Pairs, Text: unexplained(len(bad))}
}

func unexplained(count int) string {
	if count == 1 {
		return "one pair alone is bad: either end, or what lies between"
	}
	return fmt.Sprintf("no single node, device or label explains the %d pairs", count)
}

// share is what part of the pairs that the candidate concerns is bad; 0 if it does not concern all bad ones.
func (c *candidate) share(measured, bad []Pair) float64 {
	for _, pair := range bad {
		if !c.concerns(pair) {
			return 0
		}
	}
	concerned := 0
	for _, pair := range measured {
		if c.concerns(pair) {
			concerned++
		}
	}
	return float64(len(bad)) / float64(max(concerned, 1))
}

// oneNode are the nodes, and each of them at one end only.
func oneNode(nodes []Node) []candidate {
	var list []candidate
	for i, node := range nodes {
		add := func(text string, concerns func(Pair) bool) {
			list = append(list, candidate{Blame{OneNode, []string{node.Name}, text}, concerns})
		}
		called := node.Name + node.location()
		add(called+" is in all of them", func(p Pair) bool { return p.From == i || p.To == i })
		add(called+" begins all of them", func(p Pair) bool { return p.From == i })
		add(called+" answers in all of them", func(p Pair) bool { return p.To == i })
	}
	return list
}

// location is where a node is, in brackets.
func (n *Node) location() string {
	switch {
	case n.Host != "" && n.Device != "":
		return " (" + n.Host + ", " + n.Device + ")"
	case n.Host != "" || n.Device != "":
		return " (" + cmp.Or(n.Host, n.Device) + ")"
	}
	return ""
}

// group is nodes that have something in common, by their numbers.
type group struct {
	name    string
	members map[int]bool
}

// groups are those of several nodes, sorted by their names, and of one node where single is set; one of all nodes would
// explain anything.
func groups(nodes []Node, of func(*Node) string, single bool) []group {
	byName := make(map[string]map[int]bool)
	for i := range nodes {
		if name := of(&nodes[i]); name != "" {
			if byName[name] == nil {
				byName[name] = make(map[int]bool)
			}
			byName[name][i] = true
		}
	}
	var list []group
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		if members := byName[name]; len(members) < len(nodes) && (single || len(members) > 1) {
			list = append(list, group{name, members})
		}
	}
	return list
}

// concerns are the pairs with a node of the group.  Where all bad ones lead out of it, those within it are not
// concerned: what is bad is how it is connected.
func (g group) concerns(bad []Pair) func(Pair) bool {
	within := func(p Pair) bool { return g.members[p.From] && g.members[p.To] }
	out := !slices.ContainsFunc(bad, within)
	return func(p Pair) bool { return (g.members[p.From] || g.members[p.To]) && !(out && within(p)) }
}

func hosts(nodes []Node, bad []Pair) []candidate {
	var list []candidate
	for _, g := range groups(nodes, func(n *Node) string { return n.Host }, false) {
		list = append(list, candidate{
			Blame{OneHost, []string{g.name}, "host " + g.name + " is in all of them"}, g.concerns(bad),
		})
	}
	return list
}

func devices(nodes []Node, bad []Pair) []candidate {
	var list []candidate
	for _, g := range groups(nodes, func(n *Node) string { return n.Device }, false) {
		list = append(list, candidate{
			Blame{Device, []string{g.name}, "a device " + g.name + " is in all of them"}, g.concerns(bad),
		})
	}
	return list
}

// keys are the names of labels that nodes have, sorted.
func keys(nodes []Node) []string {
	all := make(map[string]bool)
	for i := range nodes {
		for key := range nodes[i].Labels {
			all[key] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

func labels(nodes []Node, bad []Pair) []candidate {
	var list []candidate
	for _, key := range keys(nodes) {
		for _, g := range groups(nodes, func(n *Node) string { return n.Labels[key] }, false) {
			list = append(list, candidate{
				Blame{Label, []string{key + "=" + g.name}, key + " " + g.name + " is in all of them"}, g.concerns(bad),
			})
		}
	}
	return list
}

func betweenLabels(nodes []Node) []candidate {
	var list []candidate
	for _, key := range keys(nodes) {
		all := groups(nodes, func(n *Node) string { return n.Labels[key] }, true)
		for i, a := range all {
			for _, b := range all[i+1:] {
				list = append(list, candidate{
					Blame{
						Labels, []string{key + "=" + a.name, key + "=" + b.name},
						"all of them are between " + key + " " + a.name + " and " + key + " " + b.name,
					},
					func(p Pair) bool {
						return a.members[p.From] && b.members[p.To] || b.members[p.From] && a.members[p.To]
					},
				})
			}
		}
	}
	return list
}
