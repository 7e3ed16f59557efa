package verb

import (
	"context"
	"encoding/binary"
	"net/netip"
	"time"

	"rdmarun/host/scenario/testbed"
	"rdmarun/rdmacore"
)

// resolveTimeout is the argument of verbs that resolve addresses and routes.
type resolveTimeout struct {
	Timeout time.Duration `arg:"timeout" default:"2s" max:"1h" doc:"how long to try"`
}

// identifierVerbs are the single steps of rdma_cm; create_ep does several of them at once.
var identifierVerbs = []Verb{
	act(CreateID, "rdma_create_id(3)", "Make an id: an endpoint without address and queue pair.", createID).making(
		Endpoint,
	),
	ask("bind_addr", "rdma_bind_addr(3)", "Give an id a local address.",
		func(_ context.Context, call *Call, args *struct {
			theEndpoint
			Port    uint16                 `arg:"port" default:"0" doc:"port of the port space; 0 for any"`
			Address optional[localAddress] `arg:"address" doc:"own address, \"any\" or another; without it that of the role's device"`
		}) (endpointAddress, error) {
			return bindTo(call, args.EP, args.Address, args.Port)
		}),
	act("resolve_addr", "rdma_resolve_addr(3)",
		"Look for device and path to an address; ADDR_RESOLVED or ADDR_ERROR ends it.", resolveAddress),
	onEndpoint("resolve_route", "rdma_resolve_route(3)",
		"Look for the route to the resolved address; ROUTE_RESOLVED or ROUTE_ERROR ends it.",
		func(ep *testbed.Endpoint, args *resolveTimeout) error { return ep.ID().ResolveRoute(args.Timeout) }),
	onEndpoint("destroy_id", "rdma_destroy_id(3)", "Destroy an id, which must have no queue pair.",
		func(ep *testbed.Endpoint, _ *none) error { return ep.DestroyID() }),
	onEndpoint("destroy_qp", "rdma_destroy_qp(3)", "Destroy the queue pair of an id.",
		func(ep *testbed.Endpoint, _ *none) error { return ep.DestroyQP() }),
	onEndpoint("migrate_id", "rdma_migrate_id(3)", "Move an id to the event channel of its role, or make it "+
		"synchronous.",
		func(ep *testbed.Endpoint, args *struct {
			Synchronous bool `arg:"synchronous" doc:"true: without the event channel of the role"`
		}) error {
			if args.Synchronous {
				return ep.ID().MigrateID(nil)
			}
			return ep.ID().MigrateID(ep.Role.Channel())
		}),
	onEndpoint("notify", "rdma_notify(3)", "Report to the connection manager an asynchronous event of a queue pair "+
		"that is not its own.",
		func(ep *testbed.Endpoint, args *struct {
			Type rdmacore.AsyncEventType `arg:"type,required" doc:"the event"`
		}) error {
			return ep.ID().Notify(args.Type)
		}),
	onEndpoint("write_event", "rdma_write_cm_event(3)", "Put a USER event onto the channel of an id.",
		func(ep *testbed.Endpoint, args *struct {
			Status int32  `arg:"status" default:"0" doc:"its status"`
			Arg    uint64 `arg:"arg" default:"0" doc:"a number that comes with it"`
		}) error {
			return ep.ID().WriteEvent(int(args.Status), args.Arg)
		}),
}

func createID(_ context.Context, call *Call, args *struct {
	PortSpace   rdmacore.PortSpace `arg:"port_space" default:"TCP" doc:"of its port and its queue pair"`
	Synchronous bool               `arg:"synchronous" doc:"without the event channel of the role: complete waits for its calls"`
}) error {
	create := call.Role.Channel().CreateID
	if args.Synchronous {
		create = call.Role.Provider().CreateID
	}
	id, err := create(args.PortSpace)
	if err != nil {
		return err
	}
	call.adopt("ep", id)
	return nil
}

