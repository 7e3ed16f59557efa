package rdmacore

// #include "core/core.h"
import "C"

import (
	"context"
	"structs"
	"syscall"
	"unsafe"
)

// Opcode is the operation of a send work request (enum ibv_wr_opcode).
type Opcode uint32

// SendFlags modify a send work request (enum ibv_send_flags).
type SendFlags uint32

// SendOps are operations of a send queue that has builders for them (enum ibv_qp_create_send_ops_flags,
// ibv_wr_post(3)).
type SendOps uint64

// Placement selects the observers to which a FLUSH makes data visible (enum ibv_placement_type; IBTA annex A19).
type Placement uint8

// Selectivity selects the memory of a FLUSH (enum ibv_selectivity_level; IBTA annex A19).
type Selectivity uint8

// SendWR is one request for a send queue, ibv_send_wr in flat form: its scatter/gather entries are
// sges[FirstSGE : FirstSGE+NumSGE] of the slice posted with it.
//
// A FLUSH (ibv_wr_post(3), IBTA annex A19) has no data. For a range, it flushes the remote memory that a WRITE with
// the same RemoteAddress, RKey and entries would have written. Only the lengths of the entries count. For a region, it
// flushes all that the key covers.
type SendWR struct {
	_             structs.HostLayout // struct core_send_wr
	WRID          uint64             // comes back in the completion
	Opcode        Opcode
	Flags         SendFlags
	FirstSGE      uint32
	NumSGE        uint32
	ImmData       uint32      // network byte order, as on the wire; or the rkey to invalidate
	RKey          uint32      // RDMA and atomic operations, FLUSH
	RemoteAddress uint64      // RDMA and atomic operations, FLUSH of a range
	CompareAdd    uint64      // atomic operations
	Swap          uint64      // compare and swap
	AH            uint32      // datagrams: AH.Number of a handle of the QP's PD
	RemoteQPN     uint32      // datagrams
	RemoteQKey    uint32      // datagrams; with the highest bit set, the QP's own
	Placement     Placement   // FLUSH
	Selectivity   Selectivity // FLUSH
	_             uint16
}

// RecvWR is one request for a receive queue, ibv_recv_wr in flat form.
type RecvWR struct {
	_        structs.HostLayout // struct core_recv_wr
	WRID     uint64
	FirstSGE uint32
	NumSGE   uint32
}

// SGE is one local buffer of a work request (struct ibv_sge).
type SGE struct {
	_       structs.HostLayout // struct core_sge
	Address uint64             // absolute, or relative to the base given to SendSpin and RecvSpin, as of RegMRAt
	Length  uint32             // bytes
	LKey    uint32             // of the memory region that holds it
}

// WCStatus is how a work request ended (enum ibv_wc_status).
type WCStatus uint32

// WCOpcode is what kind of work request ended (enum ibv_wc_opcode).
type WCOpcode uint32

// WCFlags mark the optional fields of a completion that are valid (enum ibv_wc_flags).
type WCFlags uint32

// WC is one work completion (struct ibv_wc).  When Status is not WCSuccess only WRID, Status, QPNum and
// VendorErr mean anything (ibv_poll_cq(3)); the others may hold what the slice held before.
type WC struct {
	_            structs.HostLayout
	WRID         uint64
	Status       WCStatus
	Opcode       WCOpcode
	VendorErr    uint32
	ByteLen      uint32
	ImmData      uint32 // network byte order, with WCWithImm; the invalidated rkey, with WCWithInv
	QPNum        uint32
	SrcQP        uint32
	WCFlags      WCFlags
	PkeyIndex    uint16
	SLID         uint16
	SL           uint8
	DLIDPathBits uint8
}

// GetRequest waits for the next connection request of a synchronous listener (rdma_get_request(3)) and returns its
// child. The child is synchronous as well, and has a QP if the listener's endpoint was created with attributes for
// one. The request, private data included, is the child's Event until the child's next call. While a child holds it,
// the listener cannot be destroyed.
//
// EINVAL for an id that is not synchronous, or does not listen (librdmacm would wait forever).  The error
// wraps ctx.Err() when ctx ends first.
func (id *ID) GetRequest(ctx context.Context) (*ID, error) {
	const op = "rdma_get_request"
	switch {
	case !id.open():
		return nil, closed(op, "id")
	case !id.synchronous:
		return nil, fail(op, syscall.EINVAL, "the id is on an event channel, where requests are CONNECT_REQUEST events")
	case !id.listening:
		return nil, fail(op, syscall.EINVAL, "the id does not listen, so no request would ever come")
	}
	c := id.channel
	waiter, err := c.watch()
	if err != nil {
		return nil, err
	}
	var child *ID
	var failure error
	if !waiter.wait(ctx, func() (done bool) {
		c.mu.Lock()
		defer c.mu.Unlock()
		child, done, failure = id.takeRequest(op)
		return done
	}) {
		if ctx.Err() == nil {
			return nil, closed(op, "id")
		}
		return nil, cancelled(ctx, op, "a connection request on "+id.name())
	}
	return child, failure
}

