package verb

import (
	"context"
	"fmt"
	"net/netip"
	"syscall"

	"rdmarun/host/scenario/lab"
	"rdmarun/rdmacore"
)

// usualHops is how many routers a datagram may pass unless a step says otherwise.
const usualHops = 64

// addressHandleVerbs make the handles that datagrams are addressed with.
func addressHandleVerbs() []Verb {
	const whose = "to, of, gid or dlid"
	return []Verb{
		{
			Name: "create_ah", Manual: "ibv_create_ah(3)", Yields: NewHandle, Run: createAH,
			Doc: "Make an address handle, for datagrams to a role, to whom an event named, or to a GID.",
			Arguments: []Argument{theDomain(),
				{Name: "to", Type: Peer, Group: whose, Doc: "a role, an IP address or a host name"},
				{Name: "of", Type: Endpoint, Group: whose, Doc: "an endpoint: its peer or group, as its last ESTABLISHED or MULTICAST_JOIN said"},
				{Name: "gid", Type: Text, Group: whose, Doc: "all 16 bytes as an IPv6 address, or the IPv4 address that it stands for"},
				{Name: "dlid", Type: Integer, Group: whose, Max: 65535, Doc: "the local identifier, of InfiniBand, without a global header"},
				{Name: "port", Type: Integer, Max: 255, Doc: "number of the own port; without it 1, or that of the event"},
				{Name: "sgid_index", Type: Integer, Max: 255, Doc: "own GID by its index; without it that of the role's address, or of the event"},
				{Name: "hop_limit", Type: Integer, Max: 255, Doc: fmt.Sprintf("routers that it may pass; without it %d, or that of the event", usualHops)},
				{Name: "traffic_class", Type: Integer, Max: 255, Doc: "traffic class"},
				{Name: "flow_label", Type: Integer, Max: 1<<20 - 1, Doc: "flow label"},
				{Name: "sl", Type: Integer, Max: 15, Doc: "service level"}},
		},
		{
			Name: "create_ah_from_wc", Manual: "ibv_create_ah_from_wc(3)", Yields: NewHandle, Run: createAHFromWC,
			Doc: fmt.Sprintf("Make an address handle for the sender of the datagram whose completion was polled last: the first %d bytes of its buffer say who that is.", rdmacore.GRHLength),
			Arguments: []Argument{theEndpoint(), theDomain(),
				{Name: "buffer", Type: Buffer, Required: true, Doc: "where the datagram was received"},
				{Name: "offset", Type: Size, Default: 0, Doc: "where in the buffer"},
				{Name: "port", Type: Integer, Default: 1, Max: 255, Doc: "number of the own port"}},
		},
		{
			Name: "init_ah_from_wc", Manual: "ibv_init_ah_from_wc(3)", Yields: Value, Run: initAHFromWC,
			Doc: "Ask for the attributes that create_ah_from_wc makes a handle of.",
			Arguments: []Argument{theEndpoint(),
				{Name: "buffer", Type: Buffer, Required: true, Doc: "where the datagram was received"},
				{Name: "offset", Type: Size, Default: 0, Doc: "where in the buffer"},
				{Name: "port", Type: Integer, Default: 1, Max: 255, Doc: "number of the own port"}},
			Results: []Result{
				{Name: "gid", Type: Text, Varies: true, Doc: "the sender's, all 16 bytes as an IPv6 address; without a global header all zero"},
				{Name: "is_global", Type: Boolean, Doc: "whether there is a global header"},
				{Name: "sgid_index", Type: Integer, Varies: true, Doc: "own GID by its index"},
				{Name: "hop_limit", Type: Integer, Doc: "routers that an answer may pass"},
				{Name: "traffic_class", Type: Integer, Doc: "traffic class"},
				{Name: "flow_label", Type: Integer, Varies: true, Doc: "flow label"},
				{Name: "dlid", Type: Integer, Varies: true, Doc: "the sender's local identifier, of InfiniBand"},
				{Name: "sl", Type: Integer, Doc: "service level"},
				{Name: "port", Type: Integer, Doc: "number of the own port"},
			},
		},
		{
			Name: "destroy_ah", Manual: "ibv_destroy_ah(3)", Scalar: "ah", Doc: "Free an address handle.",
			Arguments: []Argument{{Name: "ah", Type: Handle, Required: true, Doc: "the handle, by the name that `as` gave it"}},
			Run:       freeing("ah", (*lab.Role).Handle),
		},
	}
}

