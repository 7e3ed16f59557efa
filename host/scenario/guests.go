package scenario

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"

	"rdmarun/host"
	"rdmarun/host/scenario/lab"
	"rdmarun/rdmacore"
)

// guestStarter runs the guests of roles with the host's runtime, which it makes when the first guest
// starts: most scenarios have none.
type guestStarter struct {
	provider *rdmacore.Provider
	cache    string
	once     sync.Once
	runtime  *host.Runtime
	err      error
}

func newGuestStarter(provider *rdmacore.Provider, cache string) *guestStarter {
	return &guestStarter{provider: provider, cache: cache}
}

// Close ends the runtime once every guest has ended.
func (s *guestStarter) Close() error {
	s.once.Do(func() { s.err = errors.New("closed") })
	if s.runtime == nil {
		return nil
	}
	return s.runtime.Close(context.Background())
}

// Start compiles the module, from the cache if it can, and starts it.
func (s *guestStarter) Start(ctx context.Context, start lab.GuestStart) (lab.RunningGuest, error) {
	s.once.Do(func() { s.runtime, s.err = host.New(context.WithoutCancel(ctx), host.Config{CacheDir: s.cache}) })
	if s.err != nil {
		return nil, &lab.EnvironmentError{What: "the guest runtime", Err: s.err}
	}
	module, err := s.runtime.Compile(ctx, start.Config.Module)
	if err != nil {
		failure := &lab.Failure{What: "the guest's module cannot be used", Got: err.Error()}
		if errors.Is(err, fs.ErrNotExist) {
			failure.Hint = "`make guests` builds the guests that come with rdmarun"
		}
		return nil, failure
	}
	guest, err := s.runtime.Start(ctx, module, host.GuestConfig{
		Name:     start.Name,
		Provider: s.provider,
		Args:     start.Config.Args,
		Stdout:   start.Stdout,
		Stderr:   start.Stderr,
		Limits:   host.Limits{Time: start.Config.Limits.Time, Memory: start.Config.Limits.Memory},
		Barrier:  start.Barrier,
	})
	if err != nil {
		return nil, &lab.Failure{What: "the guest cannot be started", Got: err.Error()}
	}
	return runningGuest{guest}, nil
}

// runningGuest is a guest of the host as a lab sees it.
type runningGuest struct{ guest *host.Guest }

func (g runningGuest) Done() <-chan struct{} { return g.guest.Done() }

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
