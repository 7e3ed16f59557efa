package record

import (
	"cmp"
	"iter"
	"slices"
	"time"
)

// Mesh is what a step has found that measured many pairs of nodes, for one size of messages.
type Mesh struct {
	What
	How

	Pattern string `json:"pattern"` // who met whom: all, ring, bisection, random, incast, list
	Rounds  int    `json:"rounds"`  // without those of the second look
	// Tolerance is what part of the best a pair must reach; of times, the best is the least, and must be that part of
	// the pair's.  Best is that of the first look: bits a second, nanoseconds at the median, or connections a second;
	// of an incast, of all pairs to one target together.
	Tolerance float64    `json:"tolerance"`
	Best      float64    `json:"best"`
	Nodes     []MeshNode `json:"nodes"`
	Pairs     []MeshPair `json:"pairs"`
	// Suspects are the pairs that were too far from the best at first, Outliers those that still were when they were
	// measured again, Lost those that could not be measured.
	Suspects int        `json:"suspects"`
	Outliers int        `json:"outliers"`
	Lost     int        `json:"lost"`
	Blame    *MeshBlame `json:"blame,omitempty"`
}

// MeshNode is a party of a mesh.
type MeshNode struct {
	Role   string            `json:"role"`
	Host   string            `json:"host,omitempty"`
	Device string            `json:"device,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`
}

// MeshPair is two nodes that were measured, in one direction.
type MeshPair struct {
	From  string `json:"from"` // the end these figures are of
	To    string `json:"to"`
	Round int    `json:"round"` // from 1
	// First are the figures of the first look, Again those of the second, where there was one; nil for a pair that is
	// lost.
	First *MeshFigures `json:"first,omitempty"`
	Again *MeshFigures `json:"again,omitempty"`
	// OfBest is how near it comes to the best, at the last look: 1 is as good.  Of an incast it is its target that
	// comes.
	OfBest float64 `json:"of_best"`
	// Suspect was too far from the best at first, Outlier also when it was measured again.
	Suspect bool `json:"suspect,omitempty"`
	Outlier bool `json:"outlier,omitempty"`
	// Lost is why there are no figures.
	Lost string `json:"lost,omitempty"`
}

// MeshFigures are what one measurement of a pair has found.
type MeshFigures struct {
	Messages          uint64        `json:"messages"`
	Bytes             uint64        `json:"bytes,omitempty"`
	Took              time.Duration `json:"took_ns"`
	BitsPerSecond     float64       `json:"bits_per_second,omitempty"`
	MessagesPerSecond float64       `json:"messages_per_second,omitempty"`
	Latency           *Distribution `json:"latency,omitempty"`
}

// MeshBlame is what explains all outliers and lost pairs.
type MeshBlame struct {
	// Kind is node, host, device, labels (what lies between two values of one), label, or pairs: nothing in common.
	Kind  string   `json:"kind"`
	Names []string `json:"names,omitempty"` // "node[3]"; of labels "rack=r1"
	Text  string   `json:"text"`
}

// Figures are those of a measurement.
func (m *Measure) Figures() *MeshFigures {
	f := &MeshFigures{
		Messages: m.Messages, Bytes: m.Bytes, Took: m.Took, BitsPerSecond: m.BitsPerSecond,
		MessagesPerSecond: m.MessagesPerSecond,
	}
	for i := range m.Latency {
		if m.Latency[i].Of == "total" {
			whole := m.Latency[i]
			whole.HDR = "" // there may be thousands of pairs
			f.Latency = &whole
		}
	}
	return f
}

// Figure is the one that pairs are judged by, of a type of measurement: bits a second, nanoseconds at the median, or
// connections a second; 0 for none.
func (f *MeshFigures) Figure(kind string) float64 {
	switch {
	case kind == "bandwidth":
		return f.BitsPerSecond
	case kind == "connect":
		return f.MessagesPerSecond
	case f.Latency == nil:
		return 0
	}
	return float64(f.Latency.P50)
}

