package guest_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"rdmarun/host/guest"
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
	for name, want := range map[string]string{"trap": "out of bounds memory access", "overflow": "stack overflow"} {
		result := run(t, r, name, guest.Config{})
		var trap *guest.TrapError
		if result.Outcome != guest.Trapped || result.ExitCode != 125 || !errors.As(result.Err, &trap) {
			t.Errorf("%s: %s %d %v", name, result.Outcome, result.ExitCode, result.Err)
			continue
		}
		if trap.Reason != want {
			t.Errorf("%s: the reason is %q", name, trap.Reason)
		}
		if name == "trap" && len(trap.Stack) != 3 {
			t.Errorf("the stack is %q", trap.Stack)
		}
	}
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
	if result.Outcome != guest.Failed || !strings.Contains(result.Err.Error(), "48 MiB") {
		t.Errorf("a guest that begins with more than its limit: %s %v", result.Outcome, result.Err)
	}
}
