package hostfuncs

import (
	"syscall"
	"testing"
	"unsafe"

	"rdmarun/rdmacore"
)

// alone is a queue pair without an endpoint, with a CQ on a channel that others share.
type alone struct{ pd, cq, qp uint64 }

func aloneAttr(cq uint64, kind rdmacore.QPType) QPInitAttr {
	return QPInitAttr{StructSize: uint32(unsafe.Sizeof(QPInitAttr{})), Type: uint32(kind), MaxSendWR: 4, MaxRecvWR: 4,
		MaxSendSGE: 1, MaxRecvSGE: 1, SendCQ: Handle(cq), RecvCQ: Handle(cq)}
}

func newAlone(t *testing.T, i *Instance, device, channel uint64, kind rdmacore.QPType) alone {
	t.Helper()
	a := alone{pd: must(t, i, "alloc_pd", device), cq: must(t, i, "create_cq", channel, 8)}
	put(i, attrAt, aloneAttr(a.cq, kind))
	a.qp = must(t, i, "create_qp", 0, a.pd, attrAt)
	return a
}

// Where qp_attr is, which is long.
const qpAttrAt = 0x2000

func qpNumber(t *testing.T, i *Instance, qp uint64) uint32 {
	t.Helper()
	put(i, qpAttrAt, QPAttr{StructSize: uint32(unsafe.Sizeof(QPAttr{}))})
	must(t, i, "query_qp", qp, qpAttrAt)
	return take[QPAttr](i, qpAttrAt).QPNum
}

// reach brings the queue pair to RTS with a peer, by raw attributes.
func (a alone) reach(t *testing.T, i *Instance, kind rdmacore.QPType, peer uint32, gid GIDEntry) {
	t.Helper()
	attr := QPAttr{
		StructSize: uint32(unsafe.Sizeof(QPAttr{})), State: uint32(rdmacore.QPStateInit), PortNum: 1, AccessFlags: 3,
	}
	modify := func(mask rdmacore.QPAttrMask) {
		t.Helper()
		put(i, qpAttrAt, attr)
		must(t, i, "modify_qp", a.qp, qpAttrAt, uint64(mask))
	}
	modify(rdmacore.QPAttrState | rdmacore.QPAttrPkeyIndex | rdmacore.QPAttrPort | rdmacore.QPAttrAccessFlags)
	attr.State, attr.PathMTU, attr.DestQPNum, attr.RQPSN, attr.MinRNRTimer, attr.MaxDestRdAtomic =
		uint32(rdmacore.QPStateRTR), 1024, peer, 5, 12, 1
	attr.AH = AHAttr{IsGlobal: 1, PortNum: 1, HopLimit: 1, DGID: gid.GID, SGIDIndex: uint8(gid.Index)}
	receive := rdmacore.QPAttrState | rdmacore.QPAttrAV | rdmacore.QPAttrPathMTU | rdmacore.QPAttrDestQPN |
		rdmacore.QPAttrRQPSN
	send := rdmacore.QPAttrState | rdmacore.QPAttrSQPSN
	if kind == rdmacore.QPTypeRC {
		receive |= rdmacore.QPAttrMaxDestRdAtomic | rdmacore.QPAttrMinRNRTimer
		send |= rdmacore.QPAttrTimeout | rdmacore.QPAttrRetryCnt | rdmacore.QPAttrRNRRetry |
			rdmacore.QPAttrMaxQPRdAtomic
	}
	modify(receive)
	attr.State, attr.SQPSN, attr.Timeout, attr.RetryCount, attr.RNRRetryCount, attr.MaxRdAtomic =
		uint32(rdmacore.QPStateRTS), 5, 14, 7, 7, 1
	modify(send)
}

// aloneGID is an address of the device that the tests' fabric is reached by.
func aloneGID(t *testing.T, i *Instance, device uint64) (entry GIDEntry) {
	t.Helper()
	const entryAt = 0x2800
	for index := uint64(0); call(t, i, "query_gid_ex", device, 1, index, entryAt) == 0; index++ {
		entry = take[GIDEntry](i, entryAt)
	}
	return entry
}

