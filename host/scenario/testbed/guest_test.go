package testbed

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"rdmarun/host/guest"
)

// TestHalfLines: the output of a guest is flushed when it has ended, and at no question before. A line that it has
// begun stays whole, and no other goroutine touches it.
func TestHalfLines(t *testing.T) {
	out, begun, asked := &lines{}, make(chan struct{}), make(chan struct{})
	l := newTestbed(t, out, map[string]guestFunction{
		"talks": func(_ context.Context, start guest.Config) guest.Result {
			io.WriteString(start.Stdout, "half ")
			close(begun)
			for stop := false; !stop; { // writes meanwhile, which the race detector sees
				select {
				case <-asked:
					stop = true
				default:
					io.WriteString(start.Stderr, "")
				}
			}
			io.WriteString(start.Stdout, "line\nno end")
			return guest.Result{Outcome: guest.Exited, ExitCode: 3}
		},
	})
	talks := guestOf(t, l, "talks")
	if err := talks.Start(t.Context(), nil, Input{}); err != nil {
		t.Fatal(err)
	}
	<-begun
	expired, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
	defer cancel()
	<-expired.Done()
	for what, ask := range map[string]func() bool{
		"Start":              func() bool { return talks.Start(t.Context(), nil, Input{}) != nil },
		"FailedExecutables":  func() bool { return l.FailedExecutables() == nil },
		"RunningExecutables": func() bool { return len(l.RunningExecutables()) == 1 },
		"Leftovers":          func() bool { return len(l.Leftovers()) == 1 },
		"Wait": func() bool {
			_, err := talks.Wait(expired)
			return errors.Is(err, context.DeadlineExceeded)
		},
	} {
		if !ask() || out.String() != "" {
			t.Errorf("%s of a guest that runs: %q is printed", what, out)
		}
	}
	close(asked)
	if end, err := talks.Wait(t.Context()); err != nil || end.Exit != 3 {
		t.Error(end, err)
	}
	if out.String() != "talks|half line talks|no end" {
		t.Errorf("%q", out)
	}
}
