package rdmacore

// #include "core/core.h"
import "C"

import (
	"context"
	"fmt"
	"runtime"
	"syscall"
)

// Error is the failure of one operation of the core.
type Error struct {
	Op    string        // man-page name of the function, for example "rdma_accept"; "" when Why names it
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

// fail makes an Error with a reason that fmt.Sprintf formats.
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

// unsupported names the component that lacks the function. ENOSYS is the one errno that the C core itself adds, for an
// entry that the provider's table does not have.
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

// call makes a call about the id, and turns its result into an error that explains the errno.
func (id *ID) call(op, address string, call func() C.int) error {
	return id.explain(op, id.channel.provider.ask(call), address)
}

// explain turns an answer into an error that explains the errno for this id: in the provider's own words
// where it has some.
func (id *ID) explain(op string, answer answer, address string) error {
	err := answer.err(op)
	if failure, failed := err.(*Error); failed && failure.Why == "" {
		failure.Why = id.reason(op, failure.Errno, address)
	}
	return err
}

// reason words the errors of rdma_*(3).
func (id *ID) reason(op string, errno syscall.Errno, address string) string {
	switch errno {
	case syscall.EINVAL:
		return id.invalid(op)
	case syscall.EADDRINUSE:
		return "another id listens on " + address + "; choose another port, or 0 for any"
	case syscall.EADDRNOTAVAIL:
		return address + " is not an address of this host, or another id has the port"
	case syscall.ENODEV:
		return "no RDMA device leads to " + address +
			"; use the address of a network interface that has one (rdmarun devices)"
	case syscall.ENETUNREACH, syscall.EHOSTUNREACH:
		return "there is no route to " + address
	case syscall.EACCES:
		return "ports below 1024 need CAP_NET_BIND_SERVICE"
	}
	return ""
}

// invalid finds the reason of an EINVAL in the state of the id.
func (id *ID) invalid(op string) string {
	switch op {
	case "rdma_resolve_route":
		if !id.bound() {
			return "the address must be resolved first (ADDR_RESOLVED)"
		}
	case "rdma_create_qp", "rdma_create_qp_ex", "rdma_create_srq":
		if !id.bound() {
			return "the id has no device yet; resolve or bind its address first"
		}
		return "a value is more than the device can, or the protection domain or a queue is of another device"
	case "rdma_connect":
		if !id.bound() {
			return "address and route must be resolved first"
		}
		if id.qp == nil {
			return "an id without QP needs connection parameters with the number of one"
		}
		return "the route must be resolved, the id not connected before, the private data " +
			"not longer than its message allows, and the depths within the device's"
	case "rdma_accept":
		if id.qp == nil {
			return "an id without QP needs connection parameters with the number of one"
		}
		return "only the child id of a CONNECT_REQUEST can accept, once, with private data not longer " +
			"than its message allows and depths within the device's"
	case "rdma_reject", "rdma_reject_ece":
		return "only the child id of a CONNECT_REQUEST can reject, once, with 148 bytes of private data at most"
	case "rdma_establish":
		return "only an id without QP can, and only after CONNECT_RESPONSE"
	case "rdma_disconnect":
		return "the id is not connected"
	case "rdma_notify":
		return "only COMM_EST means something, to an id that has accepted and waits for ESTABLISHED"
	case "rdma_set_option":
		return "the value is not one of the option's, or the option comes too late"
	case "rdma_set_local_ece", "rdma_get_remote_ece":
		if id.qp != nil {
			return "with a QP of its own the id does this by itself"
		}
		return "the vendor id is 0, or the id is not connecting"
	case "rdma_join_multicast", "rdma_join_multicast_ex", "rdma_leave_multicast":
		if !id.bound() {
			return "the id has no device yet; resolve or bind its address first"
		}
		return "the address is not a multicast group of a family that the device has, or the id not of a " +
			"datagram port space"
	case "rdma_init_qp_attr":
		return "the id is not so far in connecting, or there are no attributes for that state"
	}
	return "the state of the id does not allow it"
}

// answer is the result of a call, and the provider's reason for a refusal beyond the errno; "" without one.
type answer struct {
	result  int
	refusal string
}

// err is the failure of an operation with that answer; nil where it has none.
func (a answer) err(op string) error {
	err := check(op, a.result)
	if failure, failed := err.(*Error); failed && a.refusal != "" {
		failure.Why = a.refusal
	}
	return err
}

// ask makes a call for which the provider may give a reason beyond the errno.  soft keeps the reason of the last
// refusal per thread, as errno is kept.  So the goroutine stays on its thread until it has read it.  Only calls that
// make or connect objects come here; posting and polling pay nothing.
func (p *Provider) ask(call func() C.int) answer {
	if p.c.refusal == nil {
		return answer{result: int(call())}
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	C.core_forget_refusal(p.c)
	answer := answer{result: int(call())}
	if answer.result < 0 {
		answer.refusal = C.GoString(C.core_refusal(p.c))
	}
	return answer
}
