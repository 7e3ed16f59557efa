// Package meeting connects the processes of a run, each of which plays some of the roles.  They exchange the outcomes
// of steps; the messages that are measured go over RDMA.
//
// One process is the host of the meeting.  The others connect to it over a bus, and it passes their messages on.  So
// these need no addresses of each other, and all receive the messages in one order.  Messages of a case go to its
// processes; those that start a case or end a process go to all.  A message is data: names and numbers for expressions.
// Its size is bounded, and it names no file, memory or command.
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

	"rdmarun/host/bounded"
	"rdmarun/host/bus"
)

// Config describes the processes of a meeting.
type Config struct {
	// Name is the name of this process in messages; empty: its roles.
	Name string
	// Roles are the roles of this process, All those of the run.
	Roles, All []string
	// Plan are the cases in their order; all processes have the same.
	Plan []string
	// Settings are the flags that the plan depends on.  When two plans differ, the error names the first differences.
	Settings []Setting
	// Refused takes the refusals of processes that cannot take part, while the host waits; nil: only the error has the
	// last one.
	Refused func(what string)
	// Peers are the addresses of other processes, "192.0.2.1:18516"; none: this process listens at Listen.
	Peers  []string
	Listen string
	// Server is the bus of the other processes, which are connected to it or will be.  Peers and Listen are ignored
	// then.  Members has their names in messages, by their names on the bus.
	Server  *bus.Server
	Members map[string]string
	// Bus is a connection to the host of the meeting.  Peers and Listen are ignored then.
	Bus *bus.Conn
	// Players are the processes of the roles, by their names in messages, when the host knows them in advance.
	// With nil the first process that comes with a role plays it.
	Players map[string]string
	// Silence is how long a process may send nothing before it counts as lost; 0: only the end of its connection
	// counts.
	Silence time.Duration
	// Report takes the reports of other processes to the host, those of each process in order.
	Report func(from string, data []byte)
	// Why explains the loss of a process; may be nil.
	Why func(process, why string) string
}

// Meeting connects this process with the other processes of a run.
type Meeting struct {
	*Mailbox // the mailbox of the whole meeting

	name   string
	others []string // the names of all others, sorted
	fabric string
	// players are the processes of the roles.
	players map[string]string
	// reached is the address of this host in its connection to the first other process.
	reached netip.Addr
	reports *bounded.Queue[report] // the host's; nil when it takes none
	why     func(process, why string) string

	conn   *bus.Conn
	server *bus.Server // the host's; nil in other processes
	// leaving waits for the calls of why.
	leaving sync.WaitGroup
	ends    []func() // the functions that Close calls, the last first

	// order is held by the host while it passes a message on, so that an answer to the message arrives after it
	// everywhere.  It is taken before mu.
	order sync.Mutex

	mu      sync.Mutex
	members map[string]string // the host's: the members' names in messages, by their names on the bus
	// the host's: addresses of this host that clients have connected to, by their names on the bus
	came     map[string]netip.Addr
	lastSeen map[string]time.Time            // the times of the last messages of members; of the host under ""
	boxes    map[int]map[Key]json.RawMessage // messages that were not taken, by runs of cases
	kept     map[string]int                  // the bytes of these, by sender
	cases    map[int][]string                // the host's: the processes of a run of a case
	ended    int                             // runs of cases up to this number have ended here
	early    map[int]bool                    // runs above ended that have ended, too
	change   chan struct{}                   // closed at the next message or loss
	gone     map[string]*GoneError
	// reported and reportedBytes count the reports of this process since the host's last answer.
	reported, reportedBytes int
}

const (
	// version is the version of the messages.
	version = 6
	// longest bounds the bytes of a message, most those of all stored messages.  A stored message costs these bytes in
	// addition to its key and value.
	longest, most, cost = bus.Largest, 16 << 20, 256
	// beatEvery is the interval of the messages that a process is alive, when Silence is set.
	beatEvery = 500 * time.Millisecond
	// syncTime bounds how long the host waits at its end until the other processes have received its messages.
	syncTime = 2 * time.Second
	// reportWindow bounds the reports of a process without an answer, reportBytes their bytes, in addition to one
	// report.
	reportWindow, reportBytes = 256, 8 << 20
	// maxReported bounds the bytes of a process's reports that wait in the host.  A process that waits for answers
	// stays below it.
	maxReported = 4 * (reportBytes + longest)
)

// nameOf is the name of a process with these roles.
func nameOf(roles []string) string { return strings.Join(slices.Sorted(slices.Values(roles)), "+") }

// Key is the key of a message with its sender, so that no process can send in the name of another.
type Key struct{ From, Name string }

// message is a value under a key, from a process.  To is its receiver; "" is all others.
type message struct {
	From  string          `json:"from,omitempty"`
	To    string          `json:"to,omitempty"`
	Key   string          `json:"key"`
	Value json.RawMessage `json:"value,omitempty"`
}

