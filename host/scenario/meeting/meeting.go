// Package meeting joins the processes of a run, each of which plays some of the roles.  They tell each other what steps
// have brought: never what is measured, and nothing while a measurement runs.
//
// One process is the host of the meeting, the others come to it over a bus, and it passes on what each says: so those
// need not know each other, and what several hear, they hear in one order.  What is said in a case goes to those that
// take part in it; the turns of cases and the end of a process go to all.  What comes from a process is data: names and
// numbers for expressions.  Its size is bounded, and it names no file, no memory and no command.
package meeting

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"rdmarun/host/bus"
)

// Config is who meets.
type Config struct {
	// Name is how the others call this process; empty: by its roles.
	Name string
	// Roles are those of this process, All those of the run.
	Roles, All []string
	// Plan are the cases in their order; all processes have the same.
	Plan []string
	// Settings are what the plan depends on, as the user knows it: where two plans differ, the first of them that
	// differ are told.
	Settings []Setting
	// Refused takes what is to be told of processes that came and cannot take part, while the host waits; nil: the
	// error has it.
	Refused func(what string)
	// Peers are where others may be found, "192.0.2.1:18516"; none: this process listens at Listen.
	Peers  []string
	Listen string
	// Server is where the others come, who are connected to it already or will be; then Peers and Listen do not count,
	// and Members are their names on it, with their names in messages.
	Server  *bus.Server
	Members map[string]string
	// Bus is a connection to the host of the meeting; then Peers and Listen do not count.
	Bus *bus.Conn
	// Players are the processes that play the roles, by the names in messages, where the host of the meeting knows them
	// before they come; nil: a role is of the first that comes with it.
	Players map[string]string
	// Silence is how long a process may say nothing before it counts as lost; 0: as long as it is connected.
	Silence time.Duration
	// Report takes what processes report to the host, of each in its order.
	Report func(from string, data []byte)
	// Why says more of a process that is there no more than that it is not; nil: nobody knows more.
	Why func(process, why string) string
}

// Meeting is the other processes, as this one knows them.
type Meeting struct {
	*Mailbox // of what is told of the run, and of none of its cases

	name   string
	others []string // the names of all others, sorted
	fabric string
	// players are the processes that play the roles, as the host of the meeting has taken them.
	players map[string]string
	// reached is the address of this host by which the first of the others is reached, or has come.
	reached netip.Addr
	reports *reports // of the host, where it takes any
	why     func(process, why string) string

	conn   *bus.Conn
	server *bus.Server // of the host; nil elsewhere
	// leaving are those of whom the host asks why.
	leaving sync.WaitGroup
	ends    []func() // what Close ends, in the order of making

	// order is held by the host while a message goes to others, so that what was said in answer to it comes after it
	// everywhere.  It is taken before mu.
	order sync.Mutex

	mu      sync.Mutex
	members map[string]string // of the host: what those on the bus are called, by their names there
	// of the host: the addresses of it that they have connected to, by their names on the bus
	came   map[string]netip.Addr
	heard  map[string]time.Time            // when, of members; of the host under ""
	boxes  map[int]map[Key]json.RawMessage // what has arrived and nobody has taken, by runs of cases
	kept   map[string]int                  // how many bytes that is, by who has said it
	cases  map[int][]string                // of the host: the processes that take part in a run of a case
	ended  int                             // runs of cases up to this number have ended here
	early  map[int]bool                    // and these above it
	change chan struct{}                   // closed at the next arrival
	gone   map[string]*GoneError
	// reported counts the reports of this process since the host has answered one, reportedBytes are theirs.
	reported, reportedBytes int
}

const (
	// version is that of the messages.
	version = 5
	// longest bounds a message, most what is kept of messages, each of which costs so much beside its key and its
	// value.
	longest, most, cost = bus.Largest, 16 << 20, 256
	// beatEvery is how often a process says that it is there, where silence counts.
	beatEvery = 500 * time.Millisecond
	// syncTime bounds how long the host waits at its end until the others have heard its last words.
	syncTime = 2 * time.Second
	// reportWindow is how many reports of a process are under way at most, reportBytes how many bytes of them, beside a
	// report.
	reportWindow, reportBytes = 256, 8 << 20
	// mostReported is how many bytes of reports of a process may wait for the host: more than one has under way that
	// keeps to that.
	mostReported = 4 * (reportBytes + longest)
)