// takeRequest takes a request that is there.  mu is held.
func (id *ID) takeRequest(op string) (child *ID, done bool, err error) {
	if d, ok := id.channel.dequeue(id.awaits); ok {
		switch {
		case d.event == nil:
			return nil, true, d.err
		case d.event.Type != EventConnectRequest:
			return nil, true, fail(op, syscall.EINVAL, "%s came in place of a request", d.event.Type)
		}
		return d.event.ID, true, nil
	}
	var native *C.struct_rdma_cm_id
	result := int(C.core_get_request(id.native(), id.c, &native))
	if result == -int(syscall.EAGAIN) {
		return nil, false, nil
	}
	if result < 0 {
		failure := check(op, result).(*Error)
		if event := id.nativeEvent(); event != nil && failure.Errno != syscall.ENOSYS {
			failure.Why = event.Type.String() + " came in place of a request"
		}
		return nil, true, failure
	}
	child = id.channel.provider.newSyncID(native, id.portSpace, id)
	child.noteRequest()
	if err := id.equip(child); err != nil {
		return nil, true, err
	}
	return child, true, nil
}

// equip gives a child a QP by the attributes that its listener was created with. If this fails, the child is
// destroyed, which rejects the peer.
func (id *ID) equip(child *ID) error {
	if id.childQP == nil {
		return nil
	}
	err := child.CreateQP(id.childPD, *id.childQP)
	if err != nil {
		child.channel.destroy(child)
	}
	return err
}

// noteRequest counts, for the listener, whether the id holds the request that made it.
func (id *ID) noteRequest() {
	if id.listener == nil {
		return
	}
	held := &id.channel.provider.held
	held.Lock()
	defer held.Unlock()
	holds := bool(C.core_holds_request(id.c))
	if holds && !id.holdsRequest {
		id.listener.unacknowledged[EventConnectRequest]++
	} else if !holds && id.holdsRequest {
		id.listener.unacknowledged[EventConnectRequest]--
	}
	id.holdsRequest = holds
}

// PostSend posts work requests to the send queue (ibv_post_send(3)).  SGE addresses are absolute.  accepted
// is the number posted: on an error, the request at that index was rejected and those before it were posted.
// An SGE index or an address out of range gives EINVAL or EFAULT before anything is
// posted; ENOMEM when the queue is full.
//
// A QP with send operations (QPInitAttr.SendOps) is posted to by their builders (ibv_wr_start, one ibv_wr_*(3) a
// request, ibv_wr_complete: ibv_wr_post(3)).  Then all are posted or none, EOPNOTSUPP means that the QP lacks an
// operation, and FLUSH is possible.  The builder of ATOMIC_WRITE takes the value at once, so its SGEs must be memory
// of this process.
func (q *QP) PostSend(wrs []SendWR, sges []SGE) (accepted int, err error) {
	if !q.open() {
		return 0, closed("ibv_post_send", "QP")
	}
	return q.postSend(wrs, sges, 0, 0)
}

func (q *QP) postSend(wrs []SendWR, sges []SGE, base uintptr, limit uint64) (int, error) {
	provider := unsafe.Pointer(q.provider.c)
	if q.builder != nil {
		return posted(
			"ibv_wr_complete", hotBuildSend(provider, unsafe.Pointer(q.builder), q.built, wrs, sges, base, limit),
		)
	}
	return posted("ibv_post_send", hotPostSend(provider, unsafe.Pointer(q.c), wrs, sges, base, limit))
}

// PostRecv posts work requests to the receive queue (ibv_post_recv(3)); otherwise as PostSend.
func (q *QP) PostRecv(wrs []RecvWR, sges []SGE) (accepted int, err error) {
	const op = "ibv_post_recv"
	if !q.open() {
		return 0, closed(op, "QP")
	}
	return posted(op, hotPostRecv(unsafe.Pointer(q.c), wrs, sges, 0, 0))
}

