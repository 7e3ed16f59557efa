// Package guest runs WebAssembly guests. It compiles them (with a cache on disk), and gives each its memory, its
// limits and the ABI of hostfuncs. It stops those that do not end by themselves, and frees what they leave behind.
//
// # Memory
//
// A guest's linear memory is one reservation with a base that never moves, so any range of it can be a memory region.
// The reservation is reference counted: the guest and each memory region hold a reference. It is unmapped with the
// last reference, not when a module is closed. Compiled code that continued after that would crash the process.
//
// # The end of a guest
//
// Whether a guest returns, exits, traps, exceeds its limits or is stopped, the order is the same. First comes its last
// instruction, then its RDMA objects (children before parents; peers get DISCONNECTED). Then its module is freed, and
// then the last reference to its memory.
//
// # Interruption
//
// wazero's compiled code is not preemptible.  Modules are therefore rewritten when they are loaded, to
// leave compiled code each 65536 steps (package host/guest/wasm).  That is where the scheduler and the garbage
// collector get their turn, and where a guest that has to end does.  It costs 0 to 5 % of what guests
// usually do.
package guest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"rdmarun/host/guest/trace"
	"rdmarun/hostfuncs"
	"rdmarun/hostfuncs/stream"
	"rdmarun/rdmacore"
)

// Runtime compiles and runs guests.  It may be used by any number of goroutines.
type Runtime struct {
	mode     InterruptMode
	compiler []string
	serials  atomic.Uint32 // of guests

	// It guards what follows, and serializes compiling and closing. The store has the code of one module at a
	// time, and one compilation uses several processors anyway.
	compiling chan struct{}
	cache     *guestCache
	store     *codeStore
	compiled  wazero.CompilationCache // by which the engines use the store
	engines   map[bool]wazero.Runtime // by whether they look at contexts themselves
	modules   map[string]*Module      // by content
	exports   hostExports
	tracer    *trace.Tracer
}

// New makes a runtime.  The caller closes it, after its last guest has ended.
func New(ctx context.Context, config RuntimeConfig) (*Runtime, error) {
	store, compiled, err := newCodeStore()
	if err != nil {
		return nil, err
	}
	r := &Runtime{
		mode:      config.Interrupt,
		compiler:  config.Compiler,
		compiling: make(chan struct{}, 1),
		cache:     openGuestCache(config.CacheDir, config.Warn),
		store:     store,
		compiled:  compiled,
		engines:   make(map[bool]wazero.Runtime),
		modules:   make(map[string]*Module),
		tracer:    config.Trace,
	}
	if r.mode == InterruptMetered && !compiles() {
		// wazero's interpreter is preemptible as any Go code is, and looks at contexts for nearly nothing.
		r.mode = InterruptContext
	}
	if _, err := r.engine(ctx, r.mode == InterruptContext); err != nil {
		return nil, errors.Join(err, r.Close(ctx))
	}
	return r, nil
}

// coreFeatures are WebAssembly 2.0, atomic instructions, tail calls and extended constant expressions. A guest in C
// uses atomic instructions to read what a peer writes. Exception handling is left out. wazero 1.12 keeps references to
// exceptions where Go's garbage collector does not see them, and copies the whole stack at each try_table.
const coreFeatures = api.CoreFeaturesV2 | experimental.CoreFeaturesThreads | experimental.CoreFeaturesTailCall |
	experimental.CoreFeaturesExtendedConst

// compiles reports whether wazero compiles here; elsewhere it interprets.
func compiles() bool { return runtime.GOARCH == "amd64" || runtime.GOARCH == "arm64" }

// engineConfig is that of an engine, in this process as in a compiler's.
func engineConfig(cache wazero.CompilationCache, looks bool) wazero.RuntimeConfig {
	return wazero.NewRuntimeConfig().WithCompilationCache(cache).WithCloseOnContextDone(looks).WithCoreFeatures(
		coreFeatures,
	)
}

// engine is the wazero runtime that checks contexts itself, or does not.  The caller holds compiling, or is the
// only user of the runtime.
func (r *Runtime) engine(ctx context.Context, looks bool) (wazero.Runtime, error) {
	if engine, ok := r.engines[looks]; ok {
		return engine, nil
	}
	engine := wazero.NewRuntimeWithConfig(ctx, engineConfig(r.compiled, looks))
	r.engines[looks] = engine
	wasi, err := newWASI(engine).Compile(ctx)
	if err != nil {
		return nil, fmt.Errorf("prepare WASI: %w", err)
	}
	if _, err := engine.InstantiateModule(ctx, wasi, wazero.NewModuleConfig()); err != nil {
		return nil, fmt.Errorf("prepare WASI: %w", err)
	}
	r.exports = exportsOf(wasi)
	return engine, nil
}

// Close frees everything the runtime has compiled.  Guests must have ended.
func (r *Runtime) Close(ctx context.Context) error {
	r.compiling <- struct{}{} // a compilation that was given up comes to the end of its function first
	defer func() { <-r.compiling }()
	var errs []error
	for _, engine := range r.engines {
		errs = append(errs, engine.Close(ctx))
	}
	clear(r.engines)
	clear(r.modules)
	r.cache.close()
	return errors.Join(append(errs, r.compiled.Close(ctx))...)
}

// RuntimeConfig is that of a Runtime.
type RuntimeConfig struct {
	// CacheDir keeps compiled guests between runs; "" is DefaultCacheDir().  It holds machine code, so it is used only
	// if it belongs to this user, and no other user may write to it.
	CacheDir string
	// Compiler is the command that compiles what the cache does not have, in a process of its own that calls
	// CompilerMain. It is a program and its arguments, such as OwnCompiler(). Nil compiles in this process, for
	// modules that the program trusts. Nothing limits the memory then, the time is checked between two functions
	// only, and a panic of the compiler is the program's.
	Compiler []string
	// Warn is called once when the cache is of no use; may be nil.
	Warn func(text string)
	// Interrupt is how guests that do not end by themselves are ended.
	Interrupt InterruptMode
	// Trace shows the calls of guests; nil shows none.
	Trace *trace.Tracer
}

