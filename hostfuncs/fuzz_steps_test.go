package hostfuncs

import (
	"unsafe"

	"rdmarun/rdmacore"
)

// fuzzStep is one thing that a guest does: a call at random, or what leads into a state that such calls seldom find.
type fuzzStep struct {
	weight int
	name   string
	run    func(*fuzzGuest)
}

func fuzzSteps() []fuzzStep {
	return []fuzzStep{
		{24, "any calls", (*fuzzGuest).anyCalls},
		{6, "objects", (*fuzzGuest).makeObjects},
		{6, "listen", (*fuzzGuest).listenSomewhere},
		{10, "dial", (*fuzzGuest).dial},
		{8, "dial by steps", (*fuzzGuest).dialBySteps},
		{24, "attend", (*fuzzGuest).attend},
		{12, "traffic", (*fuzzGuest).traffic},
		{5, "completions", (*fuzzGuest).completions},
		{5, "window", (*fuzzGuest).window},
		{5, "alone", (*fuzzGuest).alone},
		{5, "shared queue", (*fuzzGuest).sharedQueue},
		{8, "datagrams", (*fuzzGuest).datagrams},
		{5, "intrude", (*fuzzGuest).intrude},
		{4, "names", (*fuzzGuest).names},
		{6, "poll", (*fuzzGuest).pollAll},
		{6, "streams", (*fuzzGuest).talk},
		{4, "hang up", (*fuzzGuest).hangUp},
		{1, "end", (*fuzzGuest).restart},
		{1, "grow", (*fuzzGuest).grow},
	}
}

const fuzzRights = uint32(rdmacore.AccessLocalWrite | rdmacore.AccessRemoteWrite | rdmacore.AccessRemoteRead |
	rdmacore.AccessRemoteAtomic | rdmacore.AccessMWBind)

func (g *fuzzGuest) anyCalls() {
	for range 1 + g.random.IntN(8) {
		f := &g.world.table[g.random.IntN(len(g.world.table))]
		words := make([]uint64, len(f.Params))
		for at, p := range f.Params {
			words[at] = g.argument(p)
		}
		g.call(f.Name, words...)
	}
}

// makeObjects makes what the other steps need.
func (g *fuzzGuest) makeObjects() {
	if len(g.handles(kindChannel)) < 3 {
		if channel := g.call("create_event_channel"); channel > 0 && g.one(4) {
			g.call("hold_events", uint64(channel), 1)
		}
	}
	if len(g.handles(kindPD)) < 3 {
		g.call("alloc_pd", 0)
	}
	if len(g.handles(kindMR)) < 6 {
		g.register()
	}
	switch g.random.IntN(8) {
	case 0:
		g.call("create_cq", 0, 1+uint64(g.random.Uint32N(64)))
	case 1:
		g.call("create_cq_ex", 0, 64, uint64(g.enumerated("wc_fields")))
	case 2:
		g.call("create_srq", g.some(kindPD), give(g, SRQAttr{StructSize: 16, MaxWR: 8, MaxSGE: 2}))
	case 3:
		g.call("alloc_mw", g.some(kindPD), 1+uint64(g.random.Uint32N(2)))
	case 4:
		g.call(
			"create_ah", g.some(kindPD),
			give(g, AHAttr{IsGlobal: 1, PortNum: 1, DGID: [16]byte{10: 0xff, 11: 0xff, 12: 127, 15: 1}}),
			uint64(g.room(8)),
		)
	}
}

// register registers a part of the guest's memory, and gives all guests its key.
func (g *fuzzGuest) register() {
	start := fuzzBuffers + g.random.Uint32N(uint32(len(g.memory))-fuzzBuffers-4096)&^7
	length, access, out := 64+g.random.Uint32N(4032), fuzzRights, g.room(uint32(unsafe.Sizeof(MR{})))
	if g.one(6) {
		access = g.enumerated("access")
	}
	var handle int32
	if g.one(4) {
		handle = g.call(
			"reg_mr_iova", g.some(kindPD), uint64(start), uint64(length), g.number64()&^7, uint64(access), uint64(out),
		)
	} else {
		handle = g.call("reg_mr", g.some(kindPD), uint64(start), uint64(length), uint64(access), uint64(out))
	}
	if handle > 0 {
		g.learnKey(Handle(handle), out)
	}
	if mr := g.some(kindMR); g.one(4) && mr != 0 {
		change := MRChange{StructSize: uint32(unsafe.Sizeof(MRChange{})), Flags: 1 + g.random.Uint32N(7), PD: Handle(
			g.some(kindPD),
		),
			Access: access, Start: uint64(start), Length: uint64(length)}
		if g.call("rereg_mr", mr, give(g, change), uint64(out)) == 0 {
			g.learnKey(Handle(mr), out)
		}
	}
}

