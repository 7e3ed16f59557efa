package guest

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"io"
	"maps"
	"math"
	mathrand "math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	"github.com/tetratelabs/wazero/sys"

	"rdmarun/hostfuncs"
	"rdmarun/rdmacore"
)

// moduleConfig is what a guest gets of WASI: arguments, environment, standard streams, clocks, random
// numbers, and the files that it was given.  No sockets.
func (g *Guest) moduleConfig(ctx context.Context) wazero.ModuleConfig {
	clock := g.config.Provider.Clock()
	config := withClock(wazero.NewModuleConfig(), clock, g.config.Seed != nil).
		WithName("").
		WithStartFunctions().
		WithArgs(append([]string{g.name}, g.config.Args...)...).
		WithNanosleep(func(ns int64) {
			if clock.Sleep(ctx, time.Duration(ns)) != nil {
				endGuest()
			}
		}).
		WithRandSource(&randomReader{ctx, g.random()})
	for _, name := range slices.Sorted(maps.Keys(g.config.Env)) {
		config = config.WithEnv(name, g.config.Env[name])
	}
	if g.files != nil {
		config = config.WithFSConfig(wazero.NewFSConfig().WithFSMount(g.files, "/"))
	}
	if text, is := g.config.Stdin.(*strings.Reader); is {
		config = config.WithStdin(text) // never waits
	} else if g.config.Stdin != nil {
		config = config.WithStdin(&interruptibleReader{ctx: ctx, clock: clock, from: g.config.Stdin, guest: g.instance})
	}
	return config.WithStdout(g.outputs.stdout).WithStderr(g.outputs.stderr)
}

// streamChunk is how much is done of a read or write before the end of the guest is looked for.
const streamChunk = 64 << 10

// randomReader reads random numbers, a chunk at a time.
type randomReader struct {
	ctx  context.Context
	from io.Reader
}

// random is where the guest's random numbers come from.
func (g *Guest) random() io.Reader {
	if g.config.Seed == nil {
		return rand.Reader
	}
	var seed [32]byte
	binary.LittleEndian.PutUint64(seed[:], *g.config.Seed)
	copy(seed[8:], g.name) // two guests draw other numbers
	return mathrand.NewChaCha8(seed)
}

func (r *randomReader) Read(into []byte) (int, error) {
	if r.ctx.Err() != nil {
		endGuest()
	}
	return r.from.Read(into[:min(len(into), streamChunk)])
}

// firstDay is when repeatable runs of guests begin: 2000-01-01.
var firstDay = time.Date(2000, time.January, 1, 0, 0, 0, 0, time.UTC)

