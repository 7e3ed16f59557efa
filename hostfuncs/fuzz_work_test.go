package hostfuncs

import (
	"fmt"
	"syscall"
	"unsafe"

	"rdmarun/rdmacore"
)

// The steps of the fuzzer on the data path.

// buffers puts scatter/gather entries where a call takes them, mostly within regions of the guest's.
func (g *fuzzGuest) buffers(count int) uint64 {
	sges := make([]SGE, count)
	for n := range sges {
		key := latest(g, g.keys)
		sges[n] = SGE{
			Address: fuzzBuffers + uint64(g.random.Uint32N(uint32(len(g.memory))-fuzzBuffers)),
			Length:  g.random.Uint32N(256), LKey: key.lkey,
		}
		if mr, ok := g.mrs.get(key.handle); ok && !g.one(6) {
			start := max(mr.Address()-uint64(g.base), fuzzBuffers) // an address of its own choice is no pointer
			if mr.Address() < uint64(g.base) || start > uint64(len(g.memory)) {
				start = mr.Address()
			}
			sges[n].Address, sges[n].Length = start, g.random.Uint32N(uint32(min(mr.Length(), 256))+1)
		}
	}
	return give(g, sges...)
}

// postReceives posts a few to the QP of an endpoint.
func (g *fuzzGuest) postReceives(ep uint64) {
	object, ok := g.endpoints.get(Handle(ep))
	if !ok || object.qp == 0 {
		return
	}
	count := 1 + g.random.IntN(3)
	g.call(
		"post_recv", uint64(object.qp), g.receives(count), uint64(count), g.buffers(count), uint64(count),
		uint64(g.room(8)),
	)
}

func (g *fuzzGuest) receives(count int) uint64 {
	wrs := make([]RecvWR, count)
	for n := range wrs {
		wrs[n] = RecvWR{WRID: g.random.Uint64(), FirstSGE: uint32(n), NumSGE: 1}
	}
	return give(g, wrs...)
}

// sends puts requests where post_send takes them.
func (g *fuzzGuest) sends(count int, datagram bool) uint64 {
	wrs := make([]SendWR, count)
	known := g.world.heard()
	for n := range wrs {
		key, peer := latest(g, known.keys), latest(g, g.groups)
		wrs[n] = SendWR{WRID: g.random.Uint64(), Opcode: g.enumerated("wr_opcode"), Flags: g.random.Uint32N(16),
			FirstSGE: uint32(n),
			NumSGE:   g.random.Uint32N(3), RKey: key.rkey, RemoteAddress: key.address + uint64(g.random.Uint32N(64)&^7),
			CompareAdd: g.random.Uint64N(3), Swap: g.random.Uint64(), Placement: 1,
			Selectivity: uint8(g.random.Uint32N(3))}
		if datagram {
			wrs[n].Opcode, wrs[n].RemoteQPN, wrs[n].RemoteQKey = uint32(rdmacore.OpSend), peer.qpn, peer.qkey
			wrs[n].AH = g.addressHandle(&peer)
		}
	}
	return give(g, wrs...)
}

// addressHandle makes an address handle and is its number.
func (g *fuzzGuest) addressHandle(peer *fuzzPeer) uint32 {
	out := g.room(8)
	if g.call("create_ah", g.some(kindPD), give(g, peer.ah), uint64(out)) < 0 {
		return g.random.Uint32N(9)
	}
	return take[AH](g.Instance, out).Number
}

// post posts requests, and perhaps polls in the same call.
func (g *fuzzGuest) post(name string, qp Handle, wrs uint64, count, buffers int, cq Handle) {
	words := []uint64{uint64(qp), wrs, uint64(count), g.buffers(buffers), uint64(buffers), uint64(g.room(8))}
	if g.one(2) {
		max := g.random.Uint32N(4)
		name, words = name+"_spin", append(
			words, uint64(cq), uint64(g.room(max*uint32(unsafe.Sizeof(WC{})))), uint64(max),
			uint64(g.random.Uint32N(3000)),
		)
	}
	g.call(name, words...)
}