func resolveAddress(ctx context.Context, call *Call, args *struct {
	theEndpoint
	To      peerName               `arg:"to,required" doc:"a role, an IP address or a host name"`
	Port    uint16                 `arg:"port,required" doc:"port of the peer"`
	Address optional[localAddress] `arg:"address" doc:"own address; without it the kernel chooses, and on soft that of the role, to an address of IPv4"`
	resolveTimeout
}) error {
	peer, own, err := bothAddresses(ctx, call, args.To, args.Address)
	if err != nil {
		return err
	}
	var source netip.AddrPort
	if own.IsValid() && !args.EP.ID().LocalAddr().IsValid() {
		source = netip.AddrPortFrom(own, 0)
	}
	return args.EP.ID().ResolveAddr(source, netip.AddrPortFrom(peer, args.Port), args.Timeout)
}

// The results of the verbs that ask an id for a port or an address.
type (
	idPort struct {
		Port uint16 `result:"port,varies" doc:"the port; 0 while there is none"`
	}
	idAddress struct {
		Address string `result:"address,varies" doc:"the IP address; \"\" while there is none"`
	}
)

// inquiryVerbs query an id.
var inquiryVerbs = []Verb{
	askEndpoint("get_src_port", "rdma_get_src_port(3)", "Ask an id for its own port.",
		func(ep *testbed.Endpoint) (idPort, error) { return idPort{ep.ID().SrcPort()}, nil }),
	askEndpoint("get_dst_port", "rdma_get_dst_port(3)", "Ask an id for the port of its peer.",
		func(ep *testbed.Endpoint) (idPort, error) { return idPort{ep.ID().DstPort()}, nil }),
	askEndpoint("get_local_addr", "rdma_get_local_addr(3)", "Ask an id for its own address.",
		func(ep *testbed.Endpoint) (idAddress, error) { return idAddress{ipText(ep.ID().LocalAddr())}, nil }),
	askEndpoint("get_peer_addr", "rdma_get_peer_addr(3)", "Ask an id for the address of its peer.",
		func(ep *testbed.Endpoint) (idAddress, error) { return idAddress{ipText(ep.ID().PeerAddr())}, nil }),
	askEndpoint("query_id", "rdma_create_id(3)", "Ask an id for what struct rdma_cm_id says of it.", queryID),
}

// idState are the fields of struct rdma_cm_id.
type idState struct {
	PortSpace   rdmacore.PortSpace `result:"port_space" doc:"as create_id gave it"`
	Device      string             `result:"device,varies" doc:"the device it is bound to; \"\" while there is none"`
	HasPD       bool               `result:"has_pd" doc:"whether it has a protection domain"`
	HasQP       bool               `result:"has_qp" doc:"whether it has a queue pair"`
	Listening   bool               `result:"listening" doc:"whether listen made it a listener"`
	Synchronous bool               `result:"synchronous" doc:"whether it has no event channel"`
}

func queryID(ep *testbed.Endpoint) (idState, error) {
	id, device := ep.ID(), ""
	if bound := id.Device(); bound != nil {
		device = bound.Name()
	}
	return idState{id.PortSpace(), device, id.PD() != nil, id.QP() != nil, id.Listening(), id.Synchronous()}, nil
}

// ece are the options of enhanced connection establishment (struct ibv_ece) as arguments, eceResult as results.  Their
// fields are those of rdmacore.ECE, so that Go converts between the three.
type (
	ece struct {
		VendorID uint32 `arg:"vendor_id,required" doc:"PCI vendor"`
		Options  uint32 `arg:"options" default:"0" doc:"the vendor's options"`
		CompMask uint32 `arg:"comp_mask" default:"0" doc:"0"`
	}
	eceResult struct {
		VendorID uint32 `result:"vendor_id" doc:"PCI vendor; 0 for none"`
		Options  uint32 `result:"options" doc:"the vendor's options"`
		CompMask uint32 `result:"comp_mask" doc:"0"`
	}
)

