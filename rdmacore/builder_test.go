package rdmacore

import (
	"bytes"
	"encoding/binary"
	"strings"
	"syscall"
	"testing"
)

// builtOps are the operations that rdma_rxe of Linux 6.1 has, too.
const builtOps = SendOpRDMAWrite | SendOpRDMAWriteWithImm | SendOpSend | SendOpSendWithImm | SendOpRDMARead |
	SendOpAtomicCmpAndSwp | SendOpAtomicFetchAndAdd | SendOpLocalInv | SendOpBindMW | SendOpSendWithInv

// built is a connection of QPs that are posted to by builders.
func built(t *testing.T, ops SendOps) (client, server *side) {
	t.Helper()
	qp := usualQP
	qp.SendOps = ops
	return connectedWith(t, qp, usualParam)
}

func TestBuilderData(t *testing.T) {
	client, server := built(t, builtOps)
	remote := func(op Opcode, id uint64) SendWR {
		return SendWR{
			WRID: id, Opcode: op, Flags: SendSignaled, RKey: server.mr.RKey(), RemoteAddress: server.mr.Address() + 128,
		}
	}
	copy(client.bytes(0, 8), "builders")
	server.recv(t, 1, 0, 64)
	server.recv(t, 2, 64, 64)
	client.send(t, SendWR{WRID: 3, Opcode: OpSend, Flags: SendSignaled}, 0, 8)
	completion(t, client.id.SendCQ(), 3, WCSuccess)
	completion(t, server.id.RecvCQ(), 1, WCSuccess)
	client.send(t, remote(OpRDMAWriteWithImm, 4), 0, 8)
	completion(t, client.id.SendCQ(), 4, WCSuccess)
	completion(t, server.id.RecvCQ(), 2, WCSuccess)
	if !bytes.Equal(server.bytes(0, 8), []byte("builders")) || !bytes.Equal(server.bytes(128, 8), []byte("builders")) {
		t.Errorf("the server has %q and %q", server.bytes(0, 8), server.bytes(128, 8))
	}
	client.send(t, remote(OpRDMARead, 5), 512, 8)
	if wc := completion(t, client.id.SendCQ(), 5, WCSuccess); wc.Opcode != WCRDMARead ||
		!bytes.Equal(client.bytes(512, 8), []byte("builders")) {
		t.Errorf("%s of %q", wc.Opcode, client.bytes(512, 8))
	}
	// Of a guest.
	mr, err := client.pd.RegMRAt(client.memory, 0, 8, 0)
	must(t, err)
	t.Cleanup(func() { must(t, mr.Dereg()) })
	sges := []SGE{{Address: 0, Length: 8, LKey: mr.LKey()}}
	wr := remote(OpRDMAWrite, 6)
	wr.NumSGE = 1
	if n, err := client.id.QP().postSendAt(client.memory.Base(), 8, []SendWR{wr}, sges); n != 1 || err != nil {
		t.Errorf("%d posted, %v", n, err)
	}
	completion(t, client.id.SendCQ(), 6, WCSuccess)
	sges[0].Length++
	n, err := client.id.QP().postSendAt(client.memory.Base(), 8, []SendWR{wr}, sges)
	refused(t, err, syscall.EFAULT)
	if n != 0 {
		t.Error("it was posted")
	}
	_, err = client.id.QP().postSendAt(client.memory.Base(), 0, []SendWR{wr}, sges)
	refused(t, err, syscall.EFAULT)
}

