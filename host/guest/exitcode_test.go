package guest_test

import (
	"fmt"
	"testing"

	"rdmarun/host/guest"
	"rdmarun/rdmacore"
)

// TestEveryExitCode lets guests exit with every number that a process can have, and with those it cannot.  The host ends
// guests by an exit with 0xffffffff or 0xefffffff, which a guest may say itself: main returns -1.
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
