package verb

import (
	"context"
	"encoding/binary"
	"net/netip"
	"time"

	"rdmarun/host/scenario/testbed"
	"rdmarun/rdmacore"
)

// resolveTimeout is the argument of what looks for addresses and routes.
type resolveTimeout struct {
	Timeout time.Duration `arg:"timeout" default:"2s" max:"1h" doc:"how long to try"`
}

// identifierVerbs are the single steps of rdma_cm, of which create_ep does several.
func identifierVerbs() []Verb {
	return []Verb{
		define(Verb{
			Name: "create_id", Manual: "rdma_create_id(3)", Yields: NewEndpoint,
			Doc: "Make an id: an endpoint without address and queue pair.",
		}, action(createID)),
		define(Verb{
			Name: "bind_addr", Manual: "rdma_bind_addr(3)", Yields: Value,
			Doc: "Give an id a local address.",
		}, bindAddress),
		define(Verb{
			Name: "resolve_addr", Manual: "rdma_resolve_addr(3)",
			Doc: "Look for device and path to an address; ADDR_RESOLVED or ADDR_ERROR tells the end.",
		}, action(resolveAddress)),
		define(Verb{
			Name: "resolve_route", Manual: "rdma_resolve_route(3)",
			Doc: "Look for the route to the resolved address; ROUTE_RESOLVED or ROUTE_ERROR tells the end.",
		}, action(func(_ context.Context, _ *Call, args *struct {
			theEndpoint
			resolveTimeout
		}) error {
			return args.EP.ID().ResolveRoute(args.Timeout)
		})),
		define(Verb{
			Name: "destroy_id", Manual: "rdma_destroy_id(3)",
			Doc: "Destroy an id, which must have no queue pair.",
		}, action(func(_ context.Context, _ *Call, args *theEndpoint) error { return args.EP.DestroyID() })),
		define(Verb{
			Name: "destroy_qp", Manual: "rdma_destroy_qp(3)",
			Doc: "Destroy the queue pair of an id.",
		}, action(func(_ context.Context, _ *Call, args *theEndpoint) error { return args.EP.DestroyQP() })),
		define(Verb{
			Name: "migrate_id", Manual: "rdma_migrate_id(3)",
			Doc: "Move an id to the event channel of its role, or make it synchronous.",
		}, action(migrateID)),
		define(Verb{
			Name: "notify", Manual: "rdma_notify(3)",
			Doc: "Tell the connection manager of an asynchronous event of a queue pair that is not its own.",
		}, action(func(_ context.Context, _ *Call, args *struct {
			theEndpoint
			Type rdmacore.AsyncEventType `arg:"type,required" doc:"the event"`
		}) error {
			return args.EP.ID().Notify(args.Type)
		})),
		define(Verb{
			Name: "write_event", Manual: "rdma_write_cm_event(3)",
			Doc: "Put a USER event onto the channel of an id.",
		}, action(func(_ context.Context, _ *Call, args *struct {
			theEndpoint
			Status int32  `arg:"status" default:"0" doc:"its status"`
			Arg    uint64 `arg:"arg" default:"0" doc:"a number that comes with it"`
		}) error {
			return args.EP.ID().WriteEvent(int(args.Status), args.Arg)
		})),
	}
}

func createID(_ context.Context, call *Call, args *struct {
	PortSpace   rdmacore.PortSpace `arg:"port_space" default:"TCP" doc:"of its port and its queue pair"`
	Synchronous bool               `arg:"synchronous" doc:"without the event channel of the role: complete waits for its calls"`
}) error {
	create := call.Role.Channel().CreateID
	if args.Synchronous {
		create = call.Testbed.Provider().CreateID
	}
	id, err := create(args.PortSpace)
	if err != nil {
		return err
	}
	call.Outcome.Made = call.Role.Adopt("id", id)
	return nil
}

func bindAddress(_ context.Context, call *Call, args *struct {
	theEndpoint
	Port    uint16                 `arg:"port" default:"0" doc:"port of the port space; 0 for any"`
	Address Optional[localAddress] `arg:"address" doc:"own address, \"any\" or another; without it that of the role's device"`
}) (endpointAddress, error) {
	own, err := ownAddress(call, args.Address)
	if err != nil {
		return endpointAddress{}, err
	}
	args.EP.Passive = true
	if err := args.EP.ID().BindAddr(netip.AddrPortFrom(own, args.Port)); err != nil {
		return endpointAddress{}, err
	}
	return addressOf(call, args.EP.ID()), nil
}