func (g *fuzzGuest) learnKey(handle Handle, at Pointer) {
	mr := take[MR](g.Instance, at)
	key := fuzzKey{mr.Address, mr.LKey, mr.RKey, handle}
	g.keys = append(g.keys, key)
	g.world.share(func(k *fuzzKnown) { k.keys = append(k.keys, key) })
}

// qpAttr puts what QP to make where a call takes it.
func (g *fuzzGuest) qpAttr() uint64 {
	attr := QPInitAttr{
		StructSize: uint32(unsafe.Sizeof(QPInitAttr{})), MaxSendWR: 1 + g.random.Uint32N(16),
		MaxRecvWR:  1 + g.random.Uint32N(16),
		MaxSendSGE: g.random.Uint32N(4), MaxRecvSGE: 1 + g.random.Uint32N(3), MaxInlineData: g.random.Uint32N(3) * 32,
		SQSigAll: g.random.Uint32N(2)}
	if g.one(4) {
		attr.SendCQ = Handle(g.some(kindCQ))
	}
	if g.one(4) {
		attr.RecvCQ = Handle(g.some(kindCQ))
	}
	if g.one(4) {
		attr.SRQ = Handle(g.some(kindSRQ))
	}
	return give(g, attr)
}

func (g *fuzzGuest) space() uint32 {
	return chosen(g, []uint32{
		0, 0, 0, uint32(rdmacore.PortSpaceTCP), uint32(rdmacore.PortSpaceUDP), uint32(rdmacore.PortSpaceUDP),
	})
}

// param is where the parameters of a connection are; 0 for the defaults.
func (g *fuzzGuest) param(ep uint64) uint64 {
	object, ok := g.endpoints.get(Handle(ep))
	if ok && object.qp != 0 && !g.one(4) {
		return 0
	}
	return give(g, ConnParam{StructSize: uint32(unsafe.Sizeof(ConnParam{})), ResponderResources: uint8(
		g.random.Uint32N(4),
	),
		InitiatorDepth: uint8(g.random.Uint32N(4)), RetryCount: uint8(g.random.Uint32N(8)),
		RNRRetryCount: uint8(g.random.Uint32N(8)),
		QPNum:         chosen(g, g.world.heard().qpns), PrivateDataLen: uint8(g.random.Uint32N(57))})
}

func (g *fuzzGuest) listenSomewhere() {
	info := AddrInfo{StructSize: uint32(unsafe.Sizeof(AddrInfo{})), Flags: raiPassive, PortSpace: g.space()}
	pd, attr := g.some(kindPD), g.qpAttr()
	if g.one(3) {
		pd, attr = 0, 0
	}
	ep := g.call("create_ep", g.perhaps(kindChannel), give(g, info), pd, attr)
	if ep < 0 {
		return
	}
	g.call("listen", uint64(ep), uint64(g.random.Uint32N(8)))
	at := g.room(uint32(unsafe.Sizeof(Address{})))
	if g.call("local_address", uint64(ep), uint64(at)) == 0 {
		port := fuzzPort{take[Address](g.Instance, at).Port, info.PortSpace}
		g.world.share(func(k *fuzzKnown) { k.ports = append(k.ports, port) })
	}
}

func (g *fuzzGuest) destination() (Address, uint32) {
	known := g.world.heard()
	port, address := latest(g, known.ports), known.device
	address.Port = port.number
	return address, port.space
}

func (g *fuzzGuest) dial() {
	to, space := g.destination()
	info := AddrInfo{StructSize: uint32(unsafe.Sizeof(AddrInfo{})), PortSpace: space, TimeoutMS: 5, Destination: to}
	pd, attr := g.some(kindPD), g.qpAttr()
	if g.one(3) {
		pd, attr = 0, 0
	}
	ep := g.call("create_ep", g.perhaps(kindChannel), give(g, info), pd, attr)
	if ep < 0 {
		return
	}
	g.connectFrom(uint64(ep))
}

func (g *fuzzGuest) connectFrom(ep uint64) {
	if g.one(4) {
		g.call("set_local_ece", ep, give(g, ECE{StructSize: 16, VendorID: 1}))
	}
	g.postReceives(ep)
	g.call("connect", ep, g.param(ep))
	if g.synchronous(ep) {
		g.call("complete", ep, 1000)
	}
	g.learnQP(ep)
}

