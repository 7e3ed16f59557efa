package hostfuncs

import (
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
		return i.badHandle(KindQP)
	}
	attr, wrong := readSized[QPAttr](i, at)
	if wrong != 0 {
		return i.badPointer("attr", wrong)
	}
	// Numbers that have a byte or two in the core must not be truncated.
	for _, number := range []uint32{attr.MaxRdAtomic, attr.MaxDestRdAtomic, attr.RetryCount, attr.RNRRetryCount,
		attr.MinRNRTimer, attr.Timeout, attr.PortNum, attr.AltPortNum, attr.AltTimeout} {
		if number > 1<<8-1 {
			return i.refuse(syscall.EINVAL, "an attribute is more than its 8 bits")
		}
	}
	if attr.PkeyIndex > 1<<16-1 || attr.AltPkeyIndex > 1<<16-1 {
		return i.refuse(syscall.EINVAL, "a pkey_index is more than its 16 bits")
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

func (attr *QPAttr) core() rdmacore.QPAttr {
	return rdmacore.QPAttr{
		State: rdmacore.QPState(int32(attr.State)), CurState: rdmacore.QPState(int32(attr.CurState)),
		PathMTU: int(attr.PathMTU), PathMigState: rdmacore.MigState(attr.PathMigState),
		QKey: attr.QKey, RQPSN: attr.RQPSN, SQPSN: attr.SQPSN, DestQPNum: attr.DestQPNum,
		AccessFlags: rdmacore.Access(attr.AccessFlags),
		MaxSendWR:   attr.MaxSendWR, MaxRecvWR: attr.MaxRecvWR, MaxSendSGE: attr.MaxSendSGE,
		MaxRecvSGE: attr.MaxRecvSGE, MaxInlineData: attr.MaxInlineData,
		AH: attr.AH.core(), AltAH: attr.AltAH.core(),
		PkeyIndex: uint16(attr.PkeyIndex), AltPkeyIndex: uint16(attr.AltPkeyIndex),
		EnSQDAsyncNotify: attr.EnSQDAsyncNotify != 0,
		MaxRdAtomic:      uint8(attr.MaxRdAtomic), MaxDestRdAtomic: uint8(attr.MaxDestRdAtomic),
		MinRNRTimer: uint8(attr.MinRNRTimer), PortNum: uint8(attr.PortNum), Timeout: uint8(attr.Timeout),
		RetryCnt: uint8(attr.RetryCount), RNRRetry: uint8(attr.RNRRetryCount),
		AltPortNum: uint8(attr.AltPortNum), AltTimeout: uint8(attr.AltTimeout), RateLimit: attr.RateLimit,
	}
}
