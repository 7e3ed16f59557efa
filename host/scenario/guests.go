package scenario

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"time"

	"rdmarun/host"
	"rdmarun/host/scenario/lab"
	"rdmarun/host/scenario/plan"
	"rdmarun/host/wasm"
	"rdmarun/rdmacore"
)

// guestRuntime is the host's runtime, which all cases of a run share.  It is made when the first guest starts:
// most scenarios have none.
type guestRuntime struct {
	config  host.Config
	once    sync.Once
	runtime *host.Runtime
	err     error
}

func newGuestRuntime(config RunConfig) *guestRuntime {
	return &guestRuntime{config: host.Config{CacheDir: config.GuestCache, Warn: config.Warn}}
}

// get makes the runtime on first use.
func (r *guestRuntime) get(ctx context.Context) (*host.Runtime, error) {
	r.once.Do(func() { r.runtime, r.err = host.New(context.WithoutCancel(ctx), r.config) })
	return r.runtime, r.err
}

// Close ends the runtime once every guest has ended.
func (r *guestRuntime) Close() error {
	r.once.Do(func() { r.err = errors.New("closed") })
	if r.runtime == nil {
		return nil
	}
	return r.runtime.Close(context.Background())
}

// guestStarter runs the guests of one case.
type guestStarter struct {
	runtime  *guestRuntime
	provider *rdmacore.Provider
}

// Start compiles the module, from the cache if it can, and starts it.
func (s *guestStarter) Start(ctx context.Context, start lab.GuestStart) (lab.RunningGuest, error) {
	runtime, err := s.runtime.get(ctx)
	if err != nil {
		return nil, &lab.EnvironmentError{What: "the guest runtime", Err: err}
	}
	limits := host.Limits(start.Config.Limits)
	module, began, err := compileGuest(ctx, runtime, start.Config.Module, limits)
	if lab.OutOfFiles(err) {
		return nil, &lab.EnvironmentError{What: "the guest's module", Err: err}
	}
	if err != nil {
		failure := &lab.Failure{What: "the guest's module cannot be used", Got: err.Error()}
		if errors.Is(err, fs.ErrNotExist) {
			failure.Hint = "`make guests` builds the guests that come with rdmarun"
		}
		return nil, failure
	}
	guest, err := runtime.Start(ctx, module, host.GuestConfig{
		Name:     start.Name,
		Provider: s.provider,
		Args:     start.Config.Args,
		Stdout:   start.Stdout,
		Stderr:   start.Stderr,
		Limits:   limits,
		Began:    began,
		Barrier:  start.Barrier,
		CPUs:     start.CPUs,

		Listening: func(news host.Listening) { start.Listening(lab.Listening(news)) },
	})
	if err != nil {
		return nil, &lab.Failure{What: "the guest cannot be started", Got: err.Error()}
	}
	return runningGuest{guest}, nil
}

// compileGuest compiles a module within the time limit of the guest, and tells when that began.
func compileGuest(ctx context.Context, runtime *host.Runtime, path string, limits host.Limits) (*host.Module, time.Time, error) {
	ctx, began, cancel := limits.Compiling(ctx)
	defer cancel()
	module, err := runtime.Compile(ctx, path)
	return module, began, err
}

// runningGuest is a guest of the host as a lab sees it.
type runningGuest struct{ guest *host.Guest }

func (g runningGuest) Done() <-chan struct{} { return g.guest.Done() }

func (g runningGuest) Call(ctx context.Context, function string, arguments ...uint64) ([]uint64, error) {
	return g.guest.Call(ctx, function, arguments...)
}

func (g runningGuest) Stop(ctx context.Context) { g.guest.Stop(ctx) }

func (g runningGuest) Result() lab.GuestResult {
	result := g.guest.Result()
	converted := lab.GuestResult{Outcome: outcomeWord(result.Outcome), Exit: result.ExitCode, Took: result.Duration}
	var trap *host.TrapError
	switch {
	case errors.As(result.Err, &trap):
		converted.Reason = trap.Reason
	case result.Err != nil:
		converted.Reason = fmt.Sprint(result.Err)
	}
	return converted
}

// inspectModule lists the functions of a guest's module.
func inspectModule(path string) (map[string]plan.Signature, error) {
	facts, err := host.Inspect(path)
	if err != nil {
		return nil, err
	}
	functions := make(map[string]plan.Signature)
	for _, export := range facts.Exports {
		if export.Kind == wasm.KindFunction {
			functions[export.Name] = plan.Signature(export.Signature)
		}
	}
	return functions, nil
}

func outcomeWord(outcome host.Outcome) string {
	switch outcome {
	case host.Exited:
		return "exited"
	case host.Trapped:
		return "trapped"
	case host.TimedOut:
		return "timed_out"
	case host.Stopped:
		return "stopped"
	}
	return "failed"
}
