// Package meeting joins the processes of a run, each of which plays some of the roles.  They tell each other what steps
// have brought, in lines of JSON over TCP: never what is measured, and nothing while a measurement runs.
//
// One process listens, the others come to it, and it passes on what each says, so that those need not know each other.
// What comes from a process is data: names and numbers for expressions.  Its size is bounded, and it names no file, no
// memory and no command.
package meeting

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"
)

// Config is who meets.
type Config struct {
	// Roles are those of this process, All those of the run.
	Roles, All []string
	// Plan are the cases in their order; all processes have the same.
	Plan []string
	// Peers are where others may be found, "192.0.2.1:18516"; none: this process listens at Listen.
	Peers  []string
	Listen string
}

// Meeting is the other processes, as this one knows them.
type Meeting struct {
	name   string
	others []string // the names of all others, sorted
	fabric string

	// order is held while a message goes to all links, so that what was said in answer to it comes after it everywhere.
	// It is taken before mu.
	order sync.Mutex

	mu      sync.Mutex
	links   []*link // of the one that listens, to each other; of any other, to that one
	arrived map[string]json.RawMessage
	size    int           // of what has arrived and nobody has forgotten
	change  chan struct{} // closed at the next arrival
	gone    map[string]*GoneError
}

const (
	// version is that of the messages.
	version = 1
	// longest bounds a message, most what is kept of messages.
	longest, most = 1 << 20, 16 << 20
	// greetingTime is how long one may take to say who he is, sendTime how long to take a message.
	greetingTime, sendTime = 5 * time.Second, 10 * time.Second
	// strangers bounds who may be about to say who he is.
	strangers = 16
	// retryAfter is how long to wait before the next attempt to find somebody.
	retryAfter = 100 * time.Millisecond
)

// Name is how a process is called: by its roles.
func Name(roles []string) string { return strings.Join(slices.Sorted(slices.Values(roles)), "+") }

// message is a line: a value under a key, from a process.
type message struct {
	From  string          `json:"from"`
	Key   string          `json:"key"`
	Value json.RawMessage `json:"value,omitempty"`
}

// Keys of messages that are of the meeting itself.
const (
	keyHello   = "hello"
	keyRefused = "refused"
	keyWelcome = "welcome"
	keyGone    = "gone"
	keyBye     = "bye"
)

// hello is what who comes says.
type hello struct {
	Version int      `json:"version"`
	Roles   []string `json:"roles"`
	Plan    []string `json:"plan"`
}

// Join waits until all are there.  It ends with ctx at the latest, and says whom it waited for.
func Join(ctx context.Context, config Config) (*Meeting, error) {
	m := &Meeting{name: Name(config.Roles), arrived: make(map[string]json.RawMessage), change: make(chan struct{}), gone: make(map[string]*GoneError)}
	var err error
	if len(config.Peers) > 0 {
		err = m.visit(ctx, config)
	} else {
		err = m.host(ctx, config)
	}
	if err != nil {
		m.Close()
		return nil, err
	}
	slices.Sort(m.others)
	for _, each := range m.links {
		go m.receive(each)
	}
	return m, nil
}

// Name is how the others call this process.
func (m *Meeting) Name() string { return m.name }

// Fabric is a name that only the processes of this meeting have.
func (m *Meeting) Fabric() string { return m.fabric }

// Others are the names of the other processes.
func (m *Meeting) Others() []string { return m.others }

// Tell tells all others a value under a key.  That one of them is there no more is for Await to say.
func (m *Meeting) Tell(key string, value any) error {
	raw, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("tell %s: %w", key, err)
	}
	m.order.Lock()
	defer m.order.Unlock()
	return m.send(nil, message{m.name, key, raw})
}

// send sends to all links but one.  order is held.
func (m *Meeting) send(but *link, what message) error {
	m.mu.Lock()
	links := slices.Clone(m.links)
	m.mu.Unlock()
	line, err := json.Marshal(what)
	switch {
	case err != nil:
		return err
	case len(line) >= longest:
		return errTooLong
	}
	for _, each := range links {
		if each != but && each.write(line) != nil {
			each.close() // and receive says whose it was
		}
	}
	return nil
}

// GoneError tells that a process is there no more.
type GoneError struct{ Who, Why string }

func (e *GoneError) Error() string { return fmt.Sprintf("the process of %s %s", e.Who, e.Why) }

