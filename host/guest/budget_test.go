package guest_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"syscall"
	"testing"
	"time"

	"rdmarun/host/guest"
	"rdmarun/host/guest/wasm"
)

// A guest's memory, its tables and its objects are of one budget.
func TestMemoryIsOfOneBudget(t *testing.T) {
	r := newRuntime(t, guest.InterruptMetered)
	for name, want := range map[string]int{"tables": 1, "objects": int(syscall.ENOMEM), "grow": 128} {
		result := run(t, r, name, guest.Config{Limits: guest.Limits{Memory: 8 << 20}})
		if result.Outcome != guest.Exited || result.ExitCode != want {
			t.Errorf("%s: %s %d %v, not %d", name, result.Outcome, result.ExitCode, result.Err, want)
		}
	}
	result := run(t, r, "table_large", guest.Config{})
	if result.Outcome != guest.Failed || !strings.Contains(result.Err.Error(), "limit") {
		t.Errorf("a table of 800 MB: %s %v", result.Outcome, result.Err)
	}
}

// Whatever a guest is at, it ends when its time is over.
func TestEveryGuestEnds(t *testing.T) {
	r := newRuntime(t, guest.InterruptMetered)
	for _, name := range []string{"fill", "random", "buffers", "host_calls"} {
		t.Run(name, func(t *testing.T) {
			result := run(t, r, name, guest.Config{
				Stdout: io.Discard, Limits: guest.Limits{Time: 300 * time.Millisecond},
			})
			if result.Outcome != guest.TimedOut {
				t.Errorf("%s %d %v", result.Outcome, result.ExitCode, result.Err)
			}
			// Some hundred times as long as it takes where nothing else runs, and a hundredth of what it took.
			if result.Duration > 20*time.Second {
				t.Errorf("it took %s", result.Duration)
			}
		})
	}
}

func TestNobodyWaitsForTooMuchAtOnce(t *testing.T) {
	const invalid = 28 // of WASI
	result := run(t, newRuntime(t, guest.InterruptMetered), "subscribe", guest.Config{})
	if result.Outcome != guest.Exited || result.ExitCode != invalid {
		t.Errorf("%s %d %v", result.Outcome, result.ExitCode, result.Err)
	}
}

// A guest ends even if its output has no reader.
func TestOutputThatNobodyReads(t *testing.T) {
	reader, writer := io.Pipe()
	result := run(t, newRuntime(t, guest.InterruptMetered), "print", guest.Config{
		Stdout: writer, Limits: guest.Limits{Time: 100 * time.Millisecond},
	})
	if result.Outcome != guest.TimedOut {
		t.Errorf("%s %v", result.Outcome, result.Err)
	}
	reader.Close()
}

func TestOutputIsLimited(t *testing.T) {
	const ioError = 29 // of WASI
	var printed, said output
	result := run(t, newRuntime(t, guest.InterruptMetered), "print",
		guest.Config{Stdout: &printed, Stderr: &said, Limits: guest.Limits{Output: 1000}})
	if result.Outcome != guest.Exited || result.ExitCode != ioError {
		t.Errorf("%s %d %v", result.Outcome, result.ExitCode, result.Err)
	}
	if length := len(printed.String()); length > 1000 || length < 900 {
		t.Errorf("%d bytes were printed", length)
	}
	if !strings.Contains(said.String(), `limit "output"`) {
		t.Errorf("it printed %q", said.String())
	}
}

// slowModule is one that takes long to compile: many functions of many blocks.
func slowModule(functions, blocks int) []byte {
	number := func(n int) []byte {
		var out []byte
		for ; n >= 0x80; n >>= 7 {
			out = append(out, byte(n)|0x80)
		}
		return append(out, byte(n))
	}
	section := func(id byte, content []byte) []byte {
		return append(append([]byte{id}, number(len(content))...), content...)
	}
	body := []byte{1, 100, 0x7f} // a hundred locals
	for n := range blocks {
		local := byte(n % 100)
		body = append(body, 0x02, 0x40, 0x20, local, 0x0d, 0, 0x20, local, 0x41, 3, 0x6c, 0x21, byte((n+1)%100), 0x0b)
	}
	body = append(body, 0x0b)
	declared, code := number(functions), number(functions)
	for range functions {
		declared = append(declared, 0)
		code = append(append(code, number(len(body))...), body...)
	}
	module := []byte("\x00asm\x01\x00\x00\x00")
	module = append(module, section(1, []byte{1, 0x60, 0, 0})...)
	module = append(module, section(3, declared)...)
	module = append(module, section(5, []byte{1, 0, 1})...)
	module = append(module, section(7, append([]byte{1, 6}, "_start\x00\x00"...))...)
	return append(module, section(10, code)...)
}

// A compilation has an end as well, and the next one its turn.
func TestCompilationEnds(t *testing.T) {
	r := newRuntime(t, guest.InterruptMetered)
	ctx, cancel := context.WithTimeoutCause(testContext(t), 50*time.Millisecond, errors.New("its time is over"))
	defer cancel()
	module := slowModule(5000, 100)
	if _, err := r.CompileBytes(ctx, "slow", module); err == nil || !strings.Contains(err.Error(), "its time is over") {
		t.Error(err)
	}
	compileWAT(t, r, "exit")
}

// What is small in a module and large in the compiler is refused.
func TestModulesThatAskForTooMuch(t *testing.T) {
	r := newRuntime(t, guest.InterruptMetered)
	few := slowModule(1, 1)
	many := []byte(strings.Replace(string(few), "\x01\x64\x7f", "\x01\xe4\xff\xff\x7f\x7f", 1)) // 2^28 locals and more
	many = []byte(strings.Replace(string(many), "\x0a\x14\x01\x12", "\x0a\x17\x01\x15", 1))
	for name, module := range map[string][]byte{"locals": many, "a long function": slowModule(1, 100_000)} {
		_, err := r.CompileBytes(testContext(t), name, module)
		if !errors.Is(err, wasm.ErrFormat) || !strings.Contains(err.Error(), "the limit is") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
