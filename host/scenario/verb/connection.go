package verb

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"time"

	"rdmarun/host/scenario/testbed"
	"rdmarun/rdmacore"
)

// theEndpoint is the argument of verbs that work on an id.
type theEndpoint struct {
	EP *testbed.Endpoint `arg:"ep,required" doc:"the endpoint, by the name that 'as' gave it"`
}

// onlyEndpoint is the argument of verbs that work on a queue pair.
type onlyEndpoint struct {
	EP *testbed.Endpoint `arg:"ep,only" doc:"the endpoint; without it the role's only one"`
}

// endpointAnd is an endpoint with further arguments.
type endpointAnd[A any] struct {
	theEndpoint
	More A
}

// onEndpoint defines a verb without results that works on an endpoint; most are one call of the core.
func onEndpoint[A any](name, manual, doc string, run func(ep *testbed.Endpoint, args *A) error) Verb {
	return act(name, manual, doc, func(_ context.Context, _ *Call, args *endpointAnd[A]) error {
		return run(args.EP, &args.More)
	})
}

// askEndpoint defines a verb that asks an endpoint for something.
func askEndpoint[R any](name, manual, doc string, run func(ep *testbed.Endpoint) (R, error)) Verb {
	return ask(name, manual, doc, func(_ context.Context, _ *Call, args *theEndpoint) (R, error) {
		return run(args.EP)
	})
}

// connectionVerbs make, connect and end endpoints.
var connectionVerbs = []Verb{
	ask(CreateEP, "rdma_create_ep(3)",
		"Make an endpoint: a passive one is bound and can listen, an active one has its address and route resolved "+
			"and a queue pair.",
		createEndpoint).making(Endpoint),
	ask(Bind, "rdma_bind_addr(3)",
		"Make an endpoint without a queue pair and bind it; its connections have no queue pair until create_qp.",
		bind).making(Endpoint),
	onEndpoint("listen", "rdma_listen(3)", "Listen for connection requests.",
		func(ep *testbed.Endpoint, args *struct {
			Backlog int `arg:"backlog" default:"0" max:"0x10000" doc:"requests that may wait unread; 0 is the system's maximum"`
		}) error {
			return ep.Listen(args.Backlog)
		}),
	act(Connect, "rdma_connect(3)", "Send a connection request; wait_event has its result.", connect).carrying(56, 180),
	act(Accept, "rdma_accept(3)", "Accept the connection request that made the endpoint.", accept).carrying(196, 136),
	onEndpoint("reject", "rdma_reject(3)", "Refuse the connection request that made the endpoint; the peer gets "+
		"REJECTED with status 28.",
		func(ep *testbed.Endpoint, args *privateData) error {
			ep.Answered = true
			return ep.ID().Reject(args.PrivateData)
		}).carrying(148, 136),
	onEndpoint("establish", "rdma_establish(3)",
		"Complete a connection by hand, after CONNECT_RESPONSE of an endpoint without a queue pair of rdma_cm.",
		func(ep *testbed.Endpoint, _ *none) error { return ep.ID().Establish() }),
	onEndpoint("disconnect", "rdma_disconnect(3)",
		"End a connection: both sides get DISCONNECTED, and what is posted comes back flushed.",
		func(ep *testbed.Endpoint, _ *none) error {
			ep.Disconnected = true
			return ep.ID().Disconnect()
		}),
	onEndpoint("destroy_ep", "rdma_destroy_ep(3)", "Destroy an endpoint and its queue pair.  At the end of a case "+
		"that happens by itself.",
		func(ep *testbed.Endpoint, _ *none) error { return ep.Destroy() }),
}

