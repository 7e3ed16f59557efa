package guest

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"time"

	"rdmarun/hostfuncs"
	"rdmarun/rdmacore"
)

// RuntimeConfig is that of a Runtime.
type RuntimeConfig struct {
	// CacheDir keeps compiled guests between runs; "" is DefaultCacheDir().  It holds machine code, so
	// only who may write the program itself should be able to write it.
	CacheDir string
	// Warn is told, once, when the cache is of no use; nil is nobody.
	Warn func(text string)
	// Interrupt is how guests that do not end by themselves are ended.
	Interrupt InterruptMode
}

// InterruptMode is a way to end guests that spin.
type InterruptMode int

const (
	// InterruptMetered makes guests count their steps (host/guest/wasm).
	InterruptMetered InterruptMode = iota
	// InterruptContext has wazero look at the context in each loop, at some 30 ns an iteration.
	InterruptContext
	// InterruptOff never looks.  A guest that spins for ever blocks the process for ever.
	InterruptOff
)

// Limits bound one guest.
type Limits struct {
	// Time is how long the guest may run by the wall clock; 0 is DefaultTime.
	Time time.Duration
	// Memory, Registered, Handles and Files are those of hostfuncs.Limits; Output is how many bytes it may write to
	// its standard streams and its log, together.  0 is the default of each.
	Memory, Registered, Handles, Files, Output int64
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

// The limits of a guest for which nothing else is said.
const (
	DefaultTime       = time.Minute
	DefaultMemory     = hostfuncs.DefaultMemory
	DefaultRegistered = hostfuncs.DefaultRegistered
	DefaultHandles    = hostfuncs.DefaultHandles
	DefaultFiles      = hostfuncs.DefaultFiles
	DefaultOutput     = 1 << 30
	NoTimeLimit       = time.Duration(-1)
)

// StopGrace is how long a guest that was asked to stop has before it is stopped.
const StopGrace = 500 * time.Millisecond

// Listening is news of a guest that listens.
type Listening = hostfuncs.Listening

// Config is what one guest gets.
type Config struct {
	Name     string // argv[0] and the prefix of its log; "" is the module's
	Provider *rdmacore.Provider
	Args     []string // without argv[0]
	Env      map[string]string
	Stdin    io.Reader // nil is empty
	// Stdout and Stderr are written by the guest's goroutine; nil discards.
	Stdout, Stderr io.Writer
	Limits         Limits
	// Began is when the time of Limits began, where compiling was a part of it; zero is when the guest starts.
	Began time.Time
	// Logger takes what the guest logs; nil writes lines to Stderr.
	Logger *slog.Logger
	// Barrier waits until all parties of that name are there or ctx ends; nil is a party of one.
	Barrier func(ctx context.Context, name string) error
	// Listening is told, by the guest's goroutine, where the guest listens; nil tells nobody.
	Listening func(Listening)
	// CPUs are where the guest's thread may run; none: anywhere.  With any it has a thread to itself.
	CPUs []int
	// Deny is what the guest may not do.
	Deny hostfuncs.Capabilities
}
