package verb

import (
	"context"
	"net/netip"
	"time"

	"rdmarun/host/scenario/testbed"
	"rdmarun/rdmacore"
)

// theEndpoint is the argument of verbs that concern an id.
type theEndpoint struct {
	EP *testbed.Endpoint `arg:"ep,required" doc:"the endpoint, by the name that 'as' gave it"`
}

// onlyEndpoint is the argument of verbs that concern a queue pair.
type onlyEndpoint struct {
	EP *testbed.Endpoint `arg:"ep,only" doc:"the endpoint; without it the role's only one"`
}

// connectionVerbs make, connect and end endpoints.
func connectionVerbs() []Verb {
	return []Verb{
		define(Verb{
			Name: "create_ep", Manual: "rdma_create_ep(3)", Yields: NewEndpoint,
			Doc: "Make an endpoint: a passive one is bound and can listen, an active one has its address and route resolved and a queue pair.",
		}, createEndpoint),
		define(Verb{
			Name: "bind", Manual: "rdma_bind_addr(3)", Yields: NewEndpoint,
			Doc: "Make an endpoint without a queue pair and bind it; its connections have no queue pair until create_qp.",
		}, bind),
		define(Verb{
			Name: "listen", Manual: "rdma_listen(3)",
			Doc: "Listen for connection requests.",
		}, action(listen)),
		define(Verb{
			Name: "connect", Manual: "rdma_connect(3)",
			Doc: "Send a connection request; wait_event tells what became of it.",
		}, action(connect)),
		define(Verb{
			Name: "accept", Manual: "rdma_accept(3)",
			Doc: "Accept the connection request that made the endpoint.",
		}, action(accept)),
		define(Verb{
			Name: "reject", Manual: "rdma_reject(3)",
			Doc: "Refuse the connection request that made the endpoint; the peer gets REJECTED with status 28.",
		}, action(reject)),
		define(Verb{
			Name: "establish", Manual: "rdma_establish(3)",
			Doc: "Complete a connection by hand, after CONNECT_RESPONSE of an endpoint without a queue pair of rdma_cm.",
		}, action(func(_ context.Context, _ *Call, args *theEndpoint) error { return args.EP.ID().Establish() })),
		define(Verb{
			Name: "disconnect", Manual: "rdma_disconnect(3)",
			Doc: "End a connection: both sides get DISCONNECTED, and what is posted comes back flushed.",
		}, action(disconnect)),
		define(Verb{
			Name: "destroy_ep", Manual: "rdma_destroy_ep(3)",
			Doc: "Destroy an endpoint and its queue pair.  At the end of a case that happens by itself.",
		}, action(func(_ context.Context, _ *Call, args *theEndpoint) error { return args.EP.Destroy() })),
	}
}

