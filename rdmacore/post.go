package rdmacore

import (
	"syscall"
	"unsafe"
)

// PostSend posts work requests to the send queue (ibv_post_send(3)).  SGE addresses are absolute.  posted
// is the number accepted: on an error, the request at that index was refused and those before it were not.
// EINVAL and EFAULT for an SGE index or an address that is out of range are found before anything is
// posted; ENOMEM when the queue is full.
//
// A QP with send operations (QPInitAttr.SendOps) is posted to by their builders (ibv_wr_start, one ibv_wr_*(3) a
// request, ibv_wr_complete: ibv_wr_post(3)).  Then all are posted or none, EOPNOTSUPP says that an operation is not among them,
// and FLUSH is possible.  The builder of ATOMIC_WRITE takes the value at once, so its SGEs must be memory of this process.
func (q *QP) PostSend(wrs []SendWR, sges []SGE) (accepted int, err error) {
	if !q.open() {
		return 0, closed("ibv_post_send", "QP")
	}
	return q.postSend(wrs, sges, 0, 0)
}

func (q *QP) postSend(wrs []SendWR, sges []SGE, base uintptr, limit uint64) (int, error) {
	provider := unsafe.Pointer(q.id.native())
	if q.builder != nil {
		return posted("ibv_wr_complete", hotBuildSend(provider, unsafe.Pointer(q.builder), q.built, wrs, sges, base, limit))
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

// PostSendAt is PostSend for a guest: SGE addresses are relative to base, and each entry must lie in the
// limit bytes from there, else EFAULT.  Its regions are of RegMRAt.
func (q *QP) PostSendAt(base uintptr, limit uint64, wrs []SendWR, sges []SGE) (accepted int, err error) {
	const op = "ibv_post_send"
	if !q.open() {
		return 0, closed(op, "QP")
	}
	if limit == 0 && len(sges) != 0 { // to C, 0 means no limit
		return 0, &Error{Op: op, Errno: syscall.EFAULT, Why: postReason(syscall.EFAULT)}
	}
	return q.postSend(wrs, sges, base, limit)
}

// PostRecvAt is PostRecv for a guest, as PostSendAt.
func (q *QP) PostRecvAt(base uintptr, limit uint64, wrs []RecvWR, sges []SGE) (accepted int, err error) {
	const op = "ibv_post_recv"
	if !q.open() {
		return 0, closed(op, "QP")
	}
	if limit == 0 && len(sges) != 0 {
		return 0, &Error{Op: op, Errno: syscall.EFAULT, Why: postReason(syscall.EFAULT)}
	}
	return posted(op, hotPostRecv(unsafe.Pointer(q.c), wrs, sges, base, limit))
}