func (g *fuzzGuest) traffic() {
	if len(g.keys) == 0 {
		g.register()
	}
	for range 1 + g.random.IntN(3) {
		ep, ok := g.endpoints.get(chosen(g, g.handles(kindEP)))
		if !ok || ep.qp == 0 {
			continue
		}
		datagram := ep.id.QP().InitAttr().Type == rdmacore.QPTypeUD
		count := 1 + g.random.IntN(4)
		if g.one(2) {
			g.post("post_recv", ep.qp, g.receives(count), count, count, ep.recvCQ)
		}
		g.post("post_send", ep.qp, g.sends(count, datagram), count, count+2, ep.sendCQ)
		g.take(uint64(ep.sendCQ))
	}
	g.completions()
}

// take takes completions in one of the ways there are.
func (g *fuzzGuest) take(cq uint64) {
	const max = 8
	wcs := uint64(g.room(max * uint32(unsafe.Sizeof(WC{}))))
	stamps := uint64(g.room(max * uint32(unsafe.Sizeof(Timestamp{}))))
	switch g.random.IntN(6) {
	case 0:
		g.call("poll_cq", cq, wcs, max)
	case 1:
		g.call("spin_cq", cq, wcs, max, 16)
	case 2:
		g.call("wait_cq", cq, wcs, max, 1000)
	case 3:
		g.call("poll_cq_timestamps", cq, wcs, stamps, max)
	case 4:
		g.call("wait_cq_timestamps", cq, wcs, stamps, max, 1000)
	case 5:
		g.call("req_notify", cq, uint64(g.random.Uint32N(2)))
	}
}

func (g *fuzzGuest) completions() {
	for range 1 + g.random.IntN(4) {
		g.take(g.some(kindCQ))
	}
	cq := g.some(kindCQ)
	switch g.random.IntN(6) {
	case 0:
		g.call("resize_cq", cq, 1+uint64(g.random.Uint32N(64)))
	case 1:
		g.call("moderate_cq", cq, uint64(g.random.Uint32N(4)), uint64(g.random.Uint32N(100)))
	case 2:
		g.call("wait_cq_event", cq, 1000)
	case 3:
		g.call("wait_async", 0, uint64(sized[AsyncEvent](g)), 1000)
	}
}

// window binds a window to one of the guest's regions, by a QP of the same PD if there is one.
func (g *fuzzGuest) window() {
	mw := g.some(kindMW)
	if mw == 0 || g.one(3) {
		mw = uint64(max(g.call("alloc_mw", g.some(kindPD), 1+uint64(g.random.Uint32N(2))), 0))
	}
	key := latest(g, g.keys)
	bind := MWBind{WRID: 1, Address: key.address + uint64(g.random.Uint32N(8)), Length: uint64(g.random.Uint32N(64)),
		MR:     key.handle,
		Access: g.random.Uint32N(16) &^ uint32(rdmacore.AccessLocalWrite), Flags: g.random.Uint32N(4)}
	at := give(g, bind)
	if g.call("bind_mw", g.some(kindQP), mw, at) == 0 {
		bound := fuzzKey{address: bind.Address, rkey: take[MWBind](g.Instance, Pointer(at)).RKey}
		g.world.share(func(k *fuzzKnown) { k.keys = append(k.keys, bound) })
	}
}

func (g *fuzzGuest) sharedQueue() {
	srq := g.some(kindSRQ)
	count := 1 + g.random.IntN(4)
	g.call("post_srq_recv", srq, g.receives(count), uint64(count), g.buffers(count), uint64(count), uint64(g.room(8)))
	g.call("arm_srq", srq, uint64(g.random.Uint32N(4)))
	g.call("query_srq", srq, uint64(sized[SRQAttr](g)))
	if g.one(3) {
		g.call("resize_srq", srq, uint64(g.random.Uint32N(64)))
	}
	g.call("wait_async", 0, uint64(sized[AsyncEvent](g)), 1000)
}