// Name is how a process is called: by its roles.
func Name(roles []string) string { return strings.Join(slices.Sorted(slices.Values(roles)), "+") }

// Key names a message: what a process says is under its own name, so that none says anything in place of another.
type Key struct{ From, Name string }

// message is a value under a key, from a process.  To is for whom it is; "" is all others.
type message struct {
	From  string          `json:"from,omitempty"`
	To    string          `json:"to,omitempty"`
	Key   string          `json:"key"`
	Value json.RawMessage `json:"value,omitempty"`
}

// What is said on the bus.
const (
	sayHello  = "hello"  // a question, answered once all are there
	sayTell   = "tell"   // a message
	sayBeat   = "beat"   // that the process is there
	sayReport = "report" // to the host; each so many are a question
	sayBye    = "bye"    // that the process leaves
	sayLeft   = "left"   // by the host's server: that the connection has ended
	sayGone   = "gone"   // by the host: that a process is there no more, and why
	saySync   = "sync"   // by the host, a question: whether all before it was heard
)

// Fabric is a name that only the processes of this meeting have.
func (m *Meeting) Fabric() string { return m.fabric }

// Player is the process that plays a role, whatever anybody says of it; "" for what is not a role of the run.
func (m *Meeting) Player(role string) string { return m.players[role] }

// Reached is the address of this host by which it reaches another process of the meeting, or was reached; invalid where
// the processes have met on a bus.
func (m *Meeting) Reached() netip.Addr { return m.reached }

// Others are the names of the other processes.
func (m *Meeting) Others() []string { return m.others }

// send tells one other process a value under a key, or all of them.
func (m *Meeting) send(to, key string, value any) error {
	raw, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("tell %s: %w", key, err)
	}
	what := message{From: m.name, To: to, Key: key, Value: raw}
	if m.server == nil {
		err := m.publish(what, bus.From(m.conn.Name(), sayTell))
		if errors.Is(err, bus.ErrClosed) {
			err = nil // Await says so
		}
		return err
	}
	subjects, err := m.addressed(what)
	if err != nil {
		return err
	}
	m.order.Lock()
	defer m.order.Unlock()
	return m.publish(what, subjects...)
}

// publish says something under subjects.
func (m *Meeting) publish(what message, subjects ...string) error {
	text, err := json.Marshal(what)
	for _, subject := range subjects {
		if err == nil {
			err = m.conn.Publish(subject, text)
		}
	}
	return err
}

// addressed are the subjects for those to whom the host passes a message: one process, the processes of a case, or all
// of them.
func (m *Meeting) addressed(what message) (subjects []string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	number, _ := boxOf(what.Key)
	with := m.cases[number]
	left := 0 // members that the message is not for
	for id, name := range m.members {
		switch {
		case what.To != "" && name == what.To, what.To == "" && slices.Contains(with, name) && name != what.From:
			subjects = append(subjects, bus.To(id, sayTell))
		case name != what.From:
			left++
		}
	}
	switch {
	case what.To != "" && subjects == nil:
		return nil, fmt.Errorf("tell %s: there is no process of %s", what.Key, what.To)
	case what.To == "" && (with == nil || left == 0):
		return []string{bus.To(bus.AllMembers, sayTell)}, nil
	}
	return subjects, nil
}

// Report passes data to the host of the meeting, in this order, and before what is told after it.
func (m *Meeting) Report(ctx context.Context, data []byte) error {
	m.mu.Lock()
	m.reported, m.reportedBytes = m.reported+1, m.reportedBytes+len(data)
	full := m.reported == reportWindow || m.reportedBytes > reportBytes
	if full {
		m.reported, m.reportedBytes = 0, 0
	}
	m.mu.Unlock()
	if !full {
		return m.conn.Publish(bus.From(m.conn.Name(), sayReport), data)
	}
	_, err := m.conn.Request(ctx, bus.From(m.conn.Name(), sayReport), data)
	return err
}