// postSendAt is PostSend for a guest: SGE addresses are relative to base, and each entry must lie in the
// limit bytes from there, else EFAULT.  Its regions are of RegMRAt.
func (q *QP) postSendAt(base uintptr, limit uint64, wrs []SendWR, sges []SGE) (accepted int, err error) {
	const op = "ibv_post_send"
	if !q.open() {
		return 0, closed(op, "QP")
	}
	if limit == 0 && len(sges) != 0 { // to C, 0 means no limit
		return 0, &Error{Op: op, Errno: syscall.EFAULT, Why: postReason(syscall.EFAULT)}
	}
	return q.postSend(wrs, sges, base, limit)
}

// postRecvAt is PostRecv for a guest, as postSendAt.
func (q *QP) postRecvAt(base uintptr, limit uint64, wrs []RecvWR, sges []SGE) (accepted int, err error) {
	const op = "ibv_post_recv"
	if !q.open() {
		return 0, closed(op, "QP")
	}
	if limit == 0 && len(sges) != 0 {
		return 0, &Error{Op: op, Errno: syscall.EFAULT, Why: postReason(syscall.EFAULT)}
	}
	return posted(op, hotPostRecv(unsafe.Pointer(q.c), wrs, sges, base, limit))
}

// QPInitMask selects the members of a QPInitAttrEx that count beyond those of QPInitAttr (enum
// ibv_qp_init_attr_mask).
type QPInitMask uint32

// QPInitAttrEx describes a queue pair to make (struct ibv_qp_init_attr_ex, ibv_create_qp_ex(3)).  SendOps count with
// QPInitSendOpsFlags, which is set for them when they are not 0.
type QPInitAttrEx struct {
	QPInitAttr
	CompMask     QPInitMask
	CreateFlags  uint32 // enum ibv_qp_create_flags
	SourceQPN    uint32
	MaxTSOHeader uint16
}

// CreateQPEx is CreateQP with extended attributes (rdma_create_qp_ex(3)).  EOPNOTSUPP or ENOSYS for those that
// the device does not have, among them send operations.
func (id *ID) CreateQPEx(pd *PD, attr QPInitAttrEx) error {
	const op = "rdma_create_qp_ex"
	extra, err := attr.extra(op)
	if err != nil {
		return err
	}
	err = id.createQP(op, pd, attr.QPInitAttr,
		func(native *C.struct_ibv_pd, c *C.struct_ibv_qp_init_attr) C.int {
			return C.core_create_qp_ex(id.native(), id.c, native, c, &extra)
		})
	if err == nil {
		id.qp.findBuilder(&extra)
	}
	return err
}

// extra is what the C side takes beyond the plain attributes.
func (attr *QPInitAttrEx) extra(op string) (C.struct_core_qp_extra, error) {
	const known = QPInitCreateFlags | QPInitMaxTSOHeader | QPInitSendOpsFlags
	if attr.CompMask&^known != 0 {
		return C.struct_core_qp_extra{}, fail(op, syscall.EINVAL, "comp_mask %#x has more than CREATE_FLAGS, "+
			"MAX_TSO_HEADER and SEND_OPS_FLAGS", uint32(attr.CompMask))
	}
	mask := attr.CompMask
	if attr.SendOps != 0 {
		mask |= QPInitSendOpsFlags
	}
	return C.struct_core_qp_extra{
		comp_mask: C.uint32_t(mask), create_flags: C.uint32_t(attr.CreateFlags),
		send_ops_flags: C.uint64_t(attr.SendOps), source_qpn: C.uint32_t(attr.SourceQPN),
		max_tso_header: C.uint16_t(attr.MaxTSOHeader),
	}, nil
}

// findBuilder finds what posts the operations that the QP was made for.
func (q *QP) findBuilder(extra *C.struct_core_qp_extra) {
	if QPInitMask(extra.comp_mask)&QPInitSendOpsFlags == 0 {
		return
	}
	var built C.uint64_t
	q.builder = C.core_qp_builder(q.provider.c, q.c, extra.send_ops_flags, &built)
	q.built = SendOps(built)
}

// InitQPAttr returns the attributes that the connection manager would set to bring a QP of this connection to state
// (rdma_init_qp_attr(3)). It also returns their mask for QP.Modify. Use it for QPs that are not the id's own.
func (id *ID) InitQPAttr(state QPState) (QPAttr, QPAttrMask, error) {
	const op = "rdma_init_qp_attr"
	if !id.open() {
		return QPAttr{}, 0, closed(op, "id")
	}
	c := C.struct_ibv_qp_attr{qp_state: uint32(state)}
	var mask C.int
	if err := id.call(op, "", func() C.int { return C.core_init_qp_attr(id.native(), id.c, &c, &mask) }); err != nil {
		return QPAttr{}, 0, err
	}
	return fromCQPAttr(&c), QPAttrMask(mask), nil
}