// TestBuilderAllOrNothing: a wrong request keeps those before it from being posted.
func TestBuilderAllOrNothing(t *testing.T) {
	client, server := built(t, SendOpRDMAWrite|SendOpRDMARead)
	good := SendWR{
		WRID: 1, Opcode: OpRDMAWrite, Flags: SendSignaled, NumSGE: 1, RKey: server.mr.RKey(),
		RemoteAddress: server.mr.Address(),
	}
	with := func(change func(*SendWR)) SendWR {
		wr := good
		change(&wr)
		return wr
	}
	room := client.id.QP().InitAttr().MaxSendWR
	many := make([]SendWR, 8*room)
	for i := range many {
		many[i] = good
	}
	for name, row := range map[string]struct {
		wrs  []SendWR
		want error
	}{
		"not among its operations": {[]SendWR{good, with(func(wr *SendWR) { wr.Opcode = OpSend })}, syscall.EOPNOTSUPP},
		"FLUSH not among them": {
			[]SendWR{good, with(func(wr *SendWR) { wr.Opcode = OpFlush })}, syscall.EOPNOTSUPP,
		},
		"no such opcode": {[]SendWR{good, with(func(wr *SendWR) { wr.Opcode = 99 })}, syscall.EINVAL},
		"no such entry":  {[]SendWR{good, with(func(wr *SendWR) { wr.FirstSGE = 1 })}, syscall.EINVAL},
		"inline READ": {
			[]SendWR{good, with(func(wr *SendWR) { wr.Opcode, wr.Flags = OpRDMARead, SendInline })}, syscall.EINVAL,
		},
		"more than the queue": {many, syscall.ENOMEM},
	} {
		n, err := client.id.QP().PostSend(row.wrs, []SGE{client.sge(0, 8)})
		if n != 0 {
			t.Errorf("%s: %d were posted", name, n)
		}
		if name == "more than the queue" && !onSoft("the errno of a full send queue") {
			row.want = syscall.ENOSPC
		}
		refused(t, err, row.want)
		if err != nil && !strings.Contains(err.Error(), "ibv_wr_complete") {
			t.Errorf("%s: %v", name, err)
		}
	}
	var wcs [1]WC
	if n, err := client.id.SendCQ().Poll(wcs[:]); n != 0 || err != nil {
		t.Errorf("%d completions, %v", n, err)
	}
	client.send(t, good, 0, 8)
	completion(t, client.id.SendCQ(), 1, WCSuccess)
	// With nothing among its operations a QP posts nothing.
	side := newSide(t, opened(t))
	var err error
	side.id, err = side.channel.CreateEP(bounded(t), EPConfig{Destination: here(t, 7471)})
	must(t, err)
	must(t, side.id.CreateQPEx(side.pd, QPInitAttrEx{QPInitAttr: usualQP, CompMask: QPInitSendOpsFlags}))
	_, err = side.id.QP().PostSend([]SendWR{{Opcode: OpSend}}, nil)
	refused(t, err, syscall.EOPNOTSUPP)
}

// TestBuilderRefused: operations that a type of QP or a device does not have.
func TestBuilderRefused(t *testing.T) {
	side := newSide(t, opened(t))
	var err error
	side.id, err = side.channel.CreateEP(bounded(t), EPConfig{Destination: here(t, 7471)})
	must(t, err)
	qp := usualQP
	for _, ops := range []SendOps{SendOpTSO, SendOpSend | 1<<40} {
		qp.SendOps = ops
		refused(t, side.id.CreateQP(side.pd, qp), syscall.EOPNOTSUPP)
	}
	if !onSoft("FLUSH and ATOMIC_WRITE") {
		qp.SendOps = SendOpFlush
		refused(t, side.id.CreateQP(side.pd, qp), syscall.EOPNOTSUPP)
	}
}

