package guest_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"rdmarun/host/guest"
)

// As many guests spin as there are processors, and one more.  Goroutines, timers and the garbage collector still
// get their turn, and the guests end when they have to.  Unmetered, the first collection would never return.
func TestSpinningGuestsDoNotStopTheProcess(t *testing.T) {
	for _, processors := range []int{1, 2} {
		t.Run(fmt.Sprintf("%d processors", processors), func(t *testing.T) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(processors))
			r, p := newRuntime(t, guest.InterruptMetered), newProvider(t)
			ctx, cancel := context.WithCancel(testContext(t))
			var guests []*guest.Guest
			for range processors + 1 {
				guest, err := r.Start(ctx, compileWAT(t, r, "spin"), guest.Config{Provider: p, Limits: guest.Limits{Time: guest.NoTimeLimit}})
				if err != nil {
					t.Fatal(err)
				}
				guests = append(guests, guest)
			}
			for range 5 {
				time.Sleep(time.Millisecond)
				runtime.GC()
			}
			limited := run(t, r, "spin", guest.Config{Limits: guest.Limits{Time: 20 * time.Millisecond}})
			if limited.Outcome != guest.TimedOut {
				t.Errorf("beside them, a guest with a time limit %s", limited.Outcome)
			}
			cancel()
			for _, each := range guests {
				if result, err := each.Wait(testContext(t)); err != nil || result.Outcome != guest.Stopped {
					t.Errorf("%v: %s %v", err, result.Outcome, result.Err)
				}
			}
		})
	}
}
