package exec

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"rdmarun/host/scenario/quantity"
)

// advances are how far the running steps of a case are; all branches share them, and other goroutines ask.
type advances struct {
	mu  sync.Mutex
	all []*advance // in the order of their beginnings, so that a loop stands before those in it
}

// advance is how far one step is.
type advance struct {
	what  string // what is counted; "" hides it
	of    int
	at    atomic.Int64
	parts bool // the count is of parts and stands in brackets behind what is done
}

// begin adds a step that does something several times.
func (a *advances) begin(what string, of int) *advance {
	step := &advance{what: what, of: of}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.all = append(a.all, step)
	return step
}

// part says what a step does now, of its parts the one with this number.
func (a *advances) part(step *advance, what string, at, of int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	step.what, step.of, step.parts = what, of, true
	step.at.Store(int64(at))
}

// end takes a step away.
func (a *advances) end(step *advance) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.all = slices.DeleteFunc(a.all, func(each *advance) bool { return each == step })
}

// mostAdvances bounds how many are named: of many branches the first.
const mostAdvances = 3

// String is how far all are, "round 8123/20000, SEND 64 B (6/20)"; "" when nothing is counted.
func (a *advances) String() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	var words []string
	for _, step := range a.all {
		switch at := step.at.Load(); {
		case step.what == "":
			continue
		case len(words) == mostAdvances:
			return strings.Join(words, ", ") + "..."
		case step.parts:
			words = append(words, fmt.Sprintf("%s (%d/%d)", step.what, at, step.of))
		default:
			words = append(words, fmt.Sprintf("%s %d/%d", step.what, at, step.of))
		}
	}
	return strings.Join(words, ", ")
}

// stall is how long a step may take: what the command line says, else the scenario.
func (r *caseRun) stall() time.Duration {
	if r.config.Stall > 0 {
		return r.config.Stall
	}
	return r.config.stretched(r.testCase.Stall)
}

// watch cancels the returned context when no step has ended, as counted by steps, for limit of the wall's time; 0 is
// without limit.
func watch(ctx context.Context, limit time.Duration, steps *atomic.Int64) (context.Context, func()) {
	if limit <= 0 {
		return ctx, func() {}
	}
	watched, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		seen, since := steps.Load(), time.Now()
		tick := time.NewTicker(max(limit/20, time.Millisecond))
		defer tick.Stop()
		for {
			select {
			case <-watched.Done():
				return
			case <-tick.C:
			}
			if now := steps.Load(); now != seen {
				seen, since = now, time.Now()
			} else if time.Since(since) > limit {
				cancel(&overtime{text: "no step has ended for " + quantity.Time(limit) + " (stall_timeout)"})
				return
			}
		}
	}()
	return watched, func() {
		cancel(nil)
		<-done
	}
}
