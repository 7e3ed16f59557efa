package hostfuncs

import (
	"net/netip"

	"rdmarun/rdmacore"
)

func multicastFunctions() []Function {
	ep := Param{"ep", HandleOf, "ep", "of a datagram port space, on a device"}
	group := Param{"group", In, "address", "its port is not used"}
	tag := Param{"tag", I64, "", "comes back as arg of the group's events"}
	return []Function{
		{
			Name: "join_multicast", Since: v1_1, Capability: CapabilityCM,
			Doc: "Joins a multicast group and returns at once (rdma_join_multicast(3)). MULTICAST_JOIN, with how to " +
				"send to the group, or MULTICAST_ERROR follows.",
			Params:  []Param{ep, group, tag},
			Errors:  "EINVAL: no multicast address of the device's, or not such an endpoint.",
			binding: bind3((*Instance).joinMulticast),
		},
		{
			Name: "join_multicast_ex", Since: v1_1, Capability: CapabilityCM,
			Doc: "Joins a multicast group as a full member or one that only sends (rdma_join_multicast_ex(3)).",
			Params: []Param{ep, group,
				{"join_flags", U32, "join_flags", ""}, tag},
			Errors:  "EINVAL: as join_multicast. EOPNOTSUPP, ENOSYS: the device cannot only send.",
			binding: bind4((*Instance).joinMulticastEx),
		},
		{
			Name: "leave_multicast", Since: v1_1, Capability: CapabilityCM,
			Doc:     "Leaves a multicast group (rdma_leave_multicast(3)).",
			Params:  []Param{ep, group},
			Errors:  "EADDRNOTAVAIL: the endpoint has not joined it.",
			binding: bind2((*Instance).leaveMulticast),
		},
	}
}

func (i *Instance) joinMulticast(handle Handle, at Pointer, tag int64) int32 {
	group, failed := i.address("group", at)
	if failed != 0 {
		return failed
	}
	return i.join(handle, group.Addr(), func(id *rdmacore.ID) error {
		return id.JoinMulticast(group.Addr(), uint64(tag))
	})
}

func (i *Instance) joinMulticastEx(handle Handle, at Pointer, flags uint32, tag int64) int32 {
	group, failed := i.address("group", at)
	if failed != 0 {
		return failed
	}
	return i.join(handle, group.Addr(), func(id *rdmacore.ID) error {
		return id.JoinMulticastEx(group.Addr(), rdmacore.JoinFlags(int32(flags)), uint64(tag))
	})
}

func (i *Instance) leaveMulticast(handle Handle, at Pointer) int32 {
	group, failed := i.address("group", at)
	if failed != 0 {
		return failed
	}
	failed = i.onID(handle, func(id *rdmacore.ID) error { return id.LeaveMulticast(group.Addr()) })
	if failed == 0 {
		credit(i, &i.endpoints, handle, memberCost)
	}
	return failed
}

// join is a call that makes an endpoint a member of a group. The membership is charged until it ends, and with it may
// go its unread event.
func (i *Instance) join(handle Handle, group netip.Addr, call func(*rdmacore.ID) error) int32 {
	return i.onID(handle, func(id *rdmacore.ID) error {
		if err := i.maySend(group); err != nil {
			return err
		}
		if err := charge(i, &i.endpoints, handle, memberCost); err != nil {
			return err
		}
		err := call(id)
		if err != nil {
			credit(i, &i.endpoints, handle, memberCost)
		}
		return err
	})
}
