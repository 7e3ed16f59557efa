package host_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"rdmarun/host"
)

// As many guests spin as there are processors, and one more.  Goroutines, timers and the garbage collector still
// get their turn, and the guests end when they have to.  Unmetered, the first collection would never return.
func TestSpinningGuestsDoNotStopTheProcess(t *testing.T) {
	for _, processors := range []int{1, 2} {
		t.Run(fmt.Sprintf("%d processors", processors), func(t *testing.T) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(processors))
			r, p := newRuntime(t, host.InterruptMetered), newProvider(t)
			ctx, cancel := context.WithCancel(testContext(t))
			var guests []*host.Guest
			for range processors + 1 {
				guest, err := r.Start(ctx, compileWAT(t, r, "spin"), host.GuestConfig{Provider: p, Limits: host.Limits{Time: host.NoTimeLimit}})
				if err != nil {
					t.Fatal(err)
				}
				guests = append(guests, guest)
			}
			for range 5 {
				time.Sleep(time.Millisecond)
				runtime.GC()
			}
			limited := run(t, r, "spin", host.GuestConfig{Limits: host.Limits{Time: 20 * time.Millisecond}})
			if limited.Outcome != host.TimedOut {
				t.Errorf("beside them, a guest with a time limit %s", limited.Outcome)
			}
			cancel()
			for _, guest := range guests {
				if result, err := guest.Wait(testContext(t)); err != nil || result.Outcome != host.Stopped {
					t.Errorf("%v: %s %v", err, result.Outcome, result.Err)
				}
			}
		})
	}
}
