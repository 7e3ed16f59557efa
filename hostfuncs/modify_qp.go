package hostfuncs

import (
	"fmt"
	"syscall"

	"rdmarun/rdmacore"
)

// controlledQueueKey is the bit of queue keys that the system's own queue pairs have, QP 1 among them (IBTA 10.2.5).
// The provider lets a privileged process have them, and a guest of root is no part of the system either.
const controlledQueueKey = 1 << 31

func modifyQPFunctions() []Function {
	return []Function{{
		Name: "modify_qp", Since: v1_3, Capability: CapabilityWork,
		Doc: "Changes attributes of a QP (ibv_modify_qp(3)). An endpoint brings its QP to RTS by itself. This " +
			"call is for ERR and SQD, for attributes on the way, and for a QP without an endpoint.",
		Params: []Param{{"qp", HandleOf, "qp", ""}, {"attr", In, "qp_attr", ""},
			{"mask", U32, "", "which attributes count, enum ibv_qp_attr_mask"}},
		Errors: "EINVAL: there is no such transition, or it takes other attributes. EPERM: a queue key with the " +
			"highest bit set, which is " +
			"one of the system's.",
		binding: bind3((*Instance).modifyQP),
	}}
}

func (i *Instance) modifyQP(handle Handle, at Pointer, mask uint32) int32 {
	qp, ok := i.qps.get(handle)
	if !ok {
		return i.badHandle(kindQP)
	}
	attr, wrong := readSized[QPAttr](i, at)
	if wrong != 0 {
		return i.badPointer("attr", wrong)
	}
	// Numbers that have a byte or two in the core must not be truncated.
	if bits := attr.truncated(); bits != 0 {
		return i.refuse(syscall.EINVAL, fmt.Sprintf("an attribute is more than its %d bits", bits))
	}
	wanted := attr.core()
	for _, vector := range []struct {
		mask rdmacore.QPAttrMask
		attr rdmacore.AHAttr
	}{{rdmacore.QPAttrAV, wanted.AH}, {rdmacore.QPAttrAltPath, wanted.AltAH}} {
		if rdmacore.QPAttrMask(mask)&vector.mask != 0 {
			if err := i.maySendBy(vector.attr); err != nil {
				return i.fail(err)
			}
		}
	}
	if rdmacore.QPAttrMask(mask)&rdmacore.QPAttrQKey != 0 && attr.QKey&controlledQueueKey != 0 {
		return i.refuse(syscall.EPERM, "a queue key with the highest bit set is one of the system's queue pairs")
	}
	return i.done(qp.Modify(wanted, rdmacore.QPAttrMask(mask)))
}
