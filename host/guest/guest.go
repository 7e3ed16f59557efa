package guest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tetratelabs/wazero/api"

	"rdmarun/host/guest/trace"
	"rdmarun/hostfuncs"
	"rdmarun/rdmacore"
)

// Guest is one guest, running or ended.
type Guest struct {
	name     string
	module   *Module
	config   Config
	budget   *hostfuncs.Budget
	files    *files
	outputs  *outputs
	instance *hostfuncs.Instance
	cancel   context.CancelCauseFunc
	asked    requests
	calling  calling
	last     readStack       // of the call that ended the guest; of the guest's goroutine
	running  api.Module      // of the guest's goroutine
	memory   *linearMemory   // likewise
	life     context.Context // likewise
	done     <-chan struct{}
	over     atomic.Bool // its code has ended
	result   Result      // once done is closed
	trace    *trace.Guest
}

// Start starts a guest.  It runs until it ends by itself, its time is over, ctx ends, or it is stopped; then Done
// is closed.  The error explains why it could not be started.
func (r *Runtime) Start(ctx context.Context, m *Module, config Config) (*Guest, error) {
	if config.Provider == nil {
		return nil, errors.New("start guest: no provider")
	}
	if config.Name == "" {
		config.Name = m.name
	}
	if config.Limits.Time == 0 {
		config.Limits.Time = DefaultTime
	}
	if config.Limits.Output == 0 {
		config.Limits.Output = DefaultOutput
	}
	budget := hostfuncs.NewBudget(hostfuncs.Limits{Memory: config.Limits.Memory, Registered: config.Limits.Registered,
		Handles: config.Limits.Handles, Files: config.Limits.Files, Ports: config.Limits.Ports})
	config.Limits.Memory = budget.Limits().Memory
	if err := budget.Charge(hostfuncs.Cost{Memory: max(0, m.instanceSize()-freeInstance)}); err != nil {
		return nil, fmt.Errorf("start guest %s: its tables, globals and functions: %w", config.Name, err)
	}
	if m.minMemory() > config.Limits.Memory {
		return nil, fmt.Errorf("start guest %s: it begins with %s of memory and may have %s; raise its memory limit",
			config.Name, hostfuncs.Bytes(m.minMemory()), hostfuncs.Bytes(config.Limits.Memory))
	}
	g := &Guest{
		name: config.Name, module: m, config: config, budget: budget, files: newFiles(config.Files, budget),
		asked: requests{came: make(chan struct{})}, calling: calling{asked: make(chan chan<- []readStack)},
	}
	if r.tracer != nil {
		g.trace = r.tracer.Guest(g.name)
	}
	barrier := g.wait
	if config.Barrier == nil {
		barrier = nil // a guest alone does not wait
	}
	g.instance = hostfuncs.NewInstance(hostfuncs.Config{
		Provider:    config.Provider,
		Device:      config.Device,
		Serial:      r.serials.Add(1),
		Log:         g.log,
		Barrier:     barrier,
		Budget:      budget,
		Deny:        config.Deny,
		Rules:       config.Rules,
		Participant: config.Participant,

		Listening: config.Listening,
	})
	ctx, g.cancel = context.WithCancelCause(ctx)
	expire := context.CancelFunc(func() {})
	if limit := config.Limits.Time; limit > 0 {
		end := time.Now()
		if !config.Began.IsZero() {
			end = config.Began
		}
		over := fmt.Errorf("%w of %s", errTimeLimit, limit)
		if config.Provider.Clock().Virtual() {
			over = fmt.Errorf(
				"%w: it computed, or spun without sched_yield, and the virtual clock stood still meanwhile", over,
			)
		}
		ctx, expire = context.WithDeadlineCause(ctx, end.Add(limit), over)
	}
	// On a virtual clock this is not over before the guest first waits.
	g.done = config.Provider.Clock().Launch(func() {
		defer g.cancel(nil)
		defer expire()
		if err := pin(config.CPUs); err != nil {
			g.result = Result{Outcome: Failed, ExitCode: codeFailed, Err: fmt.Errorf("start guest %s: %w", g.name, err)}
			return
		}
		g.result = g.run(ctx)
	})
	return g, nil
}

// Run runs a guest to its end.
func (r *Runtime) Run(ctx context.Context, m *Module, config Config) Result {
	g, err := r.Start(ctx, m, config)
	if err != nil {
		return Result{Outcome: Failed, ExitCode: codeFailed, Err: err}
	}
	<-g.done
	return g.result
}

// Name is the guest's.
func (g *Guest) Name() string { return g.name }

// Done is closed when the guest has ended and everything it had is freed.
func (g *Guest) Done() <-chan struct{} { return g.done }

// Over reports whether the guest's code has ended. Its objects may still be freed: Done is closed after that.
func (g *Guest) Over() bool { return g.over.Load() }

// Result is how the guest ended, once Done is closed; the zero Result before.
func (g *Guest) Result() Result {
	select {
	case <-g.done:
		return g.result
	default:
		return Result{}
	}
}

// Wait waits for the guest's end.  The error is ctx's, when that ends first; the guest runs on.
func (g *Guest) Wait(ctx context.Context) (Result, error) {
	select {
	case <-g.done:
		return g.result, nil
	case <-ctx.Done():
		return Result{}, fmt.Errorf("wait for guest %s: %w", g.name, context.Cause(ctx))
	}
}

// Stop asks the guest to end (hostfuncs.Instance.RequestStop). It stops the guest if that has not ended within
// stopGrace or before ctx ends. It returns when everything of the guest is freed. On a virtual clock the caller acts.
func (g *Guest) Stop(ctx context.Context) Result {
	g.instance.RequestStop()
	grace, cancel := context.WithTimeout(ctx, stopGrace)
	defer cancel()
	clock := g.config.Provider.Clock()
	if clock.Await(grace, g.done, nil) != nil {
		g.cancel(errStopped)
		_ = clock.Await(context.Background(), g.done, nil) // which does not end
	}
	<-g.done
	return g.result
}

