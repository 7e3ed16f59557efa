package host

import (
	"context"
	"io"
	"log/slog"
	"time"

	"rdmarun/hostfuncs"
	"rdmarun/rdmacore"
)

// Config is that of a Runtime.
type Config struct {
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
	// InterruptMetered makes guests count their steps (host/wasm).  A module that cannot be
	// rewritten falls back to InterruptContext.
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
	// Memory, Registered, Handles and Files are those of hostfuncs.Limits; 0 is the default of each.
	Memory, Registered, Handles, Files int64
}

// The limits of a guest for which nothing else is said.
const (
	DefaultTime   = time.Minute
	DefaultMemory = hostfuncs.DefaultMemory
	NoTimeLimit   = time.Duration(-1)
)

// StopGrace is how long a guest that was asked to stop has before it is stopped.
const StopGrace = 2 * time.Second

// GuestConfig is what one guest gets.
type GuestConfig struct {
	Name     string // argv[0] and the prefix of its log; "" is the module's
	Provider *rdmacore.Provider
	Args     []string // without argv[0]
	Env      map[string]string
	Stdin    io.Reader // nil is empty
	// Stdout and Stderr are written by the guest's goroutine; nil discards.
	Stdout, Stderr io.Writer
	Limits         Limits
	// Logger takes what the guest logs; nil writes lines to Stderr.
	Logger *slog.Logger
	// Barrier waits until all parties of that name are there or ctx ends; nil is a party of one.
	Barrier func(ctx context.Context, name string) error
	// CPUs are where the guest's thread may run; none: anywhere.  With any it has a thread to itself.
	CPUs []int
	// Deny is what the guest may not do.
	Deny hostfuncs.Capabilities
}