// optionVerbs set and read options of ids: single ones, the route, and the vendors' (ECE).
var optionVerbs = []Verb{
	onEndpoint(
		"set_option", "rdma_set_option(3)", "Set options of an id: those that are given, or one by its numbers.",
		setOptions,
	),
	askEndpoint("query_route", "rdma_resolve_route(3)", "Ask an id for its resolved route, as set_ib_path takes it.",
		func(ep *testbed.Endpoint) (route, error) {
			path, err := ep.ID().RoutePath()
			return route{path, len(path)}, err
		}),
	onEndpoint(
		"set_ib_path", "rdma_set_option(3)", "Give an id its route in place of resolve_route; ROUTE_RESOLVED comes.",
		setPath,
	),
	onEndpoint("set_local_ece", "rdma_set_local_ece(3)", "Set the ECE options to offer or to answer with.",
		func(ep *testbed.Endpoint, args *ece) error { return ep.ID().SetLocalECE(rdmacore.ECE(*args)) }),
	onEndpoint("reject_ece", "rdma_reject_ece(3)", "Refuse a connection request for its ECE options.",
		func(ep *testbed.Endpoint, args *privateData) error {
			ep.Answered = true
			return ep.ID().RejectECE(args.PrivateData)
		}).carrying(148, 136),
	askEndpoint("get_remote_ece", "rdma_get_remote_ece(3)", "Ask for the ECE options that the peer offered or "+
		"answered.",
		func(ep *testbed.Endpoint) (eceResult, error) {
			ece, err := ep.ID().GetRemoteECE()
			return eceResult(ece), err
		}),
	act("set_ece", "ibv_set_ece(3)", "Set the ECE options of a queue pair itself, before it is in RTR.",
		func(_ context.Context, _ *Call, args *struct {
			theQueuePair
			ece
		}) error {
			return args.qp.SetECE(rdmacore.ECE(args.ece))
		}),
	ask("query_ece", "ibv_query_ece(3)", "Ask a queue pair for its ECE options.",
		func(_ context.Context, _ *Call, args *theQueuePair) (eceResult, error) {
			ece, err := args.qp.QueryECE()
			return eceResult(ece), err
		}),
}

func setOptions(ep *testbed.Endpoint, args *struct {
	TOS        optional[uint8] `arg:"tos" doc:"type of service of its packets"`
	ReuseAddr  optional[bool]  `arg:"reuse_addr" doc:"may be bound to an address that others have"`
	AFOnly     optional[bool]  `arg:"af_only" doc:"an IPv6 id takes no IPv4 connections"`
	AckTimeout optional[uint8] `arg:"ack_timeout" doc:"code n of the local ACK timeout, 4.096 us * 2^n; more than 31 is refused"`
	Level      optional[int]   `arg:"level" max:"0x7fffffff" doc:"of an option by number: 0 for the id, 1 for InfiniBand"`
	Option     int             `arg:"option" default:"0" max:"0x7fffffff" doc:"its number, with level"`
	Value      []byte          `arg:"value" doc:"its bytes, in the machine's order, with level"`
}) error {
	number := func(on bool) []byte { return binary.NativeEndian.AppendUint32(nil, flag[uint32](on, 1)) }
	for _, each := range []struct {
		given  bool
		level  rdmacore.OptionLevel
		option rdmacore.IDOption
		value  []byte
	}{
		{args.TOS.Given, rdmacore.OptionID, rdmacore.OptionTOS, []byte{args.TOS.Value}},
		{args.ReuseAddr.Given, rdmacore.OptionID, rdmacore.OptionReuseAddr, number(args.ReuseAddr.Value)},
		{args.AFOnly.Given, rdmacore.OptionID, rdmacore.OptionAFOnly, number(args.AFOnly.Value)},
		{args.AckTimeout.Given, rdmacore.OptionID, rdmacore.OptionAckTimeout, []byte{args.AckTimeout.Value}},
		{args.Level.Given, rdmacore.OptionLevel(args.Level.Value), rdmacore.IDOption(args.Option), args.Value},
	} {
		if !each.given {
			continue
		}
		if err := ep.ID().SetOption(each.level, each.option, each.value); err != nil {
			return err
		}
	}
	return nil
}

// route is a resolved route.
type route struct {
	Path   []byte `result:"path,varies" doc:"struct ibv_path_data"`
	Length int    `result:"length" doc:"its bytes"`
}

func setPath(ep *testbed.Endpoint, args *struct {
	RouteOf *testbed.Endpoint `arg:"route_of" group:"route_of or path" doc:"the endpoint with the route"`
	Path    []byte            `arg:"path" group:"route_of or path" doc:"struct ibv_path_data[]"`
}) error {
	path := args.Path
	if args.RouteOf != nil {
		var err error
		if path, err = args.RouteOf.ID().RoutePath(); err != nil {
			return err
		}
	}
	return ep.ID().SetIBPath(path)
}