func TestBuilderWindow(t *testing.T) {
	client, server := built(t, builtOps)
	memory, err := NewMemory(4096)
	must(t, err)
	mr, err := server.pd.RegMR(memory, 0, 4096, allAccess|AccessMWBind)
	must(t, err)
	memory.Release()
	atEnd(t, mr.Dereg)
	mw, err := server.pd.AllocMW(2)
	must(t, err)
	atEnd(t, mw.Dealloc)
	must(
		t,
		server.id.QP().BindMW(mw, MWBind{
			WRID: 1, Flags: SendSignaled, MR: mr, Address: mr.Address(), Length: 64, Access: AccessRemoteWrite,
		}),
	)
	if wc := completion(t, server.id.SendCQ(), 1, WCSuccess); wc.Opcode != WCBindMW {
		t.Errorf("completion of %s", wc.Opcode)
	}
	copy(client.bytes(0, 8), "windowed")
	client.send(
		t, SendWR{WRID: 2, Opcode: OpRDMAWrite, Flags: SendSignaled, RKey: mw.RKey(), RemoteAddress: mr.Address()}, 0,
		8,
	)
	completion(t, client.id.SendCQ(), 2, WCSuccess)
	if got := memory.Bytes()[:8]; !bytes.Equal(got, []byte("windowed")) {
		t.Errorf("the window has %q", got)
	}
	_, err = server.id.QP().PostSend(
		[]SendWR{{WRID: 3, Opcode: OpLocalInv, Flags: SendSignaled, ImmData: mw.RKey()}}, nil,
	)
	must(t, err)
	if wc := completion(t, server.id.SendCQ(), 3, WCSuccess); wc.Opcode != WCLocalInv {
		t.Errorf("completion of %s", wc.Opcode)
	}
}

func TestFlush(t *testing.T) {
	softOnly(t, "FLUSH and ATOMIC_WRITE")
	client, server := built(t, SendOpRDMAWrite|SendOpFlush|SendOpAtomicWrite)
	memory, err := NewMemory(4096)
	must(t, err)
	_, err = server.pd.RegMR(memory, 0, 4096, allAccess|AccessFlushPersistent)
	refused(t, err, syscall.EOPNOTSUPP)
	mr, err := server.pd.RegMR(memory, 0, 4096, allAccess|AccessFlushGlobal)
	must(t, err)
	memory.Release()
	atEnd(t, mr.Dereg)
	must(
		t,
		server.id.QP().Modify(
			QPAttr{AccessFlags: AccessRemoteWrite | AccessRemoteAtomic | AccessRemoteRead | AccessFlushGlobal},
			QPAttrAccessFlags,
		),
	)
	write := SendWR{WRID: 1, Opcode: OpRDMAWrite, NumSGE: 1, RKey: mr.RKey(), RemoteAddress: mr.Address()}
	flush, all := write, write
	flush.WRID, flush.Opcode, flush.Flags, flush.Placement = 2, OpFlush, SendSignaled, FlushGlobal
	all.WRID, all.Opcode, all.Flags, all.Placement, all.Selectivity, all.NumSGE = 3, OpFlush, SendSignaled,
		FlushGlobal, FlushMR, 0
	copy(client.bytes(0, 8), "flushed.")
	_, err = client.id.QP().PostSend([]SendWR{write, flush, all}, []SGE{client.sge(0, 8)})
	must(t, err)
	for id := uint64(2); id < 4; id++ {
		if wc := completion(t, client.id.SendCQ(), id, WCSuccess); wc.Opcode != WCFlush {
			t.Errorf("completion of %s", wc.Opcode)
		}
	}
	if got := memory.Bytes()[:8]; !bytes.Equal(got, []byte("flushed.")) {
		t.Errorf("the server has %q", got)
	}
	for name, change := range map[string]func(*SendWR){
		"no placement":      func(wr *SendWR) { wr.Placement = 0 },
		"unknown placement": func(wr *SendWR) { wr.Placement = 4 },
		"unknown level":     func(wr *SendWR) { wr.Selectivity = 2 },
	} {
		wrong := flush
		change(&wrong)
		n, err := client.id.QP().PostSend([]SendWR{write, wrong}, []SGE{client.sge(0, 8)})
		if refused(t, err, syscall.EINVAL); n != 0 || !strings.Contains(err.Error(), "placement") {
			t.Errorf("%s: %d posted, %v", name, n, err)
		}
	}
	value := write
	value.WRID, value.Opcode, value.Flags = 4, OpAtomicWrite, SendSignaled
	binary.NativeEndian.PutUint64(client.bytes(0, 8), 77)
	_, err = client.id.QP().PostSend([]SendWR{value}, []SGE{client.sge(0, 8)})
	must(t, err)
	completion(t, client.id.SendCQ(), 4, WCSuccess)
	if got := binary.NativeEndian.Uint64(memory.Bytes()); got != 77 {
		t.Errorf("the word is %d", got)
	}
	// Memory that may not be flushed.
	wrong := flush
	wrong.RKey, wrong.RemoteAddress = server.mr.RKey(), server.mr.Address()
	_, err = client.id.QP().PostSend([]SendWR{wrong}, []SGE{client.sge(0, 8)})
	must(t, err)
	completion(t, client.id.SendCQ(), 2, WCRemAccessErr)
}