func (g *fuzzGuest) synchronous(ep uint64) bool {
	object, ok := g.endpoints.get(Handle(ep))
	return ok && object.id.Synchronous()
}

// learnQP gives all guests the number of an endpoint's QP.
func (g *fuzzGuest) learnQP(ep uint64) {
	if qp := g.call("ep_qp", ep); qp > 0 {
		at := sized[QPAttr](g)
		if g.call("query_qp", uint64(qp), uint64(at)) == 0 {
			number := take[QPAttr](g.Instance, at).QPNum
			g.world.share(func(k *fuzzKnown) { k.qpns = append(k.qpns, number) })
		}
	}
}

// dialBySteps takes the steps of create_ep one by one, and has queue pairs with builders.
func (g *fuzzGuest) dialBySteps() {
	to, space := g.destination()
	ep := g.call("create_id", g.perhaps(kindChannel), uint64(space))
	if ep < 0 {
		return
	}
	id := uint64(ep)
	if g.one(3) {
		g.call("set_option", id, 0, uint64(g.random.Uint32N(4)), uint64(g.room(8)), chosen(g, []uint64{1, 4}))
	}
	if g.one(3) {
		from := g.world.heard().device
		g.call("bind_addr", id, give(g, from))
	}
	g.call("resolve_addr", id, 0, give(g, to), 5)
	g.await(id)
	g.call("resolve_route", id, 5)
	g.await(id)
	path := g.room(512)
	if n := g.call("query_route", id, uint64(path), 512); n > 0 && g.one(2) {
		g.call(
			"set_option", chosen(g, []uint64{id, g.some(kindEP)}), uint64(rdmacore.OptionIB),
			uint64(rdmacore.OptionIBPath), uint64(path), uint64(n),
		)
	}
	switch g.random.IntN(4) {
	case 0:
		g.call("create_qp", id, g.some(kindPD), g.qpAttr())
	case 1, 2:
		ops := uint64(0)
		for range 1 + g.random.IntN(12) {
			ops |= uint64(g.enumerated("send_ops"))
		}
		extra := QPExtra{
			StructSize: uint32(unsafe.Sizeof(QPExtra{})), CompMask: uint32(rdmacore.QPInitSendOpsFlags),
			SendOpsFlags: ops &^ uint64(rdmacore.SendOpTSO),
		}
		g.call("create_qp_ex", id, g.some(kindPD), g.qpAttr(), give(g, extra))
	}
	g.connectFrom(id)
}

// await waits for the end of what an endpoint's last call has started.
func (g *fuzzGuest) await(ep uint64) {
	if g.synchronous(ep) {
		g.call("complete", ep, 1_000_000)
	} else {
		g.event(0, ep, 10_000_000)
	}
}

// event takes an event and does what it asks for; false when there is none.
func (g *fuzzGuest) event(channel, of, timeout uint64) bool {
	at := sized[CMEvent](g)
	if g.call("wait_event", channel, of, uint64(at), timeout) != 0 {
		return false
	}
	event := take[CMEvent](g.Instance, at)
	g.remember(uint64(event.EP))
	if event.Held != 0 {
		g.remember(uint64(event.Held))
		if !g.one(6) {
			g.call("ack_event", uint64(event.Held))
		}
	}
	g.answer(&event)
	return true
}

func (g *fuzzGuest) answer(event *CMEvent) {
	ep := uint64(event.EP)
	switch rdmacore.EventType(event.Type) {
	case rdmacore.EventConnectRequest:
		g.answerRequest(ep)
	case rdmacore.EventConnectResponse:
		g.call("get_remote_ece", ep, uint64(g.ece()))
		g.call("establish", ep)
	case rdmacore.EventEstablished, rdmacore.EventMulticastJoin:
		g.groups = append(g.groups, fuzzPeer{event.AH, event.Param.QPNum, event.QKey})
	case rdmacore.EventDisconnected:
		g.call("disconnect", ep)
		if g.one(2) {
			g.call("destroy_ep", ep)
		}
	case rdmacore.EventAddrInfo:
		g.call("query_addrinfo", ep, uint64(sized[AddrResult](g)))
	}
}

func (g *fuzzGuest) ece() Pointer { return Pointer(give(g, ECE{StructSize: 16})) }

