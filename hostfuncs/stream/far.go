package stream

import (
	"maps"
	"slices"
	"syscall"
)

// Streams go between processes as frames.  The caller that joins two exchanges carries them in order and none twice:
// from Outbox of one to Take of the other.  Frames of another process are untrusted and checked: a stream holds
// at most Room bytes for it and a listener its backlog.

// Frame is a message from one exchange to another.
type Frame struct {
	Kind string `json:"kind"`
	// Role and Service are what listens, or is opened.
	Role    string `json:"role,omitempty"`
	Service uint32 `json:"service,omitempty"`
	// Free is how many more connections a listener takes; -1 when it listens no more.
	Free int `json:"free,omitempty"`
	// Seen is how many streams of the receiving process have been counted in Free.
	Seen int `json:"seen,omitempty"`
	// ID is that of a stream, a count of the process that opened it; Opened means that the sender is that process.
	ID     uint64 `json:"id,omitempty"`
	Opened bool   `json:"opened,omitempty"`
	// Data was written; Count bytes were read.
	Data  []byte `json:"data,omitempty"`
	Count int    `json:"count,omitempty"`
}

// Kinds of frame.
const (
	listens = "listens"
	opens   = "opens"
	writes  = "writes"
	reads   = "reads"
	closes  = "closes"
	refuses = "refuses" // a stream that was opened when others had been quicker
)

// Parcel is a frame for a process.
type Parcel struct {
	To    string
	Frame Frame
}

// maxServices bounds what one process may listen to, as far as others remember it.
const maxServices = 1 << 12

// far is an exchange's state about other processes.
type far struct {
	processes  []string
	plays      func(role string) string // the process of a role elsewhere; "" for any other
	lost       map[string]bool
	free       map[place]int // how many more connections listeners elsewhere take
	sent       map[place]int // how many were opened there
	seen       map[caller]int
	conns      map[farConn]*Conn
	opened     uint64
	outbox     []Parcel
	roomToSend map[place]bool // listeners here: their room is to be sent to the others
	more       chan struct{}
}

// caller is a process that opens streams to a listener here.
type caller struct {
	process string
	place   place
}

// farConn names a stream to another process.
type farConn struct {
	process string
	id      uint64
	opened  bool // here
}

// Reach connects the exchange to other processes; plays returns the process that plays a role.
func (e *Exchange) Reach(processes []string, plays func(role string) string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.far = &far{processes: processes, plays: plays, lost: make(map[string]bool), free: make(map[place]int),
		sent: make(map[place]int), seen: make(map[caller]int),
		conns: make(map[farConn]*Conn), roomToSend: make(map[place]bool), more: make(chan struct{}, 1)}
	for at := range e.listeners {
		e.sendRoom(at)
	}
}

// Outbox takes the frames for other processes; more signals when there are new ones.
func (e *Exchange) Outbox() (parcels []Parcel, more <-chan struct{}) {
	e.mu.Lock()
	defer e.mu.Unlock()
	f := e.far
	parcels, f.outbox = f.outbox, nil
	for _, at := range slices.SortedFunc(maps.Keys(f.roomToSend), func(a, b place) int {
		return int(a.service) - int(b.service)
	}) {
		frame := Frame{Kind: listens, Role: at.role, Service: at.service, Free: -1}
		if l := e.listeners[at]; l != nil {
			frame.Free = max(0, l.backlog-len(l.pending))
		}
		for _, to := range f.processes {
			if frame.Seen = f.seen[caller{to, at}]; !f.lost[to] {
				parcels = append(parcels, Parcel{to, frame})
			}
		}
	}
	clear(f.roomToSend)
	return parcels, f.more
}

// sendRoom sends the others how many connections a listener takes by now.  The caller holds mu.
func (e *Exchange) sendRoom(at place) {
	if e.far != nil {
		e.far.roomToSend[at] = true
		e.far.wake()
	}
}

func (f *far) send(to string, frame Frame) {
	if !f.lost[to] {
		f.outbox = append(f.outbox, Parcel{to, frame})
		f.wake()
	}
}

func (f *far) wake() {
	select {
	case f.more <- struct{}{}:
	default:
	}
}

// sendFrame sends a frame to the other end of a stream.
func (c *Conn) sendFrame(frame Frame) {
	frame.ID, frame.Opened = c.far.id, c.far.opened
	c.exchange.far.send(c.far.process, frame)
}

