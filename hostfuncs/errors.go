package hostfuncs

import (
	"context"
	"errors"
	"syscall"
)

// result is 0 for success, or what fail makes of err.
func (i *Instance) result(err error) int32 {
	if err == nil {
		return 0
	}
	return i.fail(err)
}

// fail keeps err for error_text and returns its negative errno.
func (i *Instance) fail(err error) int32 {
	i.lastError = err
	return -int32(errnoOf(err))
}

// refuse is fail for what the host itself finds wrong.
func (i *Instance) refuse(errno syscall.Errno, why string) int32 {
	return i.fail(&refusal{errno, why})
}

// badHandle is the answer to a handle that names nothing here.
func (i *Instance) badHandle(kind handleKind) int32 {
	return i.refuse(syscall.EBADF, "no such "+kind.String()+" handle (stale, of another kind, or of another guest)")
}

// badPointer is the answer to a pointer with a fault.
func (i *Instance) badPointer(parameter string, wrong fault) int32 {
	return i.refuse(wrong.errno(), parameter+" "+wrong.String())
}

// refusal is an error of the ABI itself.
type refusal struct {
	errno syscall.Errno
	why   string
}

func (e *refusal) Error() string { return e.errno.Error() + ": " + e.why }
func (e *refusal) Unwrap() error { return e.errno }

// errnoOf is the errno of the ABI for an error. It maps any errno outside the ABI to one of the ABI. Such an errno is
// a peer's status in an event, a code of the kernel's own (ENOTSUPP), or one of the resolver.
func errnoOf(err error) syscall.Errno {
	var errno syscall.Errno
	switch {
	case errors.As(err, &errno) && documented(errno):
		return errno
	case errno == enotsupp:
		return syscall.EOPNOTSUPP
	case errors.Is(err, context.DeadlineExceeded):
		return syscall.ETIMEDOUT
	case errors.Is(err, context.Canceled):
		return syscall.ECANCELED
	}
	return syscall.EIO
}

// enotsupp is the kernel's ENOTSUPP, which some drivers let out though no program has a name for it.
const enotsupp = syscall.Errno(524)
