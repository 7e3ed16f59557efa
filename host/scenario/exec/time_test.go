package exec

import (
	"testing"
	"time"
)

func TestLoops(t *testing.T) {
	var l loops
	if !l.enter("outer", nil) || l.enter("inner", nil) {
		t.Fatal("only the outermost loop is timed")
	}
	for i := range 101 {
		l.round(instant{time.Duration(i) * time.Microsecond, time.Duration(i) * time.Hour})
	}
	l.leave(true, true)
	if !l.enter("second", nil) {
		t.Fatal("a second loop after the first")
	}
	l.leave(true, true) // without a round it tells nothing
	list := l.done
	if len(list) != 1 {
		t.Fatalf("%+v", list)
	}
	got := list[0]
	if got.Name != "outer" || got.Rounds != 101 || got.Min != 0 || got.Median != 50*time.Microsecond || got.P99 != 99*time.Microsecond || got.Max != 100*time.Microsecond {
		t.Errorf("%+v", got)
	}
	if clock := got.OnClock(); clock.Median != 50*time.Hour || clock.Max != 100*time.Hour {
		t.Errorf("on a virtual clock: %+v", clock)
	}
}

// TestManyRounds keeps memory bounded and the extremes exact.
func TestManyRounds(t *testing.T) {
	var l loops
	l.enter("long", nil)
	for i := range 3 * maxSamples {
		l.round(instant{time.Duration(i + 1), 0})
	}
	if len(l.active.wall.times) != maxSamples {
		t.Errorf("%d samples", len(l.active.wall.times))
	}
	l.leave(true, true)
	got := l.done[0]
	if got.Rounds != 3*maxSamples || got.Min != 1 || got.Max != 3*maxSamples {
		t.Errorf("%+v", got)
	}
	if middle := time.Duration(3 * maxSamples / 2); got.Median < middle*9/10 || got.Median > middle*11/10 {
		t.Errorf("median %d of %d", got.Median, 3*maxSamples)
	}
}
