package hostfuncs

import (
	"cmp"
	"net/netip"
	"slices"
	"syscall"
	"time"

	"rdmarun/rdmacore"
)

func idFunctions() []Function {
	ep := Param{"ep", HandleOf, "ep", ""}
	return []Function{
		{
			Name: "create_id", Since: v1_1, Capability: CapabilityCM,
			Doc: "Makes an endpoint without address or QP (rdma_create_id(3)), for those who take the steps of " +
				"create_ep themselves. Without an event channel it is synchronous: what its calls start, " +
				"complete waits for.",
			Params: []Param{
				{"channel", HandleOf, "event_channel", "reports the endpoint's events; 0 for a synchronous endpoint"},
				{"port_space", U32, "port_space", "0 for TCP"}},
			Result:  "the endpoint's handle",
			Errors:  "EPROTONOSUPPORT, EINVAL: no such port space.",
			binding: bind2((*Instance).createID),
		},
		{
			Name: "destroy_id", Since: v1_1, Capability: CapabilityCM,
			Doc: "Destroys an endpoint that has no QP (rdma_destroy_id(3)).", Params: []Param{ep},
			Errors:  "EBUSY: it has a QP, or events of it are not acknowledged.",
			binding: bind1((*Instance).destroyID),
		},
		{
			Name: "bind_addr", Since: v1_1, Capability: CapabilityCM,
			Doc:    "Gives an endpoint its own address (rdma_bind_addr(3)).",
			Params: []Param{ep, {"address", In, "address", "port 0 for any; family 0 for any address"}},
			Errors: "EADDRINUSE: the port is taken at this address. EADDRNOTAVAIL: it is taken and one of the two " +
				"is the any address, " +
				"as in Linux; or the host does not have the address. ENODEV: it is not of an RDMA device.",
			binding: bind2((*Instance).bindAddr),
		},
		{
			Name: "resolve_addr", Since: v1_1, Capability: CapabilityCM,
			Doc: "Finds the device that leads to a destination and returns at once (rdma_resolve_addr(3)). " +
				"ADDR_RESOLVED or ADDR_ERROR follows.",
			Params: []Param{ep,
				{"source", In, "address", "the address to come from; 0 for whichever fits"},
				{"destination", In, "address", ""},
				{"timeout_ms", U32, "", "for the resolver"}},
			Errors: "ENETUNREACH, EHOSTUNREACH, ENODEV: nothing leads there. EINVAL: the state or the families do " +
				"not allow it.",
			binding: bind4((*Instance).resolveAddr),
		},
		{
			Name: "resolve_route", Since: v1_1, Capability: CapabilityCM,
			Doc: "Finds the route to the resolved address and returns at once (rdma_resolve_route(3)). " +
				"ROUTE_RESOLVED or ROUTE_ERROR follows.",
			Params:  []Param{ep, {"timeout_ms", U32, "", "for the resolver"}},
			Errors:  "EINVAL: the address is not resolved.",
			binding: bind2((*Instance).resolveRoute),
		},
		{
			Name: "set_option", Since: v1_1, Capability: CapabilityCM,
			Doc: "Sets an option of an endpoint (rdma_set_option(3)).",
			Params: []Param{ep,
				{"level", U32, "option_level", ""},
				{"option", U32, "", "of its level: see id_option and ib_option"},
				{
					"value", In, "bytes",
					"1 byte for TOS and ACK_TIMEOUT, 4 for REUSEADDR and AFONLY, path records for IB_PATH",
				},
				{"length", U32, "", "of value, in bytes"}},
			Errors:  "EINVAL: not a value of the option's, or too late. ENOSYS: no such option.",
			binding: bind5((*Instance).setOption),
		},
		{
			Name: "migrate_id", Since: v1_1, Capability: CapabilityCM,
			Doc: "Moves an endpoint and its unread events to another event channel (rdma_migrate_id(3)).",
			Params: []Param{ep,
				{"channel", HandleOf, "event_channel", "where to; 0 makes the endpoint synchronous"}},
			Errors: "EINVAL: it is there already. EBUSY: a call of it is not complete, or events of it are not " +
				"acknowledged.",
			binding: bind2((*Instance).migrateID),
		},
		{
			Name: "src_port", Since: v1_1, Capability: CapabilityCM,
			Doc: "Finds an endpoint's own port (rdma_get_src_port(3)).", Params: []Param{ep},
			Result:  "the port, in host byte order; 0 while it has none",
			binding: bind1((*Instance).srcPort),
		},
		{
			Name: "dst_port", Since: v1_1, Capability: CapabilityCM,
			Doc: "Finds the port of an endpoint's peer (rdma_get_dst_port(3)).", Params: []Param{ep},
			Result:  "the port, in host byte order; 0 while there is none",
			binding: bind1((*Instance).dstPort),
		},
	}
}

