//go:build wasip1

package main

import (
	"errors"
	"fmt"
	"net/netip"
	"time"
	"unsafe"

	"rdmarun/sdk/rdma"
)

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func mustDo(err error) { must(0, err) }

// functions uses the SDK's functions other than those of connections and their queues.
func functions([]string) error {
	own, pd := must(rdma.DeviceAddress()), must(rdma.AllocPD(nil))
	sharedQueue(own, pd)
	datagrams(own, pd)
	keys(own, pd)
	fmt.Println("all of them")
	return nil
}

func one(cq *rdma.CQ) rdma.WC {
	var wcs [1]rdma.WC
	must(cq.Wait(wcs[:], rdma.Forever))
	mustDo(wcs[0].Err())
	return wcs[0]
}

// sharedQueue receives by a shared receive queue, and gets the event that it runs empty.
func sharedQueue(own netip.Addr, pd *rdma.PD) {
	srq := must(pd.CreateSRQ(rdma.SRQAttr{MaxWR: 4, MaxSGE: 1}))
	mustDo(srq.Resize(8))
	buffer := must(pd.NewBuffer(64, rdma.AccessLocalWrite))
	must(srq.PostRecv([]rdma.RecvWR{{NumSGE: 1}, {NumSGE: 1}}, []rdma.SGE{buffer.SGE(0, 32)}))
	mustDo(srq.Arm(2))
	if attr := must(srq.Query()); attr.MaxWR < 8 || attr.Limit != 2 {
		panic(fmt.Sprintf("%+v", attr))
	}
	channel := must(rdma.CreateEventChannel())
	attr := &rdma.QPInitAttr{MaxSendWR: 1, MaxRecvWR: 1, MaxSendSGE: 1, MaxRecvSGE: 1, SQSigAll: 1}
	shared := *attr
	shared.SRQ = srq.Handle
	client, server := must2(connect(own, channel, pd, attr, &shared))
	must(client.QP.PostSend([]rdma.SendWR{{Opcode: rdma.OpSend, NumSGE: 1}}, []rdma.SGE{buffer.SGE(32, 32)}))
	one(client.SendCQ)
	one(server.RecvCQ)
	if event := must(rdma.WaitAsync(rdma.Forever)); event.SRQ != srq.Handle {
		panic(fmt.Sprintf("%+v", event))
	}
	if from, to := must(client.SrcPort()), must(client.DstPort()); from == 0 || to == 0 || from == to {
		panic(fmt.Sprint(from, to))
	}
	if _, mask, err := client.InitQPAttr(rdma.QPStateRTR); err != nil || mask == 0 {
		panic(fmt.Sprint(mask, err))
	}
	must(0, client.SendCQ.Moderate(1, time.Microsecond))
	if _, err := client.QueryRoute(); err != nil {
		panic(err)
	}
	mustDo(client.Destroy())
	mustDo(server.Destroy())
	mustDo(srq.Destroy())
}

func must2[A, B any](a A, b B, err error) (A, B) {
	mustDo(err)
	return a, b
}