// datagrams has an endpoint join a group, sends to it and answers what comes.
func (g *fuzzGuest) datagrams() {
	channel := g.some(kindChannel)
	ep := g.call("create_id", channel, uint64(rdmacore.PortSpaceUDP))
	if ep < 0 {
		return
	}
	id, address := uint64(ep), g.world.heard().device
	g.call("bind_addr", id, give(g, address))
	pd := g.some(kindPD)
	qp := g.call("create_qp", id, pd, g.qpAttr())
	group := give(g, g.group())
	if g.one(2) {
		g.call("join_multicast", id, group, g.number64())
	} else {
		g.call("join_multicast_ex", id, group, 1+uint64(g.random.Uint32N(2)), g.number64())
	}
	g.await(id)
	if qp < 0 {
		return
	}
	if g.one(2) {
		g.call("attach_mcast", uint64(qp), group, 0)
	}
	g.learnQP(id)
	g.register()
	key := latest(g, g.keys)
	buffers := give(g, SGE{Address: fuzzBuffers, Length: 256, LKey: key.lkey}, SGE{
		Address: fuzzBuffers, Length: 8, LKey: key.lkey,
	})
	if mr, ok := g.mrs.get(key.handle); ok && mr.Address() >= uint64(g.base) {
		start := mr.Address() - uint64(g.base)
		buffers = give(g, SGE{Address: start, Length: uint32(mr.Length()), LKey: key.lkey}, SGE{
			Address: start, Length: 8, LKey: key.lkey,
		})
	}
	g.call("post_recv", uint64(qp), give(g, RecvWR{NumSGE: 1}), 1, buffers, 2, 0)
	if len(g.groups) > 0 {
		peer := g.groups[len(g.groups)-1]
		number := g.room(8)
		g.call("create_ah", pd, give(g, peer.ah), uint64(number))
		wr := SendWR{Opcode: uint32(rdmacore.OpSend), Flags: uint32(rdmacore.SendSignaled), FirstSGE: 1, NumSGE: 1,
			AH: take[AH](g.Instance, number).Number, RemoteQPN: peer.qpn, RemoteQKey: peer.qkey}
		g.call("post_send", uint64(qp), give(g, wr), 1, buffers, 2, 0)
	}
	g.answerDatagram(id, pd)
	if g.one(2) {
		g.call("detach_mcast", uint64(qp), group, 0)
	}
	if g.one(2) {
		g.call("leave_multicast", id, group)
	}
}

// answerDatagram makes the address handle of the way back.
func (g *fuzzGuest) answerDatagram(ep, pd uint64) {
	cq := g.call("ep_recv_cq", ep)
	wc := uint64(g.room(uint32(unsafe.Sizeof(WC{}))))
	g.call("poll_cq", uint64(max(cq, 0)), wc, 1)
	if key := latest(g, g.keys); key.handle != 0 {
		grh := uint64(fuzzBuffers)
		if mr, ok := g.mrs.get(key.handle); ok && mr.Address() >= uint64(g.base) {
			grh = mr.Address() - uint64(g.base)
		}
		g.call("create_ah_from_wc", pd, wc, grh, uint64(g.room(8)))
		g.call("init_ah_from_wc", 0, wc, grh, uint64(g.room(uint32(unsafe.Sizeof(AHAttr{})))))
	}
}

// intrude connects a queue pair by hand to one that is not the guest's, with all that is known about that one.
func (g *fuzzGuest) intrude() {
	space := chosen(g, []uint64{0, 0, uint64(rdmacore.PortSpaceUDP), uint64(rdmacore.PortSpaceIB)})
	ep := g.call("create_id", g.perhaps(kindChannel), space)
	if ep < 0 {
		return
	}
	id, known := uint64(ep), g.world.heard()
	g.call("bind_addr", id, give(g, known.device))
	qp := uint64(max(g.call("create_qp", id, g.some(kindPD), g.qpAttr()), 0))
	at := sized[QPAttr](g)
	if mask := g.call("init_qp_attr", id, uint64(rdmacore.QPStateInit), uint64(at)); mask > 0 {
		g.call("modify_qp", qp, uint64(at), uint64(mask))
	}
	target := chosen(g, known.qpns)
	psn := g.random.Uint32N(1 << 24)
	if len(known.targets) > 0 && !g.one(3) {
		victim := chosen(g, known.targets)
		target, psn = victim.qpn, victim.psn
	}
	attr := g.bringUp(qp, target, psn)
	for range 3 {
		g.call("post_send", qp, g.sends(1, false), 1, g.buffers(3), 3, 0)
	}
	if g.one(3) { // and back again
		attr.State = uint32(chosen(g, []rdmacore.QPState{
			rdmacore.QPStateReset, rdmacore.QPStateErr, rdmacore.QPStateSQD,
		}))
		g.call("modify_qp", qp, give(g, attr), 1)
	}
}