func createEndpoint(ctx context.Context, call *Call, args *struct {
	To      peerName               `arg:"to" group:"to or passive" doc:"active: a role, an IP address or a host name"`
	Passive bool                   `arg:"passive" group:"to or passive" doc:"passive: true"`
	Port    uint16                 `arg:"port,required" doc:"port of the port space; 0 lets a passive endpoint have any"`
	Address optional[localAddress] `arg:"address" doc:"own address. The default of a passive endpoint is its role's device; \"any\" is all addresses"`
	QP      QueuePairAttributes    `arg:"qp" doc:"attributes of the queue pair, over those of 'defaults'"`
	Resolve time.Duration          `arg:"resolve" default:"2s" min:"1ns" max:"1m" doc:"time for the address and for the route each"`
}) (endpointAddress, error) {
	wanted, err := args.QP.native(call.Role)
	if err != nil {
		return endpointAddress{}, err
	}
	config := rdmacore.EPConfig{Passive: args.Passive, PD: call.Role.PD(), QP: wanted, Timeout: args.Resolve}
	if config.Passive {
		own, err := ownAddress(call, args.Address)
		if err != nil {
			return endpointAddress{}, err
		}
		config.Source = netip.AddrPortFrom(own, args.Port)
	} else {
		peer, own, err := bothAddresses(ctx, call, args.To, args.Address)
		if err != nil {
			return endpointAddress{}, err
		}
		config.Destination = netip.AddrPortFrom(peer, args.Port)
		if own.IsValid() {
			config.Source = netip.AddrPortFrom(own, 0)
		}
	}
	var id *rdmacore.ID
	call.Testbed.Unlocked(func() { id, err = call.Role.Channel().CreateEP(ctx, config) })
	if err != nil {
		return endpointAddress{}, err
	}
	call.adopt("ep", id).Passive = config.Passive
	return addressOf(id), nil
}

func bind(_ context.Context, call *Call, args *struct {
	Port    uint16                 `arg:"port,required" doc:"port of the port space; 0 for any"`
	Address optional[localAddress] `arg:"address" doc:"own address; without it that of the role's device"`
}) (endpointAddress, error) {
	id, err := call.Role.Channel().CreateID(rdmacore.PortSpaceTCP)
	if err != nil {
		return endpointAddress{}, err
	}
	return bindTo(call, call.adopt("ep", id), args.Address, args.Port)
}

// rnrRetryCount is separate because connect and accept have it in different places.
type rnrRetryCount struct {
	RNRRetryCount uint8 `arg:"rnr_retry_count" default:"7" doc:"how often the peer repeats a send that finds no receive here. 7 means forever, and larger values are 7"`
}

// connectionResources are the first parameters of connect and accept (struct rdma_conn_param).
type connectionResources struct {
	theEndpoint
	ResponderResources uint8 `arg:"responder_resources" default:"255" doc:"READs and atomics of the peer served at once; 255 means the device's maximum"`
	InitiatorDepth     uint8 `arg:"initiator_depth" default:"255" doc:"own READs and atomics outstanding at once; 255 means the device's maximum"`
	FlowControl        uint8 `arg:"flow_control" default:"0" max:"1" doc:"hardware flow control"`
}

// privateData is sent with a message of the connection manager.
type privateData struct {
	PrivateData []byte `arg:"private_data" doc:"bytes that travel with the message"`
}

// foreignQueuePair are the parameters that describe a queue pair that rdma_cm did not make.
type foreignQueuePair struct {
	QPNum    uint32        `arg:"qp_num" max:"0xffffff" doc:"number of a queue pair that is not the endpoint's; ignored when it has one"`
	SRQ      bool          `arg:"srq" doc:"that queue pair receives from a shared receive queue"`
	NoParams bool          `arg:"no_params" doc:"true: with NULL for all of these"`
	More     moreArguments `arg:"params" doc:"more arguments of this verb, as one mapping"`
}

// parameters is struct rdma_conn_param, nil for NULL.
func (r *connectionResources) parameters(
	retries uint8, rnr rnrRetryCount, data privateData, foreign foreignQueuePair,
) *rdmacore.ConnParam {
	if foreign.NoParams {
		return nil
	}
	return &rdmacore.ConnParam{
		ResponderResources: r.ResponderResources, InitiatorDepth: r.InitiatorDepth, FlowControl: r.FlowControl,
		RetryCount: retries, RNRRetryCount: rnr.RNRRetryCount, SRQ: foreign.SRQ, QPNum: foreign.QPNum,
		PrivateData: data.PrivateData,
	}
}

