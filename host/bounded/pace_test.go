package bounded

import (
	"testing"
	"time"
)

// TestPace: a burst passes at once, what follows at its rate, and a pause makes room for the next burst.
func TestPace(t *testing.T) {
	p := &Pace{Burst: 1000, PerSecond: 100}
	now := time.Unix(1e9, 0)
	for i, step := range []struct {
		bytes int
		after time.Duration
		want  time.Duration
	}{
		{600, 0, 0}, {400, 0, 0}, {50, 0, 500 * time.Millisecond}, {0, 500 * time.Millisecond, 0},
		{100, 0, time.Second},
		{1000, time.Minute, 0}, {1, 0, 10 * time.Millisecond}, {5000, time.Hour, 40 * time.Second},
	} {
		now = now.Add(step.after)
		if got := p.wait(step.bytes, now); got != step.want {
			t.Errorf("%d: %s, not %s", i, got, step.want)
		}
	}
	if n, err := (&Pace{Burst: 10, PerSecond: 1}).Write([]byte("text")); n != 4 || err != nil {
		t.Error(n, err)
	}
}
