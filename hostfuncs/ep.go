package hostfuncs

import (
	"cmp"
	"context"
	"net/netip"
	"structs"
	"syscall"
	"time"

	"rdmarun/rdmacore"
)

// AddrInfo is what create_ep needs of rdma_addrinfo, in guest memory.
type AddrInfo struct {
	_           structs.HostLayout
	StructSize  uint32  `abi:"struct_size" doc:"size of this struct as the guest knows it"`
	Flags       uint32  `abi:"flags" enum:"addr_info_flags" doc:"0 for the connecting side"`
	PortSpace   uint32  `abi:"port_space" enum:"port_space" doc:"0 for TCP"`
	TimeoutMS   uint32  `abi:"timeout_ms" doc:"for resolving the address, and again for the route; 0 for 2000, as librdmacm has it"`
	Source      Address `abi:"source" doc:"passive: the address to listen on, family 0 for any; active: the address to come from, family 0 for whichever fits"`
	Destination Address `abi:"destination" doc:"active: whom to connect to"`
}

// raiPassive is RAI_PASSIVE of rdma_cma.h.
const raiPassive = 1

func epFunctions() []Function {
	return []Function{
		{
			Name: "create_ep", Since: v1, Capability: CapabilityCM, Blocking: true,
			Doc: "Makes an endpoint (rdma_create_ep(3)). Passive: bound to the source address, ready to " +
				"listen; with qp_init_attr, each connection request comes with a QP made from it. " +
				"Active: address and route are resolved, which may wait, and with qp_init_attr it has a " +
				"QP, ready to connect. Nothing is left behind on failure.",
			Params: []Param{
				{
					"channel", HandleOf, "event_channel",
					"reports the endpoint's events; 0 for a synchronous endpoint, see complete",
				},
				{"info", In, "addr_info", ""},
				{"pd", HandleOf, "pd", "of the QP; 0 for an endpoint without a QP"},
				{"qp_init_attr", In, "qp_init_attr", "what QP; 0 for an endpoint without a QP"},
			},
			Result: "the endpoint's handle",
			Errors: "EADDRINUSE: the port is taken at this address. EADDRNOTAVAIL: it is taken and one of the two " +
				"is the any address, " +
				"as in Linux; or the host does not have the address. ENODEV: no RDMA device has it. ETIMEDOUT, " +
				"EHOSTUNREACH, ENETUNREACH: no host has the destination. " +
				"ECANCELED: the guest was asked to stop.",
			binding: bind4((*Instance).createEP),
		},
		{
			Name: "destroy_ep", Since: v1, Capability: CapabilityCM,
			Doc: "Destroys an endpoint with its QP and the CQs made with it (rdma_destroy_ep(3)). A peer " +
				"still connected gets DISCONNECTED; unread requests are rejected.",
			Params:  []Param{{"ep", HandleOf, "ep", ""}},
			binding: bind1((*Instance).destroyEP),
		},
		{
			Name: "local_address", Since: v1, Capability: CapabilityCM,
			Doc:     "Writes the endpoint's own address and port (rdma_get_local_addr(3)); family 0 while it has none.",
			Params:  []Param{{"ep", HandleOf, "ep", ""}, {"address", Out, "address", ""}},
			binding: bind2((*Instance).localAddress),
		},
		{
			Name: "peer_address", Since: v1, Capability: CapabilityCM,
			Doc:     "Writes the peer's address and port (rdma_get_peer_addr(3)); family 0 while there is none.",
			Params:  []Param{{"ep", HandleOf, "ep", ""}, {"address", Out, "address", ""}},
			binding: bind2((*Instance).peerAddress),
		},
	}
}

// endpoint is an rdma_cm id of the guest's with the handles that hang on it.
type endpoint struct {
	channel        *rdmacore.EventChannel
	id             *rdmacore.ID
	qp             Handle         // 0 without a QP
	sendCQ, recvCQ Handle         // of the QP
	events         int            // charged, and not read
	backlog        uint32         // likewise, of a listener
	hasPort        bool           // charged
	listening      netip.AddrPort // a listener's address as reported by Listening; otherwise zero
	// Of a listener: what the QPs of its children are made of; nil for children without.
	childPD *rdmacore.PD
	childQP *rdmacore.QPInitAttr
}

// destroy frees the id and its QP.
func (ep *endpoint) destroy() error { return ep.id.DestroyEP() }

func (i *Instance) createEP(channelHandle Handle, info Pointer, pd Handle, attr Pointer) int32 {
	channel, failed := i.channelOf(channelHandle)
	if failed != 0 {
		return failed
	}
	config, failed := i.epConfig(info, pd, attr)
	if failed != 0 {
		return failed
	}
	if err := i.mayMake(&config); err != nil {
		return i.fail(err)
	}
	// The QPs of a listener's children are made, and charged, as their requests are read.
	childPD, childQP := config.PD, config.QP
	if config.Passive {
		config.QP = nil
	}
	cost := idCost(channel == nil)
	if config.QP != nil {
		cost = cost.plus(qpCost(config.QP))
	}
	cost = cost.plus(portCost)
	if err := i.budget.Charge(cost); err != nil {
		return i.fail(err)
	}
	var id *rdmacore.ID
	failed = i.wait(-1, func(ctx context.Context) (err error) {
		if channel == nil {
			id, err = i.provider.CreateEP(ctx, config)
		} else {
			id, err = channel.CreateEP(ctx, config)
		}
		return err
	})
	i.budget.Credit(cost) // which addEndpoint charges to each part
	if failed != 0 && config.Passive {
		i.cannotListen(config.Source, i.lastError)
	}
	if failed != 0 {
		return failed
	}
	if channel == nil {
		channel = id.Channel()
	}
	handle := i.addEndpoint(channel, id)
	if ep, ok := i.endpoints.get(Handle(handle)); handle >= 0 && ok {
		if config.Passive {
			ep.childPD, ep.childQP = childPD, childQP
		}
		ep.hasPort = charge(i, &i.endpoints, Handle(handle), portCost) == nil // there was room for it
	}
	return handle
}