func connect(_ context.Context, _ *Call, args *struct {
	connectionResources
	RetryCount uint8 `arg:"retry_count" default:"7" doc:"repeats of an unanswered packet, by both sides. Larger values than 7 are 7"`
	rnrRetryCount
	privateData
	foreignQueuePair
}) error {
	return args.EP.ID().Connect(args.parameters(
		args.RetryCount, args.rnrRetryCount, args.privateData, args.foreignQueuePair,
	))
}

func accept(_ context.Context, _ *Call, args *struct {
	connectionResources
	rnrRetryCount
	privateData
	RetryCount uint8 `arg:"retry_count" doc:"ignored: connect sets it for both sides"`
	foreignQueuePair
}) error {
	args.EP.Answered = true
	return args.EP.ID().Accept(args.parameters(
		args.RetryCount, args.rnrRetryCount, args.privateData, args.foreignQueuePair,
	))
}

// endpointAddress is the result of verbs that give an endpoint its address.
type endpointAddress struct {
	Port    uint16 `result:"port,varies" doc:"the own port"`
	Address string `result:"address,varies" doc:"the own address"`
	local   netip.AddrPort
}

func (a endpointAddress) summary() string { return a.local.String() }

func addressOf(id *rdmacore.ID) endpointAddress {
	local := id.LocalAddr()
	return endpointAddress{local.Port(), local.Addr().String(), local}
}

// bindTo binds an endpoint, so that it can listen.
func bindTo(
	call *Call, endpoint *testbed.Endpoint, address optional[localAddress], port uint16,
) (endpointAddress, error) {
	endpoint.Passive = true
	own, err := ownAddress(call, address)
	if err == nil {
		err = endpoint.ID().BindAddr(netip.AddrPortFrom(own, port))
	}
	return addressOf(endpoint.ID()), err
}

// ownAddress is the address argument; without one, the role's.
func ownAddress(call *Call, given optional[localAddress]) (netip.Addr, error) {
	switch text := given.Value; text {
	case "":
		return call.Role.Address(), nil
	case "any":
		return netip.IPv4Unspecified(), nil
	default:
		address, err := netip.ParseAddr(string(text))
		if err != nil {
			return address, &testbed.Failure{
				What: fmt.Sprintf("%q is not an IP address", text), Hint: "write an address of this machine, or any",
			}
		}
		return address, nil
	}
}

// bothAddresses are the address of a peer and the own one to reach it from, which is not valid if the kernel is to
// choose.
func bothAddresses(
	ctx context.Context, call *Call, to peerName, given optional[localAddress],
) (peer, own netip.Addr, err error) {
	if peer, err = peerAddress(ctx, call, to); err != nil {
		return peer, own, err
	}
	if own, err = ownAddress(call, given); err != nil {
		return peer, own, err
	}
	switch {
	case given.Value == "any" && !peer.Is4():
		own = netip.IPv6Unspecified()
	case given.Given:
	case !own.IsLoopback() || own.Is4() != peer.Is4():
		// Only on soft do roles have addresses of their own, all of IPv4; the kernel would take 127.0.0.1.
		own = netip.Addr{}
	}
	return peer, own, nil
}

