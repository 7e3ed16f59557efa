package rdmacore

import (
	"context"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// fdWaiter waits in the Go runtime's poller for a descriptor that belongs to a C object.  The poller
// gets a duplicate, so that closing the one never touches the other.
type fdWaiter struct {
	clock *Clock
	file  *os.File
	raw   syscall.RawConn
	turn  chan struct{} // holds one token: a file has one read deadline, so one wait at a time
}

// newFDWaiter watches fd, which is non-blocking already.
func newFDWaiter(clock *Clock, fd int, name string) (*fdWaiter, error) {
	dup, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, &Error{Op: "fcntl", Errno: err.(syscall.Errno), Why: "duplicating the descriptor of " + name}
	}
	file := os.NewFile(uintptr(dup), name)
	// Refused when the poller does not take the descriptor; a wait could then not be cancelled.
	if err := file.SetReadDeadline(time.Time{}); err != nil {
		file.Close()
		return nil, &Error{Op: "epoll_ctl", Errno: syscall.EPERM, Why: name + " cannot be polled"}
	}
	raw, err := file.SyscallConn()
	if err != nil {
		file.Close()
		return nil, &Error{Op: "epoll_ctl", Errno: syscall.EBADF, Why: name + ": " + err.Error()}
	}
	w := &fdWaiter{clock: clock, file: file, raw: raw, turn: make(chan struct{}, 1)}
	w.turn <- struct{}{}
	return w, nil
}

// wait calls try at once and then each time the descriptor becomes readable, until try returns true.
// false means that ctx ended first; what is there already is taken also when it had ended before.
func (w *fdWaiter) wait(ctx context.Context, try func() bool) bool {
	if w.clock.Virtual() {
		return w.clock.virtual.wait(ctx, try)
	}
	if ctx.Err() != nil {
		return try()
	}
	select {
	case <-w.turn:
	case <-ctx.Done():
		return false
	}
	defer func() { w.turn <- struct{}{} }()

	fired := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		w.file.SetReadDeadline(time.Unix(1, 0))
		close(fired)
	})
	defer func() {
		if !stop() {
			<-fired // else its deadline could hit the next wait
			w.file.SetReadDeadline(time.Time{})
		}
	}()
	done := false
	w.raw.Read(func(uintptr) bool {
		done = try()
		return done
	})
	return done
}

func (w *fdWaiter) close() { w.file.Close() }
