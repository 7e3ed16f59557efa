package meeting

import (
	"bufio"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"rdmarun/host/bus"
	"rdmarun/host/printable"
)

const (
	// greetingTime is how long a connecting process may take to introduce itself.
	greetingTime = 5 * time.Second
	// strangers bounds the connections without an introduction, guests those with one that take no part.
	strangers, guests = 16, 128
	// maxRefusals bounds the refusals that are reported to the user while the host waits.
	maxRefusals = 16
	// retryAfter is how long to wait before the next attempt to find a process.
	retryAfter = 100 * time.Millisecond
)

// hello is the first message of a process.
type hello struct {
	Version int      `json:"version"`
	Roles   []string `json:"roles"`
	Plan    []string `json:"plan"`
	// Settings explain the difference between plans.
	Settings []Setting `json:"settings,omitempty"`
}

// welcome is the answer of the host: when all processes are there, or with the reason of a refusal.
type welcome struct {
	Host    string `json:"host"`
	Refused string `json:"refused,omitempty"`
	// Settings are the host's, when it refuses another plan.
	Settings  []Setting `json:"settings,omitempty"`
	Processes []string  `json:"processes,omitempty"`
	Fabric    string    `json:"fabric,omitempty"`
	// Players are the processes that play the roles.
	Players map[string]string `json:"players,omitempty"`
}

var fabricForm = regexp.MustCompile(`^run-[0-9a-f]{16}$`)

// newMeeting returns a meeting without members.
func newMeeting(name string) *Meeting {
	m := &Meeting{
		name: name, members: make(map[string]string), came: make(map[string]netip.Addr),
		lastSeen: make(map[string]time.Time), boxes: make(map[int]map[Key]json.RawMessage),
		kept: make(map[string]int), early: make(map[int]bool), change: make(chan struct{}),
		gone: make(map[string]*GoneError), players: make(map[string]string), cases: make(map[int][]string),
	}
	m.Mailbox = &Mailbox{m: m}
	return m
}

// Join waits until all processes are there, or ctx ends.  The error names the missing roles.
func Join(ctx context.Context, config Config) (*Meeting, error) {
	m := newMeeting(cmp.Or(config.Name, nameOf(config.Roles)))
	m.why = config.Why
	if config.Report != nil {
		m.queueReports(config.Report)
		m.onClose(m.reports.Close)
	}
	for _, role := range config.Roles {
		m.players[role] = m.name
	}
	join := m.listen
	if config.Bus != nil || config.Server == nil && len(config.Peers) > 0 {
		join = m.dial
	}
	if err := join(ctx, config); err != nil {
		m.Close()
		return nil, err
	}
	return m, nil
}

// onClose makes Close call end.
func (m *Meeting) onClose(end func()) { m.ends = append(m.ends, end) }

// closed returns a channel that Close closes.
func (m *Meeting) closed() <-chan struct{} {
	ended := make(chan struct{})
	m.onClose(func() { close(ended) })
	return ended
}