// TestQueueKeysOfTheSystem: no guest has one, run by any user.
func TestQueueKeysOfTheSystem(t *testing.T) {
	i := newInstance(t, 1<<16, Config{})
	device := must(t, i, "open_device", 0)
	qp := newAlone(t, i, device, must(t, i, "create_comp_channel", device), rdmacore.QPTypeUD).qp
	const mask = rdmacore.QPAttrState | rdmacore.QPAttrPkeyIndex | rdmacore.QPAttrPort | rdmacore.QPAttrQKey
	attr := QPAttr{
		StructSize: uint32(unsafe.Sizeof(QPAttr{})), State: uint32(rdmacore.QPStateInit), PortNum: 1, QKey: 0x80010000,
	}
	put(i, qpAttrAt, attr)
	expect(t, i, syscall.EPERM, "modify_qp", qp, qpAttrAt, uint64(mask))
	attr.QKey = 0x7fffffff
	put(i, qpAttrAt, attr)
	must(t, i, "modify_qp", qp, qpAttrAt, uint64(mask))
}

// Queue pairs of a device that was opened, without an endpoint. Their data comes, and the channel that their CQs share
// reports to which of these an event belongs.
func TestQPsWithoutEndpoints(t *testing.T) {
	for _, kind := range []rdmacore.QPType{rdmacore.QPTypeRC, rdmacore.QPTypeUC} {
		t.Run(kind.String(), func(t *testing.T) {
			i := newInstance(t, 1<<16, Config{})
			device := must(t, i, "open_device", 0)
			channel := must(t, i, "create_comp_channel", device)
			one, other := newAlone(t, i, device, channel, kind), newAlone(t, i, device, channel, kind)
			gid := aloneGID(t, i, device)
			one.reach(t, i, kind, qpNumber(t, i, other.qp), gid)
			other.reach(t, i, kind, qpNumber(t, i, one.qp), gid)

			const entriesAt = 0x2a00
			poll := func() uint32 {
				put(i, entriesAt, PollEntry{Handle: Handle(channel), Events: pollIn})
				must(t, i, "poll_set", entriesAt, 1, 0)
				return take[PollEntry](i, entriesAt).Revents
			}
			must(t, i, "req_notify", one.cq, 0)
			must(t, i, "req_notify", other.cq, 0)
			expect(t, i, syscall.ETIMEDOUT, "wait_cq_event", channel, 0)
			if poll() != 0 {
				t.Error("the channel is ready before anything has come")
			}
			one.send(t, i, other)
			seen := make(map[uint64]bool)
			for range 2 {
				seen[must(t, i, "wait_cq_event", channel, timeout)] = true
			}
			if !seen[one.cq] || !seen[other.cq] || poll() != 0 {
				t.Errorf("events of %v", seen)
			}
			for _, cq := range []uint64{one.cq, other.cq} {
				if n := must(t, i, "wait_cq", cq, wcAt, 1, timeout); n != 1 || take[WC](i, wcAt).Status != 0 {
					t.Errorf("%d completions, %+v", n, take[WC](i, wcAt))
				}
			}
			// In any order; EBUSY while an object uses it.
			must(t, i, "close_device", device)
			expect(t, i, syscall.EBUSY, "dealloc_pd", one.pd)
			expect(t, i, syscall.EBUSY, "destroy_cq", one.cq)
			expect(t, i, syscall.EBUSY, "destroy_comp_channel", channel)
			must(t, i, "destroy_qp", one.qp)
			expect(t, i, syscall.EBADF, "destroy_qp", one.qp)
			must(t, i, "destroy_cq", one.cq)
			freed, err := i.Close()
			if err != nil || freed[rdmacore.KindQP] != 1 || freed[rdmacore.KindCQ] != 1 {
				t.Errorf("left %s, %v", freed, err)
			}
			if used := i.budget.Used(); used != (Cost{}) {
				t.Errorf("%+v is charged after the end", used)
			}
		})
	}
}

