package host

import (
	"context"
	"crypto/rand"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/sys"
)

// moduleConfig is what a guest gets of WASI: arguments, environment, standard streams, clocks, random
// numbers.  No files and no sockets.
func (g *Guest) moduleConfig(ctx context.Context) wazero.ModuleConfig {
	config := wazero.NewModuleConfig().
		WithName("").
		WithStartFunctions().
		WithArgs(append([]string{g.name}, g.config.Args...)...).
		WithSysWalltime().
		WithSysNanotime().
		WithNanosleep(func(ns int64) { sleep(ctx, time.Duration(ns)) }).
		WithRandSource(rand.Reader)
	for _, name := range slices.Sorted(maps.Keys(g.config.Env)) {
		config = config.WithEnv(name, g.config.Env[name])
	}
	if g.config.Stdin != nil {
		config = config.WithStdin(&interruptibleReader{ctx: ctx, from: g.config.Stdin})
	}
	if g.config.Stdout != nil {
		config = config.WithStdout(g.config.Stdout)
	}
	if g.config.Stderr != nil {
		config = config.WithStderr(g.config.Stderr)
	}
	return config
}

// sleep is a guest's sleep; it ends the guest when ctx ends.
func sleep(ctx context.Context, duration time.Duration) {
	timer := time.NewTimer(duration)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		endGuest()
	}
}

// endGuest unwinds the guest from within a host function.
func endGuest() { panic(sys.NewExitError(sys.ExitCodeContextCanceled)) }

// interruptibleReader is a guest's standard input.  A read that has nothing to read ends the guest when ctx
// ends; the reading goroutine ends with the input.
type interruptibleReader struct {
	ctx    context.Context
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
	if len(into) == 0 {
		return 0, nil
	}
	if r.chunks == nil {
		r.chunks = make(chan chunk)
		go r.readAll()
	}
	for len(r.rest) == 0 && r.err == nil {
		select {
		case next := <-r.chunks:
			r.rest, r.err = next.data, next.err
		case <-r.ctx.Done():
			endGuest()
		}
	}
	n := copy(into, r.rest)
	r.rest = r.rest[n:]
	if n == 0 {
		return 0, r.err
	}
	return n, nil
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
