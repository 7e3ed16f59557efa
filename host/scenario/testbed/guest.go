package testbed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"rdmarun/host/guest"
)

// GuestConfig is a role played by a WebAssembly program.
type GuestConfig struct {
	Module string // path of the .wasm file, for a script the engine's
	Args   []string
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
		return append([]string{c.Module}, c.Inputs...)
	case c.File != "":
		return append([]string{c.File}, c.Inputs...)
	}
	return c.Inputs
}

// GuestInput is what a guest finds when it starts, in addition to its arguments.
type GuestInput struct {
	Env   map[string]string
	Stdin string
	Files map[string]string // by path, which begins with no slash
	// Deny and Rules are what it may not do.
	Deny  guest.Capabilities
	Rules guest.Rules
}

// String counts what it has.
func (i GuestInput) String() string {
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
	Start(ctx context.Context, module string, config guest.Config) (RunningGuest, error)
}

// RunningGuest is a guest that was started: a *guest.Guest, or what a test has in its place.
type RunningGuest interface {
	Done() <-chan struct{}
	Result() guest.Result
	Call(ctx context.Context, function string, arguments ...uint64) ([]uint64, error)
	// Where is the place of a guest that has not ended, as the end of a sentence.
	Where() string
	Stop(ctx context.Context) guest.Result
}

// GuestResult is how a guest ended, in the words of scenarios.
type GuestResult struct {
	Role string
	// Outcome is "exited", "trapped", "timed_out", "stopped" or "failed".
	Outcome string
	// Exit is the guest's own exit code, or the one that stands for the outcome.
	Exit int
	// Reason explains every end but exit code 0.
	Reason string
	// Trace is the stack of a guest that trapped, a line for each function.
	Trace string
}

// Guest is the guest of a role.
type Guest struct {
	role    *Role
	config  GuestConfig
	running RunningGuest // nil until Start
	cancel  context.CancelFunc
	output  []*lineWriter
	// seen is set once a step has looked at how the guest ended.
	seen bool
	// kept is set for a guest of a fixture, for which no step of the case waits.
	kept bool
}

// Start starts the guest with the given arguments, nil for those of the role.
func (g *Guest) Start(ctx context.Context, args []string, input GuestInput) error {
	if g.Running() {
		return &Failure{What: fmt.Sprintf("the guest of role %s runs already", g.role.Name)}
	}
	if args == nil {
		args = g.config.Args
	}
	name, t := g.role.Name, g.role.testbed
	write := func(line string) { t.Output(name, line) }
	g.output = []*lineWriter{{write: write}, {write: write}}
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
	running, err := t.guests.Start(life, g.config.Module, config)
	if err != nil {
		cancel()
		return err
	}
	g.running, g.cancel, g.seen, g.kept = running, cancel, false, false
	t.listeners.announce()
	g.role.deferFree("guest", func() error {
		g.running.Stop(context.Background())
		if end := g.ended(); end.Outcome == "stopped" && end.Trace != "" {
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

// Running reports whether the guest was started and has not ended.
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

// Wait waits until the guest has ended, and returns how.
func (g *Guest) Wait(ctx context.Context) (GuestResult, error) {
	running := g.running
	if running == nil {
		return GuestResult{}, &Failure{
			What: fmt.Sprintf("the guest of role %s was not started", g.role.Name),
			Hint: "a step `guest: start` comes first",
		}
	}
	t := g.role.testbed
	var late error
	t.Unlocked(func() { late = t.Clock().Await(ctx, running.Done(), nil) })
	if late != nil {
		return GuestResult{}, ctx.Err()
	}
	return g.ended(), nil
}

// Call calls a function of the guest.  What it refuses, and a function that traps, is a Failure.
func (g *Guest) Call(ctx context.Context, function string, arguments []uint64) (results []uint64, err error) {
	if !g.Running() {
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
func (g *Guest) Stop(ctx context.Context) (GuestResult, error) {
	if running := g.running; running != nil {
		g.role.testbed.Unlocked(func() { running.Stop(ctx) })
	}
	return g.Wait(context.WithoutCancel(ctx)) // Stop returns when the guest has ended
}

// ended is how the guest ended, and passes on its last output.  The testbed is locked.
func (g *Guest) ended() GuestResult {
	g.seen = true
	g.cancel()
	for _, output := range g.output {
		output.flush()
	}
	result := g.running.Result()
	end := GuestResult{
		Role: g.role.Name, Outcome: strings.ReplaceAll(result.Outcome.String(), " ", "_"), Exit: result.ExitCode,
		Reason: reasonOf(result.Err),
	}
	var traced interface {
		error
		Trace() string
	}
	if errors.As(result.Err, &traced) {
		end.Trace = traced.Trace()
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
		return trap.Reason
	case errors.As(err, &placed):
		return placed.Err.Error()
	}
	return err.Error()
}

// Where is the place of a running guest, as the end of a sentence: ", in wait_event".
func (g *Guest) Where() (where string) {
	if !g.Running() {
		return ""
	}
	running := g.running
	g.role.testbed.Unlocked(func() { where = running.Where() }) // else it may wait to be rid of its output
	return ", " + where
}

func (g *Guest) stillRuns() string {
	return fmt.Sprintf("%s: its guest still runs (guest: wait, or guest: stop)", g.role.Name)
}

// FailedGuests are the ends of the guests that no step has asked about, but of those with exit code 0.
func (t *Testbed) FailedGuests() []GuestResult {
	var failed []GuestResult
	for _, role := range t.roles {
		if g := role.guest; g != nil && g.running != nil && !g.seen && !g.Running() {
			if end := g.ended(); end.Exit != 0 {
				failed = append(failed, end)
			}
		}
	}
	return failed
}

// leftover describes a guest that no step has waited for.
func (g *Guest) leftover() string {
	switch {
	case g.running == nil || g.seen, g.kept && g.Running():
		return ""
	case g.Running():
		return g.stillRuns()
	}
	result := g.ended()
	if result.Exit == 0 {
		return ""
	}
	return fmt.Sprintf(
		"%s: its guest ended with exit code %d (%s) and no step asked", g.role.Name, result.Exit, result.Outcome,
	)
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
