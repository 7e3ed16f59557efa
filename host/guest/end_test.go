package guest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"rdmarun/host/guest"
	"rdmarun/rdmacore"
)

// run runs a guest of testdata.
func run(t testing.TB, r *guest.Runtime, name string, config guest.Config) guest.Result {
	t.Helper()
	config.Provider = newProvider(t)
	return r.Run(testContext(t), compileWAT(t, r, name), config)
}

func TestExitCodes(t *testing.T) {
	r := newRuntime(t, guest.InterruptMetered)
	for arg, want := range map[string]int{"\x01": 1, "\x7c": 124, "\x7f": 127} {
		result := run(t, r, "exit", guest.Config{Args: []string{arg}})
		if result.Outcome != guest.Exited || result.ExitCode != want || result.Err == nil {
			t.Errorf("exit(%d): %s %d %v", want, result.Outcome, result.ExitCode, result.Err)
		}
	}
	if result := run(t, r, "exit", guest.Config{Args: []string{""}}); !result.OK() {
		t.Errorf("exit(0): %+v", result)
	}
	if result := run(t, r, "exit_large", guest.Config{}); result.ExitCode != 255 {
		t.Errorf("exit(100000): %+v", result)
	}
}

func TestTraps(t *testing.T) {
	r := newRuntime(t, guest.InterruptMetered)
	for name, want := range map[string]string{
		"trap":     "out of bounds memory access",
		"overflow": "stack overflow: its calls nest deeper than a stack of 16MiB",
	} {
		result := run(t, r, name, guest.Config{})
		var trap *guest.TrapError
		if result.Outcome != guest.Trapped || result.ExitCode != 125 || !errors.As(result.Err, &trap) {
			t.Errorf("%s: %s %d %v", name, result.Outcome, result.ExitCode, result.Err)
			continue
		}
		if trap.Reason() != want {
			t.Errorf("%s: the reason is %q", name, trap.Reason())
		}
		if name == "trap" && len(trap.Stack) != 3 {
			t.Errorf("the stack is %q", trap.Stack)
		}
	}
}

// A guest that calls itself without end takes a stack of its memory limit, or of 16 MiB, and no more.
func TestStackIsBounded(t *testing.T) {
	r := newRuntime(t, guest.InterruptMetered)
	for limit, want := range map[int64]string{64 << 10: "64KiB", 1 << 20: "1MiB", 1 << 30: "16MiB"} {
		_ = peakMemory(t) // it begins anew
		before := peakMemory(t)
		result := run(t, r, "overflow", guest.Config{Limits: guest.Limits{Memory: limit}})
		if grown := peakMemory(t) - before; grown > 32<<20 {
			t.Errorf("limit %d: the process has grown by %dMiB", limit, grown>>20)
		}
		if result.Outcome != guest.Trapped ||
			!strings.Contains(result.Err.Error(), "its calls nest deeper than a stack of "+want+"\n  in $0(i32) i32") {
			t.Errorf("limit %d: %s %v", limit, result.Outcome, result.Err)
		}
	}
}

// peakMemory is the most that this process has had since this was called last.
func peakMemory(t *testing.T) (peak int64) {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err == nil {
		_, rest, _ := strings.Cut(string(status), "\nVmHWM:")
		_, err = fmt.Sscan(rest, &peak)
	}
	if err == nil {
		err = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) // proc(5): the peak begins anew
	}
	if err != nil {
		t.Fatal(err)
	}
	return peak << 10
}

func TestTimeLimit(t *testing.T) {
	for _, mode := range []guest.InterruptMode{guest.InterruptMetered, guest.InterruptContext} {
		r := newRuntime(t, mode)
		for _, name := range []string{"spin", "spin_no_memory", "spin_at_start", "recurse"} {
			if mode == guest.InterruptContext && name != "spin" {
				continue // wazero looks at contexts in loops only, and not at all in start functions
			}
			result := run(t, r, name, guest.Config{Limits: guest.Limits{Time: 50 * time.Millisecond}})
			if result.Outcome != guest.TimedOut || result.ExitCode != 124 ||
				!strings.Contains(result.Err.Error(), "50ms") {
				t.Errorf("%s: %s %d %v", name, result.Outcome, result.ExitCode, result.Err)
			}
			if result.Duration < 25*time.Millisecond {
				t.Errorf("%s: ended after %s already", name, result.Duration)
			}
		}
	}
}

