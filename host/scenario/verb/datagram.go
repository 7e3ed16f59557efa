package verb

import (
	"context"
	"fmt"
	"net/netip"
	"syscall"

	"rdmarun/host/scenario/testbed"
	"rdmarun/rdmacore"
)

// usualHops is the default hop limit.
const usualHops = 64

// datagramVerbs make address handles and join multicast groups.
var datagramVerbs = []Verb{
	act("create_ah", "ibv_create_ah(3)",
		"Make an address handle, for datagrams to a role, to whom an event named, or to a GID.", createAH).making(
		Handle,
	),
	act("create_ah_from_wc", "ibv_create_ah_from_wc(3)",
		fmt.Sprintf(
			"Make an address handle for the sender of the datagram of the completion that was polled "+
				"last. The first %d "+
				"bytes of its buffer identify the sender.",
			rdmacore.GRHLength,
		),
		func(_ context.Context, call *Call, args *struct {
			theEndpoint
			inDomain
			receivedDatagram
		}) error {
			handle, err := call.Role.NewHandle(func() (*rdmacore.AH, error) {
				return args.domain(call).CreateAHFromWC(&args.EP.Received, args.bytes, int(args.Port))
			})
			return call.made(handle, err)
		}).making(Handle),
	ask(
		"init_ah_from_wc", "ibv_init_ah_from_wc(3)", "Ask for the attributes that create_ah_from_wc makes a handle of.",
		initAHFromWC,
	),
	act("destroy_ah", "ibv_destroy_ah(3)", "Free an address handle.",
		func(_ context.Context, _ *Call, args *struct {
			AH *testbed.Handle `arg:"ah,required" doc:"the handle, by the name that 'as' gave it"`
		}) error {
			return args.AH.Free()
		}).scalar("ah"),
	act("join_multicast", "rdma_join_multicast(3)", "Join a multicast group; MULTICAST_JOIN or MULTICAST_ERROR "+
		"ends it.",
		func(_ context.Context, _ *Call, args *struct {
			multicastGroup
			eventTag
		}) error {
			return args.EP.ID().JoinMulticast(args.address, args.Tag)
		}),
	act("join_multicast_ex", "rdma_join_multicast_ex(3)", "Join a multicast group as a full member, or as one that "+
		"only sends.",
		func(_ context.Context, _ *Call, args *struct {
			multicastGroup
			eventTag
			Flags rdmacore.JoinFlags `arg:"flags" default:"FULLMEMBER" doc:"the kind of member"`
		}) error {
			return args.EP.ID().JoinMulticastEx(args.address, args.Flags, args.Tag)
		}),
	act("leave_multicast", "rdma_leave_multicast(3)", "Leave a multicast group.",
		func(_ context.Context, _ *Call, args *multicastGroup) error {
			return args.EP.ID().LeaveMulticast(args.address)
		}),
	act("attach_mcast", "ibv_attach_mcast(3)",
		"Let a datagram queue pair receive what is sent to a group; join_multicast does it by itself.",
		func(_ context.Context, _ *Call, args *attachedGroup) error {
			return args.qp.AttachMulticast(args.gid, args.LID)
		}),
	act("detach_mcast", "ibv_detach_mcast(3)", "End attach_mcast.",
		func(_ context.Context, _ *Call, args *attachedGroup) error {
			return args.qp.DetachMulticast(args.gid, args.LID)
		}),
}

// datagram are the arguments of a send request with the destination of a datagram.
type datagram struct {
	AH         optional[*testbed.Handle] `arg:"ah" doc:"datagrams: the destination, an address handle of create_ah (default: the one of the endpoint's last event)"`
	RemoteQPN  optional[uint32]          `arg:"remote_qpn" max:"0xffffff" doc:"datagrams: number of the queue pair there, 0xffffff for a group (default without ah: the event's)"`
	RemoteQKey optional[uint32]          `arg:"remote_qkey" doc:"datagrams: its key (default: the event's, or with ah that of rdma_cm's datagram ids). With the highest bit set, the own queue pair's key is used"`
}

func isDatagrams(qp *rdmacore.QP) bool { return qp.InitAttr().Type == rdmacore.QPTypeUD }

