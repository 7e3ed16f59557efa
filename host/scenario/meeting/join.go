package meeting

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

// welcome is what the one who listens answers when all are there.
type welcome struct {
	Processes []string `json:"processes"`
	Fabric    string   `json:"fabric"`
}

var fabricForm = regexp.MustCompile(`^run-[0-9a-f]{16}$`)

// visit finds the process that listens, and waits there until all have come.
func (m *Meeting) visit(ctx context.Context, config Config) error {
	conn, err := find(ctx, config)
	if err != nil {
		return err
	}
	to := newLink(conn)
	m.links = []*link{to}
	stop := context.AfterFunc(ctx, to.close)
	defer stop()
	greeting, err := json.Marshal(hello{version, config.Roles, config.Plan})
	if err != nil {
		return err
	}
	if err := to.say(message{m.name, keyHello, greeting}); err != nil {
		return fmt.Errorf("say hello to %s: %w", conn.RemoteAddr(), err)
	}
	answer, err := to.read()
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("not all of %s have come to %s", strings.Join(missing(config.All, config.Roles), ", "), conn.RemoteAddr())
	case err != nil:
		return fmt.Errorf("the process at %s does not answer: %w", conn.RemoteAddr(), err)
	}
	to.name = answer.From
	switch answer.Key {
	case keyRefused:
		var why string
		_ = json.Unmarshal(answer.Value, &why)
		return fmt.Errorf("the process of %s does not take this one: %s", answer.From, why)
	case keyWelcome:
		var all welcome
		if err := json.Unmarshal(answer.Value, &all); err != nil {
			return err
		}
		if !fabricForm.MatchString(all.Fabric) {
			return fmt.Errorf("the process of %s gives no fabric", answer.From)
		}
		m.fabric = all.Fabric
		m.others = slices.DeleteFunc(all.Processes, func(name string) bool { return name == m.name })
		return nil
	}
	return fmt.Errorf("the process at %s is none of rdmarun", conn.RemoteAddr())
}

// find connects to the first of the peers that listens, as long as ctx lets it try.
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
			return nil, fmt.Errorf("nobody is found at %s: %w", strings.Join(config.Peers, ", "), why)
		case <-time.After(retryAfter):
		}
	}
}

// host listens until all have come.
func (m *Meeting) host(ctx context.Context, config Config) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", config.Listen)
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%s is taken, perhaps by another run: %w", config.Listen, err)
	}
	if err != nil {
		return err
	}
	defer listener.Close()
	stop := context.AfterFunc(ctx, func() { listener.Close() })
	defer stop()
	came := make(chan arrival)
	left := make(chan struct{})
	defer close(left)
	go greet(listener, came, left)
	roles, refused := slices.Clone(config.Roles), ""
	for len(missing(config.All, roles)) > 0 {
		select {
		case <-ctx.Done():
			return fmt.Errorf("nobody came to %s for %s%s", listener.Addr(), strings.Join(missing(config.All, roles), ", "), refused)
		case who := <-came:
			if why := who.unfit(config, roles); why != "" {
				m.refuse(who.link, why)
				refused = fmt.Sprintf("; the process of %.100q was refused: %s", Name(who.Roles), why)
				continue
			}
			roles = append(roles, who.Roles...)
			who.link.name = Name(who.Roles)
			who.link.of = []string{who.link.name}
			m.links, m.others = append(m.links, who.link), append(m.others, who.link.name)
		}
	}
	var drawn [8]byte
	_, _ = rand.Read(drawn[:]) // never fails
	m.fabric = fmt.Sprintf("run-%x", drawn)
	raw, err := json.Marshal(welcome{append([]string{m.name}, m.others...), m.fabric})
	if err != nil {
		return err
	}
	m.order.Lock()
	defer m.order.Unlock()
	return m.send(nil, message{m.name, keyWelcome, raw})
}

func (m *Meeting) refuse(who *link, why string) {
	if raw, err := json.Marshal(why); err == nil {
		_ = who.say(message{m.name, keyRefused, raw})
	}
	who.close()
}

// arrival is somebody who has said who he is.
type arrival struct {
	hello
	link *link
}

// greet takes whoever comes, a few at a time, and passes on who says in time who he is.
func greet(listener net.Listener, came chan<- arrival, left <-chan struct{}) {
	room := make(chan struct{}, strangers)
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
			defer func() { <-room }()
			who := arrival{link: newLink(conn)}
			_ = conn.SetReadDeadline(time.Now().Add(greetingTime))
			got, err := who.link.read()
			if err != nil || got.Key != keyHello || json.Unmarshal(got.Value, &who.hello) != nil {
				_ = conn.Close()
				return
			}
			_ = conn.SetReadDeadline(time.Time{})
			select {
			case came <- who:
			case <-left:
				_ = conn.Close()
			}
		}()
	}
}

// unfit is why somebody cannot take part; "" if he can.
func (a *arrival) unfit(config Config, taken []string) string {
	if a.Version != version {
		return fmt.Sprintf("it speaks version %d and this one %d: use the same rdmarun on both sides", a.Version, version)
	}
	if len(a.Roles) == 0 {
		return "it has no role"
	}
	for _, role := range a.Roles {
		switch {
		case !slices.Contains(config.All, role):
			return fmt.Sprintf("there is no role %q here", role)
		case slices.Contains(taken, role):
			return fmt.Sprintf("role %s is played by another process already", role)
		}
	}
	for i := range max(len(a.Plan), len(config.Plan)) {
		there, here := at(a.Plan, i), at(config.Plan, i)
		if there != here {
			return fmt.Sprintf("it would run %s where this one runs %s: give both the same files, parameters and selection", there, here)
		}
	}
	return ""
}

func at(plan []string, i int) string {
	if i < len(plan) {
		return plan[i]
	}
	return "nothing"
}

// missing are those of all that are not there.
func missing(all, there []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(role string) bool { return slices.Contains(there, role) })
}
