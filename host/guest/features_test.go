package guest_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"rdmarun/host/guest"
)

// A loop of tail calls takes no stack, and comes to its end within its limit of time.
func TestTailCalls(t *testing.T) {
	r := newRuntime(t, guest.InterruptMetered)
	if result := run(t, r, "tail_calls", guest.Config{}); result.Outcome != guest.Exited || result.ExitCode != 7 {
		t.Errorf("%+v", result)
	}
	result := run(t, r, "tail_calls", guest.Config{
		Args: []string{"for ever"}, Limits: guest.Limits{Time: 50 * time.Millisecond},
	})
	if result.Outcome != guest.TimedOut {
		t.Errorf("%+v", result)
	}
}

func TestExtendedConstantExpressions(t *testing.T) {
	if result := run(
		t, newRuntime(t, guest.InterruptMetered), "extended_const", guest.Config{},
	); result.ExitCode != 42 {
		t.Errorf("%+v", result)
	}
}

func TestUsedFeatures(t *testing.T) {
	for name, want := range map[string]string{
		"tail_calls": "tail-call", "extended_const": "extended-const", "spin": "",
	} {
		facts, err := guest.Inspect("testdata/" + name + ".wasm")
		if got := strings.Join(facts.Features.Names(), " "); err != nil || got != want {
			t.Errorf("%s uses %q, not %q: %v", name, got, want, err)
		}
	}
}

// module is one with a function of this body, and whatever else.
func module(body string, sections ...string) []byte {
	code := "\x01" + string(rune(len(body)+2)) + "\x00" + body + "\x0b"
	all := append([]string{"\x01\x04\x01\x60\x00\x00", "\x03\x02\x01\x00"}, sections...)
	all = append(all, "\x07\x0a\x01\x06_start\x00\x00", "\x0a"+string(rune(len(code)))+code)
	return []byte("\x00asm\x01\x00\x00\x00" + strings.Join(all, ""))
}

// What guests cannot have is named, with a way to do without it.
func TestFeaturesThatGuestsCannotHave(t *testing.T) {
	r := newRuntime(t, guest.InterruptMetered)
	for name, c := range map[string]struct {
		module  []byte
		feature string
	}{
		"throw":        {module("\x08\x00"), "exception handling"},
		"try_table":    {module("\x1f\x40\x00\x0b"), "exception handling"},
		"legacy try":   {module("\x06\x40\x0b"), "exception handling"},
		"a tag":        {module("\x01", "\x0d\x03\x01\x00\x00"), "exception handling"},
		"call_ref":     {module("\x14\x00"), "typed function references"},
		"struct.new":   {module("\xfb\x00\x00"), "garbage-collected objects"},
		"two memories": {module("\x01", "\x05\x05\x02\x00\x01\x00\x01"), "several memories"},
		"another one":  {module("\x3f\x01\x1a", "\x05\x03\x01\x00\x01"), "several memories"},
		"64 bits":      {module("\x01", "\x05\x03\x01\x04\x01"), "memory64"},
		"relaxed dot":  {module("\xfd\x92\x02"), "relaxed vector"},
		"an array type": {
			slices.Concat([]byte("\x00asm\x01\x00\x00\x00\x01\x04\x01\x5e\x7f\x00")), "garbage-collected objects",
		},
	} {
		_, err := r.CompileBytes(testContext(t), "guest", c.module)
		if err == nil || !strings.Contains(err.Error(), "it uses a feature of WebAssembly that guests cannot have: ") ||
			!strings.Contains(err.Error(), c.feature) || strings.Contains(err.Error(), "not a WebAssembly module") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