// alone has queue pairs without an endpoint. Their CQ is one of several on a channel. Each connects to another one of
// them, to itself, or to any QP.
func (g *fuzzGuest) alone() {
	channel := g.some(kindCompChannel)
	if channel == 0 {
		channel = uint64(max(g.call("create_comp_channel", g.some(kindDevice)), 0))
	}
	cq := uint64(max(g.call("create_cq", channel, 64), 0))
	if g.one(4) {
		cq = uint64(max(g.call("create_cq_ex", channel, 64, uint64(g.enumerated("wc_fields"))), 0))
	}
	pd := g.some(kindPD)
	attr := QPInitAttr{StructSize: uint32(unsafe.Sizeof(QPInitAttr{})), Type: uint32(
		chosen(g, []rdmacore.QPType{rdmacore.QPTypeRC, rdmacore.QPTypeRC, rdmacore.QPTypeUC, rdmacore.QPTypeUD}),
	),
		MaxSendWR: 4, MaxRecvWR: 4, MaxSendSGE: 3, MaxRecvSGE: 3, SendCQ: Handle(cq), RecvCQ: Handle(cq)}
	var made [2]uint64
	for n := range made {
		made[n] = uint64(max(g.call("create_qp", 0, pd, give(g, attr)), 0))
	}
	if g.one(6) {
		extra := QPExtra{
			StructSize: uint32(unsafe.Sizeof(QPExtra{})), CompMask: uint32(rdmacore.QPInitSendOpsFlags),
			SendOpsFlags: uint64(rdmacore.SendOpSend),
		}
		made[1] = uint64(max(g.call("create_qp_ex", 0, pd, give(g, attr), give(g, extra)), 0))
	}
	numbers := g.world.heard().qpns
	for _, qp := range made {
		if at := sized[QPAttr](g); g.call("query_qp", qp, uint64(at)) == 0 {
			numbers = append(numbers, take[QPAttr](g.Instance, at).QPNum)
		}
	}
	psn := g.random.Uint32N(1 << 24)
	for _, qp := range made {
		g.bringUp(qp, latest(g, numbers), psn)
		g.call("post_recv", qp, g.receives(2), 2, g.buffers(2), 2, 0)
	}
	g.call("req_notify", cq, 0)
	g.call("post_send", made[0], g.sends(1, false), 1, g.buffers(3), 3, 0)
	g.call("wait_cq_event", chosen(g, []uint64{channel, channel, cq}), 1000)
	g.call("poll_cq", cq, uint64(g.room(4*uint32(unsafe.Sizeof(WC{})))), 4)
	if g.one(2) {
		g.call("destroy_qp", made[0])
	}
	if g.one(2) {
		g.call("destroy_qp", made[1])
	}
	g.call("destroy_cq", cq)
	g.call("destroy_comp_channel", channel)
}