// GoneError tells that a process is there no more.
type GoneError struct{ Who, Why string }

func (e *GoneError) Error() string { return fmt.Sprintf("the process of %s %s", e.Who, e.Why) }

// Gone is why a process is there no more; nil while it is.
func (m *Meeting) Gone(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if gone := m.gone[name]; gone != nil {
		return gone
	}
	return nil
}

// changed wakes who waits.  mu is held.
func (m *Meeting) changed() {
	close(m.change)
	m.change = make(chan struct{})
}

// Lose notes that processes are there no more, and why; what they have said before still counts.
func (m *Meeting) Lose(why string, names ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, name := range names {
		if m.gone[name] == nil {
			m.gone[name] = &GoneError{name, why}
		}
	}
	m.changed()
}

// Why a process is there no more, when nobody knows better.
const (
	endedUnexpectedly = "has ended unexpectedly"
	endedItsRun       = "has ended its run"
	saysTooMuch       = "exceeded the limit of its messages that wait"
)

// reportsTooMuch is why who does not wait for the host's answers is lost.
var reportsTooMuch = fmt.Sprintf("reports more than the host of the run can take: %d MiB wait", mostReported>>20)

// Reported waits until the host has taken all that others have reported before now.
func (m *Meeting) Reported() {
	if m.reports != nil {
		m.reports.drain()
	}
}

// hear takes what the host of the meeting has passed on.
func (m *Meeting) hear(said *bus.Message) {
	m.mu.Lock()
	m.heard[""] = time.Now()
	m.mu.Unlock()
	what := said.Subject[strings.LastIndexByte(said.Subject, '.')+1:]
	if what == saySync {
		_ = said.Respond(nil)
		return
	}
	var got message
	if json.Unmarshal(said.Data, &got) != nil || got.From == m.name {
		return
	}
	switch what {
	case sayTell:
		m.keep(Key{got.From, got.Key}, got.Value)
	case sayGone:
		m.Lose(shown(got.Key), got.From)
	}
}

// preside takes what a member says to the host, which passes it on.
func (m *Meeting) preside(said *bus.Message) {
	id := bus.Sender(said.Subject)
	name, known := m.isThere(id)
	if !known {
		return
	}
	what := strings.TrimPrefix(said.Subject, bus.From(id, ""))
	switch what {
	case sayReport:
		if m.reports == nil {
			_ = said.Respond(nil) // it may have asked
		} else if !m.reports.put(name, said) {
			m.lost(id, name, reportsTooMuch)
			m.server.Expel(id)
		}
	case sayTell:
		m.pass(id, name, said.Data)
	case sayBye:
		m.lost(id, name, endedItsRun)
	case sayLeft:
		m.lost(id, name, endedUnexpectedly)
	}
}

// isThere notes that a member has said something, who is called so; false is of somebody who is no member.
func (m *Meeting) isThere(id string) (name string, known bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if name, known = m.members[id]; known {
		m.heard[id] = time.Now()
	}
	return name, known
}

// pass keeps what a member tells, and passes it on.
func (m *Meeting) pass(id, name string, data []byte) {
	var got message
	if json.Unmarshal(data, &got) != nil {
		m.lost(id, name, "says what nobody understands")
		m.server.Expel(id)
		return
	}
	got.From = name // whatever it says
	m.order.Lock()
	defer m.order.Unlock()
	subjects, _ := m.addressed(got) // to somebody who may be gone
	if got.To == "" || got.To == m.name {
		if lost := m.keep(Key{name, got.Key}, got.Value); lost != "" {
			m.expel(lost)
		}
	}
	if got.To != m.name && m.isMember(id) {
		_ = m.publish(got, subjects...)
	}
}

// expel ends the connection of who has said too much; its end tells the others.
func (m *Meeting) expel(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id, each := range m.members {
		if each == name {
			m.server.Expel(id)
		}
	}
}

// lost notes that a member is there no more, and tells the others.  To find out why may take its time, for which nobody
// waits.
func (m *Meeting) lost(id, name, why string) {
	m.mu.Lock()
	known := m.members[id] != ""
	delete(m.members, id)
	m.mu.Unlock()
	switch {
	case !known:
	case m.why == nil || why == endedItsRun:
		m.tellLost(name, why)
	default:
		m.leaving.Go(func() { m.tellLost(name, m.why(name, why)) })
	}
}

