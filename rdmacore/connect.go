package rdmacore

// #include "core/core.h"
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
	native, err := optional(op, id.withConnectData(param), &c)
	if err != nil {
		return err
	}
	err = id.start(op, "", func() C.int { return C.core_connect(id.native(), id.c, native) })
	if err == nil {
		id.connectData = nil
	}
	return err
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
	return id.start(op, "", func() C.int { return C.core_accept(id.native(), id.c, native) })
}

// withConnectData puts what rdma_getaddrinfo(3) found for the destination before the private data.
func (id *ID) withConnectData(param *ConnParam) *ConnParam {
	if len(id.connectData) == 0 {
		return param
	}
	all := mostOfAll
	if param != nil {
		all = *param
	}
	all.PrivateData = append(append([]byte(nil), id.connectData...), all.PrivateData...)
	return &all
}

// mostOfAll are the parameters that librdmacm takes in place of none.
var mostOfAll = ConnParam{ResponderResources: 255, InitiatorDepth: 255, RetryCount: 7, RNRRetryCount: 7}

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
	if err := checkPrivate(op, private); err != nil {
		return err
	}
	return id.call(op, "", func() C.int {
		return C.core_reject(id.native(), id.c, unsafe.Pointer(unsafe.SliceData(private)), C.uint8_t(len(private)))
	})
}

// RejectECE is Reject for the reason that the peer's vendor options are none of this side's
// (rdma_reject_ece(3)): the peer gets REJECTED with status 35.
func (id *ID) RejectECE(private []byte) error {
	const op = "rdma_reject_ece"
	if !id.open() {
		return closed(op, "id")
	}
	if err := checkPrivate(op, private); err != nil {
		return err
	}
	return id.call(op, "", func() C.int {
		return C.core_reject_ece(id.native(), id.c, unsafe.Pointer(unsafe.SliceData(private)), C.uint8_t(len(private)))
	})
}

// checkPrivate guards the length, which C has one byte for.
func checkPrivate(op string, private []byte) error {
	if len(private) > 255 {
		return fail(op, syscall.EINVAL, "%d bytes of private data; the length field holds 255 at most",
			len(private))
	}
	return nil
}

// Establish completes a connection of an id without QP after CONNECT_RESPONSE (rdma_establish(3)).
func (id *ID) Establish() error {
	const op = "rdma_establish"
	if !id.open() {
		return closed(op, "id")
	}
	return id.call(op, "", func() C.int { return C.core_establish(id.native(), id.c) })
}

// Notify tells the connection manager of an asynchronous event of the id's QP (rdma_notify(3)): with COMM_EST,
// data that came before the peer's last message of the handshake completes it.  EISCONN when it is complete,
// EINVAL for another event or an id that waits for nothing.
func (id *ID) Notify(event AsyncEventType) error {
	const op = "rdma_notify"
	if !id.open() {
		return closed(op, "id")
	}
	return id.call(op, "", func() C.int { return C.core_notify(id.native(), id.c, C.int(event)) })
}

// WriteEvent puts a USER event with a status and an argument of the caller's into the id's channel
// (rdma_write_cm_event(3), since rdma-core 60).
func (id *ID) WriteEvent(status int, arg uint64) error {
	const op = "rdma_write_cm_event"
	if !id.open() {
		return closed(op, "id")
	}
	return id.call(op, "", func() C.int {
		return C.core_write_event(id.native(), id.c, C.int(EventUser), C.int(status), C.uint64_t(arg))
	})
}

// Disconnect ends the connection (rdma_disconnect(3)): the QP flushes, both sides get DISCONNECTED.
func (id *ID) Disconnect() error {
	const op = "rdma_disconnect"
	if !id.open() {
		return closed(op, "id")
	}
	return id.start(op, "", func() C.int { return C.core_disconnect(id.native(), id.c) })
}