// datagrams sends one to a QP, and its answer by the address handle of its completion.
func datagrams(own netip.Addr, pd *rdma.PD) {
	channel := must(rdma.CreateEventChannel())
	attr := &rdma.QPInitAttr{Type: rdma.QPTypeUD, MaxSendWR: 2, MaxRecvWR: 2, MaxSendSGE: 1, MaxRecvSGE: 1, SQSigAll: 1}
	bound := func() *rdma.EP {
		ep := must(channel.CreateID(rdma.PortSpaceUDP))
		mustDo(ep.Bind(netip.AddrPortFrom(own, 0)))
		mustDo(ep.CreateQP(pd, attr))
		return ep
	}
	asks, answers := bound(), bound()
	buffer := must(pd.NewBuffer(256, rdma.AccessLocalWrite))
	for at, ep := range []*rdma.EP{asks, answers} {
		must(ep.QP.PostRecv([]rdma.RecvWR{{NumSGE: 1}}, []rdma.SGE{buffer.SGE(64*at, 64)}))
	}
	device := answers.Device()
	gid := must(device.QueryGID(1, 0))
	ah := must(pd.CreateAH(rdma.AHAttr{IsGlobal: 1, DGID: gid.GID, PortNum: 1, HopLimit: 1}))
	must(asks.QP.PostSend([]rdma.SendWR{{Opcode: rdma.OpSend, NumSGE: 1, AH: ah.Number, RemoteQPN: must(answers.QP.Query()).QPNum,
		RemoteQKey: rdma.UDPQKey}}, []rdma.SGE{buffer.SGE(128, 8)}))
	wc := one(answers.RecvCQ)
	received := buffer.Bytes[64:128]
	back := must(pd.CreateAHFromWC(wc, received))
	if again := must(device.InitAHFromWC(wc, received)); again.PortNum != 1 {
		panic(fmt.Sprintf("%+v", again))
	}
	if _, err := pd.CreateAHFromWC(wc, received[:rdma.GRHSize-1]); !errors.Is(err, rdma.EINVAL) {
		panic(err)
	}
	must(answers.QP.PostSend([]rdma.SendWR{{Opcode: rdma.OpSend, NumSGE: 1, AH: back.Number, RemoteQPN: wc.SrcQP,
		RemoteQKey: rdma.UDPQKey}}, []rdma.SGE{buffer.SGE(128, 8)}))
	one(asks.RecvCQ)
	mustDo(ah.Destroy())
	mustDo(back.Destroy())
	group := netip.MustParseAddr("239.1.2.3")
	mustDo(answers.QP.AttachMcast(group, 0))
	mustDo(answers.QP.DetachMcast(group, 0))
	mustDo(asks.WriteEvent(0, 7))
	if event := must(asks.Expect(rdma.EventUser, rdma.Forever)); event.Arg != 7 {
		panic(fmt.Sprintf("%+v", event))
	}
	if index := must(device.PKeyIndex(1, must(device.QueryPKey(1, 0)))); index != 0 {
		panic(index)
	}
}

// keys writes to memory of a key, a window and another address.
func keys(own netip.Addr, pd *rdma.PD) {
	channel := must(rdma.CreateEventChannel())
	attr := &rdma.QPInitAttr{MaxSendWR: 2, MaxRecvWR: 1, MaxSendSGE: 1, MaxRecvSGE: 1, SQSigAll: 1}
	client, server := must2(connect(own, channel, pd, attr, attr))
	source := must(pd.NewBuffer(8, rdma.AccessLocalWrite))
	copy(source.Bytes, "new text")
	open := rdma.AccessLocalWrite | rdma.AccessRemoteWrite
	write := func(address uint64, rkey uint32) {
		must(client.QP.PostSend([]rdma.SendWR{{Opcode: rdma.OpRDMAWrite, NumSGE: 1, RemoteAddress: address, RKey: rkey}},
			[]rdma.SGE{source.SGE(0, 8)}))
		one(client.SendCQ)
	}
	// Devices want the same offset in a page as that of the memory.
	memory := make([]byte, 8)
	iova := uint64(1<<40 | uintptr(unsafe.Pointer(&memory[0]))%4096)
	renamed := must(pd.RegMRIova(memory, iova, open))
	write(iova, renamed.RKey)

	moved := must(pd.NewBuffer(8, open))
	mustDo(moved.Rereg(rdma.MRChange{Flags: rdma.ReregTranslation}, make([]byte, 16)))
	write(moved.Address+8, moved.RKey)

	behind := must(pd.NewBuffer(8, rdma.AccessLocalWrite|rdma.AccessMWBind))
	window := must(pd.AllocMW(1))
	bind := &rdma.MWBind{WRID: 1, Address: behind.Address, Length: 8, MR: behind.Handle, Access: rdma.AccessRemoteWrite, Flags: rdma.SendSignaled}
	mustDo(server.QP.BindMW(window, bind))
	one(server.SendCQ)
	write(behind.Address, bind.RKey)
	mustDo(window.Dealloc())
	if got := string(renamed.Bytes) + string(moved.Bytes[8:]) + string(behind.Bytes); got != "new textnew textnew text" {
		panic(got)
	}
	if _, err := server.RemoteECE(); !errors.Is(err, rdma.EINVAL) {
		panic(err)
	}
}