func resolveAddress(ctx context.Context, call *Call, args *struct {
	theEndpoint
	To      peerName               `arg:"to,required" doc:"a role, an IP address or a host name"`
	Port    uint16                 `arg:"port,required" doc:"port of the peer"`
	Address Optional[localAddress] `arg:"address" doc:"own address; without it the kernel chooses, and on soft that of the role, to an address of IPv4"`
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

func migrateID(_ context.Context, call *Call, args *struct {
	theEndpoint
	Synchronous bool `arg:"synchronous" doc:"true: without the event channel of the role"`
}) error {
	if args.Synchronous {
		return args.EP.ID().MigrateID(nil)
	}
	return args.EP.ID().MigrateID(call.Role.Channel())
}

// The results of what asks an id for one thing.
type (
	idPort struct {
		Port uint16 `result:"port,varies" doc:"the port; 0 while there is none"`
	}
	idAddress struct {
		Address string `result:"address,varies" doc:"the IP address; \"\" while there is none"`
	}
)

// inquiryVerbs ask an id for what it knows.
func inquiryVerbs() []Verb {
	port := func(get func(*rdmacore.ID) uint16) func(context.Context, *Call, *theEndpoint) (idPort, error) {
		return func(_ context.Context, _ *Call, args *theEndpoint) (idPort, error) {
			return idPort{get(args.EP.ID())}, nil
		}
	}
	address := func(get func(*rdmacore.ID) netip.AddrPort) func(context.Context, *Call, *theEndpoint) (idAddress, error) {
		return func(_ context.Context, _ *Call, args *theEndpoint) (idAddress, error) {
			return idAddress{ipText(get(args.EP.ID()))}, nil
		}
	}
	return []Verb{
		define(Verb{Name: "get_src_port", Manual: "rdma_get_src_port(3)", Yields: Value, Doc: "Ask an id for its own port."}, port((*rdmacore.ID).SrcPort)),
		define(Verb{Name: "get_dst_port", Manual: "rdma_get_dst_port(3)", Yields: Value, Doc: "Ask an id for the port of its peer."}, port((*rdmacore.ID).DstPort)),
		define(Verb{Name: "get_local_addr", Manual: "rdma_get_local_addr(3)", Yields: Value, Doc: "Ask an id for its own address."}, address((*rdmacore.ID).LocalAddr)),
		define(Verb{Name: "get_peer_addr", Manual: "rdma_get_peer_addr(3)", Yields: Value, Doc: "Ask an id for the address of its peer."}, address((*rdmacore.ID).PeerAddr)),
		define(Verb{
			Name: "query_id", Manual: "rdma_create_id(3)", Yields: Value,
			Doc: "Ask an id for what struct rdma_cm_id says of it.",
		}, queryID),
	}
}

// idState is what struct rdma_cm_id says of an id.
type idState struct {
	PortSpace   rdmacore.PortSpace `result:"port_space" doc:"as create_id gave it"`
	Device      string             `result:"device,varies" doc:"the device it is bound to; \"\" while there is none"`
	HasPD       bool               `result:"has_pd" doc:"whether it has a protection domain"`
	HasQP       bool               `result:"has_qp" doc:"whether it has a queue pair"`
	Listening   bool               `result:"listening" doc:"whether listen made it a listener"`
	Synchronous bool               `result:"synchronous" doc:"whether it has no event channel"`
}

func queryID(_ context.Context, _ *Call, args *theEndpoint) (idState, error) {
	id, device := args.EP.ID(), ""
	if bound := id.Device(); bound != nil {
		device = bound.Name()
	}
	return idState{id.PortSpace(), device, id.PD() != nil, id.QP() != nil, id.Listening(), id.Synchronous()}, nil
}

// optionVerbs set options of ids, the route and those of vendors among them.
func optionVerbs() []Verb {
	return []Verb{
		define(Verb{
			Name: "set_option", Manual: "rdma_set_option(3)",
			Doc: "Set options of an id: those that are given, or one by its numbers.",
		}, action(setOptions)),
		define(Verb{
			Name: "query_route", Manual: "rdma_resolve_route(3)", Yields: Value,
			Doc: "Ask an id for its resolved route, as set_ib_path takes it.",
		}, queryRoute),
		define(Verb{
			Name: "set_ib_path", Manual: "rdma_set_option(3)",
			Doc: "Give an id its route in place of resolve_route; ROUTE_RESOLVED comes.",
		}, action(setPath)),
		define(Verb{
			Name: "set_local_ece", Manual: "rdma_set_local_ece(3)",
			Doc: "Set the ECE options to offer or to answer with.",
		}, action(func(_ context.Context, _ *Call, args *struct {
			theEndpoint
			eceArguments
		}) error {
			return args.EP.ID().SetLocalECE(args.ece())
		})),
		define(Verb{
			Name: "reject_ece", Manual: "rdma_reject_ece(3)",
			Doc: "Refuse a connection request for its ECE options.",
		}, action(func(_ context.Context, _ *Call, args *struct {
			theEndpoint
			privateData
		}) error {
			args.EP.Answered = true
			return args.EP.ID().RejectECE(args.PrivateData)
		})),
		define(Verb{
			Name: "get_remote_ece", Manual: "rdma_get_remote_ece(3)", Yields: Value,
			Doc: "Ask for the ECE options that the peer offered or answered.",
		}, func(_ context.Context, _ *Call, args *theEndpoint) (eceResult, error) {
			ece, err := args.EP.ID().GetRemoteECE()
			return eceResult{ece.VendorID, ece.Options, ece.CompMask}, err
		}),
		define(Verb{
			Name: "set_ece", Manual: "ibv_set_ece(3)",
			Doc: "Set the ECE options of a queue pair itself, before it is in RTR.",
		}, action(func(_ context.Context, _ *Call, args *struct {
			theEndpoint
			eceArguments
		}) error {
			qp, err := args.EP.QP()
			if err != nil {
				return err
			}
			return qp.SetECE(args.ece())
		})),
		define(Verb{
			Name: "query_ece", Manual: "ibv_query_ece(3)", Yields: Value,
			Doc: "Ask a queue pair for its ECE options.",
		}, func(_ context.Context, _ *Call, args *theEndpoint) (eceResult, error) {
			qp, err := args.EP.QP()
			if err != nil {
				return eceResult{}, err
			}
			ece, err := qp.QueryECE()
			return eceResult{ece.VendorID, ece.Options, ece.CompMask}, err
		}),
	}
}

func setOptions(_ context.Context, _ *Call, args *struct {
	theEndpoint
	TOS        Optional[uint8] `arg:"tos" doc:"type of service of its packets"`
	ReuseAddr  Optional[bool]  `arg:"reuse_addr" doc:"may be bound to an address that others have"`
	AFOnly     Optional[bool]  `arg:"af_only" doc:"an IPv6 id takes no IPv4 connections"`
	AckTimeout Optional[uint8] `arg:"ack_timeout" doc:"code n of the local ACK timeout, 4.096 us * 2^n; more than 31 is refused"`
	Level      Optional[int]   `arg:"level" max:"0x7fffffff" doc:"of an option by number: 0 for the id, 1 for InfiniBand"`
	Option     int             `arg:"option" default:"0" max:"0x7fffffff" doc:"its number, with level"`
	Value      []byte          `arg:"value" doc:"its bytes, in the machine's order, with level"`
}) error {
	flag := func(on bool) []byte {
		number := uint32(0)
		if on {
			number = 1
		}
		return binary.NativeEndian.AppendUint32(nil, number)
	}
	id := args.EP.ID()
	for _, each := range []struct {
		given  bool
		option rdmacore.IDOption
		value  []byte
	}{
		{args.TOS.Given, rdmacore.OptionTOS, []byte{args.TOS.Value}},
		{args.ReuseAddr.Given, rdmacore.OptionReuseAddr, flag(args.ReuseAddr.Value)},
		{args.AFOnly.Given, rdmacore.OptionAFOnly, flag(args.AFOnly.Value)},
		{args.AckTimeout.Given, rdmacore.OptionAckTimeout, []byte{args.AckTimeout.Value}},
	} {
		if !each.given {
			continue
		}
		if err := id.SetOption(rdmacore.OptionID, each.option, each.value); err != nil {
			return err
		}
	}
	if !args.Level.Given {
		return nil
	}
	return id.SetOption(rdmacore.OptionLevel(args.Level.Value), rdmacore.IDOption(args.Option), args.Value)
}

// route is a resolved route.
type route struct {
	Path   []byte `result:"path,varies" doc:"struct ibv_path_data"`
	Length int    `result:"length" doc:"its bytes"`
}

func queryRoute(_ context.Context, _ *Call, args *theEndpoint) (route, error) {
	path, err := args.EP.ID().RoutePath()
	return route{path, len(path)}, err
}

func setPath(_ context.Context, _ *Call, args *struct {
	theEndpoint
	RouteOf *testbed.Endpoint `arg:"route_of" group:"route_of or path" doc:"the endpoint whose route it is"`
	Path    []byte            `arg:"path" group:"route_of or path" doc:"struct ibv_path_data[]"`
}) error {
	path := args.Path
	if args.RouteOf != nil {
		var err error
		if path, err = args.RouteOf.ID().RoutePath(); err != nil {
			return err
		}
	}
	return args.EP.ID().SetIBPath(path)
}

// eceArguments are the options of enhanced connection establishment, struct ibv_ece.
type eceArguments struct {
	VendorID uint32 `arg:"vendor_id,required" doc:"PCI vendor"`
	Options  uint32 `arg:"options" default:"0" doc:"the vendor's options"`
	CompMask uint32 `arg:"comp_mask" default:"0" doc:"0"`
}

func (a *eceArguments) ece() rdmacore.ECE {
	return rdmacore.ECE{VendorID: a.VendorID, Options: a.Options, CompMask: a.CompMask}
}

// eceResult is struct ibv_ece.
type eceResult struct {
	VendorID uint32 `result:"vendor_id" doc:"PCI vendor; 0 for none"`
	Options  uint32 `result:"options" doc:"the vendor's options"`
	CompMask uint32 `result:"comp_mask" doc:"0"`
}
