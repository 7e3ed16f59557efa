package testbed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"rdmarun/host/guest"
)

// GuestConfig is a role played by a WebAssembly program.
type GuestConfig struct {
	guest.Code // for a script the engine's
	Args       []string
	// Script is what the engine runs; nil for a module.
	Script *guest.Script
	// File is the script's own file, "" where it has none.
	File   string
	Limits guest.Limits
	// Inputs are files that the guest reads.
	Inputs []string
	// Deterministic makes the guest repeatable.
	Deterministic bool
	// Missing is why an optional guest cannot run; "" when it can.
	Missing string
}

// Files lists the files that the guest needs, apart from those that come with rdmarun.
func (c *GuestConfig) Files() []string {
	switch {
	case c.Script == nil:
		return append(c.Code.Files(), c.Inputs...)
	case c.File != "":
		return append([]string{c.File}, c.Inputs...)
	}
	return c.Inputs
}

// Input is what a guest or a program finds when it starts, in addition to its arguments.
type Input struct {
	Env   map[string]string
	Stdin string
	Files map[string]string // by path, which begins with no slash
	// Deny and Rules are what a guest may not do.
	Deny  guest.Capabilities
	Rules guest.Rules
}

// String counts what it has.
func (i Input) String() string {
	var words []string
	for _, each := range []struct {
		name  string
		count int
	}{{"env", len(i.Env)}, {"files", len(i.Files)}, {"stdin", len(i.Stdin)}} {
		if each.count > 0 {
			words = append(words, fmt.Sprintf("%s=%d", each.name, each.count))
		}
	}
	if i.Deny != 0 || i.Rules.Bind != nil || i.Rules.Connect != nil || i.Rules.Devices != nil {
		words = append(words, "with rules")
	}
	return strings.Join(words, " ")
}

// GuestStarter compiles and starts guests.
type GuestStarter interface {
	// Start returns when the guest runs; ctx bounds its whole life.
	Start(ctx context.Context, code guest.Code, config guest.Config) (RunningGuest, error)
}

// RunningGuest is a guest that was started: a *guest.Guest, or what a test has in its place.
type RunningGuest interface {
	Done() <-chan struct{}
	// Over reports whether the code of the guest has ended, which is before Done: its objects are freed in between.
	Over() bool
	Result() guest.Result
	Call(ctx context.Context, function string, arguments ...uint64) ([]uint64, error)
	// Where is the place of a guest that has not ended, as the end of a sentence.
	Where() string
	Stop(ctx context.Context) guest.Result
}

// Guest is the guest of a role.
type Guest struct {
	role    *Role
	config  GuestConfig
	running RunningGuest // nil until Start
	cancel  context.CancelFunc
	output  []*lineWriter
	// place is where a script was that has ended, as its engine has printed it last.  It is written until then.
	place atomic.Pointer[string]
	executableState
}

// Start starts the guest with the given arguments, nil for those of the role.
func (g *Guest) Start(ctx context.Context, args []string, input Input) error {
	if running(g) {
		return &Failure{What: fmt.Sprintf("the guest of role %s runs already", g.role.Name)}
	}
	if err := unasked(g.role); err != nil {
		return err
	}
	if args == nil {
		args = g.config.Args
	}
	name, t := g.role.Name, g.role.testbed
	write := func(line string) { t.Output(name, line) }
	g.place.Store(nil)
	g.output = []*lineWriter{{write: write}, {write: func(line string) {
		if place, is := strings.CutSuffix(line, ": the run asked the script to end"); is { // engine.c, interrupted
			g.place.Store(&place)
		}
		write(line)
	}}}
	t.listeners.reset(name)
	// The guest outlives the step that starts it, so the step's deadline must not be the guest's.
	// Until it runs, it is: a module may take long to compile.
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	started := context.AfterFunc(ctx, cancel)
	defer started()
	config := guest.Config{
		Name: name, Provider: g.role.provider, Device: g.role.device, Args: args, Stdout: g.output[0],
		Stderr: g.output[1],
		Env:    input.Env, Stdin: strings.NewReader(input.Stdin), Files: input.Files,
		Deny: input.Deny, Rules: input.Rules,
		Limits: g.config.Limits, CPUs: g.role.cpus,
		Barrier:      func(barrier string) <-chan struct{} { return t.barriers.arrive(barrier, name) },
		LeaveBarrier: func(barrier string) { t.barriers.leave(barrier, name) },
		Participant:  t.streams.Participant(name),
		Listening:    func(news guest.Listening) { t.listeners.update(name, news) },
	}
	if g.config.Deterministic {
		seed := t.seed
		config.Seed = &seed
	}
	if g.config.Script != nil {
		config = g.config.Script.Configure(config)
	}
	running, err := t.guests.Start(life, g.config.Code, config)
	if err != nil {
		cancel()
		return err
	}
	g.running, g.cancel, g.executableState = running, cancel, executableState{}
	t.listeners.announce()
	g.role.deferFree("guest", func() error {
		g.running.Stop(context.Background())
		if end := g.end(); end.Outcome == "stopped" && end.Trace != "" {
			// A step may have failed waiting for its end: this is why.
			for line := range strings.SplitSeq("the guest did not end by itself; it was stopped"+end.Trace, "\n") {
				write(line)
			}
		}
		return nil
	})
	return nil
}