// peerAddress turns a role, an IP address or a host name into an address.
func peerAddress(ctx context.Context, call *Call, to peerName) (netip.Addr, error) {
	name := string(to)
	if address, is := call.Testbed.AddressOf(name); is {
		return address, nil
	}
	if address, err := netip.ParseAddr(name); err == nil {
		return address, nil
	}
	var addresses []netip.Addr
	var err error
	call.Testbed.Unlocked(func() { addresses, err = net.DefaultResolver.LookupNetIP(ctx, "ip", name) })
	if ctx.Err() != nil {
		return netip.Addr{}, ctx.Err()
	}
	if err != nil || len(addresses) == 0 {
		return netip.Addr{}, &testbed.Failure{
			What: fmt.Sprintf("%q is neither a role nor an IP address, and no host of that name is known", name),
			Hint: fmt.Sprint(err),
		}
	}
	for _, address := range addresses {
		if address.Unmap().Is4() {
			return address.Unmap(), nil // most RoCE GIDs in use are IPv4
		}
	}
	return addresses[0], nil
}

// addressVerbs turn names into addresses.
var addressVerbs = []Verb{
	ask("getaddrinfo", "rdma_getaddrinfo(3)", "Find the addresses of a node and service.", getAddrInfo),
	onEndpoint("resolve_addrinfo", "rdma_resolve_addrinfo(3)",
		"Find the addresses of a node and service; ADDRINFO_RESOLVED or ADDRINFO_ERROR ends it.",
		func(ep *testbed.Endpoint, args *addressQuery) error {
			return ep.ID().ResolveAddrInfo(args.Node, args.Service, args.hints())
		}),
	askEndpoint("query_addrinfo", "rdma_query_addrinfo(3)", "Ask an id for what resolve_addrinfo found.",
		func(ep *testbed.Endpoint) (addressesFound, error) {
			found, err := ep.ID().QueryAddrInfo()
			return firstOf(found), err
		}),
}

// addressQuery are the arguments of a search for addresses.
type addressQuery struct {
	Node        string `arg:"node" default:"" doc:"an IP address or a host name"`
	Service     string `arg:"service" default:"" doc:"a port or a service's name"`
	Passive     bool   `arg:"passive" doc:"for an address to listen on"`
	NumericHost bool   `arg:"numeric_host" doc:"the node is an address, no name"`
}

func (q *addressQuery) hints() *rdmacore.AddrInfo {
	flags := flag(q.Passive, rdmacore.AddrInfoPassive) | flag(q.NumericHost, rdmacore.AddrInfoNumericHost)
	return &rdmacore.AddrInfo{PortSpace: rdmacore.PortSpaceTCP, Flags: flags}
}

// addressesFound is the result of such a search: the first address, and how many there are.
type addressesFound struct {
	Count     int                          `result:"count" doc:"how many were found; the rest is of the first"`
	PortSpace optional[rdmacore.PortSpace] `result:"port_space" doc:"its port space"`
	Source    string                       `result:"src_address,varies" doc:"own IP address; \"\" for none"`
	SrcPort   uint16                       `result:"src_port" doc:"own port"`
	Peer      string                       `result:"dst_address,varies" doc:"the peer's IP address; \"\" for none"`
	DstPort   uint16                       `result:"dst_port" doc:"the peer's port"`
}

func firstOf(found []rdmacore.AddrInfo) addressesFound {
	if len(found) == 0 {
		return addressesFound{}
	}
	first := found[0]
	return addressesFound{
		len(found), some(first.PortSpace), ipText(first.Source), first.Source.Port(), ipText(first.Destination),
		first.Destination.Port(),
	}
}

// ipText is an IP address without its port, "" for none.
func ipText(address netip.AddrPort) string {
	if !address.IsValid() {
		return ""
	}
	return address.Addr().String()
}

func getAddrInfo(ctx context.Context, call *Call, args *struct {
	addressQuery
	within
}) (addressesFound, error) {
	var found []rdmacore.AddrInfo
	err := args.await(ctx, call, func(ctx context.Context) (err error) {
		call.Testbed.Clock().Outside(func() {
			found, err = call.Role.Provider().GetAddrInfo(ctx, args.Node, args.Service, args.hints())
		})
		return err
	}, &testbed.Failure{What: "no address", Expected: "the addresses of " + strconv.Quote(args.Node)})
	return firstOf(found), err
}
