package hostfuncs

import (
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"rdmarun/rdmacore"
)

func TestResizeAndNotifyOfACQ(t *testing.T) {
	p := connectPair(t)
	i := p.Instance
	own := must(t, i, "create_cq", 0, 2)
	must(t, i, "resize_cq", own, 64)
	expect(t, i, syscall.EINVAL, "resize_cq", own, 0)
	expect(t, i, syscall.EINVAL, "resize_cq", own, 0xffffffff)
	must(t, i, "moderate_cq", own, 65535, 65535)
	must(t, i, "moderate_cq", own, 0, 0)
	expect(t, i, syscall.EINVAL, "moderate_cq", own, 65536, 1)
	expect(t, i, syscall.EINVAL, "moderate_cq", own, 1, 65536)
	must(t, i, "destroy_cq", own)

	cq, qp := must(t, i, "ep_send_cq", p.active), must(t, i, "ep_qp", p.active)
	must(t, i, "req_notify", cq, 0)
	expect(t, i, syscall.ETIMEDOUT, "wait_cq_event", cq, 0)
	must(t, i, "reg_mr", p.pd, bufferAt, 64, 1, mrAt)
	put(i, sgeAt, SGE{Address: bufferAt, Length: 8, LKey: take[MR](i, mrAt).LKey})
	put(i, wrAt, RecvWR{WRID: 1, NumSGE: 1})
	must(t, i, "post_recv", must(t, i, "ep_qp", p.passive), wrAt, 1, sgeAt, 1, postedAt)
	put(i, wrAt, SendWR{WRID: 2, Opcode: uint32(rdmacore.OpSend), Flags: uint32(rdmacore.SendSignaled), NumSGE: 1})
	must(t, i, "post_send", qp, wrAt, 1, sgeAt, 1, postedAt)
	must(t, i, "wait_cq_event", cq, timeout)
	if n := must(t, i, "poll_cq", cq, wcAt, 1); n != 1 || take[WC](i, wcAt).WRID != 2 {
		t.Errorf("%d completions, %+v", n, take[WC](i, wcAt))
	}
	// One event for one request: nothing more is reported.
	expect(t, i, syscall.ETIMEDOUT, "wait_cq_event", cq, 0)
	for name, words := range map[string][]uint64{
		"resize_cq": {own, 8}, "moderate_cq": {own, 1, 1}, "req_notify": {own, 0}, "wait_cq_event": {own, timeout},
	} {
		expect(t, i, syscall.EBADF, name, words...)
		words[0] = qp // of another kind
		expect(t, i, syscall.EBADF, name, words...)
		words[0] = 0
		expect(t, i, syscall.EBADF, name, words...)
	}
}

func TestGroupsOfAQP(t *testing.T) {
	i := newInstance(t, 1<<16, Config{})
	channel, pd := must(t, i, "create_event_channel"), must(t, i, "alloc_pd", 0)
	id := must(t, i, "create_id", channel, uint64(rdmacore.PortSpaceUDP), 0)
	must(t, i, "device_address", 0, infoAt)
	must(t, i, "bind_addr", id, infoAt)
	put(i, attrAt, QPInitAttr{
		StructSize: uint32(unsafe.Sizeof(QPInitAttr{})), MaxSendWR: 1, MaxRecvWR: 1, MaxSendSGE: 1,
		MaxRecvSGE: 1, Type: uint32(rdmacore.QPTypeUD)})
	qp := must(t, i, "create_qp", id, pd, attrAt)
	group := take[Address](i, infoAt)
	expect(t, i, syscall.EINVAL, "attach_mcast", qp, infoAt, 0) // no group's address
	group.IP = [16]byte{239, 1, 2, 3}
	put(i, infoAt, group)
	must(t, i, "attach_mcast", qp, infoAt, 0)
	must(t, i, "detach_mcast", qp, infoAt, 0)
	expect(t, i, syscall.EINVAL, "detach_mcast", qp, infoAt, 0)
	expect(t, i, syscall.EINVAL, "attach_mcast", qp, infoAt, 1<<16)
	expect(t, i, syscall.EFAULT, "attach_mcast", qp, 1<<31, 0)
	expect(t, i, syscall.EBADF, "attach_mcast", pd, infoAt, 0)
	must(t, i, "destroy_qp", id)
	expect(t, i, syscall.EBADF, "attach_mcast", qp, infoAt, 0)
	expect(t, i, syscall.EBADF, "detach_mcast", qp, infoAt, 0)
}

