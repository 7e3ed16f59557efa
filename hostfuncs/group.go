package hostfuncs

import (
	"net/netip"
	"syscall"

	"rdmarun/rdmacore"
)

func groupFunctions() []Function {
	qp := Param{"qp", HandleOf, "qp", "for datagrams"}
	group := Param{"group", In, "address", "an address with the GID of the group; its port is not used"}
	lid := Param{"lid", U32, "", "of the group in InfiniBand, else 0"}
	return []Function{
		{
			Name: "attach_mcast", Since: v1_3, Capability: CapabilityWork,
			Doc: "Lets a QP receive what is sent to a multicast group (ibv_attach_mcast(3)); join_multicast does so " +
				"by " +
				"itself.",
			Params:  []Param{qp, group, lid},
			Errors:  "EINVAL: it is not a QP for datagrams, or no group's address.",
			binding: bind3((*Instance).attachMulticast),
		},
		{
			Name: "detach_mcast", Since: v1_3, Capability: CapabilityWork,
			Doc:     "Ends attach_mcast (ibv_detach_mcast(3)).",
			Params:  []Param{qp, group, lid},
			Errors:  "EINVAL: the QP is not attached to it.",
			binding: bind3((*Instance).detachMulticast),
		},
	}
}

func (i *Instance) attachMulticast(handle Handle, at Pointer, lid uint32) int32 {
	return i.onGroup(handle, at, lid, func(qp *rdmacore.QP, group netip.Addr, lid uint16) error {
		if err := charge(i, &i.qps, handle, joinCost); err != nil {
			return err
		}
		err := qp.AttachMulticast(group, lid)
		if err != nil {
			credit(i, &i.qps, handle, joinCost)
		}
		return err
	})
}

func (i *Instance) detachMulticast(handle Handle, at Pointer, lid uint32) int32 {
	return i.onGroup(handle, at, lid, func(qp *rdmacore.QP, group netip.Addr, lid uint16) error {
		err := qp.DetachMulticast(group, lid)
		if err == nil {
			credit(i, &i.qps, handle, joinCost)
		}
		return err
	})
}

func (i *Instance) onGroup(
	handle Handle, at Pointer, lid uint32, do func(*rdmacore.QP, netip.Addr, uint16) error,
) int32 {
	qp, ok := i.qps.get(handle)
	if !ok {
		return i.badHandle(kindQP)
	}
	group, failed := i.address("group", at)
	if failed != 0 {
		return failed
	}
	if lid > 1<<16-1 {
		return i.refuse(syscall.EINVAL, "a lid has 16 bits")
	}
	return i.done(do(qp, group.Addr(), uint16(lid)))
}
