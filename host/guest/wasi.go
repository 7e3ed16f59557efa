package guest

import (
	"context"
	"crypto/rand"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/sys"

	"rdmarun/rdmacore"
)

// moduleConfig is what a guest gets of WASI: arguments, environment, standard streams, clocks, random
// numbers.  No files and no sockets.
func (g *Guest) moduleConfig(ctx context.Context) wazero.ModuleConfig {
	clock := g.config.Provider.Clock()
	config := withClock(wazero.NewModuleConfig(), clock).
		WithName("").
		WithStartFunctions().
		WithArgs(append([]string{g.name}, g.config.Args...)...).
		WithNanosleep(func(ns int64) {
			if clock.Sleep(ctx, time.Duration(ns)) != nil {
				endGuest()
			}
		}).
		WithRandSource(&randomReader{ctx})
	for _, name := range slices.Sorted(maps.Keys(g.config.Env)) {
		config = config.WithEnv(name, g.config.Env[name])
	}
	if g.config.Stdin != nil {
		config = config.WithStdin(&interruptibleReader{ctx: ctx, clock: clock, from: g.config.Stdin})
	}
	return config.WithStdout(g.outputs.stdout).WithStderr(g.outputs.stderr)
}

// streamChunk is how much is done of a read or write before the end of the guest is looked for.
const streamChunk = 64 << 10

// randomReader gives random numbers, a chunk at a time.
type randomReader struct{ ctx context.Context }

func (r *randomReader) Read(into []byte) (int, error) {
	if r.ctx.Err() != nil {
		endGuest()
	}
	return rand.Read(into[:min(len(into), streamChunk)])
}

// withClock gives the guest's own library the time of the run.
func withClock(config wazero.ModuleConfig, clock *rdmacore.Clock) wazero.ModuleConfig {
	if !clock.Virtual() {
		return config.WithSysWalltime().WithSysNanotime()
	}
	// Go's runtime takes a monotonic clock that stands at 0 for a broken one.
	const origin = time.Second
	began := time.Now().Add(-clock.Now())
	const resolution = sys.ClockResolution(1)
	return config.
		WithWalltime(func() (int64, int32) {
			now := began.Add(clock.Now())
			return now.Unix(), int32(now.Nanosecond())
		}, resolution).
		WithNanotime(func() int64 { return int64(origin + clock.Now()) }, resolution)
}

// endGuest unwinds the guest from within a host function.
func endGuest() { panic(sys.NewExitError(sys.ExitCodeContextCanceled)) }

// interruptibleReader is a guest's standard input.  A read that has nothing to read ends the guest when ctx
// ends; the reading goroutine ends with the input.
type interruptibleReader struct {
	ctx    context.Context
	clock  *rdmacore.Clock
	from   io.Reader
	chunks chan chunk // made by the first Read
	rest   []byte
	err    error
}

type chunk struct {
	data []byte
	err  error
}

func (r *interruptibleReader) Read(into []byte) (int, error) {
	if r.ctx.Err() != nil {
		endGuest()
	}
	if len(into) == 0 {
		return 0, nil
	}
	if r.chunks == nil {
		r.chunks = make(chan chunk)
		go r.readAll()
	}
	for len(r.rest) == 0 && r.err == nil {
		if r.ctx.Err() != nil {
			endGuest()
		}
		r.clock.Outside(r.next)
	}
	n := copy(into, r.rest)
	r.rest = r.rest[n:]
	if n == 0 {
		return 0, r.err
	}
	return n, nil
}

// next waits for what readAll has read.
func (r *interruptibleReader) next() {
	select {
	case next := <-r.chunks:
		r.rest, r.err = next.data, next.err
	case <-r.ctx.Done():
	}
}

// readAll reads ahead by one chunk at most.
func (r *interruptibleReader) readAll() {
	for {
		buffer := make([]byte, 4096)
		n, err := r.from.Read(buffer)
		select {
		case r.chunks <- chunk{buffer[:n], err}:
		case <-r.ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}