// connectFar opens a stream to a role of another process.  The caller holds mu.
func (e *Exchange) connectFar(at place, process string) (*Conn, error) {
	f := e.far
	switch free, known := f.free[at]; {
	case f.lost[process]:
		return nil, syscall.ECONNRESET
	case !known:
		return nil, syscall.ECONNREFUSED
	case free == 0:
		return nil, syscall.EAGAIN
	}
	f.free[at]--
	f.sent[at]++
	f.opened++
	c := e.newFar(farConn{process, f.opened, true})
	c.sendFrame(Frame{Kind: opens, Role: at.role, Service: at.service})
	return c, nil
}

func (e *Exchange) newFar(name farConn) *Conn {
	c := &Conn{exchange: e, in: &half{}, out: &half{}, far: &name}
	e.far.conns[name] = c
	return c
}

// canConnectFar reports whether connectFar would not have to wait.
func (f *far) canConnectFar(at place, process string) bool { return f.free[at] > 0 || f.lost[process] }

// elsewhere is the process of a role, "" where it is none elsewhere.  The caller holds mu.
func (e *Exchange) elsewhere(role string) string {
	if e.far == nil {
		return ""
	}
	return e.far.plays(role)
}

// Take handles a frame of another process.
func (e *Exchange) Take(from string, frame Frame) {
	e.mu.Lock()
	defer e.mu.Unlock()
	f, at := e.far, place{frame.Role, frame.Service}
	c := f.conns[farConn{from, frame.ID, !frame.Opened}]
	switch frame.Kind {
	case listens:
		if f.plays(frame.Role) != from {
			return
		}
		if _, known := f.free[at]; frame.Free < 0 {
			delete(f.free, at)
		} else if known || f.services(from) < maxServices {
			f.free[at] = max(0, min(frame.Free, MaxPending)-max(0, f.sent[at]-frame.Seen))
		}
		e.bell.ring()
	case opens:
		e.accept(from, at, farConn{from, frame.ID, false})
	case writes:
		if c != nil && !c.put(frame.Data) {
			c.reset()
		}
	case reads:
		if c != nil && frame.Count > 0 && frame.Count <= c.out.length {
			c.out.length -= frame.Count
			c.out.bell.ring()
		}
	case refuses:
		if c != nil {
			c.reset()
		}
	case closes:
		if c != nil {
			c.in.written, c.out.read = true, true
			c.in.bell.ring()
			c.out.bell.ring()
		}
	}
}

// services is how many listeners of a process are known.
func (f *far) services(process string) (count int) {
	for at := range f.free {
		if f.plays(at.role) == process {
			count++
		}
	}
	return count
}

// accept is a stream that another process has opened to a listener here.
func (e *Exchange) accept(from string, at place, name farConn) {
	l := e.listeners[at]
	if l != nil {
		e.far.seen[caller{from, at}]++
		e.sendRoom(at)
	}
	if l == nil || len(l.pending) >= l.backlog || e.far.conns[name] != nil || e.far.lost[from] {
		e.far.send(from, Frame{Kind: refuses, ID: name.id})
		return
	}
	l.pending = append(l.pending, e.newFar(name))
	l.bell.ring()
}

// put stores data that has come; it returns false when there is no room for it.
func (c *Conn) put(data []byte) bool {
	if c.in.written || len(data) > Room-c.in.length {
		return false
	}
	c.in.push(data)
	c.in.bell.ring()
	return true
}

// reset ends a stream after its process is lost: reading fails after what has come, and so does writing.
func (c *Conn) reset() {
	c.in.broken, c.in.written, c.out.read = true, true, true
	c.in.bell.ring()
	c.out.bell.ring()
}

// Lose is that a process is there no more: its streams are reset, and its listeners are gone.
func (e *Exchange) Lose(process string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	f := e.far
	f.lost[process] = true
	f.outbox = slices.DeleteFunc(f.outbox, func(p Parcel) bool { return p.To == process })
	maps.DeleteFunc(f.free, func(at place, _ int) bool { return f.plays(at.role) == process })
	for name, c := range f.conns {
		if name.process == process {
			c.reset()
		}
	}
	e.bell.ring()
}
