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

// A mesh with nodes of several processes is a step of all of them.  Each walks the same rounds and measures the pairs
// of which it plays a node, as a half where it plays only one.  The process with a pair's first node has its figures.
// After each round all processes send theirs, so that all find the same suspects and have the same result.  The pairs
// of a process that is gone are lost, and the others continue.

// MeshPeers is the other processes of a mesh.
type MeshPeers interface {
	// Process is the process that plays a role; "" is this one.
	Process(role string) string
	// Host is the host of a role elsewhere.
	Host(role string) string
	// PeerConn connects to the process with the other role of a pair, in a part of the mesh.
	PeerConn(part, from, to string) PeerConn
	// Broadcast sends a value for a part to all others, and Receive waits for that of a process.  Receive fails with a
	// testbed.EnvironmentError when that process is gone.
	Broadcast(part string, value any) error
	Receive(ctx context.Context, process, part string, into any) error
}

// here reports whether this process plays a node.
func (m *meshing) here(node int) bool { return m.process(node) == "" }

// process is the process that plays a node; "" is this one.
func (m *meshing) process(node int) string {
	if m.call.MeshPeers == nil {
		return ""
	}
	return m.call.MeshPeers.Process(m.args.Nodes[node])
}

// otherProcesses are those that play nodes, each once.
func (m *meshing) otherProcesses() []string {
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
		if m.call.MeshPeers != nil {
			m.nodes[i].Host = role.Host
		}
		own[i] = m.nodes[i]
	}
	if m.call.MeshPeers == nil {
		return nil
	}
	const part = "nodes"
	if err := m.call.MeshPeers.Broadcast(part, own); err != nil {
		return err
	}
	for _, process := range m.otherProcesses() {
		var there map[int]mesh.Node
		if err := m.call.MeshPeers.Receive(ctx, process, part, &there); err != nil && !gone(err) {
			return err
		}
		for i, node := range there {
			if i >= 0 && i < len(m.nodes) && m.process(i) == process && len(node.Labels) <= maxLabels {
				printable.Each(&node, Brief)
				m.nodes[i] = mesh.Node{
					Name: m.args.Nodes[i], Host: m.call.MeshPeers.Host(m.args.Nodes[i]), Device: node.Device,
					Labels: node.Labels,
				}
			}
		}
	}
	return nil
}

// maxLabels bounds the labels of a node elsewhere: each may explain bad pairs.
const maxLabels = 256

// gone reports whether an error means that a process is gone.
func gone(err error) bool {
	var environment *testbed.EnvironmentError
	return errors.As(err, &environment)
}

// lookMessage is a look in a message of the process with the pair's first node.  A pair that is lost by too few
// messages has its sizes, too.
type lookMessage struct {
	Pair  mesh.Pair
	Sizes [][]*record.Measure `json:",omitempty"`
	Lost  string              `json:",omitempty"`
	Cut   bool                `json:",omitempty"`
}

// exchange sends this process' results of a round to the others, and receives theirs.
func (m *meshing) exchange(ctx context.Context, at int, part string, round mesh.Round) error {
	if m.call.MeshPeers == nil {
		return nil
	}
	var own []lookMessage
	owned := make(map[string][]mesh.Pair)
	for _, pair := range round {
		process := m.process(pair.From)
		owned[process] = append(owned[process], pair)
		if process == "" {
			own = append(own, messageOf(pair, m.looks[at][pair]))
		}
	}
	if own != nil {
		if err := m.call.MeshPeers.Broadcast(part, own); err != nil {
			return err
		}
	}
	for _, process := range m.otherProcesses() {
		pairs := owned[process]
		if pairs == nil {
			continue
		}
		var list []lookMessage
		err := m.call.MeshPeers.Receive(ctx, process, part, &list)
		if err != nil && !gone(err) {
			return err
		}
		for _, pair := range pairs {
			m.looks[at][pair] = m.lookOf(pair, list, err)
		}
	}
	return nil
}

// messageOf makes the message of a look.
func messageOf(pair mesh.Pair, found *look) lookMessage {
	message := lookMessage{Pair: pair, Sizes: found.sizes, Cut: found.cut}
	if found.err != nil {
		if message.Lost = reason(found.err); found.tooFew() == nil {
			message.Sizes = nil
		}
	}
	return message
}

// lookOf is the look at a pair among those that a process has sent; err is why it could not send them.
func (m *meshing) lookOf(pair mesh.Pair, list []lookMessage, err error) *look {
	for i := range list {
		each := &list[i]
		if each.Pair != pair {
			continue
		}
		if each.Lost != "" {
			lost := &look{err: &testbed.Failure{What: Brief(each.Lost)}}
			if m.fit(each) == nil {
				lost.sizes = each.Sizes
			}
			return lost
		}
		if wrong := m.fit(each); wrong != nil {
			return &look{err: &testbed.Failure{
				What: "the process of " + m.args.Nodes[pair.From] + " sent impossible figures: " + wrong.Error(),
			}}
		}
		return &look{sizes: each.Sizes, cut: each.Cut}
	}
	if err == nil {
		err = fmt.Errorf("%w: its figures", errIncomplete)
	}
	return &look{err: err}
}

// fit validates figures of another process: they are there for each size and direction, fewer sizes where a
// threshold has cut them, and possible.  The pair, kind and size come from the file, not from the message.
func (m *meshing) fit(message *lookMessage) error {
	wanted := len(m.specs)
	if len(message.Sizes) > wanted || len(message.Sizes) < wanted && !message.Cut {
		return fmt.Errorf("%d sizes, and %d are measured", len(message.Sizes), wanted)
	}
	for i, size := range message.Sizes {
		if len(size) != m.directions() || slices.Contains(size, nil) {
			return fmt.Errorf("%w: figures of each direction", errIncomplete)
		}
		for direction, each := range size {
			each.Role, each.Peer = m.args.Nodes[message.Pair.From], m.args.Nodes[message.Pair.To]
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

// maxWords bounds how much of another process' text is shown.
const maxWords = 600

// Brief is the beginning of another process' text.
func Brief(text string) string { return printable.Cut(text, maxWords) }
