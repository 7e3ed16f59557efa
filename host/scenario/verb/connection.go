package verb

import (
	"context"
	"time"

	"rdmarun/rdmacore"
)

// connectionVerbs make, connect and end endpoints.
func connectionVerbs() []Verb {
	endpoint := Argument{Name: "ep", Type: Endpoint, Required: true, Doc: "the endpoint, by the name that `as` gave it"}
	privateData := Argument{Name: "private_data", Type: Data, Doc: "bytes that travel with the message"}
	more := Argument{Name: "params", Type: Arguments, Doc: "more arguments of this verb, as one mapping"}
	responder := Argument{Name: "responder_resources", Type: Integer, Default: 255, Max: 255, Doc: "READs and atomics of the peer served at once; 255 is the device's most"}
	initiator := Argument{Name: "initiator_depth", Type: Integer, Default: 255, Max: 255, Doc: "own READs and atomics outstanding at once; 255 is the device's most"}
	flow := Argument{Name: "flow_control", Type: Integer, Max: 1, Default: 0, Doc: "hardware flow control"}
	number := Argument{Name: "qp_num", Type: Integer, Max: 1<<24 - 1, Doc: "number of a queue pair that is not the endpoint's; ignored when it has one"}
	shared := Argument{Name: "srq", Type: Boolean, Doc: "that queue pair receives from a shared receive queue"}
	none := Argument{Name: "no_params", Type: Boolean, Doc: "true: with NULL for all of these"}
	rnr := Argument{Name: "rnr_retry_count", Type: Integer, Default: 7, Max: 255, Doc: "how often the peer repeats a send that finds no receive here; 7 is for ever, and more is 7"}
	return []Verb{
		{
			Name: "create_ep", Manual: "rdma_create_ep(3)", Yields: NewEndpoint, Run: createEndpoint,
			Doc: "Make an endpoint: a passive one is bound and can listen, an active one has its address and route resolved and a queue pair.",
			Arguments: []Argument{
				{Name: "to", Type: Peer, Group: "to or passive", Doc: "active: a role, an IP address or a host name"},
				{Name: "passive", Type: Boolean, Group: "to or passive", Doc: "passive: true"},
				{Name: "port", Type: Integer, Required: true, Max: 65535, Doc: "port of the port space; 0 lets a passive endpoint have any"},
				{Name: "address", Type: Address, Doc: "own address; a passive endpoint listens on its role's device unless this says \"any\" or another"},
				{Name: "qp", Type: QueuePair, Doc: "attributes of the queue pair, over those of `defaults`"},
				{Name: "resolve", Type: Duration, Default: 2 * time.Second, Min: 1, Max: int64(time.Minute), Doc: "time for the address and for the route each"},
			},
			Results: []Result{
				{Name: "port", Type: Integer, Varies: true, Doc: "the own port"},
				{Name: "address", Type: Text, Varies: true, Doc: "the own address"},
			},
		},
		{
			Name: "listen", Manual: "rdma_listen(3)", Run: listen,
			Doc: "Listen for connection requests.",
			Arguments: []Argument{endpoint,
				{Name: "backlog", Type: Integer, Default: 0, Max: 1 << 16, Doc: "requests that may wait unread; 0 is the system's most"}},
		},
		{
			Name: "connect", Manual: "rdma_connect(3)", Run: connect,
			Doc: "Send a connection request; wait_event tells what became of it.",
			Arguments: []Argument{endpoint, responder, initiator, flow,
				{Name: "retry_count", Type: Integer, Default: 7, Max: 255, Doc: "repeats of an unanswered packet, by both sides; more than 7 is 7"},
				rnr, privateData, number, shared, none, more},
		},
		{
			Name: "accept", Manual: "rdma_accept(3)", Run: accept,
			Doc: "Accept the connection request that made the endpoint.",
			Arguments: []Argument{endpoint, responder, initiator, flow, rnr, privateData,
				{Name: "retry_count", Type: Integer, Max: 255, Doc: "ignored: connect gives it for both sides"}, number, shared, none, more},
		},
		{
			Name: "bind", Manual: "rdma_bind_addr(3)", Yields: NewEndpoint, Run: bind,
			Doc: "Make an endpoint without a queue pair and bind it; its connections have no queue pair until create_qp.",
			Arguments: []Argument{
				{Name: "port", Type: Integer, Required: true, Max: 65535, Doc: "port of the port space; 0 for any"},
				{Name: "address", Type: Address, Doc: "own address; without it that of the role's device"},
			},
			Results: []Result{
				{Name: "port", Type: Integer, Varies: true, Doc: "the own port"},
				{Name: "address", Type: Text, Varies: true, Doc: "the own address"},
			},
		},
		createQPVerb(), createQPExVerb(), initQPAttrVerb(),
		{
			Name: "establish", Manual: "rdma_establish(3)", Run: establish,
			Doc:       "Complete a connection by hand, after CONNECT_RESPONSE of an endpoint without a queue pair of rdma_cm.",
			Arguments: []Argument{endpoint},
		},
		{
			Name: "reject", Manual: "rdma_reject(3)", Run: reject,
			Doc:       "Refuse the connection request that made the endpoint; the peer gets REJECTED with status 28.",
			Arguments: []Argument{endpoint, privateData},
		},
		{
			Name: "disconnect", Manual: "rdma_disconnect(3)", Run: disconnect,
			Doc:       "End a connection: both sides get DISCONNECTED, and what is posted comes back flushed.",
			Arguments: []Argument{endpoint},
		},
		{
			Name: "destroy_ep", Manual: "rdma_destroy_ep(3)", Run: destroyEndpoint,
			Doc:       "Destroy an endpoint and its queue pair.  At the end of a case that happens by itself.",
			Arguments: []Argument{endpoint},
		},
	}
}