// tellLost tells that a process is there no more.
func (m *Meeting) tellLost(name, why string) {
	m.mu.Lock()
	if gone := m.gone[name]; gone != nil {
		why = gone.Why // known before its connection ended
	}
	m.mu.Unlock()
	m.Lose(why, name)
	m.order.Lock()
	defer m.order.Unlock()
	_ = m.publish(message{From: name, Key: why}, bus.To(bus.AllMembers, sayGone))
}

// beat says again and again that this process is there.
func (m *Meeting) beat(subject string, ended <-chan struct{}) {
	tick := time.NewTicker(beatEvery)
	defer tick.Stop()
	for {
		select {
		case <-ended:
			return
		case <-tick.C:
			_ = m.conn.Publish(subject, nil)
		}
	}
}

// listenToHost loses the host when it says nothing for too long, and with it all others, which are behind it.
func (m *Meeting) listenToHost(host string, silence time.Duration, ended <-chan struct{}) {
	m.mu.Lock()
	m.heard[""] = time.Now()
	m.mu.Unlock()
	tick := time.NewTicker(beatEvery)
	defer tick.Stop()
	for {
		select {
		case <-ended:
			return
		case <-tick.C:
		}
		m.mu.Lock()
		silent := time.Since(m.heard[""]) > silence
		m.mu.Unlock()
		if silent {
			why := fmt.Sprintf("says nothing for %s", silence)
			m.Lose(why, host)
			m.Lose(fmt.Sprintf("cannot be heard: that of %s %s", host, why), m.others...)
			m.conn.Abandon()
			return
		}
	}
}

// listenForBeats loses members that say nothing for too long.
func (m *Meeting) listenForBeats(silence time.Duration, ended <-chan struct{}) {
	tick := time.NewTicker(beatEvery)
	defer tick.Stop()
	for {
		select {
		case <-ended:
			return
		case <-tick.C:
		}
		crowded := m.server.Crowded()
		silent := make(map[string]string)
		m.mu.Lock()
		for id, name := range m.members {
			if crowded {
				m.heard[id] = time.Now() // or might have been
			} else if time.Since(m.heard[id]) > silence {
				silent[id] = name
			}
		}
		m.mu.Unlock()
		for id, name := range silent {
			m.lost(id, name, fmt.Sprintf("says nothing for %s", silence))
			m.server.Expel(id)
		}
	}
}

// Close leaves.
func (m *Meeting) Close() {
	switch {
	case m.conn == nil:
	case m.server != nil:
		m.order.Lock()
		_ = m.publish(message{From: m.name, Key: endedItsRun}, bus.To(bus.AllMembers, sayGone))
		m.order.Unlock()
		m.sync()
	default:
		_ = m.conn.Publish(bus.From(m.conn.Name(), sayBye), nil)
	}
	for _, end := range slices.Backward(m.ends) {
		end()
	}
	m.ends = nil
}

// sync waits until all members have heard what the host has told or passed on; with the host goes the bus.
func (m *Meeting) sync() {
	ctx, cancel := context.WithTimeout(context.Background(), syncTime)
	defer cancel()
	m.mu.Lock()
	members := slices.Collect(maps.Keys(m.members))
	m.mu.Unlock()
	var asked sync.WaitGroup
	for _, id := range members {
		asked.Go(func() {
			asking, cancel := context.WithCancel(ctx)
			defer cancel()
			go func() {
				m.awaitLeaving(asking, id)
				cancel()
			}()
			_, _ = m.conn.Request(asking, bus.To(id, saySync), nil) // who does not answer hears nothing any more
		})
	}
	asked.Wait()
}

// awaitLeaving waits until somebody on the bus takes no part any more.
func (m *Meeting) awaitLeaving(ctx context.Context, id string) {
	for {
		m.mu.Lock()
		left, change := m.members[id] == "", m.change
		m.mu.Unlock()
		if left {
			return
		}
		select {
		case <-change:
		case <-ctx.Done():
			return
		}
	}
}