func TestModifyAQP(t *testing.T) {
	p := connectPair(t)
	i := p.Instance
	qp := must(t, i, "ep_qp", p.active)
	put(i, attrAt, QPAttr{StructSize: uint32(unsafe.Sizeof(QPAttr{}))})
	must(t, i, "query_qp", qp, attrAt)
	was := take[QPAttr](i, attrAt)
	if rdmacore.QPState(was.State) != rdmacore.QPStateRTS || was.Timeout == 0 || was.AH.IsGlobal != 1 ||
		was.PortNum != 1 {
		t.Errorf("attributes %+v", was)
	}
	was.MinRNRTimer = 12
	put(i, attrAt, was)
	must(t, i, "modify_qp", qp, attrAt, uint64(rdmacore.QPAttrMinRNRTimer))
	must(t, i, "query_qp", qp, attrAt)
	if got := take[QPAttr](i, attrAt).MinRNRTimer; got != 12 {
		t.Errorf("the RNR timer is %d", got)
	}
	// A number that its place cannot hold, a transition that there is not, memory that there is not.
	expect(t, i, syscall.EINVAL, "modify_qp", qp, attrAt, uint64(rdmacore.QPAttrTimeout))
	was.MinRNRTimer = 256
	put(i, attrAt, was)
	expect(t, i, syscall.EINVAL, "modify_qp", qp, attrAt, uint64(rdmacore.QPAttrMinRNRTimer))
	expect(t, i, syscall.EFAULT, "modify_qp", qp, 1<<31, 0)
	// A guest that knows the struct of 1.0.
	old := was
	old.StructSize, old.State = uint32(unsafe.Offsetof(QPAttr{}.CurState)), uint32(rdmacore.QPStateErr)
	put(i, attrAt, old)
	must(t, i, "modify_qp", qp, attrAt, uint64(rdmacore.QPAttrState))
	put(i, attrAt, QPAttr{StructSize: uint32(unsafe.Sizeof(QPAttr{}))})
	must(t, i, "query_qp", qp, attrAt)
	if got := rdmacore.QPState(take[QPAttr](i, attrAt).State); got != rdmacore.QPStateErr {
		t.Errorf("the state is %s", got)
	}
	expect(t, i, syscall.EBADF, "modify_qp", p.active, attrAt, 0)
	must(t, i, "destroy_ep", p.active)
	expect(t, i, syscall.EBADF, "modify_qp", qp, attrAt, 0)
}

func TestQueryDeviceAndRoute(t *testing.T) {
	p := connectPair(t)
	i := p.Instance
	put(i, attrAt, DeviceAttr{StructSize: uint32(unsafe.Sizeof(DeviceAttr{}))})
	for _, ep := range []uint64{0, p.active} {
		must(t, i, "query_device", ep, attrAt)
		attr := take[DeviceAttr](i, attrAt)
		name, _, _ := strings.Cut(string(attr.Name[:]), "\x00")
		if name == "" || attr.MaxQP == 0 || attr.MaxQPRdAtom == 0 || attr.NodeGUID == 0 {
			t.Errorf("device %q, %+v", name, attr)
		}
	}
	expect(t, i, syscall.EBADF, "query_device", p.pd, attrAt)
	expect(t, i, syscall.EFAULT, "query_device", 0, 1<<31)
	n := must(t, i, "query_route", p.active, bufferAt, 256)
	if n == 0 {
		t.Error("the route has no bytes")
	}
	expect(t, i, syscall.ENOSPC, "query_route", p.active, bufferAt, n-1)
	expect(t, i, syscall.ENOENT, "query_route", p.listener, bufferAt, 256)
	expect(t, i, syscall.EFAULT, "query_route", p.active, 1<<31, 256)
	must(t, i, "destroy_ep", p.active)
	expect(t, i, syscall.EBADF, "query_route", p.active, bufferAt, 256)
	expect(t, i, syscall.EBADF, "query_device", p.active, attrAt)
}
