package guest_test

import (
	"runtime"
	"testing"

	"rdmarun/host/guest"
)

// A guest that computes lets others run each time that it leaves compiled code, and not only when the scheduler
// preempts it. On one processor, a goroutine that wants to run does so for each two of these times.
func TestGuestsThatComputeYield(t *testing.T) {
	const periods = 1000 // that count.wat computes
	r := newRuntime(t, guest.InterruptMetered)
	module, provider := compileWAT(t, r, "count"), newProvider(t)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	computing, err := r.Start(testContext(t), module, guest.Config{Provider: provider})
	if err != nil {
		t.Fatal(err)
	}
	turns := 0
	for ended := false; !ended; turns++ {
		select {
		case <-computing.Done():
			ended = true
		default:
			runtime.Gosched()
		}
	}
	if result := computing.Result(); !result.OK() || turns < periods/2 {
		t.Errorf("%d turns in %d periods: %v", turns, periods, result.Err)
	}
}

// The rejected page is beyond the guest's maximum.
func TestMemoryGrowsToItsMaximum(t *testing.T) {
	result := run(t, newRuntime(t, guest.InterruptMetered), "maximum", guest.Config{})
	if result.Outcome != guest.Exited || result.ExitCode != 3 {
		t.Errorf("%s %d %v, and 3 pages is its maximum", result.Outcome, result.ExitCode, result.Err)
	}
}
