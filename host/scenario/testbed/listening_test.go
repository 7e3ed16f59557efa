package testbed

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"rdmarun/host/guest"
)

// TestGuestsListen waits for guests that listen, do something else, or are not there.
func TestGuestsListen(t *testing.T) {
	at := netip.MustParseAddrPort("0.0.0.0:7471")
	going, moved := make(chan struct{}), make(chan struct{})
	stay := func(ctx context.Context) guest.Result {
		<-ctx.Done()
		return guest.Result{Outcome: guest.Stopped}
	}
	l := newTestbed(t, &lines{}, map[string]guestFunction{
		"late": func(ctx context.Context, start guest.Config) guest.Result {
			<-going
			start.Listening(guest.Listening{At: at})
			return stay(ctx)
		},
		"moves": func(ctx context.Context, start guest.Config) guest.Result {
			other := netip.AddrPortFrom(at.Addr(), 7472)
			for _, news := range []guest.Listening{
				{At: at}, {At: at}, {At: other}, {At: at, Over: true}, {At: other, Over: true},
			} {
				start.Listening(news)
			}
			close(moved)
			return stay(ctx)
		},
		"refused": func(_ context.Context, start guest.Config) guest.Result {
			start.Listening(guest.Listening{At: at, Err: syscall.EADDRINUSE})
			return guest.Result{Outcome: guest.Exited, ExitCode: 1, Err: errors.New("its reason")}
		},
		"meets": func(ctx context.Context, start guest.Config) guest.Result {
			if !reached(ctx, start.Barrier("up")) {
				return guest.Result{Outcome: guest.Stopped}
			}
			return guest.Result{Outcome: guest.Exited}
		},
		"absent": nil,
	})
	for _, name := range []string{"late", "moves", "refused", "meets"} {
		if err := guestOf(t, l, name).Start(t.Context(), nil, Input{}); err != nil {
			t.Fatal(err)
		}
	}
	<-moved
	time.AfterFunc(5*time.Millisecond, func() { close(going) })
	for _, name := range []string{"late", "moves"} {
		role, _ := l.Role(name)
		if got, err := role.AwaitListener(t.Context(), 7471); err != nil || got != at {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
	for _, each := range []struct {
		role   string
		port   uint16
		absent bool
		says   []string
	}{
		{"moves", 7472, true, []string{"it listens on 0.0.0.0:7471", "its guest runs"}},
		{
			"refused", 0, false,
			[]string{"could not on 0.0.0.0:7471: address already in use", "exited, exit code 1", "its reason"},
		},
		{"meets", 0, true, []string{`waits at barrier "up"`, "barrier: up"}},
		{"absent", 7471, true, []string{"was not started", "guest: start"}},
		{"driver", 0, true, []string{"no endpoint"}},
	} {
		role, _ := l.Role(each.role)
		limited, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		if !each.absent { // the end of a guest is seen before the time is over
			cancel()
			limited, cancel = context.WithTimeout(t.Context(), time.Minute)
		}
		var failure *Failure
		_, err := role.AwaitListener(limited, each.port)
		cancel()
		if !errors.As(err, &failure) || failure.Absent != each.absent {
			t.Errorf("%s: %v", each.role, err)
			continue
		}
		for _, word := range each.says {
			if !strings.Contains(failure.Got+failure.Hint, word) {
				t.Errorf("%s: %q is missing in %q, %q", each.role, word, failure.Got, failure.Hint)
			}
		}
	}
	for _, name := range []string{"late", "moves", "meets"} {
		if _, err := guestOf(t, l, name).Stop(t.Context()); err != nil {
			t.Error(err)
		}
	}
}
