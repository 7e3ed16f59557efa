package rdmacore

import (
	"context"
	"syscall"
	"testing"
	"time"
)

// alone is a queue pair without an id, with what it takes.
type alone struct {
	channel *CompChannel
	pd      *PD
	cq      *CQ
	mr      *MR
	memory  *Memory
	qp      *QP
}

func newAlone(t *testing.T, device *Device, channel *CompChannel, kind QPType) *alone {
	t.Helper()
	a := &alone{channel: channel}
	var err error
	a.pd, err = device.AllocPD()
	must(t, err)
	a.cq, err = channel.CreateCQ(16)
	must(t, err)
	a.memory, err = NewMemory(4096)
	must(t, err)
	a.mr, err = a.pd.RegMR(a.memory, 0, 4096, AccessLocalWrite|AccessRemoteWrite)
	must(t, err)
	a.qp, err = a.pd.CreateQP(QPInitAttr{Type: kind, MaxSendWR: 4, MaxRecvWR: 4, MaxSendSGE: 1, MaxRecvSGE: 1,
		SendCQ: a.cq, RecvCQ: a.cq})
	must(t, err)
	return a
}

// connect brings the queue pair to RTS with the other as its peer.
func (a *alone) connect(t *testing.T, to *alone, kind QPType, gid GID) {
	t.Helper()
	must(t, a.qp.Modify(QPAttr{State: QPStateInit, PortNum: 1, AccessFlags: AccessRemoteWrite},
		QPAttrState|QPAttrPkeyIndex|QPAttrPort|QPAttrAccessFlags))
	ready := QPAttr{State: QPStateRTR, PathMTU: 1024, DestQPNum: to.qp.Num(), RQPSN: 7, MaxDestRdAtomic: 1,
		MinRNRTimer: 12,
		AH:          AHAttr{IsGlobal: true, DGID: gid.Raw, SGIDIndex: uint8(gid.Index), HopLimit: 1, PortNum: 1}}
	mask := QPAttrState | QPAttrAV | QPAttrPathMTU | QPAttrDestQPN | QPAttrRQPSN
	send := QPAttr{State: QPStateRTS, SQPSN: 7, Timeout: 14, RetryCnt: 7, RNRRetry: 7, MaxRdAtomic: 1}
	sendMask := QPAttrState | QPAttrSQPSN
	if kind == QPTypeRC {
		mask |= QPAttrMaxDestRdAtomic | QPAttrMinRNRTimer
		sendMask |= QPAttrTimeout | QPAttrRetryCnt | QPAttrRNRRetry | QPAttrMaxQPRdAtomic
	}
	must(t, a.qp.Modify(ready, mask))
	must(t, a.qp.Modify(send, sendMask))
}

func (a *alone) destroy(t *testing.T) {
	t.Helper()
	refused(t, a.pd.Dealloc(), syscall.EBUSY)
	refused(t, a.cq.Destroy(), syscall.EBUSY)
	refused(t, a.channel.Destroy(), syscall.EBUSY)
	must(t, a.qp.Destroy())
	refused(t, a.qp.Destroy(), syscall.EBADF)
	must(t, a.mr.Dereg())
	must(t, a.cq.Destroy())
	must(t, a.pd.Dealloc())
	a.memory.Release()
}

// Two queue pairs without ids, with CQs that share a channel: an event of it has its CQ.
func TestQPsWithoutIDs(t *testing.T) {
	for _, kind := range []QPType{QPTypeRC, QPTypeUC} {
		t.Run(kind.String(), func(t *testing.T) {
			p := opened(t)
			device, err := p.DefaultDevice()
			must(t, err)
			ports, err := device.Ports()
			must(t, err)
			channel, err := device.CreateCompChannel()
			must(t, err)
			one, other := newAlone(t, device, channel, kind), newAlone(t, device, channel, kind)
			gid := ports[0].GIDs[len(ports[0].GIDs)-1]
			one.connect(t, other, kind, gid)
			other.connect(t, one, kind, gid)
			must(t, one.cq.RequestNotify(false))
			must(t, other.cq.RequestNotify(false))
			_, err = other.qp.PostRecv([]RecvWR{{WRID: 1, NumSGE: 1}}, []SGE{{
				Address: other.mr.Address(), Length: 64, LKey: other.mr.LKey(),
			}})
			must(t, err)
			_, err = one.qp.PostSend(
				[]SendWR{{WRID: 2, Opcode: OpSend, Flags: SendSignaled, NumSGE: 1}},
				[]SGE{{Address: one.mr.Address(), Length: 8, LKey: one.mr.LKey()}},
			)
			must(t, err)
			seen := make(map[*CQ]bool)
			for range 2 {
				cq, err := channel.GetCQEvent(bounded(t))
				must(t, err)
				seen[cq] = true
			}
			if !seen[one.cq] || !seen[other.cq] {
				t.Errorf("events of %d CQs", len(seen))
			}
			completion(t, one.cq, 2, WCSuccess)
			completion(t, other.cq, 1, WCSuccess)
			ended, cancel := context.WithCancel(context.Background())
			cancel()
			if _, err := channel.GetCQEvent(ended); err == nil {
				t.Error("an event that was not asked for")
			}
			one.destroy(t)
			must(t, other.qp.Destroy())
			must(t, other.mr.Dereg())
			must(t, other.cq.Destroy())
			must(t, other.pd.Dealloc())
			other.memory.Release()
			must(t, channel.Destroy())
			refused(t, channel.Destroy(), syscall.EBADF)
		})
	}
}

// What ibv_create_qp would crash of, or take and break later.
func TestQPsWithoutIDsRefuse(t *testing.T) {
	p := opened(t)
	device, err := p.DefaultDevice()
	must(t, err)
	channel, err := device.CreateCompChannel()
	must(t, err)
	a := newAlone(t, device, channel, QPTypeRC)
	good := QPInitAttr{
		Type: QPTypeRC, MaxSendWR: 1, MaxRecvWR: 1, MaxSendSGE: 1, MaxRecvSGE: 1, SendCQ: a.cq, RecvCQ: a.cq,
	}
	for name, spoil := range map[string]func(*QPInitAttr){
		"no send CQ": func(attr *QPInitAttr) { attr.SendCQ = nil },
		"no recv CQ": func(attr *QPInitAttr) { attr.RecvCQ = nil },
		"no type":    func(attr *QPInitAttr) { attr.Type = 0 },
	} {
		bad := good
		spoil(&bad)
		if _, err := a.pd.CreateQP(bad); err == nil {
			t.Errorf("%s: no error", name)
		} else {
			refused(t, err, syscall.EINVAL)
		}
	}
	built, err := a.pd.CreateQP(func() QPInitAttr { attr := good; attr.SendOps = SendOpSend; return attr }())
	must(t, err)
	must(t, built.Destroy())
	server, client := newSide(t, p), newSide(t, p)
	listener := listen(t, server, &usualQP)
	request(t, client, listener, usualQP, &usualParam)
	refused(t, client.id.QP().Destroy(), syscall.EINVAL)
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	if _, err := channel.GetCQEvent(ctx); err == nil {
		t.Error("an event of no object")
	}
	must(t, a.qp.Destroy())
	must(t, a.mr.Dereg())
	must(t, a.cq.Destroy())
	must(t, a.pd.Dealloc())
	a.memory.Release()
	must(t, channel.Destroy())
}