func listen(_ context.Context, call *Call) (Outcome, error) {
	endpoint, err := call.Endpoint("ep")
	if err != nil {
		return Outcome{}, err
	}
	return Outcome{}, endpoint.Listen(call.Integer("backlog"))
}

// parameters are those of connect and accept, which share their names; nil for NULL.
func parameters(call *Call) *rdmacore.ConnParam {
	if call.Boolean("no_params") {
		return nil
	}
	return &rdmacore.ConnParam{
		ResponderResources: uint8(call.Integer("responder_resources")),
		InitiatorDepth:     uint8(call.Integer("initiator_depth")),
		FlowControl:        uint8(call.Integer("flow_control")),
		RetryCount:         uint8(call.Integer("retry_count")),
		RNRRetryCount:      uint8(call.Integer("rnr_retry_count")),
		SRQ:                call.Boolean("srq"),
		QPNum:              uint32(call.Integer("qp_num")),
		PrivateData:        call.Bytes("private_data"),
	}
}

func connect(_ context.Context, call *Call) (Outcome, error) {
	endpoint, err := call.Endpoint("ep")
	if err != nil {
		return Outcome{}, err
	}
	return Outcome{}, endpoint.ID().Connect(parameters(call))
}

func accept(_ context.Context, call *Call) (Outcome, error) {
	endpoint, err := call.Endpoint("ep")
	if err != nil {
		return Outcome{}, err
	}
	endpoint.Answered = true
	return Outcome{}, endpoint.ID().Accept(parameters(call))
}

func reject(_ context.Context, call *Call) (Outcome, error) {
	endpoint, err := call.Endpoint("ep")
	if err != nil {
		return Outcome{}, err
	}
	endpoint.Answered = true
	return Outcome{}, endpoint.ID().Reject(call.Bytes("private_data"))
}

func disconnect(_ context.Context, call *Call) (Outcome, error) {
	endpoint, err := call.Endpoint("ep")
	if err != nil {
		return Outcome{}, err
	}
	endpoint.Disconnected = true
	return Outcome{}, endpoint.ID().Disconnect()
}

func destroyEndpoint(_ context.Context, call *Call) (Outcome, error) {
	endpoint, err := call.Endpoint("ep")
	if err != nil {
		return Outcome{}, err
	}
	return Outcome{}, endpoint.Destroy()
}
