package testbed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"rdmarun/host/guest"
	"rdmarun/rdmacore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// guestFunction is a Go function in the place of a guest.
type guestFunction func(ctx context.Context, config guest.Config) guest.Result

// fakeGuests runs programs as guests, by the names of their modules.
type fakeGuests map[string]guestFunction

type fakeGuest struct {
	cancel context.CancelFunc
	over   atomic.Bool
	done   chan struct{}
	result guest.Result
}

func (f fakeGuests) Start(ctx context.Context, code guest.Code, config guest.Config) (RunningGuest, error) {
	program := f[code.Module]
	if program == nil {
		return nil, fmt.Errorf("no module %s", code.Module)
	}
	ctx, cancel := context.WithCancel(ctx)
	started := &fakeGuest{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(started.done)
		started.result = program(context.WithValue(ctx, freeing{}, func() { started.over.Store(true) }), config)
	}()
	return started, nil
}

// freeing is the key of what a program calls when only its objects are still to be freed.
type freeing struct{}

func (g *fakeGuest) Done() <-chan struct{} { return g.done }
func (g *fakeGuest) Over() bool            { return g.over.Load() }
func (g *fakeGuest) Result() guest.Result  { return g.result }
func (g *fakeGuest) Stop(context.Context) guest.Result {
	g.cancel()
	<-g.done
	return g.result
}

func (g *fakeGuest) Where() string { return "in wait_event" }

func (g *fakeGuest) Call(context.Context, string, ...uint64) ([]uint64, error) {
	return []uint64{42}, nil
}

// lines collects output from several goroutines.
type lines struct {
	mu   sync.Mutex
	list []string
}

func (l *lines) add(role, line string, _ time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, role+"|"+line)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.list, " ")
}