// channelOf is a channel by its handle, nil for 0.
func (i *Instance) channelOf(handle Handle) (channel *rdmacore.EventChannel, failed int32) {
	if handle == 0 {
		return nil, 0
	}
	channel, ok := i.channels.get(handle)
	if !ok {
		return nil, i.badHandle(kindChannel)
	}
	return channel, 0
}

func (i *Instance) createID(handle Handle, portSpace uint32) int32 {
	channel, failed := i.channelOf(handle)
	if failed != 0 {
		return failed
	}
	space := rdmacore.PortSpace(portSpace)
	if portSpace == 0 {
		space = rdmacore.PortSpaceTCP
	}
	cost := idCost(channel == nil)
	if err := i.budget.Charge(cost); err != nil {
		return i.fail(err)
	}
	var id *rdmacore.ID
	var err error
	if channel != nil {
		id, err = channel.CreateID(space)
	} else if id, err = i.provider.CreateID(space); err == nil {
		channel = id.Channel()
	}
	i.budget.Credit(cost) // which addEndpoint charges
	if err != nil {
		return i.fail(err)
	}
	return i.addEndpoint(channel, id)
}

func (i *Instance) destroyID(handle Handle) int32 {
	return i.dropEndpoint(handle, (*endpoint).destroyID)
}

func (i *Instance) bindAddr(handle Handle, at Pointer) int32 {
	address, failed := i.address("address", at)
	if failed != 0 {
		return failed
	}
	return i.onID(handle, func(id *rdmacore.ID) error {
		err := i.mayComeFrom(address) // to listen there is asked for again
		if err == nil {
			err = i.takePort(handle, func() error { return id.BindAddr(address) })
		}
		if err != nil {
			i.cannotListen(address, err)
		}
		return err
	})
}

func (i *Instance) resolveAddr(handle Handle, source, destination Pointer, timeoutMS uint32) int32 {
	from, failed := i.address("source", source)
	if failed != 0 {
		return failed
	}
	to, failed := i.address("destination", destination)
	if failed != 0 {
		return failed
	}
	return i.start(handle, func(id *rdmacore.ID) error {
		if err := cmp.Or(i.mayComeFrom(from), i.mayConnect(to)); err != nil {
			return err
		}
		return i.takePort(handle, func() error {
			return id.ResolveAddr(from, to, time.Duration(timeoutMS)*time.Millisecond)
		})
	})
}

// takePort charges an endpoint with the port that a call gives it, if it has none yet.
func (i *Instance) takePort(handle Handle, call func() error) error {
	ep, _ := i.endpoints.get(handle)
	if ep.hasPort {
		return call()
	}
	if err := charge(i, &i.endpoints, handle, portCost); err != nil {
		return err
	}
	err := call()
	if ep.hasPort = err == nil; err != nil {
		credit(i, &i.endpoints, handle, portCost)
	}
	return err
}

func (i *Instance) resolveRoute(handle Handle, timeoutMS uint32) int32 {
	return i.start(handle, func(id *rdmacore.ID) error {
		return id.ResolveRoute(time.Duration(timeoutMS) * time.Millisecond)
	})
}

// maxOption bounds the value of an option: hundreds of path records, of which one counts.
const maxOption = 1 << 16

func (i *Instance) setOption(handle Handle, level, option uint32, value Pointer, length uint32) int32 {
	data, wrong := i.bytes(value, length)
	if wrong != 0 {
		return i.badPointer("value", wrong)
	}
	if length > maxOption {
		return i.refuse(syscall.EINVAL, "no option has a value of so many bytes")
	}
	data = slices.Clone(data) // its path records are looked at more than once
	return i.onID(handle, func(id *rdmacore.ID) error {
		if rdmacore.OptionLevel(level) == rdmacore.OptionIB && rdmacore.IDOption(option) == rdmacore.OptionIBPath {
			if err := i.maySend(netip.Addr{}); err != nil { // a path leads past the address
				return err
			}
			return id.SetIBPath(data)
		}
		return id.SetOption(rdmacore.OptionLevel(level), rdmacore.IDOption(option), data)
	})
}

func (i *Instance) migrateID(handle, channelHandle Handle) int32 {
	ep, ok := i.endpoints.get(handle)
	if !ok {
		return i.badHandle(kindEP)
	}
	channel, failed := i.channelOf(channelHandle)
	if failed != 0 {
		return failed
	}
	if err := ep.id.MigrateID(channel); err != nil {
		return i.fail(err)
	}
	ep.channel = ep.id.Channel()
	return 0
}

func (i *Instance) srcPort(handle Handle) int32 {
	return i.port(handle, (*rdmacore.ID).SrcPort)
}

func (i *Instance) dstPort(handle Handle) int32 {
	return i.port(handle, (*rdmacore.ID).DstPort)
}

func (i *Instance) port(handle Handle, of func(*rdmacore.ID) uint16) int32 {
	ep, ok := i.endpoints.get(handle)
	if !ok {
		return i.badHandle(kindEP)
	}
	return int32(of(ep.id))
}
