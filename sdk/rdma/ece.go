package rdma

import "unsafe"

// SetLocalECE sets the options of enhanced connection establishment to offer or to answer with, for an endpoint without
// a QP.
func (ep *EP) SetLocalECE(ece ECE) error {
	return check("set_local_ece", abiSetLocalECE(ep.Handle, ece.sized()))
}

// RemoteECE returns the options that the peer offered or answered with.
func (ep *EP) RemoteECE() (ECE, error) {
	var ece ECE
	err := check("get_remote_ece", abiGetRemoteECE(ep.Handle, ece.sized()))
	return ece, err
}

// RejectECE rejects the request that made this endpoint for its options.
func (ep *EP) RejectECE(privateData []byte) error {
	data := unsafe.Pointer(unsafe.SliceData(privateData))
	return check("reject_ece", abiRejectECE(ep.Handle, data, uint32(len(privateData))))
}

// SetECE sets the options of the QP itself, before it is in RTR.
func (q *QP) SetECE(ece ECE) error { return check("set_ece", abiSetECE(q.Handle, ece.sized())) }

// QueryECE returns the options of the QP: those it can have before it is in RTR, those in use afterwards.
func (q *QP) QueryECE() (ECE, error) {
	var ece ECE
	err := check("query_ece", abiQueryECE(q.Handle, ece.sized()))
	return ece, err
}

func (e *ECE) sized() *ECE {
	e.StructSize = uint32(unsafe.Sizeof(*e))
	return e
}
