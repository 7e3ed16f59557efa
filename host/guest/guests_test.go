package guest_test

import (
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"rdmarun/host/guest"
)

const faulty = "./testdata/faulty"

func TestGoGuests(t *testing.T) {
	r, p := newRuntime(t, guest.InterruptMetered), newProvider(t)
	forever, hold := io.Pipe()
	defer hold.Close()
	short := guest.Limits{Time: 300 * time.Millisecond}
	for name, c := range map[string]struct {
		config  guest.Config
		outcome guest.Outcome
		code    int
		prints  string
	}{
		"panic":         {guest.Config{Args: []string{"panic"}}, guest.Exited, 2, "on purpose"},
		"out of memory": {guest.Config{Args: []string{"oom"}, Limits: guest.Limits{Memory: 16 << 20}}, guest.Exited, 2, "out of memory"},
		"sleeps on":     {guest.Config{Args: []string{"sleep"}, Limits: short}, guest.TimedOut, 124, ""},
		"waits on":      {guest.Config{Args: []string{"wait"}, Limits: short}, guest.TimedOut, 124, ""},
		"reads on":      {guest.Config{Args: []string{"cat"}, Stdin: forever, Limits: short}, guest.TimedOut, 124, ""},
		"reads":         {guest.Config{Args: []string{"cat"}, Stdin: strings.NewReader("one\ntwo\n")}, guest.Exited, 0, "one\ntwo"},
		"no input":      {guest.Config{Args: []string{"cat"}}, guest.Exited, 0, ""},
		"logs":          {guest.Config{Args: []string{"log"}, Name: "logger"}, guest.Exited, 0, "logger: WARN: a line"},
		"environment": {guest.Config{Args: []string{"environ", "x"}, Name: "me", Env: map[string]string{"A": "b"}},
			guest.Exited, 0, "[A=b] [me environ x]"},
		"clock":        {guest.Config{Args: []string{"clock"}}, guest.Exited, 0, ""},
		"bad pointers": {guest.Config{Args: []string{"abi", "0x0"}}, guest.Exited, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var out output
			c.config.Provider, c.config.Stdout, c.config.Stderr = p, &out, &out
			result := r.Run(testContext(t), compileGo(t, r, faulty), c.config)
			if result.Outcome != c.outcome || result.ExitCode != c.code {
				t.Errorf("%s %d: %v\n%s", result.Outcome, result.ExitCode, result.Err, &out)
			}
			if !strings.Contains(out.String(), c.prints) {
				t.Errorf("printed\n%s", &out)
			}
		})
	}
}

// A handle means nothing to another guest, even while the one it was given to has it.
func TestForeignHandles(t *testing.T) {
	r, p := newRuntime(t, guest.InterruptMetered), newProvider(t)
	handle := "0"
	for range 3 {
		var out output
		result := r.Run(testContext(t), compileGo(t, r, faulty), guest.Config{
			Provider: p, Args: []string{"abi", handle}, Stdout: &out,
		})
		handle = strings.TrimSpace(out.String())
		if !result.OK() {
			t.Fatalf("%v: %s", result.Err, handle)
		}
		if result.Freed.String() != "1 event channel, 1 CQ" {
			t.Errorf("freed %s", result.Freed)
		}
	}
}

func TestLogger(t *testing.T) {
	r, p := newRuntime(t, guest.InterruptMetered), newProvider(t)
	var out output
	result := r.Run(testContext(t), compileGo(t, r, faulty), guest.Config{
		Name: "me", Provider: p, Args: []string{"log"}, Logger: slog.New(slog.NewTextHandler(&out, nil)),
	})
	if !result.OK() || !strings.Contains(out.String(), `level=WARN msg="a line" guest=me`) {
		t.Errorf("%v\n%s", result.Err, &out)
	}
}

func TestStop(t *testing.T) {
	r, p := newRuntime(t, guest.InterruptMetered), newProvider(t)
	for name, c := range map[string]struct {
		outcome guest.Outcome
		code    int
	}{"obey": {guest.Exited, 0}, "ignore": {guest.Stopped, 143}} {
		var out output
		guest, err := r.Start(testContext(t), compileGo(t, r, faulty), guest.Config{
			Provider: p, Args: []string{name}, Stdout: &out,
		})
		if err != nil {
			t.Fatal(err)
		}
		result := guest.Stop(testContext(t))
		if result.Outcome != c.outcome || result.ExitCode != c.code {
			t.Errorf("%s: %s %d %v\n%s", name, result.Outcome, result.ExitCode, result.Err, &out)
		}
		if again := guest.Stop(testContext(t)); again.Outcome != result.Outcome {
			t.Errorf("%s: stopped again, it has %s", name, again.Outcome)
		}
	}
}