func (g *fuzzGuest) answerRequest(ep uint64) {
	if g.one(3) {
		g.call("get_remote_ece", ep, uint64(g.ece()))
	}
	switch g.random.IntN(12) {
	case 0:
		g.call("reject", ep, fuzzBuffers, uint64(g.random.Uint32N(200)))
		return
	case 1:
		g.call("reject_ece", ep, 0, 0)
		return
	case 2:
		return // no peer answers
	case 3:
		g.call("create_qp", ep, g.some(kindPD), g.qpAttr())
	}
	g.postReceives(ep)
	g.call("accept", ep, g.param(ep))
	g.learnQP(ep)
	if g.one(3) {
		const established = 4 // IBV_EVENT_COMM_EST
		g.call("notify", ep, established)
	}
}

// attend looks after every channel and every synchronous endpoint, of all guests when no other one runs.
func (g *fuzzGuest) attend() {
	for _, each := range g.world.guests {
		if each != g && g.world.concurrent {
			continue
		}
		each.random, each.next = g.random, fuzzScratch
		for _, channel := range each.handles(kindChannel) {
			for n := 0; n < 6 && each.event(uint64(channel), 0, 0); n++ {
			}
		}
		for _, ep := range each.handles(kindEP) {
			if object, ok := each.endpoints.get(ep); ok && object.id.Synchronous() {
				each.attendSynchronous(uint64(ep), object.id.Listening())
			}
		}
	}
}

func (g *fuzzGuest) attendSynchronous(ep uint64, listening bool) {
	if !listening {
		g.call("complete", ep, 1000)
		if g.one(4) {
			g.call("ep_event", ep, uint64(sized[CMEvent](g)))
		}
		return
	}
	if child := g.call("get_request", ep, 1000); child > 0 {
		g.answerRequest(uint64(child))
		g.call("complete", uint64(child), 1000)
	}
}

func (g *fuzzGuest) hangUp() {
	if g.one(2) {
		g.call("disconnect", g.some(kindEP))
	}
	if g.one(4) {
		g.call("migrate_id", g.some(kindEP), g.perhaps(kindChannel))
	}
	kind := handleKind(1 + g.random.IntN(len(kindNames)))
	if ends := endings[kind]; ends != nil {
		g.call(chosen(g, ends), g.some(kind))
	}
}

// endings are the functions that end an object of a kind.
var endings = map[handleKind][]string{
	kindEP: {"destroy_ep", "destroy_qp", "destroy_id"}, kindPD: {"dealloc_pd"}, kindMR: {"dereg_mr"},
	kindCQ:  {"destroy_cq"},
	kindSRQ: {"destroy_srq"}, kindMW: {"dealloc_mw"}, kindAH: {"destroy_ah"}, kindChannel: {"destroy_event_channel"},
	kindEventFD: {"destroy_eventfd"}, kindStream: {"stream_close"}, kindDevice: {"close_device"},
	kindQP: {"destroy_qp"}, kindCompChannel: {"destroy_comp_channel"},
}

// names goes the ways to find an address, and looks at the device.
func (g *fuzzGuest) names() {
	query := AddrQuery{StructSize: uint32(unsafe.Sizeof(AddrQuery{})), PortSpace: g.space()}
	copy(query.Node[:], "127.0.0.1")
	copy(query.Service[:], "7471")
	at := give(g, query)
	g.call("getaddrinfo", at, uint64(sized[AddrResult](g)), 1000)
	ep := g.some(kindEP)
	g.call("resolve_addrinfo", ep, at)
	g.await(ep)
	g.call("query_addrinfo", ep, uint64(sized[AddrResult](g)))
	g.call("query_device", g.perhaps(kindEP), uint64(sized[DeviceAttr](g)))
	g.call("query_port", g.perhaps(kindEP), 1, uint64(sized[PortAttr](g)))
	if g.call("get_device_list") > 0 {
		g.call("open_device", 0)
	}
	g.call("query_gid_ex", g.some(kindDevice), 1, 0, uint64(g.room(uint32(unsafe.Sizeof(GIDEntry{})))))
	g.call("query_pkey", 0, 1, 0)
	g.call("get_pkey_index", 0, 1, 0xffff)
}

// restart is the end of a guest, with whatever it has, and the begin of another one in its place.
func (g *fuzzGuest) restart() {
	g.world.tracef("guest %d ends\n", g.number)
	g.end()
	g.begin()
}

func (g *fuzzGuest) grow() {
	if size := len(g.memory) + fuzzPages; size < g.region.Size() {
		g.world.tracef("guest %d grows to %#x\n", g.number, size)
		g.resize(size)
	}
}
