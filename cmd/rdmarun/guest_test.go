package main

import (
	"bytes"
	"cmp"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"rdmarun/host/guest"
)

// signalWriter sends a signal once a text has been written.
type signalWriter struct {
	bytes.Buffer
	text    string
	signals chan os.Signal
}

func (w *signalWriter) Write(p []byte) (int, error) {
	n, err := w.Buffer.Write(p)
	if w.text != "" && strings.Contains(w.String(), w.text) {
		w.text = ""
		w.signals <- os.Interrupt
	}
	return n, err
}

// A signal asks the guest to end: its wait fails, and it goes in its own way.
func TestSignalEndsGuest(t *testing.T) {
	const module = "../../guests/pingpong.wasm"
	if _, err := os.Stat(module); err != nil {
		t.Skip("make guests builds it: ", err)
	}
	signals := make(chan os.Signal, 1)
	out := &signalWriter{text: "listening", signals: signals}
	var errOut bytes.Buffer
	a := &app{
		args:   []string{"guest", "run", module, "--", "--server", "--port=7477"},
		env:    map[string]string{guest.CacheVariable: cmp.Or(os.Getenv(guest.CacheVariable), t.TempDir())},
		stdout: out, stderr: &errOut, signals: signals,
		commands: []func(*app) *cobra.Command{newGuestCommand},
	}
	if code := a.run(); code != exitInterrupted {
		t.Errorf("exit code %d\n%s%s", code, out, &errOut)
	}
	if text := "the guest was asked to stop"; !strings.Contains(errOut.String(), text) {
		t.Errorf("%q does not say %q", errOut.String(), text)
	}
}

func TestByteSizes(t *testing.T) {
	for text, want := range map[string]int64{
		"65536": 65536, "64KiB": 65536, "32MiB": 32 << 20, "1GiB": 1 << 30, "1.5MiB": 3 << 19, "1MB": 1_000_000,
	} {
		var size byteSize
		if err := size.Set(text); err != nil || int64(size) != want {
			t.Errorf("%s is %d, %v", text, size, err)
		}
		var same byteSize
		if err := same.Set(size.String()); err != nil || same != size {
			t.Errorf("%s comes back as %s", text, &size)
		}
	}
	for _, text := range []string{"", "0", "-1", "1.3B", "64K", "lots", "9999999999999999999", "99999999999GiB"} {
		if err := new(byteSize).Set(text); err == nil {
			t.Errorf("%q is taken for a size", text)
		}
	}
}
