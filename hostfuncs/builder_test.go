package hostfuncs

import (
	"bytes"
	"syscall"
	"testing"
	"unsafe"

	"rdmarun/rdmacore"
)

// buildPair is a pair.  Its active end posts by builders of these operations.
func buildPair(t *testing.T, ops rdmacore.SendOps) *pair {
	t.Helper()
	p := connectPair(t)
	i := p.Instance
	must(t, i, "local_address", p.listener, infoAt)
	port := take[Address](i, infoAt).Port
	must(t, i, "device_address", 0, addressAt)
	address := take[Address](i, addressAt)
	address.Port = port
	put(i, addressAt, address)
	p.active = must(t, i, "create_id", p.channel, 0)
	must(t, i, "resolve_addr", p.active, 0, addressAt, 2000)
	p.event(t, p.active, rdmacore.EventAddrResolved)
	must(t, i, "resolve_route", p.active, 2000)
	p.event(t, p.active, rdmacore.EventRouteResolved)
	put(i, extraAt, QPExtra{StructSize: uint32(unsafe.Sizeof(QPExtra{})), CompMask: uint32(rdmacore.QPInitSendOpsFlags),
		SendOpsFlags: uint64(rdmacore.SendOpTSO)})
	expect(t, i, syscall.EOPNOTSUPP, "create_qp_ex", p.active, p.pd, attrAt, extraAt)
	put(i, extraAt, QPExtra{
		StructSize: uint32(unsafe.Sizeof(QPExtra{})), CompMask: uint32(rdmacore.QPInitSendOpsFlags),
		SendOpsFlags: uint64(ops),
	})
	must(t, i, "create_qp_ex", p.active, p.pd, attrAt, extraAt)
	must(t, i, "connect", p.active, 0)
	p.passive = uint64(p.event(t, p.listener, rdmacore.EventConnectRequest).EP)
	must(t, i, "accept", p.passive, 0)
	p.event(t, p.active, rdmacore.EventEstablished)
	p.event(t, p.passive, rdmacore.EventEstablished)
	return p
}

// complete waits for one completion of a CQ.
func (p *pair) complete(t *testing.T, cq uint64, id uint64, status rdmacore.WCStatus) WC {
	t.Helper()
	if n := must(t, p.Instance, "wait_cq", cq, wcAt, 1, timeout); n != 1 {
		t.Fatalf("%d completions", n)
	}
	wc := take[WC](p.Instance, wcAt)
	if wc.WRID != id || rdmacore.WCStatus(wc.Status) != status {
		t.Fatalf("completion of %d with %s, not %d with %s", wc.WRID, rdmacore.WCStatus(wc.Status), id, status)
	}
	return wc
}

