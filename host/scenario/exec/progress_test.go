package exec

import (
	"sync"
	"testing"
)

// TestAdvances shows loops in loops, a measurement and many branches, while others ask.
func TestAdvances(t *testing.T) {
	var a advances
	if text := a.String(); text != "" {
		t.Errorf("before all: %q", text)
	}
	outer := a.begin("round", 20000)
	outer.at.Store(8123)
	hidden := a.begin("", 0)
	if text := a.String(); text != "round 8123/20000" {
		t.Errorf("one loop: %q", text)
	}
	a.part(hidden, "SEND 64 B", 6, 20)
	if text := a.String(); text != "round 8123/20000, SEND 64 B (6/20)" {
		t.Errorf("a measurement in it: %q", text)
	}
	a.end(outer)
	if text := a.String(); text != "SEND 64 B (6/20)" {
		t.Errorf("without the loop: %q", text)
	}
	var branches sync.WaitGroup
	for range 8 {
		branches.Go(func() {
			loop := a.begin("round", 100)
			defer a.end(loop)
			for n := range 100 {
				loop.at.Store(int64(n))
				_ = a.String()
			}
		})
	}
	branches.Wait()
	a.end(hidden)
	for range 5 {
		a.begin("pings round", 2).at.Store(1)
	}
	if text := a.String(); text != "pings round 1/2, pings round 1/2, pings round 1/2..." {
		t.Errorf("many: %q", text)
	}
}
