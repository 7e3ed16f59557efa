package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"rdmarun/host/guest"
	"rdmarun/rdmacore"
)

// crowdPairs is how many pairs of guests are connected at once.
const crowdPairs = 500

// measureCrowd connects a thousand guests in C in pairs, compiled before. It measures the time until all are
// connected, and the memory of the process for each, its own included.
func measureCrowd(ctx context.Context, all figures) error {
	folder, err := os.MkdirTemp("", "rdmarun-bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	module := filepath.Join(folder, "crowd.wasm")
	if out, err := exec.CommandContext(ctx, "clang", "--target=wasm32", "-O2", "-mbulk-memory", "-nostdlib", "-Isdk/c",
		"-Wl,--no-entry",
		"guests/crowd_c/crowd.c", "-o", module).CombinedOutput(); err != nil {
		return fmt.Errorf("compile the guest: %w\n%s", err, out)
	}
	var took, each []float64
	for round := range rounds + 1 {
		seconds, bytes, err := crowd(ctx, folder, module)
		if err != nil {
			return err
		}
		if round > 0 { // the first fills the cache
			took, each = append(took, seconds), append(each, bytes/1024)
		}
	}
	all["guests-1000-connected"], all["guests-1000-each"] = median(took), median(each)
	return nil
}

// meeting is a barrier of so many.
type meeting struct {
	missing atomic.Int64
	open    chan struct{} // closed when all are there
	leave   chan struct{} // closed when they may go on
}

func newMeeting(parties int64) *meeting {
	m := &meeting{open: make(chan struct{}), leave: make(chan struct{})}
	m.missing.Store(parties)
	return m
}

// arrive is one more that has come; what it returns is closed when it may go on.
func (m *meeting) arrive() <-chan struct{} {
	if m.missing.Add(-1) == 0 {
		close(m.open)
	}
	return m.leave
}

// crowd runs the guests once.
func crowd(ctx context.Context, folder, path string) (seconds, bytes float64, err error) {
	provider, err := rdmacore.Open(rdmacore.Soft)
	if err != nil {
		return 0, 0, err
	}
	defer provider.Close()
	debug.FreeOSMemory()
	before, err := resident()
	if err != nil {
		return 0, 0, err
	}
	began := time.Now()
	runtime, err := guest.New(ctx, guest.RuntimeConfig{CacheDir: folder})
	if err != nil {
		return 0, 0, err
	}
	defer runtime.Close(ctx)
	module, err := runtime.Compile(ctx, path)
	if err != nil {
		return 0, 0, err
	}
	listening, connected := newMeeting(crowdPairs), newMeeting(2*crowdPairs)
	close(listening.leave) // no pair waits for the others there
	ended := make(chan *guest.Guest, 2*crowdPairs)
	start := func(side string) error {
		for pair := range crowdPairs {
			g, err := runtime.Start(ctx, module, guest.Config{
				Provider: provider, Args: []string{side, strconv.Itoa(20000 + pair)}, Stderr: os.Stderr,
				Barrier: func(name string) <-chan struct{} {
					return map[string]*meeting{"listening": listening, "connected": connected}[name].arrive()
				},
			})
			if err != nil {
				return err
			}
			go func() {
				<-g.Done()
				ended <- g
			}()
		}
		return nil
	}
	for _, step := range []struct {
		side string
		met  *meeting
	}{{"server", listening}, {"client", connected}} {
		if err := start(step.side); err != nil {
			return 0, 0, err
		}
		select {
		case <-step.met.open:
		case g := <-ended:
			return 0, 0, fmt.Errorf("a guest ended before all were connected: %w", g.Result().Err)
		}
	}
	seconds = time.Since(began).Seconds()
	after, err := resident()
	close(connected.leave)
	for range 2 * crowdPairs {
		if g := <-ended; !g.Result().OK() {
			return 0, 0, fmt.Errorf("a guest of the crowd: %w", g.Result().Err)
		}
	}
	return seconds, (after - before) / (2 * crowdPairs), err
}

// resident is the memory of this process in bytes.
func resident() (float64, error) {
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, err
	}
	pages, err := strconv.ParseFloat(strings.Fields(string(statm))[1], 64)
	return pages * float64(os.Getpagesize()), err
}