// request is a call of one of a guest's functions, made by another goroutine than the guest's.
type request struct {
	function  string
	arguments []uint64
	answered  chan struct{} // closed once there are
	results   []uint64
	err       error
}

func (r *request) answer(results []uint64, err error) {
	r.results, r.err = results, err
	close(r.answered)
}

// requests are those that a guest has not taken, in their order.
type requests struct {
	mu   sync.Mutex
	list []*request
	came chan struct{} // closed while there are any
}

func (q *requests) put(r *request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.list = append(q.list, r); len(q.list) == 1 {
		close(q.came)
	}
}

// remove takes a request back, or the first for nil; it returns nil if that is not there.
func (q *requests) remove(r *request) *request {
	q.mu.Lock()
	defer q.mu.Unlock()
	at := slices.Index(q.list, r)
	if r == nil && len(q.list) > 0 {
		at = 0
	}
	if at < 0 {
		return nil
	}
	r = q.list[at]
	if q.list = slices.Delete(q.list, at, at+1); len(q.list) == 0 {
		q.came = make(chan struct{})
	}
	return r
}

func (q *requests) any() <-chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.came
}

// Call calls an exported function of the guest, on the guest's own goroutine. The guest accepts calls while it waits
// at a barrier, because a running program cannot be entered. Arguments and results are as wazero has them, an i32 in
// the lower half. A function that traps or exits ends the guest.
//
// The error is ctx's when ctx ends before the guest comes to a barrier, or before the call returns.
func (g *Guest) Call(ctx context.Context, function string, arguments ...uint64) ([]uint64, error) {
	r := &request{function: function, arguments: arguments, answered: make(chan struct{})}
	g.asked.put(r)
	err := g.config.Provider.Clock().Await(ctx, r.answered, g.done)
	waits := g.asked.remove(r) != nil
	select {
	case <-r.answered:
		return r.results, r.err
	default:
	}
	switch {
	case err == nil:
		return nil, fmt.Errorf("call %s of guest %s: the guest has ended", function, g.name)
	case waits:
		return nil, fmt.Errorf(
			"call %s of guest %s, which takes calls while it waits at a barrier: %w", function, g.name, ctx.Err(),
		)
	}
	return nil, fmt.Errorf("call %s of guest %s: it does not return: %w", function, g.name, ctx.Err())
}

// wait is the guest at a barrier, on its own goroutine.
func (g *Guest) wait(ctx context.Context, barrier string) error {
	opened := g.config.Barrier(barrier)
	for {
		if err := g.config.Provider.Clock().Await(ctx, opened, g.asked.any()); err != nil {
			if g.config.LeaveBarrier != nil {
				g.config.LeaveBarrier(barrier)
			}
			return ctx.Err()
		}
		select {
		case <-opened:
			return nil
		default:
		}
		if r := g.asked.remove(nil); r != nil {
			g.serve(r)
		}
	}
}

// serve makes one call.
func (g *Guest) serve(r *request) {
	function := g.running.ExportedFunction(r.function)
	if function == nil {
		r.answer(nil, fmt.Errorf("guest %s exports no function %q", g.name, r.function))
		return
	}
	if want := len(function.Definition().ParamTypes()); want != len(r.arguments) {
		r.answer(
			nil,
			fmt.Errorf(
				"function %q of guest %s takes %d arguments, not %d", r.function, g.name, want, len(r.arguments),
			),
		)
		return
	}
	results, err := g.invoke(g.instance.Context(g.life), function, r.arguments...)
	if err == nil {
		r.answer(results, nil)
		return
	}
	r.answer(nil, g.trapError(err))
	panic(err) // through the guest's own code, which ends with it
}

// Outcome is how a guest ended.
type Outcome int

const (
	Exited   Outcome = iota // by itself, with an exit code
	Trapped                 // it did what WebAssembly forbids
	TimedOut                // it exceeded its time limit
	Stopped                 // it was stopped, by Stop or by the end of its context
	Failed                  // it could not be started, or not all of it could be freed
)

func (o Outcome) String() string {
	return [...]string{"exited", "trapped", "timed out", "stopped", "failed"}[o]
}

// The exit codes of a guest that has none of its own; that of timeout(1) where there is one.
const (
	codeFailed   = 4
	codeTimedOut = 124
	codeTrapped  = 125
)

// CodeStopped is the exit code of a guest that was stopped: that of a shell for SIGTERM.
const CodeStopped = 143

// Result is how a guest ended and what became of what it had.
type Result struct {
	Outcome Outcome
	// ExitCode is the guest's own when it exited (255 for one above), else 125 (trapped), 124 (timed
	// out), 143 (stopped) or 4 (failed).
	ExitCode int
	// Err is nil for a guest that exited with 0, else what happened, in a sentence.
	Err      error
	Duration time.Duration
	// Freed is what the guest left behind and the host freed.
	Freed rdmacore.Live
}

// OK means that the guest exited with 0 and without an error.
func (r Result) OK() bool { return r.Outcome == Exited && r.ExitCode == 0 && r.Err == nil }

var (
	errTimeLimit = errors.New("the guest exceeded its time limit")
	errStopped   = errors.New("the guest was asked to stop and did not end in time")
)

// exitedError is the end of a guest with a code, and what it has said of it.
func exitedError(code int, why string) error {
	switch {
	case code == 0:
		return nil
	case why != "":
		return fmt.Errorf("the guest exited with code %d: %s", code, why)
	}
	return fmt.Errorf("the guest exited with code %d", code)
}
