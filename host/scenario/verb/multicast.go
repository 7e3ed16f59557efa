package verb

import (
	"net/netip"

	"rdmarun/host/scenario/lab"
	"rdmarun/rdmacore"
)

// multicastVerbs join and leave groups.
func multicastVerbs() []Verb {
	group := Argument{Name: "group", Type: Text, Required: true, Doc: "IP address of the group"}
	tag := Argument{Name: "tag", Type: Unsigned, Default: uint64(0), Doc: "a number that its events have"}
	return []Verb{
		onID("join_multicast", "rdma_join_multicast(3)", "Join a multicast group; MULTICAST_JOIN or MULTICAST_ERROR tells the end.",
			[]Argument{group, tag}, func(call *Call, endpoint *lab.Endpoint) error {
				address, err := groupAddress(call)
				if err != nil {
					return err
				}
				return endpoint.ID().JoinMulticast(address, call.Unsigned("tag"))
			}),
		onID("join_multicast_ex", "rdma_join_multicast_ex(3)", "Join a multicast group as a full member, or as one that only sends.",
			[]Argument{group, tag, {Name: "flags", Type: Word, Words: joinNames(), Default: rdmacore.JoinFullMember.String(), Doc: "the kind of member"}},
			func(call *Call, endpoint *lab.Endpoint) error {
				address, err := groupAddress(call)
				if err != nil {
					return err
				}
				flags, err := rdmacore.ParseJoinFlags(call.Text("flags"))
				if err != nil {
					return err
				}
				return endpoint.ID().JoinMulticastEx(address, flags, call.Unsigned("tag"))
			}),
		onID("leave_multicast", "rdma_leave_multicast(3)", "Leave a multicast group.", []Argument{group},
			func(call *Call, endpoint *lab.Endpoint) error {
				address, err := groupAddress(call)
				if err != nil {
					return err
				}
				return endpoint.ID().LeaveMulticast(address)
			}),
		onGroup("attach_mcast", "ibv_attach_mcast(3)", "Let a datagram queue pair receive what is sent to a group; join_multicast does it by itself.",
			(*rdmacore.QP).AttachMulticast),
		onGroup("detach_mcast", "ibv_detach_mcast(3)", "End attach_mcast.", (*rdmacore.QP).DetachMulticast),
	}
}

// onGroup is a verb that concerns a queue pair and a group.
func onGroup(name, manual, doc string, run func(qp *rdmacore.QP, gid netip.Addr, lid uint16) error) Verb {
	more := []Argument{
		{Name: "gid", Type: Text, Required: true, Doc: "GID of the group, or the IP address that it stands for"},
		{Name: "lid", Type: Integer, Default: 0, Max: 65535, Doc: "local identifier of the group, of InfiniBand"}}
	return onID(name, manual, doc, more, func(call *Call, endpoint *lab.Endpoint) error {
		qp, err := endpoint.QP()
		if err != nil {
			return err
		}
		gid, err := gidOf(call, "gid")
		if err != nil {
			return err
		}
		return run(qp, gid, uint16(call.Integer("lid")))
	})
}

func groupAddress(call *Call) (netip.Addr, error) {
	address, err := netip.ParseAddr(call.Text("group"))
	if err != nil {
		return address, &lab.Failure{What: "the group is no IP address", Got: call.Text("group"), Hint: "for example 239.1.2.3"}
	}
	return address, nil
}
