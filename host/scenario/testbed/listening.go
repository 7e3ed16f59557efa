package testbed

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
)

// Listening is news of where a guest listens, as host.Listening.
type Listening struct {
	At   netip.AddrPort
	Over bool
	Err  error
}

// listeners know where guests listen, and wake those who wait for anybody to listen.  Guests tell them from goroutines
// of their own; of roles that steps drive, the endpoints know it.
type listeners struct {
	mu      sync.Mutex
	changed chan struct{} // closed and replaced at each change
	guests  map[string]*listening
}

// listening is what a guest has told of itself.
type listening struct {
	at map[netip.AddrPort]int
	// failed is why it could not listen the last time it tried, nil when it never failed.
	failed *Listening
}

func newListeners() *listeners {
	return &listeners{changed: make(chan struct{}), guests: make(map[string]*listening)}
}

// tell wakes who waits.
func (l *listeners) tell() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wake()
}

// wake is tell with mu held.
func (l *listeners) wake() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// forget begins anew with a guest.
func (l *listeners) forget(role string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.guests[role] = &listening{at: make(map[netip.AddrPort]int)}
}

// hear takes the news of a guest.
func (l *listeners) hear(role string, news Listening) {
	l.mu.Lock()
	defer l.mu.Unlock()
	guest := l.guests[role]
	switch {
	case news.Err != nil:
		guest.failed = &news
	case !news.Over:
		guest.at[news.At]++ // with SO_REUSEADDR, or in another port space, once more
	case guest.at[news.At] == 1:
		delete(guest.at, news.At)
	default:
		guest.at[news.At]--
	}
	l.wake()
}

// of lists where a guest listens, by port, and tells why it could not the last time it tried.
func (l *listeners) of(role string) (at []netip.AddrPort, failed *Listening) {
	l.mu.Lock()
	defer l.mu.Unlock()
	guest := l.guests[role]
	if guest == nil {
		return nil, nil
	}
	return slices.SortedFunc(maps.Keys(guest.at), netip.AddrPort.Compare), guest.failed
}

// signal is closed at the next change.
func (l *listeners) signal() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.changed
}

// Listen has the endpoint listen, and tells those who wait for that.
func (e *Endpoint) Listen(backlog int) error {
	err := e.id.Listen(backlog)
	if err == nil {
		e.Role.testbed.listeners.tell()
	}
	return err
}

// listensAt lists where the role listens.
func (r *Role) listensAt() []netip.AddrPort {
	if r.guest != nil {
		at, _ := r.testbed.listeners.of(r.Name)
		return at
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
// cannot be any more.
func (r *Role) AwaitListener(ctx context.Context, port uint16) (netip.AddrPort, error) {
	t := r.testbed
	wanted := func(at netip.AddrPort) bool { return port == 0 || at.Port() == port }
	for {
		if err := r.alive(); err != nil {
			return netip.AddrPort{}, err
		}
		changed := t.listeners.signal() // before the look, or a change in between is missed
		at := r.listensAt()
		if i := slices.IndexFunc(at, wanted); i >= 0 {
			return at[i], nil
		}
		var over <-chan struct{}
		if r.guest != nil && r.guest.running != nil {
			if !r.guest.Running() {
				return netip.AddrPort{}, r.noListener(port)
			}
			over = r.guest.running.Done()
		}
		var err error
		t.Unlocked(func() { err = r.awaitChange(ctx, changed, over) })
		if err != nil {
			if failure := r.noListener(port); ctx.Err() != nil {
				failure.Absent = true
				return netip.AddrPort{}, failure
			}
			return netip.AddrPort{}, err
		}
	}
}

// awaitChange waits, without the lock, until somebody begins to listen or ceases to, or the guest ends.  A guest acts on
// its own, and its end is seen by no clock.
func (r *Role) awaitChange(ctx context.Context, changed, over <-chan struct{}) (err error) {
	if over == nil {
		return r.testbed.Clock().Await(ctx, changed)
	}
	r.testbed.Clock().Outside(func() {
		select {
		case <-changed:
		case <-over:
		case <-ctx.Done():
			err = ctx.Err()
		}
	})
	return err
}

// noListener says that the role does not listen, and what it does instead.
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
	if r.guest != nil {
		does = append(does, r.guest.insteadOfListening(failure)...)
	} else {
		does = append(does, r.endpointsInstead(failure)...)
	}
	failure.Got = strings.Join(does, "; ")
	return failure
}

// insteadOfListening tells what a guest does that a step waits for.
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
	case !g.Running():
		result := g.ended()
		failure.Hint = result.Reason
		return append(does, fmt.Sprintf("its guest has ended: %s, exit code %d", result.Outcome, result.Exit))
	}
	if name := g.role.testbed.barriers.waits(g.role.Name); name != "" {
		failure.Hint = fmt.Sprintf("a step opens the barrier: {barrier: %s, of: [%s]}", name, g.role.Name)
		return append(does, fmt.Sprintf("its guest waits at barrier %q", name))
	}
	return append(does, "its guest runs")
}

// endpointsInstead tells what endpoints a role has that listen nowhere.
func (r *Role) endpointsInstead(failure *Failure) []string {
	var does []string
	for _, endpoint := range r.living {
		local := endpoint.id.LocalAddr()
		if endpoint.id.Listening() || endpoint.id.PeerAddr().IsValid() || !local.IsValid() {
			continue
		}
		does = append(does, fmt.Sprintf("its endpoint %s is bound to %s", endpoint.Name, local))
		failure.Hint = fmt.Sprintf("{role: %s, listen: {ep: %s}} in a branch beside this one", r.Name, endpoint.Name)
	}
	if len(does) == 0 && len(r.listensAt()) == 0 {
		return []string{"it has made no endpoint that could"}
	}
	return does
}