func createAH(ctx context.Context, call *Call) (Outcome, error) {
	pd, err := domainOf(call)
	if err != nil {
		return Outcome{}, err
	}
	attr, err := destination(ctx, call)
	if err != nil {
		return Outcome{}, err
	}
	for _, each := range []struct {
		name  string
		field *uint8
	}{{"port", &attr.PortNum}, {"sgid_index", &attr.SGIDIndex}, {"hop_limit", &attr.HopLimit}, {"traffic_class", &attr.TrafficClass}, {"sl", &attr.SL}} {
		if call.Has(each.name) {
			*each.field = uint8(call.Integer(each.name))
		}
	}
	if call.Has("flow_label") {
		attr.FlowLabel = uint32(call.Integer("flow_label"))
	}
	return handled(call.Role.NewHandle(func() (*rdmacore.AH, error) { return pd.CreateAH(attr) }))
}

func handled(handle *lab.Handle, err error) (Outcome, error) {
	if err != nil {
		return Outcome{}, err
	}
	return Outcome{Made: handle}, nil
}

// destination is the address that a step names, with what it does not say filled in.
func destination(ctx context.Context, call *Call) (rdmacore.AHAttr, error) {
	attr := rdmacore.AHAttr{IsGlobal: true, PortNum: 1, HopLimit: usualHops}
	var err error
	switch {
	case call.Has("of"):
		endpoint, err := call.Endpoint("of")
		if err != nil {
			return attr, err
		}
		if endpoint.Datagrams == nil {
			return attr, &lab.Failure{
				What: fmt.Sprintf("no event of %q has said how to reach a datagram peer", endpoint.Name), Errno: syscall.EINVAL,
				Hint: "ESTABLISHED of a datagram id and MULTICAST_JOIN do, once they are read",
			}
		}
		return endpoint.Datagrams.AH, nil
	case call.Has("dlid"):
		attr.IsGlobal, attr.DLID, attr.HopLimit = false, uint16(call.Integer("dlid")), 0
		return attr, nil
	case call.Has("to"):
		attr.DGID, err = peerAddress(ctx, call)
	default:
		attr.DGID, err = gidOf(call, "gid")
	}
	if err != nil || call.Has("sgid_index") {
		return attr, err
	}
	attr.SGIDIndex, err = ownGID(call, orOne(call, "port"))
	return attr, err
}

func orOne(call *Call, name string) int {
	if call.Has(name) {
		return call.Integer(name)
	}
	return 1
}

// gidOf reads a GID, or an IP address that is one.
func gidOf(call *Call, name string) (netip.Addr, error) {
	gid, err := netip.ParseAddr(call.Text(name))
	if err != nil {
		return gid, &lab.Failure{What: "that is no GID", Got: call.Text(name), Hint: "write 16 bytes as an IPv6 address, or an IP address"}
	}
	return gid, nil
}

// ownGID is the index of the GID that stands for the role's address.  The addresses that roles have on soft are
// all of one machine, and those without a GID of their own take that of the device's.
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
		return 0, &lab.Failure{
			What: fmt.Sprintf("port %d of %s has no GID for %s", number, device.Name(), call.Role.Address()), Hint: "sgid_index says which to use",
			Errno: syscall.EINVAL,
		}
	}
	return uint8(index), nil
}

// indexOf finds the GID of a port that stands for an address, that of RoCE v2 where there are several; -1 for none.
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

func createAHFromWC(_ context.Context, call *Call) (Outcome, error) {
	endpoint, err := call.Endpoint("ep")
	if err != nil {
		return Outcome{}, err
	}
	pd, err := domainOf(call)
	if err != nil {
		return Outcome{}, err
	}
	s, err := stretchOf(call)
	if err != nil {
		return Outcome{}, err
	}
	return handled(call.Role.NewHandle(func() (*rdmacore.AH, error) {
		return pd.CreateAHFromWC(&endpoint.Received, s.bytes(), call.Integer("port"))
	}))
}

func initAHFromWC(_ context.Context, call *Call) (Outcome, error) {
	endpoint, err := call.Endpoint("ep")
	if err != nil {
		return Outcome{}, err
	}
	s, err := stretchOf(call)
	if err != nil {
		return Outcome{}, err
	}
	a, err := call.Role.Device().InitAHFromWC(&endpoint.Received, s.bytes(), call.Integer("port"))
	if err != nil {
		return Outcome{}, err
	}
	return Outcome{Fields: []any{a.DGID.String(), a.IsGlobal, int(a.SGIDIndex), int(a.HopLimit), int(a.TrafficClass), int(a.FlowLabel), int(a.DLID), int(a.SL), int(a.PortNum)}}, nil
}