// wrap shows calls where they are traced.
func (r *Runtime) wrap() hostfuncs.Wrap {
	if r.tracer == nil {
		return nil
	}
	return r.tracer.Wrap(func(ctx context.Context) *trace.Guest { return ctx.Value(guestKey{}).(*Guest).trace })
}

// InterruptMode is a way to end guests that spin.
type InterruptMode int

const (
	// InterruptMetered makes guests count their steps (host/guest/wasm).
	InterruptMetered InterruptMode = iota
	// InterruptContext makes wazero look at the context in each loop, which takes some 30 ns an iteration.
	InterruptContext
)

// Limits bound one guest.
type Limits struct {
	// Time is how long the guest may run by the wall clock; 0 is DefaultTime.
	Time time.Duration
	// Memory, Registered, Handles, Files and Ports are those of hostfuncs.Limits. Output limits the bytes that it
	// writes to its standard streams and its log, together. 0 is the default of each.
	Memory, Registered, Handles, Files, Ports, Output int64
}

// Compiling is a context for compiling a guest that has these limits, and when its time began (Config.Began).
func (l Limits) Compiling(ctx context.Context) (_ context.Context, began time.Time, cancel context.CancelFunc) {
	limit := l.Time
	if limit == 0 {
		limit = DefaultTime
	}
	began = time.Now()
	if limit < 0 {
		return ctx, began, func() {}
	}
	ctx, cancel = context.WithTimeoutCause(ctx, limit, ErrCompileTime)
	return ctx, began, cancel
}

// ErrCompileTime is the cause of a context of Compiling.
var ErrCompileTime = errors.New("it exceeded the time limit of its guest")

// The default limits of a guest.
const (
	DefaultTime       = time.Minute
	DefaultMemory     = hostfuncs.DefaultMemory
	DefaultRegistered = hostfuncs.DefaultRegistered
	DefaultHandles    = hostfuncs.DefaultHandles
	DefaultFiles      = hostfuncs.DefaultFiles
	DefaultPorts      = hostfuncs.DefaultPorts
	DefaultOutput     = 1 << 30
	NoTimeLimit       = time.Duration(-1)
)

// stopGrace is how long a guest that was asked to stop has before it is stopped.
const stopGrace = 500 * time.Millisecond

// Listening is news of a guest that listens.
type Listening = hostfuncs.Listening

// Rules restrict the addresses and names that a guest may use, and ParseRule parses one of its rules for addresses.
type (
	Rules        = hostfuncs.Rules
	AddressRule  = hostfuncs.AddressRule
	Capabilities = hostfuncs.Capabilities
)

// ParseRule reads a rule for addresses.
func ParseRule(text string) (AddressRule, error) { return hostfuncs.ParseAddressRule(text) }

// CallNames are what guests can be denied, by name, and AllCalls all of it.
func CallNames() []string { return hostfuncs.CapabilityNames() }

// AllCalls are all of CallNames.
func AllCalls() (all Capabilities) {
	for _, name := range CallNames() {
		all |= Calls(name)
	}
	return all
}

// Calls are those of a name.
func Calls(name string) Capabilities {
	capability, _ := hostfuncs.ParseCapability(name)
	return capability
}

// Exchange is where the guests of a run find each other's streams of bytes.
type Exchange = stream.Exchange

// StreamFrame is a message between the exchanges of two processes.
type StreamFrame = stream.Frame

// NewExchange makes one, of which each guest gets a party (Config.Party).
func NewExchange() *Exchange { return stream.New() }

// Config is what one guest gets.
type Config struct {
	Name     string // argv[0] and the prefix of its log; "" is the module's
	Provider *rdmacore.Provider
	// what no device in particular means; nil is the first of the provider with an active port
	Device *rdmacore.Device
	Args   []string // without argv[0]
	Env    map[string]string
	Stdin  io.Reader // nil is empty
	// Files are what it may read of a file system, and all that is there: texts by path, which begins with no slash.
	Files map[string]string
	// Stdout and Stderr are written by a goroutine each, since a write may hang; nil discards.
	Stdout, Stderr io.Writer
	Limits         Limits
	// Began is when the time of Limits began, where compiling was a part of it; zero is when the guest starts.
	Began time.Time
	// Logger takes what the guest logs; nil writes lines to Stderr.
	Logger *slog.Logger
	// Barrier is called by the guest's goroutine when the guest comes to the barrier of that name; what it returns is
	// closed when everyone has.  nil: the guest does not wait.
	Barrier func(name string) (opened <-chan struct{})
	// LeaveBarrier is called by the guest's goroutine when it ceases to wait at a barrier that has not opened; may be
	// nil.
	LeaveBarrier func(name string)
	// Participant is the role by which other guests find this one's streams; with nil they cannot find it.
	Participant *stream.Participant
	// Listening is called by the guest's goroutine with where the guest listens; may be nil.
	Listening func(Listening)
	// Seed is the seed of its random numbers, and makes its time of day that of the provider's clock alone. With
	// nil both are the system's.
	Seed *uint64
	// CPUs are where the guest's thread may run; none: anywhere.  With any it has a thread to itself.
	CPUs []int
	// Deny is what the guest may not do.
	Deny Capabilities
	// Rules narrow down what it may.
	Rules Rules

	script bool // the module is the engine of scripts (Script.Configure)
}
