package rdmacore

// #include "core.h"
import "C"

import (
	"syscall"
	"unsafe"
)

// Connect asks the peer for a connection (rdma_connect(3)).  nil is librdmacm's default: the most READs,
// retries without end.  Ends with ESTABLISHED (CONNECT_RESPONSE without a QP), REJECTED, UNREACHABLE or
// CONNECT_ERROR; there is no timeout but the connection manager's own, which may be minutes.
func (id *ID) Connect(param *ConnParam) error {
	const op = "rdma_connect"
	if !id.open() {
		return closed(op, "id")
	}
	var c C.struct_core_conn_param
	native, err := optional(op, param, &c)
	if err != nil {
		return err
	}
	return id.explain(op, int(C.core_connect(id.native(), id.c, native)), "")
}

// Accept accepts the request that made this child id (rdma_accept(3)).  nil takes what the peer offers.
// Ends with ESTABLISHED, or as Connect may.
func (id *ID) Accept(param *ConnParam) error {
	const op = "rdma_accept"
	if !id.open() {
		return closed(op, "id")
	}
	var c C.struct_core_conn_param
	native, err := optional(op, param, &c)
	if err != nil {
		return err
	}
	return id.explain(op, int(C.core_accept(id.native(), id.c, native)), "")
}

func optional(op string, param *ConnParam, c *C.struct_core_conn_param) (*C.struct_core_conn_param, error) {
	if param == nil {
		return nil, nil
	}
	return c, param.toC(op, c)
}

// Reject refuses the request that made this child id (rdma_reject(3)); the peer gets REJECTED with status
// 28 and the private data, 148 bytes at most.
func (id *ID) Reject(private []byte) error {
	const op = "rdma_reject"
	if !id.open() {
		return closed(op, "id")
	}
	if len(private) > 255 {
		return fail(op, syscall.EINVAL, "%d bytes of private data; the length field holds 255 at most",
			len(private))
	}
	return id.explain(op, int(C.core_reject(id.native(), id.c,
		unsafe.Pointer(unsafe.SliceData(private)), C.uint8_t(len(private)))), "")
}

// Establish completes a connection of an id without QP after CONNECT_RESPONSE (rdma_establish(3)).
func (id *ID) Establish() error {
	const op = "rdma_establish"
	if !id.open() {
		return closed(op, "id")
	}
	return id.explain(op, int(C.core_establish(id.native(), id.c)), "")
}

// Disconnect ends the connection (rdma_disconnect(3)): the QP flushes, both sides get DISCONNECTED.
func (id *ID) Disconnect() error {
	const op = "rdma_disconnect"
	if !id.open() {
		return closed(op, "id")
	}
	return id.explain(op, int(C.core_disconnect(id.native(), id.c)), "")
}

// explain turns a result into an error that says what the errno means for this id.
func (id *ID) explain(op string, result int, address string) error {
	err := check(op, result)
	if err == nil {
		return nil
	}
	failure := err.(*Error)
	if failure.Why == "" {
		failure.Why = id.reason(op, failure.Errno, address)
	}
	return failure
}

// reason words the errors of rdma_*(3).
func (id *ID) reason(op string, errno syscall.Errno, address string) string {
	switch errno {
	case syscall.EINVAL:
		return id.invalid(op)
	case syscall.EADDRINUSE:
		return "another id listens on " + address + "; choose another port, or 0 for any"
	case syscall.EADDRNOTAVAIL:
		return address + " is no address of this host, or another id has the port"
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
	case "rdma_create_qp":
		if !id.bound() {
			return "the id has no device yet; resolve or bind its address first"
		}
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
	case "rdma_reject":
		return "only the child id of a CONNECT_REQUEST can reject, once, with 148 bytes of private data at most"
	case "rdma_establish":
		return "only an id without QP can, and only after CONNECT_RESPONSE"
	case "rdma_disconnect":
		return "the id is not connected"
	}
	return "the state of the id does not allow it"
}
