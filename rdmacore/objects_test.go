package rdmacore

import (
	"encoding/binary"
	"syscall"
	"testing"
	"time"
)

// localGID is the GID that stands for the tests' address.
func localGID(t testing.TB, id *ID) GID {
	t.Helper()
	ports, err := id.Device().Ports()
	must(t, err)
	for _, gid := range ports[0].GIDs {
		if gid.Raw.Unmap() == here(t, 0).Addr().Unmap() {
			return gid
		}
	}
	t.Fatal("no GID")
	return GID{}
}

// connectedToShared is a connection to a listener with QPs that take their receives from the shared queue.
func connectedToShared(t *testing.T) (client, server *side, srq *SRQ) {
	t.Helper()
	p := opened(t)
	server, client = newSide(t, p), newSide(t, p)
	srq, err := server.pd.CreateSRQ(SRQAttr{MaxWR: 8, MaxSGE: 1})
	must(t, err)
	qp := usualQP
	qp.SRQ = srq
	listener := listen(t, server, &qp)
	request(t, client, listener, usualQP, &usualParam)
	server.id = expect(t, listener, EventConnectRequest, 0).ID
	must(t, server.id.Accept(&usualParam))
	expect(t, client.id, EventEstablished, 0)
	expect(t, server.id, EventEstablished, 0)
	return client, server, srq
}

// A listener's QP on a shared queue: receives posted there, the limit event with its object, EBUSY.
func TestSRQ(t *testing.T) {
	client, server, srq := connectedToShared(t)

	sges := []SGE{{Address: server.mr.Address(), Length: 64, LKey: server.mr.LKey()}}
	for id := range uint64(3) {
		_, err := srq.PostRecv([]RecvWR{{WRID: id, NumSGE: 1}}, sges)
		must(t, err)
	}
	must(t, srq.Arm(2))
	attr, err := srq.Query()
	must(t, err)
	if attr.MaxWR < 8 || attr.MaxSGE < 1 || attr.Limit != 2 {
		t.Errorf("sizes %+v", attr)
	}
	for id := range uint64(2) {
		client.send(t, SendWR{WRID: id, Opcode: OpSend, Flags: SendSignaled}, 0, 8)
		completion(t, client.id.SendCQ(), id, WCSuccess)
		completion(t, server.id.RecvCQ(), id, WCSuccess)
	}
	event, err := server.id.Device().WaitAsyncEvent(bounded(t), anyEvent)
	must(t, err)
	if event.Type != AsyncSRQLimitReached || event.SRQ != srq || event.QP != nil {
		t.Errorf("event %+v", event)
	}
	refused(t, srq.Destroy(), syscall.EBUSY)
	must(t, srq.Resize(16))
	refused(t, srq.Arm(1<<30), syscall.EINVAL)
	_, err = srq.PostRecv([]RecvWR{{FirstSGE: 1, NumSGE: 1}}, sges)
	refused(t, err, syscall.EINVAL)
	server.destroy(t)
	must(t, srq.Destroy())
	refused(t, srq.Destroy(), syscall.EBADF)
}

// Each atomic through the flat form.
func TestAtomics(t *testing.T) {
	client, server := connected(t)
	atomics, err := server.pd.RegMR(server.memory, 0, 64, allAccess|AccessRemoteAtomic)
	must(t, err)
	atEnd(t, atomics.Dereg)
	word := server.bytes(0, 8)
	binary.NativeEndian.PutUint64(word, 40)
	remote := SendWR{Flags: SendSignaled, RKey: atomics.RKey(), RemoteAddress: atomics.Address()}
	add, swap := remote, remote
	add.Opcode, add.CompareAdd = OpAtomicFetchAndAdd, 2
	swap.Opcode, swap.CompareAdd, swap.Swap = OpAtomicCmpAndSwp, 42, 7
	for _, row := range []struct {
		wr            SendWR
		opcode        WCOpcode
		before, after uint64
	}{{add, WCFetchAdd, 40, 42}, {swap, WCCompSwap, 42, 7}, {swap, WCCompSwap, 7, 7}} {
		client.send(t, row.wr, 128, 8)
		if got := completion(t, client.id.SendCQ(), 0, WCSuccess); got.Opcode != row.opcode {
			t.Errorf("opcode %s", got.Opcode)
		}
		before, after := binary.NativeEndian.Uint64(client.bytes(128, 8)), binary.NativeEndian.Uint64(word)
		if before != row.before || after != row.after {
			t.Errorf("%s: %d became %d, want %d and %d", row.opcode, before, after, row.before, row.after)
		}
	}
}

// Both types of windows: bound, written through, and wrong keys afterwards.
func TestMW(t *testing.T) {
	for _, kind := range []MWType{1, 2} {
		client, server := connected(t)
		bindable, err := server.pd.RegMR(server.memory, 0, 4096, allAccess|AccessMWBind)
		must(t, err)
		mw, err := server.pd.AllocMW(kind)
		must(t, err)
		old := mw.RKey()
		bind := MWBind{WRID: 5, Flags: SendSignaled, MR: bindable, Address: bindable.Address() + 256,
			Length: 64, Access: AccessRemoteWrite}
		must(t, server.id.QP().BindMW(mw, bind))
		if got := completion(t, server.id.SendCQ(), 5, WCSuccess); got.Opcode != WCBindMW || mw.RKey() == old {
			t.Errorf("opcode %s, key %#x", got.Opcode, mw.RKey())
		}
		write := SendWR{WRID: 6, Opcode: OpRDMAWrite, Flags: SendSignaled, RKey: mw.RKey(),
			RemoteAddress: bind.Address}
		client.send(t, write, 0, 64)
		completion(t, client.id.SendCQ(), 6, WCSuccess)
		must(t, mw.Dealloc())
		client.send(t, write, 0, 64)
		completion(t, client.id.SendCQ(), 6, WCRemAccessErr)
		must(t, bindable.Dereg())
		refused(t, mw.Dealloc(), syscall.EBADF)
	}
}

