package record

import (
	"cmp"
	"iter"
	"slices"
	"time"
)

// Mesh is the result of a step that measures many pairs of nodes, for one size of messages.
type Mesh struct {
	What
	How

	Pattern string `json:"pattern"` // which pairs were measured: all, ring, bisection, random, incast, list
	Rounds  int    `json:"rounds"`  // without those of the second look
	// Tolerance is the part of the best value that a pair must reach. The best time is the smallest. Best is the
	// best value of the first look: bits per second, nanoseconds at the median, or connections per second. For an
	// incast it is of all pairs to one target together.
	Tolerance float64    `json:"tolerance"`
	Best      float64    `json:"best"`
	Nodes     []MeshNode `json:"nodes"`
	Pairs     []MeshPair `json:"pairs"`
	// Suspects counts the pairs that were outside of the tolerance at first. Outliers counts those that still were
	// in the second look. Lost counts those that could not be measured.
	Suspects int        `json:"suspects"`
	Outliers int        `json:"outliers"`
	Lost     int        `json:"lost"`
	Blame    *MeshBlame `json:"blame,omitempty"`
}

// MeshNode is a node of a mesh.
type MeshNode struct {
	Role   string            `json:"role"`
	Host   string            `json:"host,omitempty"`
	Device string            `json:"device,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`
}

// MeshPair is the result of two nodes in one direction.
type MeshPair struct {
	From  string `json:"from"` // the end these figures are of
	To    string `json:"to"`
	Round int    `json:"round"` // from 1
	// First are the results of the first look, Again those of the second, if there was one; nil for a lost pair.
	First *MeshFigures `json:"first,omitempty"`
	Again *MeshFigures `json:"again,omitempty"`
	// OfBest is the part of the best value in the last look: 1 is equal.  Of an incast it is the value of the target.
	OfBest float64 `json:"of_best"`
	// Suspect is set outside of the tolerance at first, Outlier also in the second look.
	Suspect bool `json:"suspect,omitempty"`
	Outlier bool `json:"outlier,omitempty"`
	// Lost is the reason why there are no results.
	Lost string `json:"lost,omitempty"`
}

// MeshFigures are the results of one measurement of a pair.
type MeshFigures struct {
	Messages          uint64        `json:"messages"`
	Bytes             uint64        `json:"bytes,omitempty"`
	Took              time.Duration `json:"took_ns"`
	BitsPerSecond     float64       `json:"bits_per_second,omitempty"`
	MessagesPerSecond float64       `json:"messages_per_second,omitempty"`
	Latency           *Distribution `json:"latency,omitempty"`
}

// MeshBlame explains all outliers and lost pairs.
type MeshBlame struct {
	// Kind is node, host, device, labels (between two values of one label), label, or pairs: nothing in common.
	Kind  string   `json:"kind"`
	Names []string `json:"names,omitempty"` // "node[3]"; of labels "rack=r1"
	Text  string   `json:"text"`
}

// Figures returns the results of a measurement.
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

// Figure is the value that pairs are compared by, for a type of measurement. It is bits per second, nanoseconds at the
// median, or connections per second; 0 without one.
func (f *MeshFigures) Figure(kind string) float64 {
	switch {
	case kind == BandwidthType:
		return f.BitsPerSecond
	case kind == ConnectType:
		return f.MessagesPerSecond
	case f.Latency == nil:
		return 0
	}
	return float64(f.Latency.P50)
}

// Bad returns the lost pairs and the outliers, the worst first.
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

// Spread returns OfBest of the median pair and the worst pair; 0 if none was measured.
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

// Named returns a function from a node's role to its displayed name. The name is its host, if each node has its own;
// otherwise the host with the device; otherwise the role. A lost node with an unknown host has its role.
func (m *Mesh) Named() func(role string) string {
	named, _ := m.named()
	return named
}

// named is Named; hosts reports whether the names are those of hosts.
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

// Ends returns a function from the roles of a pair to names that are equal in another run. They are the hosts, which
// may have other roles there. If only the pattern has chosen which end is first, the names are sorted.
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

// Last returns the results of the last look; nil for a lost pair.
func (p *MeshPair) Last() *MeshFigures {
	if p.Again != nil {
		return p.Again
	}
	return p.First
}

// Status is good, suspect (only at first), outlier or lost.
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

// Measures returns the pairs as measurements, with the results of the last look; lost pairs have none.
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
