package verb

import (
	"context"
	"net/netip"
	"time"

	"rdmarun/host/scenario/lab"
	"rdmarun/rdmacore"
)

// theEndpoint is the argument of verbs that concern an id.
func theEndpoint() Argument {
	return Argument{Name: "ep", Type: Endpoint, Required: true, Doc: "the endpoint, by the name that `as` gave it"}
}

// onID is a verb that calls one function of an id, and returns nothing.
func onID(name, manual, doc string, more []Argument, run func(call *Call, endpoint *lab.Endpoint) error) Verb {
	return Verb{
		Name: name, Manual: manual, Doc: doc, Arguments: append([]Argument{theEndpoint()}, more...),
		Run: func(_ context.Context, call *Call) (Outcome, error) {
			endpoint, err := call.Endpoint("ep")
			if err != nil {
				return Outcome{}, err
			}
			return Outcome{}, run(call, endpoint)
		},
	}
}

func resolveTime() Argument {
	return Argument{Name: "timeout", Type: Duration, Default: 2 * time.Second, Min: 0, Max: int64(time.Hour), Doc: "how long to try"}
}

// identifierVerbs are the single steps of rdma_cm, of which create_ep does several.
func identifierVerbs() []Verb {
	return []Verb{
		{
			Name: "create_id", Manual: "rdma_create_id(3)", Yields: NewEndpoint, Run: createID,
			Doc: "Make an id: an endpoint without address and queue pair.",
			Arguments: []Argument{
				{Name: "port_space", Type: Word, Words: portSpaceNames(), Default: "TCP", Doc: "of its port and its queue pair"},
				{Name: "synchronous", Type: Boolean, Doc: "without the event channel of the role: complete waits for its calls"},
			},
		},
		{
			Name: "bind_addr", Manual: "rdma_bind_addr(3)", Yields: Value, Run: bindAddress,
			Doc: "Give an id a local address.",
			Arguments: []Argument{theEndpoint(),
				{Name: "port", Type: Integer, Default: 0, Max: 65535, Doc: "port of the port space; 0 for any"},
				{Name: "address", Type: Address, Doc: "own address, \"any\" or another; without it that of the role's device"}},
			Results: addressResults(),
		},
		{
			Name: "resolve_addr", Manual: "rdma_resolve_addr(3)", Run: resolveAddress,
			Doc: "Look for device and path to an address; ADDR_RESOLVED or ADDR_ERROR tells the end.",
			Arguments: []Argument{theEndpoint(),
				{Name: "to", Type: Peer, Required: true, Doc: "a role, an IP address or a host name"},
				{Name: "port", Type: Integer, Required: true, Max: 65535, Doc: "port of the peer"},
				{Name: "address", Type: Address, Doc: "own address; without it the kernel chooses, and on soft that of the role, to an address of IPv4"},
				resolveTime()},
		},
		onID("resolve_route", "rdma_resolve_route(3)", "Look for the route to the resolved address; ROUTE_RESOLVED or ROUTE_ERROR tells the end.",
			[]Argument{resolveTime()},
			func(call *Call, endpoint *lab.Endpoint) error {
				return endpoint.ID().ResolveRoute(call.Duration("timeout"))
			}),
		onID("destroy_id", "rdma_destroy_id(3)", "Destroy an id, which must have no queue pair.", nil,
			func(_ *Call, endpoint *lab.Endpoint) error { return endpoint.DestroyID() }),
		onID("destroy_qp", "rdma_destroy_qp(3)", "Destroy the queue pair of an id.", nil,
			func(_ *Call, endpoint *lab.Endpoint) error { return endpoint.DestroyQP() }),
		onID("migrate_id", "rdma_migrate_id(3)", "Move an id to the event channel of its role, or make it synchronous.",
			[]Argument{{Name: "synchronous", Type: Boolean, Doc: "true: without the event channel of the role"}},
			func(call *Call, endpoint *lab.Endpoint) error {
				if call.Boolean("synchronous") {
					return endpoint.ID().MigrateID(nil)
				}
				return endpoint.ID().MigrateID(call.Role.Channel())
			}),
		onID("notify", "rdma_notify(3)", "Tell the connection manager of an asynchronous event of a queue pair that is not its own.",
			[]Argument{{Name: "type", Type: Word, Words: asyncNames(), Required: true, Doc: "the event"}},
			func(call *Call, endpoint *lab.Endpoint) error {
				event, err := rdmacore.ParseAsyncEventType(call.Text("type"))
				if err != nil {
					return err
				}
				return endpoint.ID().Notify(event)
			}),
		onID("write_event", "rdma_write_cm_event(3)", "Put a USER event onto the channel of an id.", []Argument{
			{Name: "status", Type: Integer, Default: 0, Min: -1 << 31, Max: 1<<31 - 1, Doc: "its status"},
			{Name: "arg", Type: Unsigned, Default: uint64(0), Doc: "a number that comes with it"},
		}, func(call *Call, endpoint *lab.Endpoint) error {
			return endpoint.ID().WriteEvent(call.Integer("status"), call.Unsigned("arg"))
		}),
	}
}

func createID(_ context.Context, call *Call) (Outcome, error) {
	space, err := rdmacore.ParsePortSpace(call.Text("port_space"))
	if err != nil {
		return Outcome{}, err
	}
	var id *rdmacore.ID
	if call.Boolean("synchronous") {
		id, err = call.Lab.Provider().CreateID(space)
	} else {
		id, err = call.Role.Channel().CreateID(space)
	}
	if err != nil {
		return Outcome{}, err
	}
	return Outcome{Endpoint: call.Role.Adopt("id", id)}, nil
}

func bindAddress(_ context.Context, call *Call) (Outcome, error) {
	endpoint, err := call.Endpoint("ep")
	if err != nil {
		return Outcome{}, err
	}
	own, err := ownAddress(call)
	if err != nil {
		return Outcome{}, err
	}
	endpoint.Passive = true
	if err := endpoint.ID().BindAddr(netip.AddrPortFrom(own, uint16(call.Integer("port")))); err != nil {
		return Outcome{}, err
	}
	outcome := located(endpoint, endpoint.ID())
	outcome.Endpoint = nil // it has its name
	return outcome, nil
}

func resolveAddress(ctx context.Context, call *Call) (Outcome, error) {
	peer, own, err := bothAddresses(ctx, call)
	if err != nil {
		return Outcome{}, err
	}
	endpoint, err := call.Endpoint("ep")
	if err != nil {
		return Outcome{}, err
	}
	var source netip.AddrPort
	if own.IsValid() && !endpoint.ID().LocalAddr().IsValid() {
		source = netip.AddrPortFrom(own, 0)
	}
	return Outcome{}, endpoint.ID().ResolveAddr(source, netip.AddrPortFrom(peer, uint16(call.Integer("port"))), call.Duration("timeout"))
}