// send posts a message of one queue pair to the other.
func (a alone) send(t *testing.T, i *Instance, to alone) {
	t.Helper()
	for _, end := range []alone{to, a} {
		must(t, i, "reg_mr", end.pd, bufferAt, 64, 1, mrAt)
		put(i, sgeAt, SGE{Address: bufferAt, Length: 8, LKey: take[MR](i, mrAt).LKey})
		if end == to {
			put(i, wrAt, RecvWR{WRID: 1, NumSGE: 1})
			must(t, i, "post_recv", end.qp, wrAt, 1, sgeAt, 1, postedAt)
		} else {
			put(i, wrAt, SendWR{
				WRID: 2, Opcode: uint32(rdmacore.OpSend), Flags: uint32(rdmacore.SendSignaled), NumSGE: 1,
			})
			must(t, i, "post_send", end.qp, wrAt, 1, sgeAt, 1, postedAt)
		}
	}
}

// What a queue pair without an endpoint cannot do without, and what belongs to others.
func TestQPsWithoutEndpointsRefuse(t *testing.T) {
	p := connectPair(t)
	i := p.Instance
	channel := must(t, i, "create_comp_channel", 0)
	cq := must(t, i, "create_cq_ex", channel, 8, 127)
	must(t, i, "resize_cq", cq, 32)
	for name, spoil := range map[string]func(*QPInitAttr){
		"no type":    func(attr *QPInitAttr) { attr.Type = 0 },
		"no send CQ": func(attr *QPInitAttr) { attr.SendCQ = 0 },
		"no recv CQ": func(attr *QPInitAttr) { attr.RecvCQ = 0 },
	} {
		t.Run(name, func(t *testing.T) {
			attr := aloneAttr(cq, rdmacore.QPTypeRC)
			spoil(&attr)
			put(i, attrAt, attr)
			expect(t, i, syscall.EINVAL, "create_qp", 0, p.pd, attrAt)
		})
	}
	put(i, attrAt, aloneAttr(cq, rdmacore.QPTypeRC))
	expect(t, i, syscall.EBADF, "create_qp", channel, p.pd, attrAt)
	expect(t, i, syscall.EBADF, "create_qp", 0, channel, attrAt)
	expect(t, i, syscall.EFAULT, "create_qp", 0, p.pd, 0)
	expect(t, i, syscall.EINVAL, "destroy_qp", must(t, i, "ep_qp", p.active))
	expect(t, i, syscall.EBADF, "destroy_comp_channel", cq)
	expect(t, i, syscall.EBADF, "create_comp_channel", cq)
	put(i, extraAt, QPExtra{
		StructSize: uint32(unsafe.Sizeof(QPExtra{})), CompMask: uint32(rdmacore.QPInitSendOpsFlags),
		SendOpsFlags: uint64(rdmacore.SendOpSend),
	})
	must(t, i, "create_qp_ex", 0, p.pd, attrAt, extraAt)
	// One that uses the CQs of an endpoint's QP keeps them after that.
	send := must(t, i, "ep_send_cq", p.active)
	put(i, attrAt, aloneAttr(send, rdmacore.QPTypeUD))
	qp := must(t, i, "create_qp", 0, p.pd, attrAt)
	must(t, i, "destroy_qp", p.active)
	must(t, i, "poll_cq", send, wcAt, 1)
	must(t, i, "destroy_qp", qp)
	expect(t, i, syscall.EBADF, "poll_cq", send, wcAt, 1)
}

// A guest pays for its channels and queue pairs, and gets no more than its limits.
func TestCompChannelsCost(t *testing.T) {
	i := newInstance(t, 1<<16, Config{Budget: NewBudget(Limits{Files: 2, Handles: 4})})
	channel := must(t, i, "create_comp_channel", 0)
	must(t, i, "create_cq", 0, 1)
	expect(t, i, syscall.EMFILE, "create_comp_channel", 0)
	must(t, i, "create_cq", channel, 1) // which takes no descriptor
	must(t, i, "create_cq", channel, 1)
	expect(t, i, syscall.EMFILE, "create_cq", channel, 1)
}
