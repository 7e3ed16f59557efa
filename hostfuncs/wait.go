package hostfuncs

import (
	"context"
	"errors"
	"syscall"
	"time"

	"github.com/tetratelabs/wazero/sys"
)

// Nanoseconds is a timeout on the provider's clock: 0 does not wait, a negative one waits as long as the guest may run.
type Nanoseconds int64

// wait runs one wait of the guest under its timeout, the guest's own end, and a request to stop. It returns wait's
// error, -ETIMEDOUT or -ECANCELED. When the guest has no right to run any more, it does not return. The panic unwinds
// the guest: wazero ends a guest from within a host function in this way.
func (i *Instance) wait(timeout Nanoseconds, wait func(context.Context) error) int32 {
	ctx, cancel := context.WithCancel(i.ctx)
	defer cancel()
	if timeout >= 0 {
		var expire context.CancelFunc
		ctx, expire = i.clock.WithTimeout(ctx, time.Duration(timeout))
		defer expire()
	}
	if !i.stopDelivered {
		defer context.AfterFunc(i.stop, cancel)()
		ctx = stoppable{ctx, i.stop}
	}
	err := wait(ctx)
	if err == nil {
		return 0
	}
	i.exitIfOver()
	if errors.Is(err, context.Canceled) && i.stopRequested() {
		i.stopDelivered = true
		return i.refuse(syscall.ECANCELED, "the guest was asked to stop")
	}
	if errors.Is(err, context.DeadlineExceeded) && !errors.As(err, new(syscall.Errno)) {
		return i.refuse(
			syscall.ETIMEDOUT, "the call did not end within its timeout of "+time.Duration(timeout).String(),
		)
	}
	return i.fail(err)
}

// stoppable is a context that has ended as soon as the guest is asked to stop. A virtual clock would move in the time
// that it takes to cancel the context.
type stoppable struct {
	context.Context
	stop context.Context
}

func (s stoppable) Err() error {
	if err := s.Context.Err(); err != nil {
		return err
	}
	return s.stop.Err()
}

// exitIfOver ends the guest if its right to run has ended.
func (i *Instance) exitIfOver() {
	if i.over.Load() || i.ctx.Err() != nil {
		endGuest()
	}
}

// endGuest unwinds the guest from within a host function.
func endGuest() { panic(sys.NewExitError(sys.ExitCodeContextCanceled)) }

func (i *Instance) stopRequested() bool { return i.stop.Err() != nil }