func TestFlushOfAGuest(t *testing.T) {
	const flushable = rdmacore.AccessLocalWrite | rdmacore.AccessRemoteWrite | rdmacore.AccessFlushGlobal
	p := buildPair(t, rdmacore.SendOpRDMAWrite|rdmacore.SendOpFlush)
	i := p.Instance
	qp, cq := must(t, i, "ep_qp", p.active), must(t, i, "ep_send_cq", p.active)
	expect(
		t, i, syscall.EOPNOTSUPP, "reg_mr", p.pd, bufferAt, 4096, uint64(flushable|rdmacore.AccessFlushPersistent),
		mrAt,
	)
	must(t, i, "reg_mr", p.pd, bufferAt, 4096, uint64(flushable), mrAt)
	mr := take[MR](i, mrAt)
	put(i, eventAt, QPAttr{
		StructSize: uint32(unsafe.Sizeof(QPAttr{})), AccessFlags: uint32(flushable &^ rdmacore.AccessLocalWrite),
	})
	must(t, i, "modify_qp", must(t, i, "ep_qp", p.passive), eventAt, uint64(rdmacore.QPAttrAccessFlags))

	copy(i.memory[bufferAt:], "durable!")
	put(i, sgeAt, SGE{Address: bufferAt, Length: 8, LKey: mr.LKey})
	wrs := [3]SendWR{
		{WRID: 1, Opcode: uint32(rdmacore.OpRDMAWrite), NumSGE: 1},
		{
			WRID: 2, Opcode: uint32(rdmacore.OpFlush), Flags: uint32(rdmacore.SendSignaled), NumSGE: 1,
			Placement: uint8(rdmacore.FlushGlobal),
		},
		{WRID: 3, Opcode: uint32(rdmacore.OpFlush), Flags: uint32(rdmacore.SendSignaled), Placement: uint8(
			rdmacore.FlushGlobal,
		),
			Selectivity: uint8(rdmacore.FlushMR)},
	}
	for n := range wrs {
		wrs[n].RKey, wrs[n].RemoteAddress = mr.RKey, mr.Address+2048
	}
	put(i, wrAt, wrs)
	if n := must(t, i, "post_send", qp, wrAt, 3, sgeAt, 1, postedAt); n != 3 {
		t.Errorf("%d posted", n)
	}
	for id := uint64(2); id < 4; id++ {
		if wc := p.complete(t, cq, id, rdmacore.WCSuccess); rdmacore.WCOpcode(wc.Opcode) != rdmacore.WCFlush {
			t.Errorf("completion of %s", rdmacore.WCOpcode(wc.Opcode))
		}
	}
	if got := i.memory[bufferAt+2048:][:8]; !bytes.Equal(got, []byte("durable!")) {
		t.Errorf("the target has %q", got)
	}

	// An error is found before any request is posted; posted is 0.
	for name, change := range map[string]func(*SendWR){
		"EINVAL no placement":      func(wr *SendWR) { wr.Placement = 0 },
		"EINVAL unknown placement": func(wr *SendWR) { wr.Placement = 255 },
		"EINVAL unknown level":     func(wr *SendWR) { wr.Selectivity = 255 },
		"EINVAL no such entry":     func(wr *SendWR) { wr.FirstSGE = 1 },
		"EOPNOTSUPP READ":          func(wr *SendWR) { wr.Opcode = uint32(rdmacore.OpRDMARead) },
	} {
		wrong := wrs
		change(&wrong[1])
		put(i, wrAt, wrong)
		put(i, postedAt, uint64(77))
		want := syscall.EINVAL
		if name[1] == 'O' {
			want = syscall.EOPNOTSUPP
		}
		expect(t, i, want, "post_send", qp, wrAt, 3, sgeAt, 1, postedAt)
		if got := take[uint64](i, postedAt); got != 0 {
			t.Errorf("%s: %d posted", name, got)
		}
	}
	// A length that no memory of a guest has is not even a buffer.
	put(i, wrAt, wrs)
	put(i, sgeAt, SGE{Address: bufferAt, Length: 1 << 31})
	expect(t, i, syscall.EFAULT, "post_send", qp, wrAt, 3, sgeAt, 1, postedAt)
	if n := must(t, i, "poll_cq", cq, wcAt, 1); n != 0 {
		t.Errorf("%d completions", n)
	}
	// One byte more than the key covers.
	put(i, sgeAt, SGE{Length: 2049})
	put(i, wrAt, wrs[1])
	must(t, i, "post_send", qp, wrAt, 1, sgeAt, 1, postedAt)
	p.complete(t, cq, 2, rdmacore.WCRemAccessErr)
}

// TestFlushOfAPlainQP: a guest gets the reason of the refusal.
func TestFlushOfAPlainQP(t *testing.T) {
	p := connectPair(t)
	i := p.Instance
	put(i, wrAt, SendWR{Opcode: uint32(rdmacore.OpFlush), Placement: 1, Selectivity: 1})
	expect(t, i, syscall.EOPNOTSUPP, "post_send", must(t, i, "ep_qp", p.active), wrAt, 1, sgeAt, 0, postedAt)
	if text := i.lastError.Error(); !bytes.Contains([]byte(text), []byte("send operations")) {
		t.Errorf("error %q", text)
	}
}

// TestOlderGuestsPostAsEver: the bytes of placement and level were reserved and may have any value in requests other
// than FLUSH. send_ops_flags without their bit of comp_mask mean nothing.
func TestOlderGuestsPostAsEver(t *testing.T) {
	p := connectPair(t)
	i := p.Instance
	must(t, i, "reg_mr", p.pd, bufferAt, 64, 1, mrAt)
	put(i, sgeAt, SGE{Address: bufferAt, Length: 8, LKey: take[MR](i, mrAt).LKey})
	put(i, wrAt, RecvWR{WRID: 1, NumSGE: 1})
	must(t, i, "post_recv", must(t, i, "ep_qp", p.passive), wrAt, 1, sgeAt, 1, postedAt)
	put(i, wrAt, SendWR{WRID: 2, Opcode: uint32(rdmacore.OpSend), Flags: uint32(rdmacore.SendSignaled), NumSGE: 1,
		Placement: 255, Selectivity: 255, Reserved: 65535})
	must(t, i, "post_send", must(t, i, "ep_qp", p.active), wrAt, 1, sgeAt, 1, postedAt)
	p.complete(t, must(t, i, "ep_send_cq", p.active), 2, rdmacore.WCSuccess)

	must(t, i, "device_address", 0, addressAt)
	id := must(t, i, "create_id", p.channel, 0)
	must(t, i, "bind_addr", id, addressAt)
	put(i, extraAt, QPExtra{StructSize: uint32(unsafe.Sizeof(QPExtra{})), SendOpsFlags: uint64(rdmacore.SendOpTSO)})
	must(t, i, "create_qp_ex", id, p.pd, attrAt, extraAt)
	put(i, wrAt, SendWR{Opcode: uint32(rdmacore.OpSend)})
	// Not connected; with builders it would be EOPNOTSUPP.
	expect(t, i, syscall.EINVAL, "post_send", must(t, i, "ep_qp", id), wrAt, 1, sgeAt, 0, postedAt)
}