// TestFlushOfAPlainQP: struct ibv_send_wr has no place for it, and the error says what has.
func TestFlushOfAPlainQP(t *testing.T) {
	client, server := connected(t)
	wr := SendWR{Opcode: OpFlush, RKey: server.mr.RKey(), Placement: FlushGlobal, Selectivity: FlushMR}
	n, err := client.id.QP().PostSend([]SendWR{wr}, nil)
	if refused(t, err, syscall.EOPNOTSUPP); n != 0 || !strings.Contains(err.Error(), "send operations") {
		t.Errorf("%d posted, %v", n, err)
	}
}

// TestMeasureBuilders measures what queue pairs with builders do, which are as good as new then.
func TestMeasureBuilders(t *testing.T) {
	qp := measuredQP
	qp.SendOps = SendOpSend | SendOpSendWithImm | SendOpRDMAWrite | SendOpRDMARead
	client, server := connectedWith(t, qp, usualParam)
	ends := measureEnds(client, server)
	for _, kind := range []MeasureKind{MeasureLatency, MeasureBandwidth} {
		for _, operation := range measuredOperations {
			spec := MeasureSpec{Kind: kind, Operation: operation, Size: 64, Iterations: 200, Verify: true}
			if kind == MeasureBandwidth {
				spec.PostList, spec.SignalEvery, spec.Depth = 4, 8, 16
			}
			if operation != OpRDMARead && onSoft("inline data by builders") {
				spec.Inline = InlineAuto
			}
			result, err := runMeasurement(bounded(t), spec, ends...)
			must(t, err)
			checkMeasured(t, result)
		}
	}
	client.send(
		t,
		SendWR{
			WRID: 2, Opcode: OpRDMAWrite, Flags: SendSignaled, RKey: server.mr.RKey(),
			RemoteAddress: server.mr.Address(),
		},
		0, 64,
	)
	completion(t, client.id.SendCQ(), 2, WCSuccess)
	_, err := runMeasurement(
		bounded(t), MeasureSpec{Kind: MeasureLatency, Operation: OpAtomicFetchAndAdd, Size: 8, Iterations: 1}, ends...,
	)
	if refused(t, err, syscall.EOPNOTSUPP); err != nil && !strings.Contains(err.Error(), "send_ops_flags") {
		t.Error(err)
	}
}

func TestBuilderAllocatesNothing(t *testing.T) {
	if asan {
		t.Skip("AddressSanitizer moves what is given to C to the heap")
	}
	client, server := built(t, builtOps)
	if n := testing.AllocsPerRun(100, func() {
		sends := [1]SendWR{{
			WRID: 2, Opcode: OpRDMAWrite, Flags: SendSignaled, NumSGE: 1, RKey: server.mr.RKey(),
			RemoteAddress: server.mr.Address(),
		}}
		from := [1]SGE{client.sge(0, 64)}
		if _, err := client.id.QP().PostSend(sends[:], from[:]); err != nil {
			t.Fatal(err)
		}
		var wcs [1]WC
		for got := 0; got < 1; {
			polled, err := client.id.SendCQ().poll(wcs[:], nil, 1000)
			if err != nil {
				t.Fatal(err)
			}
			got += polled
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