// address fills in the destination of a datagram: that of the step, or else the peer or the group that the last event
// named.  A request on a connection has no address.
func (d *datagram) address(call *Call, by *onlyQueuePair, request *rdmacore.SendWR) error {
	endpoint := by.EP
	if !isDatagrams(by.qp) {
		return d.refused(endpoint)
	}
	if d.AH.Given {
		request.AH, request.RemoteQKey = d.AH.Value.Native().Number(), rdmacore.UDPQKey
	} else {
		peer := endpoint.Datagrams
		if peer == nil {
			return &testbed.Failure{
				What: "endpoint \"" + endpoint.Name + "\" does not know where its datagrams go",
				Hint: "ESTABLISHED of a datagram service and MULTICAST_JOIN have it; or create_ah makes an address " +
					"for ah",
				Errno: syscall.EDESTADDRREQ,
			}
		}
		handle, err := endpoint.AddressHandle(call.Role.PD())
		if err != nil {
			return err
		}
		request.AH, request.RemoteQPN, request.RemoteQKey = handle.Number(), peer.QPNum, peer.QKey
	}
	request.RemoteQPN = d.RemoteQPN.or(request.RemoteQPN)
	request.RemoteQKey = d.RemoteQKey.or(request.RemoteQKey)
	return nil
}

// refused is the failure of an address that is given for a connection, which has one peer only.
func (d *datagram) refused(endpoint *testbed.Endpoint) error {
	for _, each := range []struct {
		name  string
		given bool
	}{{"ah", d.AH.Given}, {"remote_qpn", d.RemoteQPN.Given}, {"remote_qkey", d.RemoteQKey.Given}} {
		if each.given {
			return &testbed.Failure{
				What: fmt.Sprintf(
					"%s is for datagrams, and the queue pair of %q is of a connection", each.name, endpoint.Name,
				),
				Hint: "qp: {type: UD} makes one for datagrams", Errno: syscall.EINVAL,
			}
		}
	}
	return nil
}

type createAHArguments struct {
	inDomain
	To           peerName          `arg:"to" group:"to, of, gid or dlid" doc:"a role, an IP address or a host name"`
	Of           *testbed.Endpoint `arg:"of" group:"to, of, gid or dlid" doc:"an endpoint: its peer or group, as its last ESTABLISHED or MULTICAST_JOIN said"`
	GID          string            `arg:"gid" group:"to, of, gid or dlid" doc:"all 16 bytes as an IPv6 address, or the IPv4 address that it stands for"`
	DLID         optional[uint16]  `arg:"dlid" group:"to, of, gid or dlid" doc:"the local identifier, of InfiniBand, without a global header"`
	PortNum      optional[uint8]   `arg:"port" doc:"number of the own port; without it 1, or that of the event"`
	SGIDIndex    optional[uint8]   `arg:"sgid_index" doc:"own GID by its index; without it that of the role's address, or of the event"`
	HopLimit     optional[uint8]   `arg:"hop_limit" doc:"routers that it may pass; without it 64, or that of the event"`
	TrafficClass optional[uint8]   `arg:"traffic_class" doc:"traffic class"`
	FlowLabel    optional[uint32]  `arg:"flow_label" max:"0xfffff" doc:"flow label"`
	SL           optional[uint8]   `arg:"sl" max:"15" doc:"service level"`
}

func createAH(ctx context.Context, call *Call, args *createAHArguments) error {
	pd := args.domain(call)
	attr, err := args.destination(ctx, call)
	if err != nil {
		return err
	}
	assign(&attr, args)
	handle, err := call.Role.NewHandle(func() (*rdmacore.AH, error) { return pd.CreateAH(attr) })
	return call.made(handle, err)
}

// destination is the address that the step names, with defaults for what it leaves out.
func (a *createAHArguments) destination(ctx context.Context, call *Call) (rdmacore.AHAttr, error) {
	attr := rdmacore.AHAttr{IsGlobal: true, PortNum: 1, HopLimit: usualHops}
	var err error
	switch {
	case a.Of != nil:
		if a.Of.Datagrams == nil {
			return attr, &testbed.Failure{
				What:  fmt.Sprintf("no event of %q has said how to reach a datagram peer", a.Of.Name),
				Errno: syscall.EINVAL,
				Hint:  "ESTABLISHED of a datagram id and MULTICAST_JOIN do, once they are read",
			}
		}
		return a.Of.Datagrams.AH, nil
	case a.DLID.Given:
		attr.IsGlobal, attr.DLID, attr.HopLimit = false, a.DLID.Value, 0
		return attr, nil
	case a.To != "":
		attr.DGID, err = peerAddress(ctx, call, a.To)
	default:
		attr.DGID, err = parseGID(a.GID)
	}
	if err != nil || a.SGIDIndex.Given {
		return attr, err
	}
	attr.SGIDIndex, err = ownGID(call, int(a.PortNum.or(1)))
	return attr, err
}