// bringUp brings a queue pair to RTS as an application does by itself, with any other as its peer.
func (g *fuzzGuest) bringUp(qp uint64, target, psn uint32) QPAttr {
	known := g.world.heard()
	way := AHAttr{IsGlobal: 1, PortNum: 1, HopLimit: 1, DGID: [16]byte{10: 0xff, 11: 0xff}}
	copy(way.DGID[12:], known.device.IP[:4])
	attr := QPAttr{
		StructSize: uint32(unsafe.Sizeof(QPAttr{})), State: uint32(rdmacore.QPStateInit), PortNum: 1,
		AccessFlags: fuzzRights,
	}
	const state, access, pkey, port, address = 1 << 0, 1 << 3, 1 << 4, 1 << 5, 1 << 7
	const mtu, timeout, retry, rnr, psnIn = 1 << 8, 1 << 9, 1 << 10, 1 << 11, 1 << 12
	const reads, timer, psnOut, served, number = 1 << 13, 1 << 15, 1 << 16, 1 << 17, 1 << 20
	g.call("modify_qp", qp, give(g, attr), state|pkey|port|access)
	attr.State, attr.AH, attr.PathMTU, attr.DestQPNum, attr.RQPSN, attr.MaxDestRdAtomic, attr.MinRNRTimer =
		uint32(rdmacore.QPStateRTR), way, 1024, target, psn, 1, 1
	uc := uint64(state | address | mtu | number | psnIn)
	if g.call("modify_qp", qp, give(g, attr), uc|served|timer) < 0 {
		g.call("modify_qp", qp, give(g, attr), uc)
	}
	attr.State, attr.SQPSN, attr.Timeout, attr.RetryCount, attr.RNRRetryCount, attr.MaxRdAtomic =
		uint32(rdmacore.QPStateRTS), psn, 14, 1, 1, 1
	if g.call("modify_qp", qp, give(g, attr), state|psnOut|timeout|retry|rnr|reads) < 0 {
		g.call("modify_qp", qp, give(g, attr), state|psnOut)
	}
	return attr
}

// pollAll waits for things of every kind at once, makes an event of the guest's own, and takes it.
func (g *fuzzGuest) pollAll() {
	fd := g.some(kindEventFD)
	if fd == 0 || g.one(8) {
		if made := g.call("create_eventfd", uint64(g.random.Uint32N(2)), uint64(g.random.Uint32N(2))); made > 0 {
			fd = uint64(made)
		}
	}
	var entries []PollEntry
	for _, kind := range [...]handleKind{kindChannel, kindEP, kindEP, kindCQ, kindCQ, kindEventFD, kindPD} {
		if !g.one(3) {
			entries = append(entries, PollEntry{Handle: Handle(g.perhaps(kind)), Events: g.random.Uint32N(8)})
		}
	}
	entries = append(entries, PollEntry{Handle: Handle(fd), Events: pollIn})
	if g.one(2) {
		g.call("eventfd_write", fd, uint64(1+g.random.Uint32N(3)))
	}
	g.call("poll_set", give(g, entries...), uint64(len(entries)), chosen(g, []uint64{0, 0, 1000, 100_000}))
	g.call("eventfd_read", fd, uint64(g.room(8)))
}

// role is the name by which other guests reach this one's streams.
func (g *fuzzGuest) role() string { return fmt.Sprint("guest", g.number) }

// talk makes streams to any guest, reads and writes them, and sees what others have done.
func (g *fuzzGuest) talk() {
	if g.one(3) {
		g.call("stream_listen", uint64(g.random.Uint32N(3)), uint64(1+g.random.Uint32N(3)))
	}
	role := chosen(g, g.world.guests).role()
	at := g.room(16)
	copy(g.memory[at:], role)
	g.call(
		"stream_connect", uint64(at), uint64(len(role)), uint64(g.random.Uint32N(3)), chosen(g, []uint64{0, 0, 1000}),
	)
	var entries []PollEntry
	for _, end := range g.handles(kindStream) {
		entries = append(entries, PollEntry{Handle: end, Events: pollIn | pollOut})
	}
	if len(entries) == 0 {
		return
	}
	entries = entries[:min(len(entries), 8)]
	set := give(g, entries...)
	g.call("poll_set", set, uint64(len(entries)), chosen(g, []uint64{0, 1000}))
	for n, entry := range entries {
		revents := take[PollEntry](g.Instance, Pointer(set)+Pointer(n)*16).Revents
		length := uint64(g.random.Uint32N(4096))
		if revents&pollIn != 0 || g.one(8) {
			if g.call("stream_accept", uint64(entry.Handle), 0) == -int32(syscall.EINVAL) {
				g.call("stream_read", uint64(entry.Handle), fuzzBuffers, length, 0)
			}
		}
		if revents&pollOut != 0 || g.one(8) {
			g.call("stream_write", uint64(entry.Handle), fuzzBuffers, length, 0)
		}
	}
	if g.one(4) {
		g.call("stream_close", g.some(kindStream))
	}
}