func createEndpoint(ctx context.Context, call *Call, args *struct {
	To      peerName               `arg:"to" group:"to or passive" doc:"active: a role, an IP address or a host name"`
	Passive bool                   `arg:"passive" group:"to or passive" doc:"passive: true"`
	Port    uint16                 `arg:"port,required" doc:"port of the port space; 0 lets a passive endpoint have any"`
	Address Optional[localAddress] `arg:"address" doc:"own address; a passive endpoint listens on its role's device unless this says \"any\" or another"`
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
	endpoint := call.Role.Adopt("ep", id)
	endpoint.Passive = config.Passive
	call.Outcome.Made = endpoint
	return addressOf(call, id), nil
}

func bind(_ context.Context, call *Call, args *struct {
	Port    uint16                 `arg:"port,required" doc:"port of the port space; 0 for any"`
	Address Optional[localAddress] `arg:"address" doc:"own address; without it that of the role's device"`
}) (endpointAddress, error) {
	own, err := ownAddress(call, args.Address)
	if err != nil {
		return endpointAddress{}, err
	}
	id, err := call.Role.Channel().CreateID(rdmacore.PortSpaceTCP)
	if err != nil {
		return endpointAddress{}, err
	}
	endpoint := call.Role.Adopt("ep", id)
	endpoint.Passive = true
	call.Outcome.Made = endpoint
	if err := id.BindAddr(netip.AddrPortFrom(own, args.Port)); err != nil {
		return endpointAddress{}, err
	}
	return addressOf(call, id), nil
}

func listen(_ context.Context, _ *Call, args *struct {
	theEndpoint
	Backlog int `arg:"backlog" default:"0" max:"0x10000" doc:"requests that may wait unread; 0 is the system's most"`
}) error {
	return args.EP.Listen(args.Backlog)
}

// rnrRetryCount, which connect and accept have in different places.
type rnrRetryCount struct {
	RNRRetryCount uint8 `arg:"rnr_retry_count" default:"7" doc:"how often the peer repeats a send that finds no receive here; 7 is for ever, and more is 7"`
}

// connectionResources are the first of the parameters of connect and accept, struct rdma_conn_param.
type connectionResources struct {
	theEndpoint
	ResponderResources uint8 `arg:"responder_resources" default:"255" doc:"READs and atomics of the peer served at once; 255 is the device's most"`
	InitiatorDepth     uint8 `arg:"initiator_depth" default:"255" doc:"own READs and atomics outstanding at once; 255 is the device's most"`
	FlowControl        uint8 `arg:"flow_control" default:"0" max:"1" doc:"hardware flow control"`
}

// privateData is what travels with a message of the connection manager.
type privateData struct {
	PrivateData []byte `arg:"private_data" doc:"bytes that travel with the message"`
}

// foreignQueuePair says what the other parameters of a connection say of a queue pair that rdma_cm does not know.
type foreignQueuePair struct {
	QPNum    uint32        `arg:"qp_num" max:"0xffffff" doc:"number of a queue pair that is not the endpoint's; ignored when it has one"`
	SRQ      bool          `arg:"srq" doc:"that queue pair receives from a shared receive queue"`
	NoParams bool          `arg:"no_params" doc:"true: with NULL for all of these"`
	More     moreArguments `arg:"params" doc:"more arguments of this verb, as one mapping"`
}

// parameters are struct rdma_conn_param; nil for NULL.
func (r *connectionResources) parameters(retries uint8, rnr rnrRetryCount, data privateData, foreign foreignQueuePair) *rdmacore.ConnParam {
	if foreign.NoParams {
		return nil
	}
	return &rdmacore.ConnParam{
		ResponderResources: r.ResponderResources, InitiatorDepth: r.InitiatorDepth, FlowControl: r.FlowControl,
		RetryCount: retries, RNRRetryCount: rnr.RNRRetryCount, SRQ: foreign.SRQ, QPNum: foreign.QPNum, PrivateData: data.PrivateData,
	}
}

func connect(_ context.Context, _ *Call, args *struct {
	connectionResources
	RetryCount uint8 `arg:"retry_count" default:"7" doc:"repeats of an unanswered packet, by both sides; more than 7 is 7"`
	rnrRetryCount
	privateData
	foreignQueuePair
}) error {
	return args.EP.ID().Connect(args.parameters(args.RetryCount, args.rnrRetryCount, args.privateData, args.foreignQueuePair))
}

func accept(_ context.Context, _ *Call, args *struct {
	connectionResources
	rnrRetryCount
	privateData
	RetryCount uint8 `arg:"retry_count" doc:"ignored: connect gives it for both sides"`
	foreignQueuePair
}) error {
	args.EP.Answered = true
	return args.EP.ID().Accept(args.parameters(args.RetryCount, args.rnrRetryCount, args.privateData, args.foreignQueuePair))
}

func reject(_ context.Context, _ *Call, args *struct {
	theEndpoint
	privateData
}) error {
	args.EP.Answered = true
	return args.EP.ID().Reject(args.PrivateData)
}

func disconnect(_ context.Context, _ *Call, args *theEndpoint) error {
	args.EP.Disconnected = true
	return args.EP.ID().Disconnect()
}
