package rdmacore

import (
	"context"
	"fmt"
	"syscall"
)

// Error is the failure of one operation of the core.
type Error struct {
	Op    string        // man-page name of the function, for example "rdma_accept"; "" when Why says it all
	Errno syscall.Errno // what the function reported; errors.Is(err, syscall.EINVAL) works
	Why   string        // what it means here and what helps, or ""
}

func (e *Error) Error() string {
	if e.Op == "" {
		return e.Why
	}
	if e.Why == "" {
		return e.Op + ": " + e.Errno.Error()
	}
	return e.Op + ": " + e.Errno.Error() + ": " + e.Why
}

// Unwrap returns the errno.
func (e *Error) Unwrap() error { return e.Errno }

// fail makes an Error whose reason is built by fmt.Sprintf.
func fail(op string, errno syscall.Errno, format string, args ...any) *Error {
	return &Error{Op: op, Errno: errno, Why: fmt.Sprintf(format, args...)}
}

// closed is the error of a method called on an object that is nil, closed or destroyed.
func closed(op, kind string) *Error {
	return &Error{Op: op, Errno: syscall.EBADF, Why: "the " + kind + " is closed"}
}

// check turns a result of the C core (0 or more, or a negative errno) into an error.
func check(op string, result int) error {
	if result >= 0 {
		return nil
	}
	return &Error{Op: op, Errno: syscall.Errno(-result), Why: unsupported(op, syscall.Errno(-result))}
}

// unsupported says whose lack an ENOSYS is: it is the one errno the C core adds of its own accord,
// for an entry that the provider's table does not have.
func unsupported(op string, errno syscall.Errno) string {
	if errno != syscall.ENOSYS {
		return ""
	}
	return "this provider has no " + op
}

// cancelled is the error of a wait that its context ended; it wraps ctx.Err().
func cancelled(ctx context.Context, op, what string) error {
	return fmt.Errorf("%s: gave up waiting for %s: %w", op, what, ctx.Err())
}
