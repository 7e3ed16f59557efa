package progress

import (
	"sync"
	"testing"
)

// TestSteps shows loops in loops, a measurement and many branches, while others ask.
func TestSteps(t *testing.T) {
	var a Steps
	if text := a.String(); text != "" {
		t.Errorf("before all: %q", text)
	}
	outer := a.Begin("round", 20000)
	outer.At.Store(8123)
	hidden := a.Begin("", 0)
	if text := a.String(); text != "round 8123/20000" {
		t.Errorf("one loop: %q", text)
	}
	a.Part(hidden, "SEND 64B", 6, 20)
	if text := a.String(); text != "round 8123/20000, SEND 64B (6/20)" {
		t.Errorf("a measurement in it: %q", text)
	}
	a.End(outer)
	if text := a.String(); text != "SEND 64B (6/20)" {
		t.Errorf("without the loop: %q", text)
	}
	var branches sync.WaitGroup
	for range 8 {
		branches.Go(func() {
			loop := a.Begin("round", 100)
			defer a.End(loop)
			for n := range 100 {
				loop.At.Store(int64(n))
				_ = a.String()
			}
		})
	}
	branches.Wait()
	a.End(hidden)
	for range 5 {
		a.Begin("pings round", 2).At.Store(1)
	}
	if text := a.String(); text != "pings round 1/2, pings round 1/2, pings round 1/2..." {
		t.Errorf("many: %q", text)
	}
}
