package rdmacore

// #include "core/core.h"
import "C"

// ECE are the enhanced connection establishment options of a vendor (struct ibv_ece, ibv_query_ece(3)).
type ECE struct {
	VendorID uint32 // PCI vendor; 0 for none
	Options  uint32
	CompMask uint32 // 0
}

// SetLocalECE sets the options to offer or to answer with, of an id whose QP is the caller's own
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
// whose QP is the caller's own (rdma_get_remote_ece(3)).
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
	return check(op, int(C.core_set_ece(q.id.native(), q.c, &c)))
}

// QueryECE is what options the queue pair has: those that it can have before SetECE and the transition to RTR,
// those in use afterwards (ibv_query_ece(3)).  EOPNOTSUPP where the device has none.
func (q *QP) QueryECE() (ECE, error) {
	const op = "ibv_query_ece"
	if !q.open() {
		return ECE{}, closed(op, "QP")
	}
	var c C.struct_ibv_ece
	if err := check(op, int(C.core_query_ece(q.id.native(), q.c, &c))); err != nil {
		return ECE{}, err
	}
	return ECE{VendorID: uint32(c.vendor_id), Options: uint32(c.options), CompMask: uint32(c.comp_mask)}, nil
}
