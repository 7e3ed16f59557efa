package rdma

import "unsafe"

// QP is a queue pair.
type QP struct{ Handle Handle }

// PostSend posts send requests; their buffers are sges[FirstSGE:][:NumSGE].  posted is the number accepted,
// fewer than all on an error.
func (q *QP) PostSend(wrs []SendWR, sges []SGE) (posted int, err error) {
	var accepted uint64
	result := abiPostSend(q.Handle, unsafe.SliceData(wrs), uint32(len(wrs)),
		unsafe.SliceData(sges), uint32(len(sges)), &accepted)
	if result < 0 {
		return int(accepted), check("post_send", result)
	}
	return int(result), nil
}

// PostRecv posts receives, otherwise as PostSend.
func (q *QP) PostRecv(wrs []RecvWR, sges []SGE) (posted int, err error) {
	var accepted uint64
	result := abiPostRecv(q.Handle, unsafe.SliceData(wrs), uint32(len(wrs)),
		unsafe.SliceData(sges), uint32(len(sges)), &accepted)
	if result < 0 {
		return int(accepted), check("post_recv", result)
	}
	return int(result), nil
}

// Query asks for the QP's state and limits.
func (q *QP) Query() (QPAttr, error) {
	attr := QPAttr{StructSize: uint32(unsafe.Sizeof(QPAttr{}))}
	err := check("query_qp", abiQueryQP(q.Handle, &attr))
	return attr, err
}

func (a *QPInitAttr) sized() *QPInitAttr {
	if a != nil {
		a.StructSize = uint32(unsafe.Sizeof(*a))
	}
	return a
}

// PostSendSpin posts send requests and then polls a CQ up to attempts times, in one call: the lowest latency.  It
// returns the number of completions.
func (q *QP) PostSendSpin(wrs []SendWR, sges []SGE, cq *CQ, wcs []WC, attempts int) (int, error) {
	result := abiPostSendSpin(q.Handle, unsafe.SliceData(wrs), uint32(len(wrs)), unsafe.SliceData(sges),
		uint32(len(sges)), nil,
		cq.Handle, unsafe.SliceData(wcs), uint32(len(wcs)), uint32(attempts))
	return int(max(result, 0)), check("post_send_spin", result)
}

// PostRecvSpin posts receives and then polls a CQ, as PostSendSpin.
func (q *QP) PostRecvSpin(wrs []RecvWR, sges []SGE, cq *CQ, wcs []WC, attempts int) (int, error) {
	result := abiPostRecvSpin(q.Handle, unsafe.SliceData(wrs), uint32(len(wrs)), unsafe.SliceData(sges),
		uint32(len(sges)), nil,
		cq.Handle, unsafe.SliceData(wcs), uint32(len(wcs)), uint32(attempts))
	return int(max(result, 0)), check("post_recv_spin", result)
}