// Streams is where the guests find each other, apart from the fabric.
func (t *Testbed) Streams() *guest.Exchange { return t.streams }

func (g *Guest) what() string             { return "guest" }
func (g *Guest) stop(ctx context.Context) { g.running.Stop(ctx) }

// maxFreeing is how long the host may take to free the objects of guests after their code has ended.
const maxFreeing = 5 * time.Second

func (g *Guest) ending(bool) time.Duration {
	if running(g) && g.running.Over() {
		return maxFreeing
	}
	return 0
}

func (g *Guest) done() <-chan struct{} {
	if g.running == nil {
		return nil
	}
	return g.running.Done()
}

// Wait waits until the guest has ended, and returns how.
func (g *Guest) Wait(ctx context.Context) (ExecutableEnd, error) {
	if err := g.role.awaitEnd(ctx); err != nil {
		return ExecutableEnd{}, err
	}
	return g.end(), nil
}

// Call calls a function of the guest.  What it refuses, and a function that traps, is a Failure.
func (g *Guest) Call(ctx context.Context, function string, arguments []uint64) (results []uint64, err error) {
	if !running(g) {
		return nil, &Failure{
			What: fmt.Sprintf("the guest of role %s does not run", g.role.Name),
			Hint: "a step `guest: start` comes first, and the guest has to wait at a barrier",
		}
	}
	running := g.running
	g.role.testbed.Unlocked(func() { results, err = running.Call(ctx, function, arguments...) })
	if err != nil && ctx.Err() == nil {
		err = &Failure{What: "the call failed", Expected: "its return", Got: err.Error()}
	}
	return results, err
}

// Stop ends the guest and returns how it ended.
func (g *Guest) Stop(ctx context.Context) (ExecutableEnd, error) {
	if err := g.role.stopAndAwait(ctx); err != nil {
		return ExecutableEnd{}, err
	}
	return g.end(), nil
}

// end is how the guest ended ("exited", "trapped", "timed_out", "stopped" or "failed"), and passes on its last output.
// The testbed is locked.
func (g *Guest) end() ExecutableEnd {
	g.seen = true
	g.cancel()
	for _, output := range g.output {
		output.flush()
	}
	result := g.running.Result()
	end := ExecutableEnd{
		Role: g.role.Name, What: g.what(), Outcome: strings.ReplaceAll(result.Outcome.String(), " ", "_"),
		Exit:   result.ExitCode,
		Reason: reasonOf(result.Err),
	}
	var traced interface {
		error
		Trace() string
	}
	if errors.As(result.Err, &traced) {
		end.Trace = traced.Trace()
	}
	var trap *guest.TrapError
	if errors.As(result.Err, &trap) {
		end.Trap = trap.Kind
	}
	return end
}

// reasonOf is an end in a sentence, that of a trap without the guest's stack.
func reasonOf(err error) string {
	var trap *guest.TrapError
	var placed *guest.PlacedError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &trap):
		return trap.Reason()
	case errors.As(err, &placed):
		return placed.Err.Error()
	}
	return err.Error()
}

// where is the place of a running guest: ", in wait_event".  A script that computes is stopped for it: only its end
// shows where it was.
func (g *Guest) where() (where string) {
	running := g.running
	g.role.testbed.Unlocked(func() { // else it may wait to be rid of its output
		if where = running.Where(); where == guest.ScriptComputes {
			running.Stop(context.Background()) // which the end of the case does a moment later
		}
	})
	if place := g.place.Load(); where == guest.ScriptComputes && place != nil {
		g.seen = true
		if where = "at " + *place; strings.HasSuffix(where, ":1:1") { // the engine's for code that calls nothing
			where = "outside of its functions"
		}
	}
	return ", " + where
}

// lineWriter passes on whole lines.
type lineWriter struct {
	write func(line string)
	rest  []byte
}

// maxLine is where a guest that prints without line ends is cut.
const maxLine = 4096

func (w *lineWriter) Write(p []byte) (int, error) {
	w.rest = append(w.rest, p...)
	for {
		end := bytes.IndexByte(w.rest, '\n')
		if end < 0 && len(w.rest) > maxLine {
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