// dial connects to the host of the meeting, and waits until all processes have done so.
func (m *Meeting) dial(ctx context.Context, config Config) error {
	m.conn = config.Bus
	where, host := "the controller", "the controller"
	if m.conn == nil {
		conn, err := find(ctx, config)
		if err != nil {
			return err
		}
		where, m.reached = conn.RemoteAddr().String(), localAddress(conn)
		host, _, _ = net.SplitHostPort(where)
		if m.conn, err = introduce(conn); err != nil {
			return fmt.Errorf("the process at %s does not answer: %w", where, err)
		}
		m.onClose(m.conn.Close)
	}
	own := m.conn.Name()
	stop, err := m.conn.Listen(
		m.receive, bus.To(bus.AllMembers, subjectMessage), bus.To(bus.AllMembers, subjectGone),
		bus.To(bus.AllMembers, subjectBeat), bus.To(own, subjectMessage), bus.To(own, subjectSync),
	)
	if err != nil {
		return err
	}
	m.onClose(stop)
	if config.Silence > 0 {
		go m.beat(bus.From(m.conn.Name(), subjectBeat), m.closed())
	}
	greeting, err := json.Marshal(hello{version, config.Roles, config.Plan, config.Settings})
	if err != nil {
		return err
	}
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-m.conn.Closed():
			cancel()
		case <-waiting.Done():
		}
	}()
	answer, err := m.conn.Await(waiting, bus.From(m.conn.Name(), subjectHello), greeting)
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("not all of %s have come to %s", strings.Join(missing(config.All, config.Roles), ", "), where)
	case errors.Is(err, context.Canceled), errors.Is(err, bus.ErrClosed):
		return fmt.Errorf("the process at %s does not answer: it has closed the connection", where)
	case err != nil:
		return fmt.Errorf("say hello to %s: %w", where, err)
	}
	all, err := parseWelcome(answer)
	if err != nil {
		return fmt.Errorf("the process at %s is not an rdmarun process: %w", where, err)
	}
	differs := differ(config.Settings, all.Settings, "at "+host)
	switch {
	case all.Refused != "" && differs != nil:
		return fmt.Errorf("the process of %s refused this one: %w", all.Host, differs)
	case all.Refused != "":
		return fmt.Errorf("the process of %s refused this one: %s", all.Host, all.Refused)
	case !fabricForm.MatchString(all.Fabric):
		return fmt.Errorf("the process of %s gives no fabric", all.Host)
	}
	if wrong := m.cast(all.Players, config.All); wrong != nil {
		return fmt.Errorf("the process of %s: %w", all.Host, wrong)
	}
	m.fabric = all.Fabric
	m.others = slices.DeleteFunc(slices.Sorted(slices.Values(all.Processes)), func(name string) bool {
		return name == m.name
	})
	if config.Silence > 0 {
		go m.watchHost(all.Host, config.Silence, m.closed())
	}
	go func() {
		<-m.conn.Closed()
		why := endedUnexpectedly
		if err := m.conn.Err(); err != nil {
			why = "cannot be reached any more: " + err.Error()
		}
		m.lose(why, m.others...) // they are reached through the host
	}()
	return nil
}

// maxShown bounds how much of another process's text is shown.
const maxShown = 1000

// shown is another process's text, made printable.
func shown(text string) string { return printable.Brief(text, maxShown) }

// cast sets the players of the roles of other processes: each role has one player.
func (m *Meeting) cast(players map[string]string, all []string) error {
	for _, role := range all {
		player := players[role]
		if own := m.players[role] != ""; player == "" || own != (player == m.name) {
			return fmt.Errorf("it says that role %s is played by %.80q", role, player)
		}
		m.players[role] = player
	}
	return nil
}

// parseWelcome decodes the answer of the host.
func parseWelcome(answer []byte) (all welcome, err error) {
	if err = json.Unmarshal(answer, &all); err != nil {
		return welcome{}, err
	}
	printable.Each(&all, shown)
	return all, nil
}

// find connects to the first of the peers that listens, and retries until ctx ends.
func find(ctx context.Context, config Config) (net.Conn, error) {
	dialer := net.Dialer{Timeout: greetingTime}
	for {
		var why error
		for _, peer := range config.Peers {
			conn, err := dialer.DialContext(ctx, "tcp", peer)
			if err == nil {
				return conn, nil
			}
			if !errors.Is(err, context.DeadlineExceeded) || why == nil {
				why = err
			}
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("no process listens at %s: %w", strings.Join(config.Peers, ", "), why)
		case <-time.After(retryAfter):
		}
	}
}

// introduction is the line with which a connection begins: a name and a secret that the connecting process has
// chosen.
const introduction = "rdmarun meeting %s %s\n"

// introduce sends the introduction on a connection, and connects to the bus over it.
func introduce(conn net.Conn) (*bus.Conn, error) {
	who := bus.NewCredentials()
	if _, err := fmt.Fprintf(conn, introduction, who.Name, who.Secret); err != nil {
		_ = conn.Close()
		return nil, err
	}
	joined, err := bus.Over(who, conn)
	if err != nil {
		_ = conn.Close()
	}
	return joined, err
}