// withClock gives the guest's own library the time of the run; same: it begins on the first day.
func withClock(config wazero.ModuleConfig, clock *rdmacore.Clock, same bool) wazero.ModuleConfig {
	if !clock.Virtual() && !same {
		return config.WithSysWalltime().WithSysNanotime()
	}
	// Go's runtime takes a monotonic clock that is at 0 for a broken one.
	const origin = time.Second
	began := firstDay
	if !same {
		began = time.Now().Add(-clock.Now())
	}
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
	guest  *hostfuncs.Instance
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
	readsInput := "fd_read of the standard input"
	for len(r.rest) == 0 && r.err == nil {
		if r.ctx.Err() != nil {
			endGuest()
		}
		r.guest.Enter(&readsInput)
		r.clock.Outside(r.next)
		if r.ctx.Err() == nil {
			r.guest.Leave()
		}
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

// Errnos of WASI preview 1.
const (
	wasiSuccess      = 0
	wasiEBADF        = 8
	wasiEFAULT       = 21
	wasiEINVAL       = 28
	wasiEMFILE       = 33
	wasiENAMETOOLONG = 37
	wasiENOTSUP      = 58
	wasiEROFS        = 69
)

// wasiFunction is one of WASI that is the host's own.
type wasiFunction struct {
	name   string
	params string // letters as in a wasm.Signature
	call   api.GoModuleFunc
}

// wasiFunctions replace those of wazero, which use memory and time without a bound.  Those copy a path of any length
// before they find that there is no folder.  They go through any number of buffers for a file that has no position, and
// keep something for each of any number of subscriptions.
var wasiFunctions = []wasiFunction{
	{"fd_pread", "iiiIi", onBuffers("fd_pread")},
	{"fd_pwrite", "iiiIi", onlyRead},
	{"path_create_directory", "iii", onlyRead},
	{"path_filestat_get", "iiiii", onPath("path_filestat_get", 3)},
	{"path_filestat_set_times", "iiiiIIi", onlyRead},
	{"path_link", "iiiiiii", onlyRead},
	{"path_open", "iiiiiIIii", onPath("path_open", 3)},
	{"path_readlink", "iiiiii", onPath("path_readlink", 2)},
	{"path_remove_directory", "iii", onlyRead},
	{"path_rename", "iiiiii", onlyRead},
	{"path_symlink", "iiiii", onlyRead},
	{"path_unlink_file", "iii", onlyRead},
	{"poll_oneoff", "iiii", pollOneoff},
}

// newWASI is wazero's WASI with the functions above.
func newWASI(engine wazero.Runtime) wazero.HostModuleBuilder {
	builder := engine.NewHostModuleBuilder(wasi_snapshot_preview1.ModuleName)
	wasi_snapshot_preview1.NewFunctionExporter().ExportFunctions(builder)
	for _, function := range wasiFunctions {
		var params []api.ValueType
		for _, letter := range function.params {
			params = append(params, map[rune]api.ValueType{'i': api.ValueTypeI32, 'I': api.ValueTypeI64}[letter])
		}
		builder = builder.NewFunctionBuilder().
			WithGoModuleFunction(function.call, params, []api.ValueType{api.ValueTypeI32}).
			WithName(function.name).Export(function.name)
	}
	return builder
}

// guestKey finds a guest in the context of its calls.
type guestKey struct{}

// maxSubscriptions is how many things a guest may wait for at once.
const maxSubscriptions = 1024

// The layout of poll_oneoff's structs.
const (
	subscriptionSize = 48
	eventSize        = 32
	eventClock       = 0
	eventFDRead      = 1
	eventFDWrite     = 2
)

// pollOneoff waits for the first of some clocks, or returns at once when standard streams are among the events. All of
// them are ready, because a read that has to wait does so itself.
func pollOneoff(ctx context.Context, module api.Module, stack []uint64) {
	in, out, count, resultAt := uint32(stack[0]), uint32(stack[1]), uint32(stack[2]), uint32(stack[3])
	stack[0] = poll(ctx, module.Memory(), in, out, count, resultAt)
}

func poll(ctx context.Context, memory api.Memory, in, out, count, resultAt uint32) uint64 {
	if count == 0 || count > maxSubscriptions {
		return wasiEINVAL
	}
	given, ok := memory.Read(in, count*subscriptionSize)
	events, room := memory.Read(out, count*eventSize)
	if !ok || !room {
		return wasiEFAULT
	}
	given = append([]byte(nil), given...) // events may be written over it
	ready, earliest := uint32(0), uint64(math.MaxUint64)
	report := func(subscription []byte, errno byte) {
		event := events[ready*eventSize:][:eventSize]
		clear(event)
		copy(event, subscription[:8]) // the guest's own number
		event[8], event[10] = errno, subscription[8]
		ready++
	}
	for at := range count {
		subscription := given[at*subscriptionSize:][:subscriptionSize]
		switch subscription[8] {
		case eventClock:
			if binary.LittleEndian.Uint16(subscription[40:]) != 0 {
				return wasiENOTSUP // a time of day, which wazero does not have either
			}
			earliest = min(earliest, binary.LittleEndian.Uint64(subscription[24:]))
		case eventFDRead, eventFDWrite:
			errno := byte(wasiSuccess)
			if fd := binary.LittleEndian.Uint32(subscription[16:]); fd > 2 {
				errno = wasiEBADF
			}
			report(subscription, errno)
		default:
			return wasiEINVAL
		}
	}
	if ready == 0 {
		guest, sleeps := ctx.Value(guestKey{}).(*Guest), "poll_oneoff"
		guest.instance.Enter(&sleeps)
		if guest.config.Provider.Clock().Sleep(ctx, time.Duration(min(earliest, math.MaxInt64))) != nil {
			endGuest()
		}
		guest.instance.Leave()
		for at := range count {
			subscription := given[at*subscriptionSize:][:subscriptionSize]
			if binary.LittleEndian.Uint64(subscription[24:]) == earliest {
				report(subscription, wasiSuccess)
			}
		}
	}
	if !memory.WriteUint32Le(resultAt, ready) {
		return wasiEFAULT
	}
	return wasiSuccess
}
