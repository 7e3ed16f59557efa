package testbed

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"time"
)

// GuestConfig is a role whose part a WebAssembly program plays.
type GuestConfig struct {
	Module string // path of the .wasm file
	Args   []string
	Limits GuestLimits
	// Missing says why an optional guest cannot run; "" when it can.
	Missing string
}

// GuestLimits bound a guest, as host.Limits; zero means the host's default.
type GuestLimits struct {
	Time                                       time.Duration
	Memory, Registered, Handles, Files, Output int64
}

// GuestStarter starts guests.  The host package does; tests have their own.
type GuestStarter interface {
	// Start returns when the guest runs; ctx bounds its whole life.
	Start(ctx context.Context, start GuestStart) (RunningGuest, error)
}

// GuestStart is what a guest is started with.
type GuestStart struct {
	Name           string // of the role, for messages
	Config         GuestConfig
	Stdout, Stderr io.Writer
	CPUs           []int // where it may run; none: anywhere
	// Barrier blocks until all parties of the barrier are there.
	Barrier func(ctx context.Context, name string) error
	// Listening is told where the guest listens; see host.GuestConfig.
	Listening func(Listening)
}

// RunningGuest is a guest that was started.
type RunningGuest interface {
	// Done is closed when the guest has ended and all it had is freed.
	Done() <-chan struct{}
	// Result may be called after Done.
	Result() GuestResult
	// Call calls an exported function while the guest waits at a barrier; see host.Guest.Call.
	Call(ctx context.Context, function string, arguments ...uint64) ([]uint64, error)
	// Stop asks the guest to end, ends it when it does not, and returns when all is freed.
	Stop(ctx context.Context)
}

// GuestResult is how a guest ended.
type GuestResult struct {
	// Outcome is "exited", "trapped", "timed_out", "stopped" or "failed".
	Outcome string
	// Exit is the guest's own exit code, or the one that stands for the outcome.
	Exit int
	// Reason says why, for every end but exit code 0.
	Reason string
	Took   time.Duration
}

// Guest is the guest of a role.
type Guest struct {
	role    *Role
	config  GuestConfig
	running RunningGuest
	cancel  context.CancelFunc
	output  []*lineWriter
	// asked is set once a step has looked at how the guest ended.
	asked bool
}

// Start starts the guest with the given arguments, nil for those of the role.
func (g *Guest) Start(ctx context.Context, args []string) error {
	if g.Running() {
		return &Failure{What: fmt.Sprintf("the guest of role %s runs already", g.role.Name)}
	}
	config := g.config
	if args != nil {
		config.Args = args
	}
	name, t := g.role.Name, g.role.testbed
	write := func(line string) { t.Output(name, line) }
	g.output = []*lineWriter{{write: write}, {write: write}}
	t.listeners.forget(name)
	// The guest outlives the step that starts it, so the step's deadline must not be the guest's.
	// Until it runs, it is: a module may take long to compile.
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	started := context.AfterFunc(ctx, cancel)
	defer started()
	running, err := t.guests.Start(life, GuestStart{
		Name:    name,
		Config:  config,
		Stdout:  g.output[0],
		Stderr:  g.output[1],
		CPUs:    g.role.cpus,
		Barrier: func(ctx context.Context, barrier string) error { return t.barriers.arrive(ctx, barrier, name) },

		Listening: func(news Listening) { t.listeners.hear(name, news) },
	})
	if err != nil {
		cancel()
		return err
	}
	g.running, g.cancel, g.asked = running, cancel, false
	t.listeners.tell()
	g.role.deferFree("guest", func() error {
		g.running.Stop(context.Background())
		g.ended()
		return nil
	})
	return nil
}

// Running tells whether the guest was started and has not ended.
func (g *Guest) Running() bool {
	if g.running == nil {
		return false
	}
	select {
	case <-g.running.Done():
		return false
	default:
		return true
	}
}

// Wait returns how the guest ended.
func (g *Guest) Wait(ctx context.Context) (GuestResult, error) {
	if g.running == nil {
		return GuestResult{}, &Failure{
			What: fmt.Sprintf("the guest of role %s was not started", g.role.Name),
			Hint: "a step `guest: start` comes first",
		}
	}
	select {
	case <-g.running.Done():
		return g.ended(), nil
	case <-ctx.Done():
		return GuestResult{}, ctx.Err()
	}
}

// Call calls a function of the guest.  What it refuses, and a function that traps, is a Failure.
func (g *Guest) Call(ctx context.Context, function string, arguments []uint64) ([]uint64, error) {
	if !g.Running() {
		return nil, &Failure{
			What: fmt.Sprintf("the guest of role %s does not run", g.role.Name), Hint: "a step `guest: start` comes first, and the guest has to wait at a barrier",
		}
	}
	results, err := g.running.Call(ctx, function, arguments...)
	if err != nil && ctx.Err() == nil {
		err = &Failure{What: "the call failed", Expected: "its return", Got: err.Error()}
	}
	return results, err
}

// Stop ends the guest and returns how it ended.
func (g *Guest) Stop(ctx context.Context) (GuestResult, error) {
	if g.running == nil {
		return g.Wait(ctx)
	}
	g.running.Stop(ctx)
	<-g.running.Done() // Stop returns when all is freed
	return g.ended(), nil
}

func (g *Guest) ended() GuestResult {
	g.asked = true
	g.cancel()
	for _, output := range g.output {
		output.flush()
	}
	return g.running.Result()
}

func (g *Guest) stillRuns() string {
	return fmt.Sprintf("%s: its guest still runs (guest: wait, or guest: stop)", g.role.Name)
}

// leftover says what is left of a guest that no step has asked about.
func (g *Guest) leftover() string {
	switch {
	case g.running == nil || g.asked:
		return ""
	case g.Running():
		return g.stillRuns()
	}
	result := g.ended()
	if result.Exit == 0 {
		return ""
	}
	return fmt.Sprintf("%s: its guest ended with exit code %d (%s) and no step asked", g.role.Name, result.Exit, result.Outcome)
}

// lineWriter passes on whole lines.
type lineWriter struct {
	write func(line string)
	rest  []byte
}

// longestLine is where a guest that prints without line ends is cut.
const longestLine = 4096

func (w *lineWriter) Write(p []byte) (int, error) {
	w.rest = append(w.rest, p...)
	for {
		end := bytes.IndexByte(w.rest, '\n')
		if end < 0 && len(w.rest) > longestLine {
			w.flush()
		}
		if end < 0 {
			return len(p), nil
		}
		w.write(string(bytes.TrimSuffix(w.rest[:end], []byte{'\r'})))
		w.rest = w.rest[end+1:]
	}
}

func (w *lineWriter) flush() {
	if len(w.rest) > 0 {
		w.write(string(w.rest))
		w.rest = nil
	}
}