// listen accepts the other processes, and waits for them.
func (m *Meeting) listen(ctx context.Context, config Config) (err error) {
	where, greeting := "the bus", func() {}
	if m.server = config.Server; m.server == nil {
		if m.server, err = bus.NewServer(); err != nil {
			return err
		}
		m.onClose(m.server.Close)
		listener, err := listen(ctx, config.Listen)
		if err != nil {
			return err
		}
		// Only as long as a process is missing.
		defer listener.Close()
		where = listener.Addr().String()
		serving, cancel := context.WithCancel(context.WithoutCancel(ctx))
		m.onClose(cancel)
		greeting = func() { m.greet(serving, listener, guests+len(config.All)) }
	}
	if m.conn, err = m.server.Connect(); err != nil {
		return err
	}
	m.onClose(m.conn.Close)
	m.onClose(m.leaving.Wait)
	m.server.OnLeave(func(id string) { _ = m.conn.Publish(bus.From(id, subjectLeft), nil) })
	came, left := make(chan arrival), make(chan struct{})
	defer close(left)
	stop, err := m.conn.Listen(func(msg *bus.Message) {
		who := arrival{id: bus.Sender(msg.Subject), answer: msg.Respond}
		switch name := config.Members[who.id]; {
		case name != "" && msg.Subject == bus.From(who.id, subjectLeft) && !m.isMember(who.id):
			who.left = true // before its hello
		case msg.Subject != bus.From(who.id, subjectHello):
			m.serve(msg)
			return
		case json.Unmarshal(msg.Data, &who.hello) != nil:
			return
		}
		select {
		case came <- who:
		case <-left:
			who.refuse(Config{}, m.name, "the run has begun")
		}
	}, bus.From("*", ">"))
	if err != nil {
		return err
	}
	m.onClose(stop)
	// Beats have a goroutine of their own, since the handling of another message may take long.
	if stop, err = m.conn.Listen(
		func(msg *bus.Message) { m.isThere(bus.Sender(msg.Subject)) }, bus.From("*", subjectBeat),
	); err != nil {
		return err
	}
	m.onClose(stop)
	for id, name := range config.Members {
		if !m.server.Present(id) {
			return m.lostBefore(name)
		}
	}
	go greeting() // now that the bus takes arrivals
	if err = m.awaitAll(ctx, config, where, came); err == nil && config.Server == nil {
		m.server.ExpelOthers(m.isMember) // refused and silent processes get no messages of the run
	}
	return err
}

// awaitAll waits until all processes are there, and welcomes them.
func (m *Meeting) awaitAll(ctx context.Context, config Config, where string, came <-chan arrival) error {
	roles, refused, refusalsLeft := slices.Clone(config.Roles), "", maxRefusals
	var all []arrival
	for len(missing(config.All, roles)) > 0 {
		select {
		case <-ctx.Done():
			return fmt.Errorf(
				"timed out at %s waiting for %s%s", where, strings.Join(missing(config.All, roles), ", "), refused,
			)
		case who := <-came:
			if who.left {
				return m.lostBefore(config.Members[who.id])
			}
			if why := who.unfit(config, roles, m.isMember(who.id)); why != "" {
				who.refuse(config, m.name, why)
				refusal := fmt.Sprintf(
					"the process of %.100q was refused: %s", nameOf(who.Roles[:min(len(who.Roles), maxShown)]), why,
				)
				if report := config.Refused; report != nil && refused != "; "+refusal && refusalsLeft > 0 {
					refusalsLeft--
					report(refusal)
				}
				refused = "; " + refusal
				continue
			}
			name := nameOf(who.Roles)
			if given := config.Members[who.id]; given != "" {
				name = given
			}
			m.mu.Lock()
			m.members[who.id], m.lastSeen[who.id] = name, time.Now()
			if len(all) == 0 {
				m.reached = m.came[who.id]
			}
			m.mu.Unlock()
			for _, role := range who.Roles {
				m.players[role] = name
			}
			roles, all, m.others = append(roles, who.Roles...), append(all, who), append(m.others, name)
		}
	}
	slices.Sort(m.others)
	if config.Silence > 0 {
		go m.beat(bus.To(bus.AllMembers, subjectBeat), m.closed())
		go m.watchMembers(config.Silence, m.closed())
	}
	var drawn [8]byte
	_, _ = rand.Read(drawn[:]) // never fails
	m.fabric = fmt.Sprintf("run-%x", drawn)
	raw, err := json.Marshal(welcome{
		Host: m.name, Processes: append([]string{m.name}, m.others...), Fabric: m.fabric, Players: m.players,
	})
	if err != nil {
		return err
	}
	for _, who := range all {
		if err := who.answer(raw); err != nil {
			return fmt.Errorf("welcome %s: %w", nameOf(who.Roles), err)
		}
	}
	return nil
}