// Datagrams to oneself: by the handle made of an address, then by that of the first one's header.
func TestAH(t *testing.T) {
	p := opened(t)
	s := newSide(t, p)
	id, err := s.channel.CreateID(PortSpaceUDP)
	must(t, err)
	destroyAtEnd(t, id)
	datagramID(t, id, s.pd)
	refusedNumber := func(number uint32) {
		t.Helper()
		_, err := id.QP().PostSend([]SendWR{{Opcode: OpSend, AH: number, RemoteQPN: id.QP().Num()}}, nil)
		refused(t, err, syscall.EINVAL)
	}
	refusedNumber(0)
	attr, err := id.QP().Query()
	must(t, err)
	entry := localGID(t, id)
	ah, err := s.pd.CreateAH(AHAttr{IsGlobal: true, DGID: entry.Raw, SGIDIndex: uint8(entry.Index), PortNum: 1})
	must(t, err)
	sges := []SGE{{Address: s.mr.Address(), Length: 32, LKey: s.mr.LKey()},
		{Address: s.mr.Address() + 4096, Length: 256, LKey: s.mr.LKey()}}
	way := ah
	for round := range uint64(2) {
		_, err = id.QP().PostRecv([]RecvWR{{WRID: 10, FirstSGE: 1, NumSGE: 1}}, sges)
		must(t, err)
		_, err = id.QP().PostSend([]SendWR{{WRID: 11, Opcode: OpSend, Flags: SendSignaled, NumSGE: 1,
			AH: way.Number(), RemoteQPN: id.QP().Num(), RemoteQKey: attr.QKey}}, sges)
		must(t, err)
		completion(t, id.SendCQ(), 11, WCSuccess)
		got := completion(t, id.RecvCQ(), 10, WCSuccess)
		if got.ByteLen != GRHLength+32 || got.SrcQP != id.QP().Num() || got.WCFlags&WCGRH == 0 {
			t.Errorf("completion %+v", got)
		}
		if round == 0 {
			back, err := id.Device().InitAHFromWC(&got, s.bytes(4096, GRHLength), 1)
			must(t, err)
			if back.DGID != entry.Raw || !back.IsGlobal || back.HopLimit == 0 || int(back.SGIDIndex) != entry.Index {
				t.Errorf("the way back is %+v", back)
			}
			_, err = id.Device().InitAHFromWC(&got, s.bytes(4096, GRHLength-1), 1)
			refused(t, err, syscall.EINVAL)
			way, err = s.pd.CreateAHFromWC(&got, s.bytes(4096, GRHLength), 1)
			must(t, err)
		}
	}
	stale := way.Number()
	must(t, way.Destroy())
	refusedNumber(stale)
	refused(t, way.Destroy(), syscall.EBADF)
	other := newPD(t, p)
	foreign, err := other.CreateAH(AHAttr{IsGlobal: true, DGID: entry.Raw, SGIDIndex: uint8(entry.Index), PortNum: 1})
	must(t, err)
	refusedNumber(foreign.Number()) // of another PD
	must(t, foreign.Destroy())
	must(t, ah.Destroy())
}

func TestModerateCQ(t *testing.T) {
	p, client, server := virtualPair(t, 7)
	send := func(number uint64) {
		client.send(t, SendWR{WRID: number, Opcode: OpRDMAWrite, Flags: SendSignaled, RKey: server.mr.RKey(),
			RemoteAddress: server.mr.Address()}, 0, 8)
	}
	cq := client.id.SendCQ()
	must(t, cq.Moderate(3, 50*time.Millisecond))
	// The third is an event; one alone waits for the period.
	for completions, want := range map[int]time.Duration{3: 0, 1: 50 * time.Millisecond} {
		must(t, cq.RequestNotify(false))
		began := p.Clock().Now()
		for number := range completions {
			send(uint64(number))
		}
		must(t, cq.WaitEvent(bounded(t)))
		if took := p.Clock().Now() - began; took != want {
			t.Errorf("the event of %d completions came after %v, want %v", completions, took, want)
		}
	}
	must(t, cq.Moderate(0, 0))
	must(t, cq.RequestNotify(false))
	send(9)
	must(t, cq.WaitEvent(bounded(t)))
	for _, period := range []time.Duration{-1000, 1, 65536 * time.Microsecond} {
		refused(t, cq.Moderate(1, period), syscall.EINVAL)
	}
}

func TestResizeCQ(t *testing.T) {
	client, server := connected(t)
	for range 4 {
		client.send(t, SendWR{Opcode: OpRDMAWrite, Flags: SendSignaled, RKey: server.mr.RKey(),
			RemoteAddress: server.mr.Address()}, 0, 8)
	}
	must(t, client.id.SendCQ().Resize(1024))
	refused(t, client.id.SendCQ().Resize(0), syscall.EINVAL)
	for range 4 {
		completion(t, client.id.SendCQ(), 0, WCSuccess)
	}
}
