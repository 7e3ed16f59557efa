package progress

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestWatch: without an ended step for longer than the limit the context ends, and not before. A step that ends, and
// another process that watches, restart the time.
func TestWatch(t *testing.T) {
	const limit = 10 * time.Second
	stalled := errors.New("no step has ended")
	for name, test := range map[string]struct {
		act  func(steps, away *atomic.Int64)
		want time.Duration // from the start to the end of the context, within a tick
	}{
		"nothing ends": {func(_, _ *atomic.Int64) {}, limit},
		"a step ends late": {func(steps, _ *atomic.Int64) {
			time.Sleep(9 * time.Second)
			steps.Add(1)
		}, 19 * time.Second},
		"steps end": {func(steps, _ *atomic.Int64) {
			for range 10 {
				time.Sleep(limit - time.Second)
				steps.Add(1)
			}
		}, 100 * time.Second},
		"another process watches": {func(_, away *atomic.Int64) {
			away.Add(1)
			time.Sleep(time.Hour)
			away.Add(-1)
		}, time.Hour + limit},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var steps, away atomic.Int64
				began := time.Now()
				ctx, stop := Watch(t.Context(), limit, &steps, &away, stalled)
				defer stop()
				test.act(&steps, &away)
				if ctx.Err() != nil {
					t.Fatal("it has ended before its time")
				}
				<-ctx.Done()
				if took := time.Since(began); took < test.want || took > test.want+limit/5 {
					t.Errorf("it ends after %s, not %s", took, test.want)
				}
				if context.Cause(ctx) != stalled {
					t.Error(context.Cause(ctx))
				}
			})
		})
	}
}

// TestWatchEnds: stop ends the watch and its context, with no cause of a stall; without a limit there is no watch.
func TestWatchEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var steps, away atomic.Int64
		stalled := errors.New("no step has ended")
		ctx, stop := Watch(t.Context(), time.Second, &steps, &away, stalled)
		stop()
		if context.Cause(ctx) != context.Canceled {
			t.Error(context.Cause(ctx))
		}
		same, stop := Watch(t.Context(), 0, &steps, &away, stalled)
		time.Sleep(24 * time.Hour)
		if stop(); same != t.Context() || same.Err() != nil {
			t.Error("a watch without a limit has ended")
		}
		outer, cancel := context.WithCancelCause(t.Context())
		why := errors.New("the case is over")
		ctx, stop = Watch(outer, time.Hour, &steps, &away, stalled)
		cancel(why)
		if stop(); context.Cause(ctx) != why {
			t.Error(context.Cause(ctx))
		}
	})
}

// TestRounds: rounds are counted from 1 while they run, until one fails or all have run.
func TestRounds(t *testing.T) {
	failed := errors.New("round 3 has failed")
	for name, test := range map[string]struct {
		of, fails, ran int
	}{
		"all": {5, -1, 5}, "none": {0, -1, 0}, "a failure": {5, 2, 3}, "without an end": {Unknown, 2, 3},
	} {
		step, ran := (&Steps{}).Begin("round", test.of), 0
		err := step.Rounds(func(i int) error {
			if ran++; step.At.Load() != int64(i+1) || ran != i+1 {
				t.Errorf("%s: round %d is number %d", name, i, step.At.Load())
			}
			if i == test.fails {
				return failed
			}
			return nil
		})
		if (err == failed) != (test.fails >= 0) || ran != test.ran {
			t.Errorf("%s: %d rounds, %v", name, ran, err)
		}
	}
	var all Steps
	all.Begin("loop", Unknown).At.Store(7)
	if text := all.String(); text != "loop 7" {
		t.Errorf("without a count: %q", text)
	}
}
