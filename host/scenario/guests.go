package scenario

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"time"

	"rdmarun/host/guest"
	"rdmarun/host/guest/wasm"
	"rdmarun/host/scenario/compile"
	"rdmarun/host/scenario/testbed"
	"rdmarun/rdmacore"
)

// guestRuntime is the host's runtime, which all cases of a run share.  It is made when the first guest starts:
// most scenarios have none.
type guestRuntime struct {
	config  guest.RuntimeConfig
	once    sync.Once
	runtime *guest.Runtime
	err     error
}

func newGuestRuntime(config RunConfig) *guestRuntime {
	return &guestRuntime{config: guest.RuntimeConfig{CacheDir: config.GuestCache, Warn: config.Warn}}
}

// get makes the runtime on first use.
func (r *guestRuntime) get(ctx context.Context) (*guest.Runtime, error) {
	r.once.Do(func() { r.runtime, r.err = guest.New(context.WithoutCancel(ctx), r.config) })
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
func (s *guestStarter) Start(ctx context.Context, start testbed.GuestStart) (testbed.RunningGuest, error) {
	runtime, err := s.runtime.get(ctx)
	if err != nil {
		return nil, &testbed.EnvironmentError{What: "the guest runtime", Err: err}
	}
	limits := guest.Limits(start.Config.Limits)
	module, began, err := compileGuest(ctx, runtime, start.Config.Module, limits)
	if testbed.OutOfFiles(err) {
		return nil, &testbed.EnvironmentError{What: "the guest's module", Err: err}
	}
	if err != nil {
		failure := &testbed.Failure{What: "the guest's module cannot be used", Got: err.Error()}
		if errors.Is(err, fs.ErrNotExist) {
			failure.Hint = "`make guests` builds the guests that come with rdmarun"
		}
		return nil, failure
	}
	guest, err := runtime.Start(ctx, module, guest.Config{
		Name:     start.Name,
		Provider: s.provider,
		Args:     start.Config.Args,
		Stdout:   start.Stdout,
		Stderr:   start.Stderr,
		Limits:   limits,
		Began:    began,
		Barrier:  start.Barrier,
		CPUs:     start.CPUs,

		Listening: func(news guest.Listening) { start.Listening(testbed.Listening(news)) },
	})
	if err != nil {
		return nil, &testbed.Failure{What: "the guest cannot be started", Got: err.Error()}
	}
	return runningGuest{guest}, nil
}

// compileGuest compiles a module within the time limit of the guest, and tells when that began.
func compileGuest(ctx context.Context, runtime *guest.Runtime, path string, limits guest.Limits) (*guest.Module, time.Time, error) {
	ctx, began, cancel := limits.Compiling(ctx)
	defer cancel()
	module, err := runtime.Compile(ctx, path)
	return module, began, err
}

// runningGuest is a guest of the host as a testbed sees it.
type runningGuest struct{ guest *guest.Guest }

func (g runningGuest) Done() <-chan struct{} { return g.guest.Done() }

func (g runningGuest) Call(ctx context.Context, function string, arguments ...uint64) ([]uint64, error) {
	return g.guest.Call(ctx, function, arguments...)
}

func (g runningGuest) Stop(ctx context.Context) { g.guest.Stop(ctx) }

func (g runningGuest) Result() testbed.GuestResult {
	result := g.guest.Result()
	converted := testbed.GuestResult{Outcome: outcomeWord(result.Outcome), Exit: result.ExitCode, Took: result.Duration}
	var trap *guest.TrapError
	switch {
	case errors.As(result.Err, &trap):
		converted.Reason = trap.Reason
	case result.Err != nil:
		converted.Reason = fmt.Sprint(result.Err)
	}
	return converted
}

// inspectModule lists the functions of a guest's module.
func inspectModule(path string) (map[string]compile.Signature, error) {
	facts, err := guest.Inspect(path)
	if err != nil {
		return nil, err
	}
	functions := make(map[string]compile.Signature)
	for _, export := range facts.Exports {
		if export.Kind == wasm.KindFunction {
			functions[export.Name] = compile.Signature(export.Signature)
		}
	}
	return functions, nil
}

func outcomeWord(outcome guest.Outcome) string {
	switch outcome {
	case guest.Exited:
		return "exited"
	case guest.Trapped:
		return "trapped"
	case guest.TimedOut:
		return "timed_out"
	case guest.Stopped:
		return "stopped"
	}
	return "failed"
}