// Bad are the lost pairs and the outliers, the worst first.
func (m *Mesh) Bad() []*MeshPair {
	var bad []*MeshPair
	for i := range m.Pairs {
		if pair := &m.Pairs[i]; pair.Outlier || pair.Lost != "" {
			bad = append(bad, pair)
		}
	}
	slices.SortStableFunc(bad, func(a, b *MeshPair) int { return cmp.Compare(a.OfBest, b.OfBest) })
	return bad
}

// Spread is how near the median pair and the worst come to the best, of those that were measured; 0 where none was.
func (m *Mesh) Spread() (median, worst float64) {
	var parts []float64
	for i := range m.Pairs {
		if m.Pairs[i].First != nil {
			parts = append(parts, m.Pairs[i].OfBest)
		}
	}
	if len(parts) == 0 {
		return 0, 0
	}
	slices.Sort(parts)
	return parts[len(parts)/2], parts[0]
}

// Named tells what people call a node, by its role: its host, where each node has one of its own, else the host with
// the device; the role where neither tells them apart, and of a node whose host nobody knows, since it was lost.
func (m *Mesh) Named() func(role string) string {
	named, _ := m.named()
	return named
}

// named is Named, and whether hosts are the names.
func (m *Mesh) named() (named func(role string) string, hosts bool) {
	known := 0
	for i := range m.Nodes {
		if m.Nodes[i].Host != "" {
			known++
		}
	}
	for _, of := range []func(*MeshNode) string{
		func(n *MeshNode) string { return n.Host },
		func(n *MeshNode) string { return n.Host + " " + n.Device },
	} {
		names, taken := make(map[string]string), make(map[string]bool)
		for i := range m.Nodes {
			if node := &m.Nodes[i]; node.Host != "" && !taken[of(node)] {
				names[node.Role], taken[of(node)] = of(node), true
			}
		}
		if known > 0 && len(names) == known {
			return func(role string) string { return cmp.Or(names[role], role) }, true
		}
	}
	return func(role string) string { return role }, false
}

// Ends tells what two runs call the ends of a pair alike, by its roles: the hosts, which another run may have given
// other roles.  Where the pattern alone has chosen which end is first, the order is that of their names: the pair is
// the same then.
func (m *Mesh) Ends() func(from, to string) [2]string {
	named, hosts := m.named()
	either := hosts && !m.Both && slices.Contains([]string{"all", "ring", "bisection", "random"}, m.Pattern)
	return func(from, to string) [2]string {
		ends := [2]string{named(from), named(to)}
		if either && ends[1] < ends[0] {
			ends[0], ends[1] = ends[1], ends[0]
		}
		return ends
	}
}

// Last are the figures of the last look; nil for a pair that is lost.
func (p *MeshPair) Last() *MeshFigures {
	if p.Again != nil {
		return p.Again
	}
	return p.First
}

// Status is what became of a pair: good, suspect (too far from the best at first, and not again), outlier or lost.
func (p *MeshPair) Status() string {
	switch {
	case p.Lost != "":
		return "lost"
	case p.Outlier:
		return "outlier"
	case p.Suspect:
		return "suspect"
	}
	return "good"
}

// Measures are the pairs as measurements, as they were at the last look; without figures those that are lost.
func (m *Mesh) Measures() iter.Seq2[*MeshPair, *Measure] {
	return func(yield func(*MeshPair, *Measure) bool) {
		ends := m.Ends()
		for i := range m.Pairs {
			found := m.measure(&m.Pairs[i])
			found.Ends = ends(found.Role, found.Peer)
			if !yield(&m.Pairs[i], &found) {
				return
			}
		}
	}
}

func (m *Mesh) measure(pair *MeshPair) Measure {
	found := Measure{What: m.What, Role: pair.From, Peer: pair.To, How: m.How}
	if f := pair.Last(); f != nil {
		found.Messages, found.Bytes, found.Took = f.Messages, f.Bytes, f.Took
		found.BitsPerSecond, found.MessagesPerSecond = f.BitsPerSecond, f.MessagesPerSecond
		if f.Latency != nil {
			found.Latency = []Distribution{*f.Latency}
		}
	}
	return found
}