// The subjects on the bus.
const (
	subjectHello   = "hello"   // a request, answered once all are there
	subjectMessage = "message" // a message for mailboxes
	subjectBeat    = "beat"    // the process is alive
	subjectReport  = "report"  // to the host; a request at the end of each window
	subjectBye     = "bye"     // the process leaves
	subjectLeft    = "left"    // from the host's server: the connection has ended
	subjectGone    = "gone"    // from the host: a process is gone, and why
	subjectSync    = "sync"    // from the host, a request: all before it was received
)

// Fabric is the name of a fabric that only the processes of this meeting have.
func (m *Meeting) Fabric() string { return m.fabric }

// Player is the process of a role according to the placement; "" for an unknown role.
func (m *Meeting) Player(role string) string { return m.players[role] }

// Reached is the address of this host in its connection to another process; invalid when the processes have met on a
// bus.
func (m *Meeting) Reached() netip.Addr { return m.reached }

// Others are the names of the other processes.
func (m *Meeting) Others() []string { return m.others }

// send sends a value under a key to one other process, or to all.
func (m *Meeting) send(to, key string, value any) error {
	raw, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("send %s: %w", key, err)
	}
	what := message{From: m.name, To: to, Key: key, Value: raw}
	if m.server == nil {
		err := m.publish(what, bus.From(m.conn.Name(), subjectMessage))
		if errors.Is(err, bus.ErrClosed) {
			err = nil // Await reports it
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

// publish sends a message under subjects.
func (m *Meeting) publish(what message, subjects ...string) error {
	text, err := json.Marshal(what)
	for _, subject := range subjects {
		if err == nil {
			err = m.conn.Publish(subject, text)
		}
	}
	return err
}

// addressed returns the subjects under which the host passes a message on: to one process, the processes of a case, or
// all.
func (m *Meeting) addressed(what message) (subjects []string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	number, _ := boxOf(what.Key)
	with := m.cases[number]
	left := 0 // members that do not get the message
	for id, name := range m.members {
		switch {
		case what.To != "" && name == what.To, what.To == "" && slices.Contains(with, name) && name != what.From:
			subjects = append(subjects, bus.To(id, subjectMessage))
		case name != what.From:
			left++
		}
	}
	switch {
	case what.To != "" && subjects == nil:
		return nil, fmt.Errorf("send %s: there is no process of %s", what.Key, what.To)
	case what.To == "" && (with == nil || left == 0):
		return []string{bus.To(bus.AllMembers, subjectMessage)}, nil
	}
	return subjects, nil
}

// Report passes data to the host of the meeting, in order, and before later messages.
func (m *Meeting) Report(ctx context.Context, data []byte) error {
	m.mu.Lock()
	m.reported, m.reportedBytes = m.reported+1, m.reportedBytes+len(data)
	full := m.reported == reportWindow || m.reportedBytes > reportBytes
	if full {
		m.reported, m.reportedBytes = 0, 0
	}
	m.mu.Unlock()
	if !full {
		return m.conn.Publish(bus.From(m.conn.Name(), subjectReport), data)
	}
	_, err := m.conn.Request(ctx, bus.From(m.conn.Name(), subjectReport), data)
	return err
}

// GoneError is the error of a process that is gone.
type GoneError struct{ Who, Why string }

func (e *GoneError) Error() string { return fmt.Sprintf("the process of %s %s", e.Who, e.Why) }

// Gone is the reason why a process is gone; nil while it is there.
func (m *Meeting) Gone(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if gone := m.gone[name]; gone != nil {
		return gone
	}
	return nil
}

// changed wakes all waiting goroutines.  The caller holds mu.
func (m *Meeting) changed() {
	close(m.change)
	m.change = make(chan struct{})
}

// lose marks processes as gone, with the reason.  Their earlier messages remain.
func (m *Meeting) lose(why string, names ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, name := range names {
		if m.gone[name] == nil {
			m.gone[name] = &GoneError{name, why}
		}
	}
	m.changed()
}

// The reasons for the loss of a process, when Why has none.
const (
	endedUnexpectedly = "has ended unexpectedly"
	endedItsRun       = "has ended its run"
	exceededLimit     = "exceeded the limit of its messages that wait"
)

// exceededReports is the reason for the loss of a process that does not wait for the host's answers.
var exceededReports = fmt.Sprintf("reports more than the host of the run can take: %dMiB wait", maxReported>>20)

// report is a report on its way to the host, which reads it on a goroutine of its own.  An output may block a report,
// and must not block later messages.
type report struct {
	from string
	msg  *bus.Message
}

// queueReports makes reports wait for the host.
func (m *Meeting) queueReports(take func(from string, data []byte)) {
	m.reports = bounded.NewQueue(maxReported, func(r report) {
		take(r.from, r.msg.Data)
		_ = r.msg.Respond(nil) // it may be a request
	})
}

// Reported waits until the host has taken all reports that have arrived.
func (m *Meeting) Reported() {
	if m.reports != nil {
		m.reports.Drain()
	}
}

// receive takes a message that the host has passed on.
func (m *Meeting) receive(msg *bus.Message) {
	m.mu.Lock()
	m.lastSeen[""] = time.Now()
	m.mu.Unlock()
	what := msg.Subject[strings.LastIndexByte(msg.Subject, '.')+1:]
	if what == subjectSync {
		_ = msg.Respond(nil)
		return
	}
	var got message
	if json.Unmarshal(msg.Data, &got) != nil || got.From == m.name {
		return
	}
	switch what {
	case subjectMessage:
		m.keep(Key{got.From, got.Key}, got.Value)
	case subjectGone:
		m.lose(shown(got.Key), got.From)
	}
}

// serve takes a message of a member in the host, and passes it on.
func (m *Meeting) serve(msg *bus.Message) {
	id := bus.Sender(msg.Subject)
	name, known := m.isThere(id)
	if !known {
		return
	}
	what := strings.TrimPrefix(msg.Subject, bus.From(id, ""))
	switch what {
	case subjectReport:
		if m.reports == nil {
			_ = msg.Respond(nil) // it may be a request
		} else if !m.reports.Offer(name, len(msg.Data), report{name, msg}) {
			m.lost(id, name, exceededReports)
			m.server.Expel(id)
		}
	case subjectMessage:
		m.pass(id, name, msg.Data)
	case subjectBye:
		m.lost(id, name, endedItsRun)
	case subjectLeft:
		m.lost(id, name, endedUnexpectedly)
	}
}

// isThere stores the time of a member's message, and returns its name; false for a client that is not a member.
func (m *Meeting) isThere(id string) (name string, known bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if name, known = m.members[id]; known {
		m.lastSeen[id] = time.Now()
	}
	return name, known
}

// pass stores a member's message, and passes it on.
func (m *Meeting) pass(id, name string, data []byte) {
	var got message
	if json.Unmarshal(data, &got) != nil {
		m.lost(id, name, "sent a message that cannot be read")
		m.server.Expel(id)
		return
	}
	got.From = name // replaces any name in the message
	m.order.Lock()
	defer m.order.Unlock()
	subjects, _ := m.addressed(got) // its receiver may be gone
	if got.To == "" || got.To == m.name {
		if lost := m.keep(Key{name, got.Key}, got.Value); lost != "" {
			m.expel(lost)
		}
	}
	if got.To != m.name && m.isMember(id) {
		_ = m.publish(got, subjects...)
	}
}

// expel ends the connection of a process that has exceeded its limit.
func (m *Meeting) expel(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id, each := range m.members {
		if each == name {
			m.server.Expel(id)
		}
	}
}

// lost marks a member as gone, and announces it to the others.  Why may take long, so it has a goroutine of its own.
func (m *Meeting) lost(id, name, why string) {
	m.mu.Lock()
	known := m.members[id] != ""
	delete(m.members, id)
	m.mu.Unlock()
	switch {
	case !known:
	case m.why == nil || why == endedItsRun:
		m.announceLost(name, why)
	default:
		m.leaving.Go(func() { m.announceLost(name, m.why(name, why)) })
	}
}

// announceLost announces to the others that a process is gone.
func (m *Meeting) announceLost(name, why string) {
	m.mu.Lock()
	if gone := m.gone[name]; gone != nil {
		why = gone.Why // the reason was known before the connection ended
	}
	m.mu.Unlock()
	m.lose(why, name)
	m.order.Lock()
	defer m.order.Unlock()
	_ = m.publish(message{From: name, Key: why}, bus.To(bus.AllMembers, subjectGone))
}

// beat publishes that this process is alive, every beatEvery.
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

// watchHost marks the host as gone when it is silent for too long, and with it all other processes, which are reached
// through it.
func (m *Meeting) watchHost(host string, silence time.Duration, ended <-chan struct{}) {
	m.mu.Lock()
	m.lastSeen[""] = time.Now()
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
		silent := time.Since(m.lastSeen[""]) > silence
		m.mu.Unlock()
		if silent {
			why := fmt.Sprintf("says nothing for %s", silence)
			m.lose(why, host)
			m.lose(fmt.Sprintf("cannot be reached: that of %s %s", host, why), m.others...)
			m.conn.Abandon()
			return
		}
	}
}

// watchMembers marks members as gone that are silent for too long.
func (m *Meeting) watchMembers(silence time.Duration, ended <-chan struct{}) {
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
				m.lastSeen[id] = time.Now() // their messages may wait in the server
			} else if time.Since(m.lastSeen[id]) > silence {
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

// Close leaves the meeting.  The host waits until the others have received its messages.
func (m *Meeting) Close() {
	switch {
	case m.conn == nil:
	case m.server != nil:
		m.order.Lock()
		_ = m.publish(message{From: m.name, Key: endedItsRun}, bus.To(bus.AllMembers, subjectGone))
		m.order.Unlock()
		m.sync()
	default:
		_ = m.conn.Publish(bus.From(m.conn.Name(), subjectBye), nil)
	}
	for _, end := range slices.Backward(m.ends) {
		end()
	}
	m.ends = nil
}

// sync waits until all members have received the messages of the host: the bus ends with the host.
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
			_, _ = m.conn.Request(asking, bus.To(id, subjectSync), nil) // without an answer it receives nothing more
		})
	}
	asked.Wait()
}

// awaitLeaving waits until a client of the bus is not a member any more.
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
