package guest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tetratelabs/wazero/api"

	"rdmarun/hostfuncs"
)

// Guest is one guest, running or ended.
type Guest struct {
	name     string
	module   *Module
	config   Config
	budget   *hostfuncs.Budget
	outputs  *outputs
	instance *hostfuncs.Instance
	cancel   context.CancelCauseFunc
	calls    chan *request
	running  api.Module      // of the guest's goroutine
	life     context.Context // likewise
	done     chan struct{}
	result   Result // once done is closed
}

// Start starts a guest.  It runs until it ends by itself, its time is over, ctx ends, or it is stopped; Done
// tells.  The error says why it could not be started.
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
		Handles: config.Limits.Handles, Files: config.Limits.Files})
	config.Limits.Memory = budget.Limits().Memory
	if err := budget.Charge(hostfuncs.Cost{Memory: max(0, m.InstanceSize()-freeInstance)}); err != nil {
		return nil, fmt.Errorf("start guest %s: its tables, globals and functions: %w", config.Name, err)
	}
	if m.MinMemory() > config.Limits.Memory {
		return nil, fmt.Errorf("start guest %s: it begins with %s of memory and may have %s; raise its memory limit",
			config.Name, mebibytes(m.MinMemory()), mebibytes(config.Limits.Memory))
	}
	g := &Guest{name: config.Name, module: m, config: config, budget: budget, calls: make(chan *request), done: make(chan struct{})}
	barrier := g.wait
	if config.Barrier == nil {
		barrier = nil // a party of one does not wait
	}
	g.instance = hostfuncs.NewInstance(hostfuncs.Config{
		Provider: config.Provider,
		Serial:   r.serials.Add(1),
		Log:      g.log,
		Barrier:  barrier,
		Budget:   budget,
		Deny:     config.Deny,

		Listening: config.Listening,
	})
	ctx, g.cancel = context.WithCancelCause(ctx)
	expire := context.CancelFunc(func() {})
	if limit := config.Limits.Time; limit > 0 {
		end := time.Now()
		if !config.Began.IsZero() {
			end = config.Began
		}
		ctx, expire = context.WithDeadlineCause(ctx, end.Add(limit), fmt.Errorf("%w of %s", errTimeLimit, limit))
	}
	// The guest acts from now on, and not only once its goroutine has begun.
	clock := config.Provider.Clock()
	clock.Enter()
	go func() {
		defer close(g.done)
		defer clock.Leave()
		defer g.cancel(nil)
		defer expire()
		if err := pin(config.CPUs); err != nil {
			g.result = Result{Outcome: Failed, ExitCode: codeFailed, Err: fmt.Errorf("start guest %s: %w", g.name, err)}
			return
		}
		g.result = g.run(ctx)
	}()
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

// Stop asks the guest to end (hostfuncs.Instance.RequestStop), stops it if it has not within StopGrace or
// before ctx ends, and returns when everything it had is freed.
func (g *Guest) Stop(ctx context.Context) Result {
	g.instance.RequestStop()
	grace := time.NewTimer(StopGrace)
	defer grace.Stop()
	select {
	case <-g.done:
		return g.result
	case <-grace.C:
	case <-ctx.Done():
	}
	g.cancel(errStopped)
	<-g.done
	return g.result
}

func mebibytes(bytes int64) string { return fmt.Sprintf("%.4g MiB", float64(bytes)/(1<<20)) }
