// Package stream carries bytes between the roles of a run, apart from the fabric.  Programs use a TCP connection for
// that, to exchange the numbers of their queue pairs.  A role listens on a service, a number; others connect to it by
// the role's name.
//
// Everything is bounded: a connection holds at most Room unread bytes each way, a listener at most its
// backlog of unaccepted connections.  No call waits; Watch of each object signals when to look
// again.
package stream

import (
	"bytes"
	"errors"
	"sync"
	"syscall"
)

// Room is how many bytes one end may have written that the other has not read.
const Room = 32 << 10

// MaxPending bounds a backlog.
const MaxPending = 128

// Exchange is where the roles of a run find each other.
type Exchange struct {
	mu        sync.Mutex
	listeners map[place]*Listener
	bell      bell // a listener has begun, or has room again
	far       *far // nil where all roles are here
}

type place struct {
	role    string
	service uint32
}

// New makes an exchange.
func New() *Exchange { return &Exchange{listeners: make(map[place]*Listener)} }

// Participant is the exchange as one role has it.
type Participant struct {
	exchange *Exchange
	role     string
}

// Participant is a role of the exchange.
func (e *Exchange) Participant(role string) *Participant { return &Participant{e, role} }

// errClosed is for what was closed by this side.
var errClosed = errors.New("the stream is closed")

// bell makes waiting callers look again.
type bell struct {
	next  int
	kicks map[int]func()
}

func (b *bell) ring() {
	for _, kick := range b.kicks {
		kick()
	}
}

// listen has kick called, which must not wait, until stop.
func (e *Exchange) listen(b *bell, kick func()) (stop func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if b.kicks == nil {
		b.kicks = make(map[int]func())
	}
	at := b.next
	b.next++
	b.kicks[at] = kick
	return func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(b.kicks, at)
	}
}

// Listener takes the connections to one service of a role.
type Listener struct {
	exchange *Exchange
	place    place
	backlog  int
	pending  []*Conn
	closed   bool
	bell     bell
}

// Listen begins to take connections; EADDRINUSE when the role does so already.
func (p *Participant) Listen(service uint32, backlog int) (*Listener, error) {
	e := p.exchange
	e.mu.Lock()
	defer e.mu.Unlock()
	at := place{p.role, service}
	if e.listeners[at] != nil {
		return nil, syscall.EADDRINUSE
	}
	l := &Listener{exchange: e, place: at, backlog: min(max(backlog, 1), MaxPending)}
	e.listeners[at] = l
	e.sendRoom(at)
	e.bell.ring()
	return l, nil
}

// Accept takes a connection; EAGAIN when there is none.
func (l *Listener) Accept() (*Conn, error) {
	l.exchange.mu.Lock()
	defer l.exchange.mu.Unlock()
	switch {
	case l.closed:
		return nil, errClosed
	case len(l.pending) == 0:
		return nil, syscall.EAGAIN
	}
	c := l.pending[0]
	l.pending = l.pending[1:]
	l.exchange.sendRoom(l.place)
	l.exchange.bell.ring()
	return c, nil
}

// Pending reports whether Accept would take one.
func (l *Listener) Pending() bool {
	l.exchange.mu.Lock()
	defer l.exchange.mu.Unlock()
	return len(l.pending) > 0
}

// Watch has kick called when a connection comes, until stop.
func (l *Listener) Watch(kick func()) (stop func()) { return l.exchange.listen(&l.bell, kick) }

// Close ends it; connections that were not accepted get the end of their streams.
func (l *Listener) Close() {
	l.exchange.mu.Lock()
	defer l.exchange.mu.Unlock()
	if l.closed {
		return
	}
	l.closed = true
	delete(l.exchange.listeners, l.place)
	l.exchange.sendRoom(l.place)
	for _, c := range l.pending {
		c.close()
	}
	l.pending = nil
}

// half is one way of a connection.
type half struct {
	data          []byte // a ring of Room bytes, there once something was written
	start, length int
	written, read bool // closed by the writer, by the reader
	broken        bool // the writer is lost
	bell          bell
}

// Conn is one end of a connection.
type Conn struct {
	exchange       *Exchange
	in, out        *half    // of one to another process, out has no data, but the length of what is not read there
	far            *farConn // nil for one of this process
	unacknowledged int      // bytes that were read, and not yet acknowledged to the other process
}

