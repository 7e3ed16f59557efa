package testbed

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"rdmarun/host/guest"
)

// listeners are the addresses on which guests listen; they wake the steps that wait for any listener.  Guests report to
// them from their own goroutines; the endpoints of steps have their own addresses.
type listeners struct {
	mu     sync.Mutex
	change signal
	guests map[string]*listening
}

// listening is what a guest has reported.
type listening struct {
	at map[netip.AddrPort]int
	// failed is why it could not listen the last time it tried, nil when it never failed.
	failed *guest.Listening
}

// announce wakes all waiting steps.
func (l *listeners) announce() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.change.broadcast()
}

// reset forgets what the guest of a role has reported.
func (l *listeners) reset(role string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.guests[role] = &listening{at: make(map[netip.AddrPort]int)}
}

// update takes a report of the guest of a role.
func (l *listeners) update(role string, news guest.Listening) {
	l.mu.Lock()
	defer l.mu.Unlock()
	reported := l.guests[role]
	switch {
	case news.Err != nil:
		reported.failed = &news
	case !news.Over:
		reported.at[news.At]++ // with SO_REUSEADDR, or in another port space, once more
	case reported.at[news.At] == 1:
		delete(reported.at, news.At)
	default:
		reported.at[news.At]--
	}
	l.change.broadcast()
}

// of lists the addresses on which a guest listens, by port, and its last failure to listen.
func (l *listeners) of(role string) (at []netip.AddrPort, failed *guest.Listening) {
	l.mu.Lock()
	defer l.mu.Unlock()
	reported := l.guests[role]
	if reported == nil {
		return nil, nil
	}
	return slices.SortedFunc(maps.Keys(reported.at), netip.AddrPort.Compare), reported.failed
}

// changed is closed at the next change.
func (l *listeners) changed() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.change.changed
}

// Listen makes the endpoint listen, and wakes the steps that wait for that.
func (e *Endpoint) Listen(backlog int) error {
	err := e.id.Listen(backlog)
	if err == nil {
		e.Role.testbed.listeners.announce()
	}
	return err
}

// listensAt lists where the role listens.
func (r *Role) listensAt() []netip.AddrPort {
	if r.guest != nil {
		at, _ := r.testbed.listeners.of(r.Name)
		return at
	}
	if r.program != nil {
		return r.program.listensAt()
	}
	var at []netip.AddrPort
	for _, endpoint := range r.living {
		if endpoint.id.Listening() {
			at = append(at, endpoint.id.LocalAddr())
		}
	}
	return at
}

// AwaitListener waits until the role listens, on a port or, with 0, anywhere.  It ends with a Failure as soon as that
// is impossible.
func (r *Role) AwaitListener(ctx context.Context, port uint16) (netip.AddrPort, error) {
	t := r.testbed
	wanted := func(at netip.AddrPort) bool { return port == 0 || at.Port() == port }
	for {
		if err := r.alive(); err != nil {
			return netip.AddrPort{}, err
		}
		changed := t.listeners.changed() // before the look, or a change in between is missed
		at := r.listensAt()
		if i := slices.IndexFunc(at, wanted); i >= 0 {
			return at[i], nil
		}
		if r.program != nil {
			changed = soon()
		}
		if err := t.await(ctx, changed, r.executable()); err != nil {
			failure := r.noListener(port)
			failure.Absent = !errors.Is(err, errExecutableEnded)
			failure.Late = failure.Absent
			return netip.AddrPort{}, failure
		}
	}
}

// soon is closed at the time to look again where a program listens.  The program does not report it.
func soon() <-chan struct{} {
	passed := make(chan struct{})
	time.AfterFunc(10*time.Millisecond, func() { close(passed) })
	return passed
}

// listensAt lists where the program listens: for rdma_cm, and with sockets of TCP.
func (p *Program) listensAt() []netip.AddrPort {
	if !running(p) {
		return nil
	}
	listeners, _ := p.running.Listeners() // what cannot be read does not listen
	at := make([]netip.AddrPort, len(listeners))
	for i, each := range listeners {
		at[i] = each.Address
	}
	return at
}

// insteadOfListening describes what a program does while a step waits for it to listen.
func (p *Program) insteadOfListening(failure *Failure) []string {
	switch {
	case p.running == nil:
		failure.Hint = "a step `program: start` comes first"
		return []string{"its program was not started"}
	case !running(p):
		end := p.end()
		failure.Hint = end.Reason
		return []string{
			fmt.Sprintf("its program has ended: %s, exit code %d", end.Outcome, end.Exit) + p.LastLine(),
		}
	}
	return []string{"its program runs" + p.LastLine()}
}

// noListener reports that the role does not listen, and what it does instead.
func (r *Role) noListener(port uint16) *Failure {
	failure := &Failure{What: fmt.Sprintf("role %s does not listen", r.Name), Expected: "a listener of role " + r.Name}
	if port != 0 {
		failure.What += fmt.Sprintf(" on port %d", port)
		failure.Expected += fmt.Sprintf(" on port %d", port)
	}
	var does []string
	for _, at := range r.listensAt() {
		does = append(does, "it listens on "+at.String())
	}
	switch {
	case r.guest != nil:
		does = append(does, r.guest.insteadOfListening(failure)...)
	case r.program != nil:
		does = append(does, r.program.insteadOfListening(failure)...)
	default:
		does = append(does, r.endpointsInstead(failure)...)
	}
	failure.Got = strings.Join(does, "; ")
	return failure
}

// insteadOfListening describes what a guest does while a step waits for it to listen.
func (g *Guest) insteadOfListening(failure *Failure) []string {
	var does []string
	_, failed := g.role.testbed.listeners.of(g.role.Name)
	if failed != nil {
		does = append(does, fmt.Sprintf("it could not on %s: %v", failed.At, failed.Err))
	}
	switch {
	case g.running == nil:
		failure.Hint = "a step `guest: start` comes first"
		return append(does, "its guest was not started")
	case !running(g):
		result := g.end()
		failure.Hint, failure.Ended = result.Reason, result.cause()
		return append(does, fmt.Sprintf("its guest has ended: %s, exit code %d", result.Outcome, result.Exit))
	}
	if name := g.role.testbed.barriers.waitingAt(g.role.Name); name != "" {
		failure.Hint = fmt.Sprintf("a step opens the barrier: {barrier: %s, of: [%s]}", name, g.role.Name)
		return append(does, fmt.Sprintf("its guest waits at barrier %q", name))
	}
	return append(does, "its guest runs")
}

// endpointsInstead describes the endpoints of a role that do not listen.
func (r *Role) endpointsInstead(failure *Failure) []string {
	var does []string
	for _, endpoint := range r.living {
		local := endpoint.id.LocalAddr()
		if endpoint.id.Listening() || endpoint.id.PeerAddr().IsValid() || !local.IsValid() {
			continue
		}
		does = append(does, fmt.Sprintf("its endpoint %s is bound to %s", endpoint.Name, local))
		failure.Hint = fmt.Sprintf("{role: %s, listen: {ep: %s}} in a parallel branch", r.Name, endpoint.Name)
	}
	if len(does) == 0 && len(r.listensAt()) == 0 {
		return []string{"it has made no endpoint that could"}
	}
	return does
}
