package rdmacore

// #include "core/core.h"
import "C"

import "syscall"

// QPInitMask says which members of a QPInitAttrEx count beyond those of QPInitAttr (enum
// ibv_qp_init_attr_mask).
type QPInitMask uint32

// QPInitAttrEx says what queue pair to make (struct ibv_qp_init_attr_ex, ibv_create_qp_ex(3)).  SendOps count with
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
	if attr.SendOps != 0 {
		attr.CompMask |= QPInitSendOpsFlags
	}
	extra := C.struct_core_qp_extra{
		comp_mask: C.uint32_t(attr.CompMask), create_flags: C.uint32_t(attr.CreateFlags),
		send_ops_flags: C.uint64_t(attr.SendOps), source_qpn: C.uint32_t(attr.SourceQPN),
		max_tso_header: C.uint16_t(attr.MaxTSOHeader),
	}
	const known = QPInitCreateFlags | QPInitMaxTSOHeader | QPInitSendOpsFlags
	if attr.CompMask&^known != 0 {
		return fail(op, syscall.EINVAL, "comp_mask %#x has more than CREATE_FLAGS, "+
			"MAX_TSO_HEADER and SEND_OPS_FLAGS", uint32(attr.CompMask))
	}
	err := id.createQP(op, pd, attr.QPInitAttr,
		func(native *C.struct_ibv_pd, c *C.struct_ibv_qp_init_attr) C.int {
			return C.core_create_qp_ex(id.native(), id.c, native, c, &extra)
		})
	if err != nil || attr.CompMask&QPInitSendOpsFlags == 0 {
		return err
	}
	var built C.uint64_t
	id.qp.builder = C.core_qp_builder(id.native(), id.qp.c, C.uint64_t(attr.SendOps), &built)
	id.qp.built = SendOps(built)
	return nil
}

// InitQPAttr is what the connection manager would set to bring a QP of this connection to state, and the mask
// of it for QP.Modify (rdma_init_qp_attr(3)); for QPs that are not the id's own.
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