func TestContextEndsGuest(t *testing.T) {
	r := newRuntime(t, guest.InterruptMetered)
	ctx, cancel := context.WithCancel(testContext(t))
	running, err := r.Start(ctx, compileWAT(t, r, "spin"), guest.Config{Provider: newProvider(t)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := running.Wait(canceled()); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	cancel()
	result, err := running.Wait(testContext(t))
	if err != nil || result.Outcome != guest.Stopped || result.ExitCode != 143 {
		t.Errorf("%v: %s %d %v", err, result.Outcome, result.ExitCode, result.Err)
	}
}

func canceled() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

func TestMemoryLimit(t *testing.T) {
	r := newRuntime(t, guest.InterruptMetered)
	for limit, pages := range map[int64]int{2 << 20: 32, 1 << 20: 16, 1<<20 + 100: 16} {
		result := run(t, r, "grow", guest.Config{Limits: guest.Limits{Memory: limit}})
		if result.Outcome != guest.Exited || result.ExitCode != pages {
			t.Errorf("limit %d: %d pages, %v", limit, result.ExitCode, result.Err)
		}
	}
	result := run(t, r, "large", guest.Config{Limits: guest.Limits{Memory: 16 << 20}})
	if result.Outcome != guest.Failed || !strings.Contains(result.Err.Error(), "48MiB") {
		t.Errorf("a guest that begins with more than its limit: %s %v", result.Outcome, result.Err)
	}
}

// TestEveryExitCode lets guests exit with every number that a process can have, and with those it cannot.  The host
// ends guests by an exit with 0xffffffff or 0xefffffff, which a guest may say itself: main returns -1.
func TestEveryExitCode(t *testing.T) {
	provider, err := rdmacore.Open("soft")
	if err != nil {
		t.Fatal(err)
	}
	defer provider.Close()
	wants := map[int32]int{256: 255, 100_000: 255, -1: 255, -2: 255, -128: 255, -0x1000_0001: 255, -0x8000_0000: 255}
	for code := range int32(256) {
		wants[code] = int(code)
	}
	for _, mode := range []guest.InterruptMode{guest.InterruptMetered, guest.InterruptContext} {
		r := newRuntime(t, mode)
		for code, want := range wants {
			module, err := r.CompileBytes(t.Context(), fmt.Sprint(code), exitingModule(code))
			if err != nil {
				t.Fatal(err)
			}
			result := r.Run(t.Context(), module, guest.Config{Provider: provider})
			if result.Outcome != guest.Exited || result.ExitCode != want || (result.Err == nil) != (want == 0) {
				t.Errorf("exit(%d): %s with %d (%v), want %d", code, result.Outcome, result.ExitCode, result.Err, want)
			}
		}
	}
}

// exitingModule is (module (func (export "_start") (call $proc_exit (i32.const code)))).
func exitingModule(code int32) []byte {
	module := []byte("\x00asm\x01\x00\x00\x00")
	section := func(id byte, content ...byte) { module = append(append(module, id, byte(len(content))), content...) }
	section(1, 2, 0x60, 1, 0x7f, 0, 0x60, 0, 0) // types (i32), ()
	section(2, append([]byte("\x01\x16wasi_snapshot_preview1\x09proc_exit"), 0, 0)...)
	section(3, 1, 1)                                                        // a function of the second type
	section(5, 1, 0, 1)                                                     // a page of memory
	section(7, append([]byte("\x02\x06_start\x00\x01\x06memory"), 2, 0)...) // exports
	number := []byte{0x41}                                                  // i32.const, signed LEB128
	for {
		digit := byte(code & 0x7f)
		code >>= 7
		if code == 0 && digit&0x40 == 0 || code == -1 && digit&0x40 != 0 {
			number = append(number, digit)
			break
		}
		number = append(number, digit|0x80)
	}
	body := append(append([]byte{0}, number...), 0x10, 0, 0x0b) // no locals, call 0, end
	section(10, append([]byte{1, byte(len(body))}, body...)...)
	return module
}

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
				guest, err := r.Start(ctx, compileWAT(t, r, "spin"), guest.Config{
					Provider: p, Limits: guest.Limits{Time: guest.NoTimeLimit},
				})
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
				t.Errorf("in addition, a guest with a time limit %s", limited.Outcome)
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