// mayMake looks whether the rules of the guest let it make an endpoint.
func (i *Instance) mayMake(config *rdmacore.EPConfig) error {
	if !config.Passive {
		return cmp.Or(i.mayComeFrom(config.Source), i.mayConnect(config.Destination))
	}
	err := i.mayBind(config.Source)
	if err != nil {
		i.cannotListen(config.Source, err)
	}
	return err
}

func (i *Instance) epConfig(at Pointer, pd Handle, attr Pointer) (config rdmacore.EPConfig, failed int32) {
	info, wrong := readSized[AddrInfo](i, at)
	if wrong != 0 {
		return config, i.badPointer("info", wrong)
	}
	if info.Flags&^raiPassive != 0 {
		return config, i.refuse(syscall.EINVAL, "info.flags knows RAI_PASSIVE only")
	}
	config.Passive = info.Flags&raiPassive != 0
	config.PortSpace = rdmacore.PortSpace(info.PortSpace)
	if info.PortSpace == 0 {
		config.PortSpace = rdmacore.PortSpaceTCP
	}
	config.Timeout = time.Duration(info.TimeoutMS) * time.Millisecond
	for _, address := range []struct {
		from *Address
		to   *netip.AddrPort
	}{{&info.Source, &config.Source}, {&info.Destination, &config.Destination}} {
		var errno syscall.Errno
		if *address.to, errno = address.from.addrPort(); errno != 0 {
			return config, i.refuse(errno, "an address family is 2 (IPv4), 10 (IPv6) or 0")
		}
	}
	if config.QP, failed = i.qpInitAttr(attr); failed != 0 {
		return config, failed
	}
	var ok bool
	if config.PD, ok = i.pds.get(pd); !ok && (pd != 0 || config.QP != nil) {
		return config, i.badHandle(kindPD)
	}
	if config.QP == nil {
		config.PD = nil
	}
	return config, 0
}

// addEndpoint gives a new id, and the QP and CQs it may have, their handles.
func (i *Instance) addEndpoint(channel *rdmacore.EventChannel, id *rdmacore.ID) int32 {
	made := &endpoint{channel: channel, id: id}
	handle := create(
		i, &i.endpoints, idCost(id.Synchronous()), func() (*endpoint, error) { return made, nil }, (*endpoint).destroy,
	)
	if handle < 0 {
		if err := made.destroy(); err != nil && !made.id.Destroyed() { // create may have done so
			return i.fail(err)
		}
		return handle
	}
	i.byID[id] = Handle(handle)
	if failed := i.adoptQP(made); failed != 0 {
		if undo := i.destroyEP(Handle(handle)); undo != 0 {
			return undo
		}
		return failed
	}
	return handle
}

// addChild is addEndpoint for the id that a request brings, and gives it the QP that its listener has the
// attributes for.  A child that cannot have it is destroyed, which rejects the peer.
func (i *Instance) addChild(channel *rdmacore.EventChannel, id *rdmacore.ID, listener *endpoint) int32 {
	handle := i.addEndpoint(channel, id)
	if handle < 0 || listener == nil || listener.childQP == nil {
		return handle
	}
	child, _ := i.endpoints.get(Handle(handle))
	if failed := i.giveQP(child, listener.childQP, func() error {
		return id.CreateQP(listener.childPD, *listener.childQP)
	}); failed != 0 {
		if undo := i.destroyEP(Handle(handle)); undo != 0 {
			return undo
		}
		return failed
	}
	return handle
}

// destroyID frees an id that has no QP.
func (ep *endpoint) destroyID() error { return ep.id.Destroy() }

func (i *Instance) destroyEP(handle Handle) int32 {
	return i.dropEndpoint(handle, (*endpoint).destroy)
}

func (i *Instance) dropEndpoint(handle Handle, destroy func(*endpoint) error) int32 {
	ep, ok := i.endpoints.get(handle)
	if !ok {
		return i.badHandle(kindEP)
	}
	err := destroy(ep)
	i.forgetEndpoint(handle, ep)
	return i.result(err)
}

// forgetEndpoint makes the handles stale of what is gone of an endpoint, which may be a part.
func (i *Instance) forgetEndpoint(handle Handle, ep *endpoint) {
	i.forgetQP(ep)
	if ep.id.Destroyed() {
		i.listensNoMore(ep)
		i.endpoints.remove(handle)
		delete(i.byID, ep.id)
	}
}

func (i *Instance) localAddress(handle Handle, address Pointer) int32 {
	return i.writeAddress(handle, address, (*rdmacore.ID).LocalAddr)
}

func (i *Instance) peerAddress(handle Handle, address Pointer) int32 {
	return i.writeAddress(handle, address, (*rdmacore.ID).PeerAddr)
}

func (i *Instance) writeAddress(handle Handle, at Pointer, of func(*rdmacore.ID) netip.AddrPort) int32 {
	ep, ok := i.endpoints.get(handle)
	if !ok {
		return i.badHandle(kindEP)
	}
	out, wrong := view[Address](i, at, 1)
	if wrong != 0 {
		return i.badPointer("address", wrong)
	}
	out[0] = addressOf(of(ep.id))
	return 0
}