// lostBefore is the error of an expected process that has ended before its hello.
func (m *Meeting) lostBefore(name string) error {
	why := endedUnexpectedly
	if m.why != nil {
		why = m.why(name, why)
	}
	return &GoneError{name, why}
}

// isMember reports whether a client of the bus is a member.
func (m *Meeting) isMember(id string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.members[id] != ""
}

// listen listens where the others look for this process.
func listen(ctx context.Context, at string) (net.Listener, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", at)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%s is taken, perhaps by another run: %w", at, err)
	}
	if err == nil {
		context.AfterFunc(ctx, func() { listener.Close() })
	}
	return listener, err
}

// greet accepts connections: at most strangers without an introduction, and most that are served.
func (m *Meeting) greet(ctx context.Context, listener net.Listener, most int) {
	room, inside := make(chan struct{}, strangers), make(chan struct{}, most)
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		select {
		case room <- struct{}{}:
		default:
			_ = conn.Close()
			continue
		}
		go func() {
			_ = conn.SetReadDeadline(time.Now().Add(greetingTime))
			reader := bufio.NewReaderSize(conn, 4096)
			line, err := reader.ReadSlice('\n')
			var who bus.Credentials
			if err == nil {
				_, err = fmt.Sscanf(string(line), introduction, &who.Name, &who.Secret)
			}
			<-room
			select {
			case inside <- struct{}{}:
				defer func() { <-inside }()
			default:
				err = errors.New("there are too many")
			}
			if err != nil {
				_ = conn.Close()
				return
			}
			_ = conn.SetReadDeadline(time.Time{})
			m.comes(who.Name, localAddress(conn))
			defer m.comes(who.Name, netip.Addr{})
			_ = m.server.Serve(ctx, who, &introduced{conn, reader}) // OnLeave reports the end
		}()
	}
}

// comes stores the address of this host to which a client of the bus has connected; an invalid one removes it.
func (m *Meeting) comes(id string, by netip.Addr) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.came[id] = by; !by.IsValid() {
		delete(m.came, id)
	}
}

// localAddress is this host's address of a TCP connection; invalid for others.
func localAddress(conn net.Conn) netip.Addr {
	local, _ := conn.LocalAddr().(*net.TCPAddr)
	return local.AddrPort().Addr().Unmap()
}

// introduced is a connection after its first bytes were read.
type introduced struct {
	net.Conn
	reader io.Reader
}

func (i *introduced) Read(p []byte) (int, error) { return i.reader.Read(p) }

// arrival is the hello of a process.
type arrival struct {
	hello
	// left is set for an expected process that has ended before its hello.
	left   bool
	id     string
	answer func([]byte) error
}

// refuse answers why the process cannot take part.  If it has another plan, the answer has the settings of this
// process.
func (a *arrival) refuse(config Config, host, why string) {
	answer := welcome{Host: host, Refused: why}
	if !slices.Equal(a.Plan, config.Plan) {
		answer.Settings = config.Settings
	}
	if raw, err := json.Marshal(answer); err == nil {
		_ = a.answer(raw)
	}
}

// unfit is the reason why a process cannot take part; "" if it can.  known is set for a member.
func (a *arrival) unfit(config Config, taken []string, known bool) string {
	if a.Version != version {
		return fmt.Sprintf(
			"it speaks version %d and this one %d: use the same rdmarun on both sides", a.Version, version,
		)
	}
	if known {
		return "it has come before"
	}
	if len(a.Roles) == 0 {
		return "it has no role"
	}
	for i, role := range a.Roles {
		switch {
		case slices.Contains(a.Roles[:i], role):
			return fmt.Sprintf("it says that it has role %.80q twice", role)
		case !slices.Contains(config.All, role):
			return fmt.Sprintf("there is no role %.80q here", role)
		case config.Players != nil && config.Players[role] != config.Members[a.id]:
			return fmt.Sprintf("role %s is that of %s", role, config.Players[role])
		case slices.Contains(taken, role):
			return fmt.Sprintf("role %s is played by another process already", role)
		}
	}
	return a.otherPlan(config)
}

// missing are the elements of all that are not in there.
func missing(all, there []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(role string) bool { return slices.Contains(there, role) })
}