// Connect connects to a service of a role: ECONNREFUSED without a listener, EAGAIN when its backlog is full.
func (p *Participant) Connect(role string, service uint32) (*Conn, error) {
	e := p.exchange
	e.mu.Lock()
	defer e.mu.Unlock()
	at := place{role, service}
	if process := e.elsewhere(role); process != "" {
		return e.connectFar(at, process)
	}
	l := e.listeners[at]
	switch {
	case l == nil:
		return nil, syscall.ECONNREFUSED
	case len(l.pending) >= l.backlog:
		return nil, syscall.EAGAIN
	}
	there, back := &half{}, &half{}
	l.pending = append(l.pending, &Conn{exchange: e, in: there, out: back})
	e.sendRoom(at)
	l.bell.ring()
	return &Conn{exchange: e, in: back, out: there}, nil
}

// CanConnect reports whether Connect would succeed.
func (p *Participant) CanConnect(role string, service uint32) bool {
	p.exchange.mu.Lock()
	defer p.exchange.mu.Unlock()
	at := place{role, service}
	if process := p.exchange.elsewhere(role); process != "" {
		return p.exchange.far.canConnectFar(at, process)
	}
	l := p.exchange.listeners[at]
	return l != nil && len(l.pending) < l.backlog
}

// Watch calls kick when Connect may succeed where it failed, until stop.
func (p *Participant) Watch(kick func()) (stop func()) {
	return p.exchange.listen(&p.exchange.bell, kick)
}

// Read takes what has come; 0 at the end of the stream, EAGAIN before anything has come, ECONNRESET when the peer was
// lost.
func (c *Conn) Read(to []byte) (int, error) {
	c.exchange.mu.Lock()
	defer c.exchange.mu.Unlock()
	h := c.in
	switch {
	case h.read:
		return 0, errClosed
	case h.length == 0 && h.broken:
		return 0, syscall.ECONNRESET
	case len(to) == 0 || h.length == 0 && h.written:
		return 0, nil
	case h.length == 0:
		return 0, syscall.EAGAIN
	}
	n := 0
	for n < len(to) && h.length > 0 {
		some := copy(to[n:], h.data[h.start:min(h.start+h.length, Room)])
		n, h.start, h.length = n+some, (h.start+some)%Room, h.length-some
	}
	h.bell.ring()
	// Room is given back to the other process in larger parts, and not for each byte.
	if c.unacknowledged += n; c.far != nil && (h.length == 0 || c.unacknowledged >= Room/4) {
		c.sendFrame(Frame{Kind: reads, Count: c.unacknowledged})
		c.unacknowledged = 0
	}
	return n, nil
}

// Write gives as much as there is room for; EAGAIN when there is none, ECONNRESET when the peer has closed.
func (c *Conn) Write(from []byte) (int, error) {
	c.exchange.mu.Lock()
	defer c.exchange.mu.Unlock()
	h := c.out
	switch {
	case h.written:
		return 0, errClosed
	case h.read:
		return 0, syscall.ECONNRESET
	case len(from) == 0:
		return 0, nil
	case h.length == Room:
		return 0, syscall.EAGAIN
	}
	if c.far != nil {
		n := min(len(from), Room-h.length)
		h.length += n
		c.sendFrame(Frame{Kind: writes, Data: bytes.Clone(from[:n])})
		return n, nil
	}
	n := h.push(from)
	h.bell.ring()
	return n, nil
}

// push keeps as much as there is room for.
func (h *half) push(from []byte) (n int) {
	if h.data == nil {
		h.data = make([]byte, Room)
	}
	for n < len(from) && h.length < Room {
		end := (h.start + h.length) % Room
		some := copy(h.data[end:min(end+Room-h.length, Room)], from[n:])
		n, h.length = n+some, h.length+some
	}
	return n
}

// State is what can be done with a connection. read includes the end of the stream. write fails at once when the peer
// has closed. The last result is whether it has.
func (c *Conn) State() (readable, writable, over bool) {
	c.exchange.mu.Lock()
	defer c.exchange.mu.Unlock()
	return c.in.length > 0 || c.in.written, c.out.length < Room || c.out.read, c.out.read
}

// Watch has kick called when that changes, until stop.
func (c *Conn) Watch(kick func()) (stop func()) {
	in, out := c.exchange.listen(&c.in.bell, kick), c.exchange.listen(&c.out.bell, kick)
	return func() { in(); out() }
}

// Close ends both ways; what was written before can still be read.
func (c *Conn) Close() {
	c.exchange.mu.Lock()
	defer c.exchange.mu.Unlock()
	c.close()
}

func (c *Conn) close() {
	if c.far != nil && !c.out.written {
		c.sendFrame(Frame{Kind: closes})
		delete(c.exchange.far.conns, *c.far)
	}
	c.in.read, c.out.written = true, true
	c.in.data, c.in.length = nil, 0
	c.in.bell.ring()
	c.out.bell.ring()
}
