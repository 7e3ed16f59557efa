package guest_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"rdmarun/host/guest"
)

// TestCall calls functions of a guest that waits at a barrier.
func TestCall(t *testing.T) {
	r, p := newRuntime(t, guest.InterruptMetered), newProvider(t)
	module := compileWAT(t, r, "calls")
	open := make(chan struct{})
	start := func() *guest.Guest {
		g, err := r.Start(t.Context(), module, guest.Config{
			Provider: p, Barrier: func(string) <-chan struct{} { return open },
		})
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	g := start()
	for name, test := range map[string]struct {
		function  string
		arguments []uint64
		result    uint64
		wrong     string
	}{
		"two numbers": {"add", []uint64{40, 2}, 42, ""},
		"a wide one":  {"wide", []uint64{1 << 20}, 1 << 40, ""},
		"a stranger":  {"subtract", nil, 0, "exports no function"},
		"too few":     {"add", []uint64{1}, 0, "takes 2 arguments"},
		"without any": {"nothing", nil, 0, ""},
	} {
		results, err := g.Call(t.Context(), test.function, test.arguments...)
		switch {
		case test.wrong != "":
			if err == nil || !strings.Contains(err.Error(), test.wrong) {
				t.Errorf("%s: %v", name, err)
			}
		case err != nil, len(results) > 0 && results[0] != test.result:
			t.Errorf("%s: %v %v", name, results, err)
		}
	}
	trapping := start()
	var trap *guest.TrapError
	if _, err := trapping.Call(t.Context(), "trap"); !errors.As(err, &trap) {
		t.Errorf("a trap: %v", err)
	}
	if result, err := trapping.Wait(t.Context()); err != nil || result.Outcome != guest.Trapped {
		t.Errorf("a guest with a function that trapped: %v %+v", err, result)
	}
	close(open)
	if result, err := g.Wait(t.Context()); err != nil || result.ExitCode != 3 {
		t.Errorf("%v %+v", err, result)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := g.Call(ctx, "add", 1, 2); err == nil || !strings.Contains(err.Error(), "has ended") {
		t.Errorf("a call of one that has ended: %v", err)
	}
}
