package hostfuncs

import (
	"syscall"
	"testing"
	"unsafe"

	"rdmarun/rdmacore"
)

// twoOnOneCQ makes an endpoint with CQs of its own and another one that uses its send CQ for all it does.
func twoOnOneCQ(t *testing.T, i *Instance) (first, second, cq uint64) {
	t.Helper()
	p := connectIn(t, i, 0)
	first = must(t, i, "create_ep", p.channel, infoAt, p.pd, attrAt)
	cq = must(t, i, "ep_send_cq", first)
	attr := take[QPInitAttr](i, attrAt)
	attr.SendCQ, attr.RecvCQ = Handle(cq), Handle(cq)
	put(i, attrAt, attr)
	return first, must(t, i, "create_ep", p.channel, infoAt, p.pd, attrAt), cq
}

// A CQ that was made with a QP and serves another one, too, goes with the last of them, and so does its handle.
func TestCQGoesWithItsLastQP(t *testing.T) {
	for name, destroy := range map[string]string{"destroy_ep": "destroy_ep", "destroy_qp": "destroy_qp"} {
		t.Run(name, func(t *testing.T) {
			i := newInstance(t, 1<<16, Config{})
			first, second, cq := twoOnOneCQ(t, i)
			before := i.provider.Live()[rdmacore.KindCQ]
			must(t, i, destroy, first)
			if after := i.provider.Live()[rdmacore.KindCQ]; after != before-1 {
				t.Errorf("%d CQs of %d are left; the receive CQ has gone, the send CQ is in use", after, before)
			}
			if got := must(t, i, "ep_send_cq", second); got != cq {
				t.Errorf("the second endpoint's CQ is %#x, not %#x", got, cq)
			}
			must(t, i, "poll_cq", cq, wcAt, 1)
			must(t, i, "resize_cq", cq, 32)
			expect(t, i, syscall.EINVAL, "destroy_cq", cq)
			must(t, i, destroy, second)
			expect(t, i, syscall.EBADF, "poll_cq", cq, wcAt, 1)
			if after := i.provider.Live()[rdmacore.KindCQ]; after != before-2 {
				t.Errorf("%d CQs of %d are left behind the last QP", after, before)
			}
		})
	}
}

// The same at the guest's end, in which the first endpoint goes first; newInstance finds what is left.
func TestCloseFreesSharedCQs(t *testing.T) {
	i := newInstance(t, 1<<16, Config{})
	_, second, cq := twoOnOneCQ(t, i)
	// And the other way round: a CQ of the second serves a third, and the guest's own CQ both.
	attr := take[QPInitAttr](i, attrAt)
	attr.SendCQ, attr.RecvCQ = Handle(must(t, i, "create_cq", 0, 8)), Handle(cq)
	put(i, attrAt, attr)
	must(t, i, "destroy_qp", second)
	pd := uint64(i.pds.find(first(&i.pds)))
	must(t, i, "create_qp", second, pd, attrAt)
	if _, err := i.Close(); err != nil {
		t.Error(err)
	}
	if used := i.budget.Used(); used != (Cost{}) {
		t.Errorf("still charged: %+v", used)
	}
}

func first[T comparable](table *handleTable[T]) (object T) {
	table.all(func(_ Handle, each T) bool {
		object = each
		return false
	})
	return object
}

// An unread request keeps nothing of what its endpoint would use.
func TestCloseWithUnreadRequestOfASharedQueue(t *testing.T) {
	for name, read := range map[string]bool{"on the channel": false, "in the host": true} {
		t.Run(name, func(t *testing.T) {
			i := newInstance(t, 1<<16, Config{})
			p := connectIn(t, i, 8)
			client := must(t, i, "create_ep", p.channel, infoAt, p.pd, attrAt)
			must(t, i, "connect", client, 0)
			if read { // asking for another event has the host read the request
				put(i, eventAt, CMEvent{StructSize: uint32(unsafe.Sizeof(CMEvent{}))})
				expect(t, i, syscall.ETIMEDOUT, "wait_event", p.channel, p.passive, eventAt, 0)
			}
			if _, err := i.Close(); err != nil {
				t.Error(err)
			}
			if live := i.provider.Live(); live.Total() != 0 {
				t.Errorf("left behind: %s", live)
			}
		})
	}
}

// A QP that is attached to a group leaves it before it is destroyed: otherwise the group would keep the device.
func TestDestroyedQPLeavesItsGroups(t *testing.T) {
	i := newInstance(t, 1<<16, Config{})
	channel, pd := must(t, i, "create_event_channel"), must(t, i, "alloc_pd", 0)
	must(t, i, "device_address", 0, addressAt)
	put(i, attrAt, QPInitAttr{
		StructSize: uint32(unsafe.Sizeof(QPInitAttr{})), MaxSendWR: 1, MaxRecvWR: 1, MaxSendSGE: 1, MaxRecvSGE: 1,
	})
	ep := must(t, i, "create_id", channel, uint64(rdmacore.PortSpaceUDP))
	must(t, i, "bind_addr", ep, addressAt)
	qp := must(t, i, "create_qp", ep, pd, attrAt)
	for _, last := range []byte{1, 2} {
		put(i, addressAt, Address{Family: familyIPv4, IP: [16]byte{239, 1, 2, last}})
		must(t, i, "attach_mcast", qp, addressAt, 0)
	}
	must(t, i, "destroy_qp", ep)
	must(t, i, "dealloc_pd", pd) // which the QP no longer uses
	expect(t, i, syscall.EBADF, "detach_mcast", qp, addressAt, 0)
}

// The status of an event, which a peer can choose, is not the result of a call.
func TestStatusOfAnEventIsNoResult(t *testing.T) {
	for _, status := range []int32{-1000, -412, -4095, -524, 1 << 20} {
		i := newInstance(t, 1<<16, Config{})
		_, active, _ := syncPair(t, i)
		must(t, i, "destroy_ep", active)
		again := must(t, i, "create_ep", 0, infoAt, uint64(i.pds.find(first(&i.pds))), attrAt)
		must(t, i, "connect", again, 0) // no peer answers
		if call(t, i, "write_event", again, number(status), 0) == -int32(syscall.ENOSYS) {
			t.Skip("rdma-core is older than 60")
		}
		if got := call(t, i, "complete", again, timeout); got >= 0 || !documented(syscall.Errno(-got)) {
			t.Errorf("complete after an event of status %d is %d", status, got)
		}
	}
}
