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
	all := maxOfAll
	if param != nil {
		all = *param
	}
	all.PrivateData = append(append([]byte(nil), id.connectData...), all.PrivateData...)
	return &all
}

// maxOfAll are the parameters that librdmacm takes in place of none.
var maxOfAll = ConnParam{ResponderResources: 255, InitiatorDepth: 255, RetryCount: 7, RNRRetryCount: 7}

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

// Notify passes an asynchronous event of the id's QP to the connection manager (rdma_notify(3)). COMM_EST means that
// data arrived before the peer's last message of the handshake, and completes the handshake. EISCONN when it is
// complete, EINVAL for another event or an id that waits for nothing.
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

// ConnParam are the parameters of a connection (struct rdma_conn_param).  Its zero value is the famous
// trap: no READs, no retries.
type ConnParam struct {
	ResponderResources uint8 // READs and atomics of the peer served at once; 255 means the device's maximum
	InitiatorDepth     uint8 // own READs and atomics outstanding at once; 255 likewise
	FlowControl        uint8
	RetryCount         uint8  // 7 at most; connect only
	RNRRetryCount      uint8  // how often the peer retries towards here; 7 is forever
	SRQ                bool   // ignored when the id has a QP
	QPNum              uint32 // ignored when the id has a QP
	PrivateData        []byte // how much a message carries depends on it, see rdma_connect(3)
}

// toC converts; the result stays valid on its own, private data included.
func (p *ConnParam) toC(op string, c *C.struct_core_conn_param) error {
	if len(p.PrivateData) > 255 {
		return fail(op, syscall.EINVAL, "%d bytes of private data; the length field holds 255 at most",
			len(p.PrivateData))
	}
	c.responder_resources = C.uint8_t(p.ResponderResources)
	c.initiator_depth = C.uint8_t(p.InitiatorDepth)
	c.flow_control = C.uint8_t(p.FlowControl)
	c.retry_count = C.uint8_t(p.RetryCount)
	c.rnr_retry_count = C.uint8_t(p.RNRRetryCount)
	if p.SRQ {
		c.srq = 1
	}
	c.qp_num = C.uint32_t(p.QPNum)
	c.private_data_len = C.uint8_t(copy(privateData(c), p.PrivateData))
	return nil
}

func fromCConnParam(c *C.struct_core_conn_param) ConnParam {
	p := ConnParam{
		ResponderResources: uint8(c.responder_resources),
		InitiatorDepth:     uint8(c.initiator_depth),
		FlowControl:        uint8(c.flow_control),
		RetryCount:         uint8(c.retry_count),
		RNRRetryCount:      uint8(c.rnr_retry_count),
		SRQ:                c.srq != 0,
		QPNum:              uint32(c.qp_num),
	}
	if length := int(c.private_data_len); length != 0 {
		p.PrivateData = append([]byte(nil), privateData(c)[:length]...)
	}
	return p
}

func privateData(c *C.struct_core_conn_param) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(&c.private_data[0])), len(c.private_data))
}

// ECE are the enhanced connection establishment options of a vendor (struct ibv_ece, ibv_query_ece(3)).
type ECE struct {
	VendorID uint32 // PCI vendor; 0 for none
	Options  uint32
	CompMask uint32 // 0
}

// SetLocalECE sets the options to offer or to answer with, of an id with a QP that the caller has made
// (rdma_set_local_ece(3)).  EINVAL with a QP of CreateQP, which does this by itself, or a vendor of 0.
func (id *ID) SetLocalECE(ece ECE) error {
	const op = "rdma_set_local_ece"
	if !id.open() {
		return closed(op, "id")
	}
	c := C.struct_ibv_ece{vendor_id: C.uint32_t(ece.VendorID), options: C.uint32_t(ece.Options),
		comp_mask: C.uint32_t(ece.CompMask)}
	return id.call(op, "", func() C.int { return C.core_set_local_ece(id.native(), id.c, &c) })
}

// GetRemoteECE is what the peer offered (after CONNECT_REQUEST) or answered (after CONNECT_RESPONSE), of an id
// with a QP that the caller has made (rdma_get_remote_ece(3)).
func (id *ID) GetRemoteECE() (ECE, error) {
	const op = "rdma_get_remote_ece"
	if !id.open() {
		return ECE{}, closed(op, "id")
	}
	var c C.struct_ibv_ece
	if err := id.call(op, "", func() C.int { return C.core_get_remote_ece(id.native(), id.c, &c) }); err != nil {
		return ECE{}, err
	}
	return ECE{VendorID: uint32(c.vendor_id), Options: uint32(c.options), CompMask: uint32(c.comp_mask)}, nil
}

// SetECE sets the options of the queue pair itself, before it is ready to receive (ibv_set_ece(3)).  EOPNOTSUPP
// where the device has none of that vendor.
func (q *QP) SetECE(ece ECE) error {
	const op = "ibv_set_ece"
	if !q.open() {
		return closed(op, "QP")
	}
	c := C.struct_ibv_ece{vendor_id: C.uint32_t(ece.VendorID), options: C.uint32_t(ece.Options),
		comp_mask: C.uint32_t(ece.CompMask)}
	return check(op, int(C.core_set_ece(q.provider.c, q.c, &c)))
}

// QueryECE is what options the queue pair has: those that it can have before SetECE and the transition to RTR,
// those in use afterwards (ibv_query_ece(3)).  EOPNOTSUPP where the device has none.
func (q *QP) QueryECE() (ECE, error) {
	const op = "ibv_query_ece"
	if !q.open() {
		return ECE{}, closed(op, "QP")
	}
	var c C.struct_ibv_ece
	if err := check(op, int(C.core_query_ece(q.provider.c, q.c, &c))); err != nil {
		return ECE{}, err
	}
	return ECE{VendorID: uint32(c.vendor_id), Options: uint32(c.options), CompMask: uint32(c.comp_mask)}, nil
}