// newTestbed makes a testbed on soft with these guests, and a role "driver" without one.
func newTestbed(t *testing.T, out *lines, programs map[string]guestFunction) *Testbed {
	t.Helper()
	provider, err := rdmacore.Open("soft")
	if err != nil {
		t.Fatal(err)
	}
	config := Config{
		Providers: One(provider), Guests: fakeGuests(programs), Output: out.add,
		Roles: []RoleConfig{{Name: "driver", Buffers: []BufferConfig{{Name: "b", Size: 100}}}},
	}
	for name := range programs {
		config.Roles = append(config.Roles, RoleConfig{
			Name: name, Guest: &GuestConfig{Code: guest.Code{Module: name}, Args: []string{"default"}},
		})
	}
	l, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, err := range l.Close() {
			t.Error(err)
		}
		if err := provider.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

func guestOf(t *testing.T, l *Testbed, name string) *Guest {
	t.Helper()
	role, err := l.Role(name)
	if err != nil || role.Guest() == nil {
		t.Fatal(name, err)
	}
	return role.Guest()
}

func TestGuestLife(t *testing.T) {
	out := &lines{}
	l := newTestbed(t, out, map[string]guestFunction{
		"short": func(_ context.Context, start guest.Config) guest.Result {
			io.WriteString(start.Stdout, "args "+strings.Join(start.Args, ",")+"\nno line end")
			return guest.Result{Outcome: guest.Exited, ExitCode: 3}
		},
		"long": func(ctx context.Context, _ guest.Config) guest.Result {
			<-ctx.Done()
			return guest.Result{Outcome: guest.Stopped, ExitCode: 143}
		},
	})
	short, long := guestOf(t, l, "short"), guestOf(t, l, "long")
	if _, err := short.Wait(t.Context()); err == nil {
		t.Error("waited for a guest that was not started")
	}
	if err := short.Start(t.Context(), []string{"a", "b"}, Input{}); err != nil {
		t.Fatal(err)
	}
	if result, err := short.Wait(t.Context()); err != nil || result.Exit != 3 {
		t.Error(result, err)
	}
	if out.String() != "short|args a,b short|no line end" {
		t.Error(out)
	}
	if err := long.Start(t.Context(), nil, Input{}); err != nil {
		t.Fatal(err)
	}
	if err := long.Start(t.Context(), nil, Input{}); err == nil {
		t.Error("started twice")
	}
	if found := l.Leftovers(); len(found) != 1 || !strings.Contains(found[0], "still runs") {
		t.Error(found)
	}
	expired, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := long.Wait(expired); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	if result, err := long.Stop(t.Context()); err != nil || result.Outcome != "stopped" || running(long) {
		t.Error(result, err)
	}
	if found := l.Leftovers(); len(found) != 0 {
		t.Error(found)
	}
}

// TestUnaskedGuest leaves a guest running and one that failed; both are noticed, and freed by Close.
func TestUnaskedGuest(t *testing.T) {
	l := newTestbed(t, &lines{}, map[string]guestFunction{
		"bad": func(context.Context, guest.Config) guest.Result {
			return guest.Result{Outcome: guest.Trapped, ExitCode: 125}
		},
	})
	bad := guestOf(t, l, "bad")
	if err := bad.Start(t.Context(), nil, Input{}); err != nil {
		t.Fatal(err)
	}
	<-bad.running.Done()
	if found := l.Leftovers(); len(found) != 1 || !strings.Contains(found[0], "exit code 125 (trapped)") {
		t.Error(found)
	}
}

// Guests that are stuck are stopped together: each of these ends only after all have got the request.
func TestStuckGuestsAreStoppedAtOnce(t *testing.T) {
	const count = 5
	var stopping sync.WaitGroup
	stopping.Add(count)
	programs := make(map[string]guestFunction)
	for n := range count {
		programs[fmt.Sprint("stuck", n)] = func(ctx context.Context, _ guest.Config) guest.Result {
			<-ctx.Done()
			stopping.Done()
			stopping.Wait()
			return guest.Result{Outcome: guest.Stopped, ExitCode: 143}
		}
	}
	l := newTestbed(t, &lines{}, programs)
	for name := range programs {
		if err := guestOf(t, l, name).Start(t.Context(), nil, Input{}); err != nil {
			t.Fatal(err)
		}
	}
	closed := make(chan []error)
	go func() { closed <- l.Close() }()
	select {
	case errs := <-closed:
		for _, err := range errs {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Fatal("a guest waits for the stop of another one")
	}
}

// reached reports whether a barrier opened before ctx ended.
func reached(ctx context.Context, opened <-chan struct{}) bool {
	select {
	case <-opened:
		return true
	case <-ctx.Done():
		return false
	}
}

func TestBarrier(t *testing.T) {
	meet := func(ctx context.Context, start guest.Config) guest.Result {
		if !reached(ctx, start.Barrier("up")) {
			return guest.Result{Outcome: guest.Failed, ExitCode: 4}
		}
		return guest.Result{Outcome: guest.Exited}
	}
	l := newTestbed(t, &lines{}, map[string]guestFunction{
		"a": meet, "b": meet,
		"absent": func(ctx context.Context, _ guest.Config) guest.Result {
			<-ctx.Done()
			return guest.Result{Outcome: guest.Stopped}
		},
		"gone": func(context.Context, guest.Config) guest.Result {
			return guest.Result{Outcome: guest.Exited, ExitCode: 1}
		},
	})
	for _, name := range []string{"a", "b", "absent", "gone"} {
		if err := guestOf(t, l, name).Start(t.Context(), nil, Input{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Barrier(t.Context(), Gathering{Name: "up", Roles: []string{"driver", "a", "b"}}, nil); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"a", "b"} {
		if result, err := guestOf(t, l, name).Wait(t.Context()); err != nil || result.Exit != 0 {
			t.Error(name, result, err)
		}
	}
	// A guest need not come after a step has seen its end; a name can be used again.
	if err := l.Barrier(t.Context(), Gathering{Name: "up", Roles: []string{"a", "b"}}, nil); err != nil {
		t.Error(err)
	}
	expired, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	var failure *Failure
	if err := l.Barrier(expired, Gathering{Name: "up", Roles: []string{"absent"}}, nil); !errors.As(err, &failure) ||
		!strings.Contains(failure.Expected, "absent") {
		t.Error(err)
	}
	<-guestOf(t, l, "gone").running.Done()
	gathering := Gathering{Name: "up", Roles: []string{"absent", "gone", "driver"}}
	if err := l.Barrier(t.Context(), gathering, nil); !errors.As(err, &failure) ||
		!strings.Contains(failure.What, "the guest of role gone ended before it came") || failure.Ended == nil {
		t.Error("it ended before the step:", err)
	}
	if _, err := guestOf(t, l, "absent").Stop(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestBarrierLosesGuest waits for a guest that ends in place of coming.
func TestBarrierLosesGuest(t *testing.T) {
	release := make(chan struct{})
	l := newTestbed(t, &lines{}, map[string]guestFunction{
		"server": func(context.Context, guest.Config) guest.Result {
			<-release
			return guest.Result{Outcome: guest.Exited, ExitCode: 1, Err: errors.New("port in use")}
		},
	})
	if err := guestOf(t, l, "server").Start(t.Context(), nil, Input{}); err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(5*time.Millisecond, func() { close(release) }) // before or after the step begins to wait
	var failure *Failure
	err := l.Barrier(t.Context(), Gathering{Name: "up", Roles: []string{"server"}}, nil)
	if !errors.As(err, &failure) || failure.Hint != "port in use" {
		t.Error(err)
	}
}

// TestEndingGuests: the end of a guest is a cause of what its peers see while its objects are freed.
func TestEndingGuests(t *testing.T) {
	shown := make(chan struct{})
	l := newTestbed(t, &lines{}, map[string]guestFunction{
		"server": func(ctx context.Context, _ guest.Config) guest.Result {
			ctx.Value(freeing{}).(func())()
			close(shown) // to a peer, of which a step fails
			time.Sleep(5 * time.Millisecond)
			return guest.Result{Outcome: guest.Trapped, ExitCode: 125}
		},
		"other": func(ctx context.Context, _ guest.Config) guest.Result {
			<-ctx.Done()
			return guest.Result{Outcome: guest.Stopped}
		},
	})
	for _, name := range []string{"other", "server"} {
		if err := guestOf(t, l, name).Start(t.Context(), nil, Input{}); err != nil {
			t.Fatal(err)
		}
	}
	<-shown
	l.AwaitEnding(false)
	if ends := l.FailedExecutables(); len(ends) != 1 || ends[0].Role != "server" || ends[0].Outcome != "trapped" {
		t.Error(ends)
	}
}

func TestLookups(t *testing.T) {
	l := newTestbed(t, &lines{}, nil)
	if _, err := l.Role("nobody"); err == nil {
		t.Error("found nobody")
	}
	driver, err := l.Role("driver")
	if err != nil || !driver.Address().IsValid() || driver.PD() == nil || driver.Channel() == nil {
		t.Fatal(err)
	}
	b, err := driver.Buffer("b")
	if err != nil || len(b.Bytes()) != 100 || b.Size() != 100 {
		t.Error(err)
	}
	if view := b.View(); view.Size != 100 || view.Addr == 0 || view.Record()["addr"] != view.Addr {
		t.Errorf("%+v", view)
	}
	for _, err := range []error{
		second(driver.Buffer("c")), second(driver.Endpoint("ep")), second(driver.OnlyEndpoint()),
	} {
		if failure := (*Failure)(nil); !errors.As(err, &failure) {
			t.Error(err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// TestBadRole frees what was made before the role that cannot be.
func TestBadRole(t *testing.T) {
	provider, err := rdmacore.Open("soft")
	if err != nil {
		t.Fatal(err)
	}
	_, err = New(Config{
		Providers: One(provider),
		Roles: []RoleConfig{
			{Name: "a", Buffers: []BufferConfig{{Name: "b", Size: 10}}}, {Name: "c", Device: "mlx5_9"},
		},
	})
	if environment := (*EnvironmentError)(nil); !errors.As(err, &environment) {
		t.Error(err)
	}
	if err := provider.Close(); err != nil {
		t.Error(err)
	}
}

func TestLongLines(t *testing.T) {
	var got []string
	w := &lineWriter{write: func(line string) { got = append(got, line) }}
	io.WriteString(w, "a\r\nb")
	io.WriteString(w, "c\n\n")
	io.WriteString(w, strings.Repeat("x", maxLine+1))
	io.WriteString(w, "y")
	w.flush()
	if len(got) != 5 || got[0] != "a" || got[1] != "bc" || got[2] != "" || len(got[3]) != maxLine+1 ||
		got[4] != "y" {
		t.Errorf("%.20q", got)
	}
}