// Await waits for a message under one of several keys, and takes it.  It fails when the process that should send it is
// there no more.
func (m *Meeting) Await(ctx context.Context, from string, keys ...string) (key string, value json.RawMessage, err error) {
	for {
		m.mu.Lock()
		for _, key := range keys {
			if value, came := m.arrived[key]; came {
				m.forget(key)
				m.mu.Unlock()
				return key, value, nil
			}
		}
		change, gone := m.change, m.gone[from]
		m.mu.Unlock()
		if gone != nil {
			return "", nil, gone
		}
		select {
		case <-change:
		case <-ctx.Done():
			return "", nil, context.Cause(ctx)
		}
	}
}

// Forget drops what came under keys with a prefix.
func (m *Meeting) Forget(prefix string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key := range m.arrived {
		if strings.HasPrefix(key, prefix) {
			m.forget(key)
		}
	}
}

// forget drops what came under a key.  mu is held.
func (m *Meeting) forget(key string) {
	m.size -= len(key) + len(m.arrived[key])
	delete(m.arrived, key)
}

// keep notes a message; false when there is no room.
func (m *Meeting) keep(key string, value json.RawMessage) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, again := m.arrived[key]; again {
		m.forget(key)
	}
	if m.size+len(key)+len(value) > most {
		return false
	}
	m.size += len(key) + len(value)
	m.arrived[key] = value
	close(m.change)
	m.change = make(chan struct{})
	return true
}

// receive takes what comes on a link until its end.
func (m *Meeting) receive(from *link) {
	why := "has ended unexpectedly"
	for {
		got, err := from.read()
		if err != nil {
			break
		}
		hub := len(from.of) > 0
		if hub && !slices.Contains(from.of, got.From) {
			why = "says what is another's"
			break
		}
		if !m.pass(from, got) {
			why = "says too much"
			break
		}
		if hub && got.Key == keyBye {
			return
		}
	}
	from.close()
	if len(from.of) == 0 {
		m.lose(why, m.others...) // all of them are behind it
		return
	}
	m.lose(why, from.name)
	m.order.Lock()
	defer m.order.Unlock()
	_ = m.send(from, message{From: from.name, Key: keyGone})
}

// pass takes a message, and passes it on where this process is the one that does; false when there is no room for it.
func (m *Meeting) pass(from *link, got message) bool {
	m.order.Lock()
	defer m.order.Unlock()
	switch got.Key {
	case keyGone:
		m.lose("has ended unexpectedly", got.From)
	case keyBye:
		m.lose("has ended its run", got.From)
	default:
		if !m.keep(got.Key, got.Value) {
			return false
		}
	}
	if len(from.of) > 0 {
		_ = m.send(from, got) // who does not take it is noticed by its own link
	}
	return true
}

// lose notes that processes are there no more; what they have said before still counts.
func (m *Meeting) lose(why string, names ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, name := range names {
		if m.gone[name] == nil {
			m.gone[name] = &GoneError{name, why}
		}
	}
	close(m.change)
	m.change = make(chan struct{})
}

// Close leaves.
func (m *Meeting) Close() {
	m.order.Lock()
	defer m.order.Unlock()
	_ = m.send(nil, message{From: m.name, Key: keyBye})
	for _, each := range m.links {
		each.close()
	}
}

// link is a connection to another process.
type link struct {
	name string   // of the process at its end
	of   []string // who may speak on it; none: anybody, for it leads to the one who passes on
	conn net.Conn

	mu     sync.Mutex // of writing
	reader *json.Decoder
	limit  *limitedConn
}

func newLink(conn net.Conn) *link {
	limit := &limitedConn{Conn: conn}
	return &link{conn: conn, limit: limit, reader: json.NewDecoder(limit)}
}

// limitedConn reads so much at most for one message.
type limitedConn struct {
	net.Conn
	left int
}

var errTooLong = errors.New("the message is too long")

func (c *limitedConn) Read(p []byte) (int, error) {
	if c.left <= 0 {
		return 0, errTooLong
	}
	n, err := c.Conn.Read(p[:min(len(p), c.left)])
	c.left -= n
	return n, err
}

func (l *link) read() (message, error) {
	var got message
	l.limit.left = longest
	err := l.reader.Decode(&got)
	return got, err
}

func (l *link) say(what message) error {
	line, err := json.Marshal(what)
	if err != nil {
		return err
	}
	return l.write(line)
}

func (l *link) write(line []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.conn.SetWriteDeadline(time.Now().Add(sendTime)); err != nil {
		return err
	}
	_, err := l.conn.Write(append(line, '\n'))
	return err
}

func (l *link) close() { _ = l.conn.Close() }