// parseGID reads a GID, or an IP address that is one.
func parseGID(text string) (netip.Addr, error) {
	gid, err := netip.ParseAddr(text)
	if err != nil {
		return gid, &testbed.Failure{
			What: "that is not a GID", Got: text, Hint: "write 16 bytes as an IPv6 address, or an IP address",
		}
	}
	return gid, nil
}

// ownGID is the index of the GID for the role's address.  On soft all roles are on one machine, and an address that has
// no GID uses that of the device.
func ownGID(call *Call, number int) (uint8, error) {
	device := call.Role.Device()
	ports, err := device.Ports()
	if err != nil {
		return 0, err
	}
	index := indexOf(ports, number, call.Role.Address())
	if index < 0 && call.Role.Address().IsLoopback() {
		address, err := device.Address()
		if err != nil {
			return 0, err
		}
		index = indexOf(ports, number, address)
	}
	if index < 0 {
		return 0, &testbed.Failure{
			What:  fmt.Sprintf("port %d of %s has no GID for %s", number, device.Name(), call.Role.Address()),
			Hint:  "sgid_index says which to use",
			Errno: syscall.EINVAL,
		}
	}
	return uint8(index), nil
}

// indexOf is the index of the GID of a port for an address, RoCE v2 if there are several; -1 if there is none.
func indexOf(ports []rdmacore.Port, number int, address netip.Addr) int {
	index := -1
	for _, port := range ports {
		for _, gid := range port.GIDs {
			if port.Number == number && gid.Address == address && (index < 0 || gid.Type == "RoCE v2") {
				index = gid.Index
			}
		}
	}
	return index
}

// receivedDatagram are the arguments that name where a datagram was received.
type receivedDatagram struct {
	Buffer *testbed.Buffer `arg:"buffer,required" doc:"where the datagram was received"`
	Offset byteCount       `arg:"offset" default:"0" doc:"where in the buffer"`
	Port   uint8           `arg:"port" default:"1" doc:"number of the own port"`
	bytes  []byte
}

func (r *receivedDatagram) find(*Call) error {
	s, err := spanOf(r.Buffer, r.Offset, optional[byteCount]{})
	if err == nil {
		r.bytes = s.bytes()
	}
	return err
}

// senderAttributes is the part of struct ibv_ah_attr that scenarios see, with the names of rdmacore.AHAttr.
type senderAttributes struct {
	GID          string `result:"gid,varies" doc:"the sender's, all 16 bytes as an IPv6 address; without a global header all zero"`
	IsGlobal     bool   `result:"is_global" doc:"whether there is a global header"`
	SGIDIndex    uint8  `result:"sgid_index,varies" doc:"own GID by its index"`
	HopLimit     uint8  `result:"hop_limit" doc:"routers that an answer may pass"`
	TrafficClass uint8  `result:"traffic_class" doc:"traffic class"`
	FlowLabel    uint32 `result:"flow_label,varies" doc:"flow label"`
	DLID         uint16 `result:"dlid,varies" doc:"the sender's local identifier, of InfiniBand"`
	SL           uint8  `result:"sl" doc:"service level"`
	PortNum      uint8  `result:"port" doc:"number of the own port"`
}

func initAHFromWC(_ context.Context, call *Call, args *struct {
	theEndpoint
	receivedDatagram
}) (result senderAttributes, err error) {
	attr, err := call.Role.Device().InitAHFromWC(&args.EP.Received, args.bytes, int(args.Port))
	assign(&result, &attr)
	result.GID = attr.DGID.String()
	return result, err
}

// multicastGroup is the group that an id joins or leaves.
type multicastGroup struct {
	theEndpoint
	Group   string `arg:"group,required" doc:"IP address of the group"`
	address netip.Addr
}

func (g *multicastGroup) find(*Call) (err error) {
	if g.address, err = netip.ParseAddr(g.Group); err != nil {
		return &testbed.Failure{What: "the group is not an IP address", Got: g.Group, Hint: "for example 239.1.2.3"}
	}
	return nil
}

// eventTag is a number that comes back in the events of a group.
type eventTag struct {
	Tag uint64 `arg:"tag" default:"0" doc:"a number that its events have"`
}

// attachedGroup is a group that is attached to a queue pair without the connection manager.
type attachedGroup struct {
	theQueuePair
	GID string `arg:"gid,required" doc:"GID of the group, or the IP address that it stands for"`
	LID uint16 `arg:"lid" default:"0" doc:"local identifier of the group, of InfiniBand"`
	gid netip.Addr
}

func (g *attachedGroup) find(call *Call) (err error) {
	if err = g.theQueuePair.find(call); err == nil {
		g.gid, err = parseGID(g.GID)
	}
	return err
}
