package verb

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"rdmarun/host/printable"
	"rdmarun/host/record"
	"rdmarun/host/scenario/mesh"
	"rdmarun/host/scenario/testbed"
)

// A mesh whose nodes several processes play is a step of all of them.  Each walks the same rounds and measures the
// pairs of which it plays a node, as a half where it plays only one.  The process with a pair's first node has its
// figures.  After each round all processes send theirs, so that all find the same suspects and have the same result.
// The pairs of a process that is gone are lost, and the others continue.

// Company is the other processes of a mesh.
type Company interface {
	// Process is the process that plays a role; "" is this one.
	Process(role string) string
	// Host is the host of a role elsewhere.
	Host(role string) string
	// Counterpart is the process with the other role of a pair, in a part of the mesh.
	Counterpart(part, from, to string) Counterpart
	// Tell sends a value for a part to all others, and Hear waits for that of a process.  Hear fails with a
	// testbed.EnvironmentError when that process is gone.
	Tell(part string, value any) error
	Hear(ctx context.Context, process, part string, into any) error
}

// here reports whether this process plays a node.
func (m *meshing) here(node int) bool { return m.process(node) == "" }

// process is the process that plays a node; "" is this one.
func (m *meshing) process(node int) string {
	if m.call.Company == nil {
		return ""
	}
	return m.call.Company.Process(m.args.Nodes[node])
}

// others are the other processes that play nodes, each once.
func (m *meshing) others() []string {
	var list []string
	seen := map[string]bool{"": true}
	for node := range m.args.Nodes {
		if name := m.process(node); !seen[name] {
			seen[name] = true
			list = append(list, name)
		}
	}
	return list
}

// find finds out where the nodes are.
func (m *meshing) find(ctx context.Context) error {
	m.nodes = make([]mesh.Node, len(m.args.Nodes))
	own := make(map[int]mesh.Node)
	for i, name := range m.args.Nodes {
		m.nodes[i].Name = name
		if !m.here(i) {
			continue
		}
		role, err := m.call.Testbed.Role(name)
		if err != nil {
			return err
		}
		m.nodes[i] = mesh.Node{Name: name, Device: role.Device().Name(), Labels: role.Labels}
		if m.call.Company != nil {
			m.nodes[i].Host = role.Host
		}
		own[i] = m.nodes[i]
	}
	if m.call.Company == nil {
		return nil
	}
	const part = "nodes"
	if err := m.call.Company.Tell(part, own); err != nil {
		return err
	}
	for _, process := range m.others() {
		var there map[int]mesh.Node
		if err := m.call.Company.Hear(ctx, process, part, &there); err != nil && !gone(err) {
			return err
		}
		for i, node := range there {
			if i >= 0 && i < len(m.nodes) && m.process(i) == process && len(node.Labels) <= mostLabels {
				printable.Each(&node, Brief)
				m.nodes[i] = mesh.Node{
					Name: m.args.Nodes[i], Host: m.call.Company.Host(m.args.Nodes[i]), Device: node.Device,
					Labels: node.Labels,
				}
			}
		}
	}
	return nil
}

// mostLabels bounds the labels of a node elsewhere: each may explain bad pairs.
const mostLabels = 256

// gone reports whether an error means that a process is gone.
func gone(err error) bool {
	var environment *testbed.EnvironmentError
	return errors.As(err, &environment)
}

// lookTold is a look in a message of the process with the pair's first node.
type lookTold struct {
	Pair  mesh.Pair
	Sizes [][]*record.Measure `json:",omitempty"`
	Lost  string              `json:",omitempty"`
	Cut   bool                `json:",omitempty"`
}

// exchange sends this process' results of a round to the others, and receives theirs.
func (m *meshing) exchange(ctx context.Context, at int, part string, round mesh.Round) error {
	if m.call.Company == nil {
		return nil
	}
	var own []lookTold
	owned := make(map[string][]mesh.Pair)
	for _, pair := range round {
		process := m.process(pair.From)
		owned[process] = append(owned[process], pair)
		if process == "" {
			own = append(own, told(pair, m.looks[at][pair]))
		}
	}
	if own != nil {
		if err := m.call.Company.Tell(part, own); err != nil {
			return err
		}
	}
	for _, process := range m.others() {
		pairs := owned[process]
		if pairs == nil {
			continue
		}
		var list []lookTold
		err := m.call.Company.Hear(ctx, process, part, &list)
		if err != nil && !gone(err) {
			return err
		}
		for _, pair := range pairs {
			m.looks[at][pair] = m.heard(pair, list, err)
		}
	}
	return nil
}

// told makes the message of a look.
func told(pair mesh.Pair, found *look) lookTold {
	if found.err != nil {
		return lookTold{Pair: pair, Lost: reason(found.err)}
	}
	return lookTold{Pair: pair, Sizes: found.sizes, Cut: found.cut}
}

// heard is the look at a pair among those that a process has sent; err is why it could not send them.
func (m *meshing) heard(pair mesh.Pair, list []lookTold, err error) *look {
	for i := range list {
		each := &list[i]
		if each.Pair != pair {
			continue
		}
		if each.Lost != "" {
			return &look{err: &testbed.Failure{What: Brief(each.Lost)}}
		}
		if wrong := m.fit(each); wrong != nil {
			return &look{err: &testbed.Failure{
				What: "what the process of " + m.args.Nodes[pair.From] + " tells of it: " + wrong.Error(),
			}}
		}
		return &look{sizes: each.Sizes, cut: each.Cut}
	}
	if err == nil {
		err = fmt.Errorf("%w: its figures", errUntold)
	}
	return &look{err: err}
}

// fit validates figures of another process: they are there for each size and direction, fewer sizes where a
// threshold has cut them, and possible.  The pair, kind and size come from the file, not from the message.
func (m *meshing) fit(told *lookTold) error {
	wanted := len(m.specs)
	if len(told.Sizes) > wanted || len(told.Sizes) < wanted && !told.Cut {
		return fmt.Errorf("%d sizes, and %d are measured", len(told.Sizes), wanted)
	}
	for i, size := range told.Sizes {
		if len(size) != m.directions() || slices.Contains(size, nil) {
			return fmt.Errorf("%w: figures of each direction", errUntold)
		}
		for direction, each := range size {
			each.Role, each.Peer = m.args.Nodes[told.Pair.From], m.args.Nodes[told.Pair.To]
			if direction == 1 {
				each.Role, each.Peer = each.Peer, each.Role
			}
			each.What, each.Size = m.what(), int64(m.specs[i].Size)
			if err := each.Check(); err != nil {
				return err
			}
		}
	}
	return nil
}

// mostWords bounds how much of another process' text is shown.
const mostWords = 600

// Brief is the beginning of another process' text.
func Brief(text string) string { return printable.Cut(text, mostWords) }
