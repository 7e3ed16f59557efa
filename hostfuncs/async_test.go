package hostfuncs

import (
	"syscall"
	"testing"
	"unsafe"

	"rdmarun/rdmacore"
)

// trespass has the passive end of a pair raise QP_ACCESS_ERR.
func (p *pair) trespass(t testing.TB) {
	t.Helper()
	i := p.Instance
	must(t, i, "reg_mr", p.pd, bufferAt, 64, 1, mrAt)
	put(i, sgeAt, SGE{Address: bufferAt, Length: 64, LKey: take[MR](i, mrAt).LKey})
	put(i, wrAt, SendWR{
		WRID: 1, Opcode: uint32(rdmacore.OpRDMAWrite), Flags: uint32(rdmacore.SendSignaled), NumSGE: 1, RKey: 1,
	})
	must(t, i, "post_send", must(t, i, "ep_qp", p.active), wrAt, 1, sgeAt, 1, postedAt)
	must(t, i, "wait_cq", must(t, i, "ep_send_cq", p.active), wcAt, 1, timeout)
	if got := rdmacore.WCStatus(take[WC](i, wcAt).Status); got != rdmacore.WCRemAccessErr {
		t.Fatalf("the write ended with %s", got)
	}
}

// async waits for an asynchronous event of an endpoint's device.
func async(t testing.TB, i *Instance, ep uint64, timeout uint64) AsyncEvent {
	t.Helper()
	put(i, asyncAt, AsyncEvent{StructSize: uint32(unsafe.Sizeof(AsyncEvent{}))})
	must(t, i, "wait_async", ep, asyncAt, timeout)
	event := take[AsyncEvent](i, asyncAt)
	event.StructSize = 0
	return event
}

// noAsync wants that no event comes within a timeout.
func noAsync(t testing.TB, i *Instance, timeout uint64) {
	t.Helper()
	put(i, asyncAt, AsyncEvent{StructSize: uint32(unsafe.Sizeof(AsyncEvent{}))})
	expect(t, i, syscall.ETIMEDOUT, "wait_async", 0, asyncAt, timeout)
}

func clocks() map[string][]rdmacore.Option {
	return map[string][]rdmacore.Option{"wall": nil, "virtual": {rdmacore.WithVirtualClock()}}
}

func TestAsyncEventOfAQP(t *testing.T) {
	for name, options := range clocks() {
		t.Run(name, func(t *testing.T) {
			p := connectPair(t, options...)
			i := p.Instance
			noAsync(t, i, 0)
			noAsync(t, i, 1e6)
			p.trespass(t)
			want := AsyncEvent{Type: uint32(rdmacore.AsyncQPAccessErr), QP: Handle(must(t, i, "ep_qp", p.passive))}
			if got := async(t, i, 0, 0); got != want { // it is there already
				t.Errorf("event %+v, want %+v", got, want)
			}
			noAsync(t, i, 0)
		})
	}
}

func TestAsyncEventOfASharedQueue(t *testing.T) {
	for name, options := range clocks() {
		t.Run(name, func(t *testing.T) {
			p := connectIn(t, newInstance(t, 1<<16, Config{}, options...), 4)
			i := p.Instance
			must(t, i, "reg_mr", p.pd, bufferAt, 64, 1, mrAt)
			put(i, sgeAt, SGE{Address: bufferAt, Length: 64, LKey: take[MR](i, mrAt).LKey})
			put(i, wrAt, RecvWR{WRID: 1, NumSGE: 1})
			must(t, i, "post_srq_recv", p.srq, wrAt, 1, sgeAt, 1, postedAt)
			must(t, i, "arm_srq", p.srq, 1)
			put(i, wrAt, SendWR{
				WRID: 2, Opcode: uint32(rdmacore.OpSend), Flags: uint32(rdmacore.SendSignaled), NumSGE: 1,
			})
			must(t, i, "post_send", must(t, i, "ep_qp", p.active), wrAt, 1, sgeAt, 1, postedAt)
			must(t, i, "wait_cq", must(t, i, "ep_recv_cq", p.passive), wcAt, 1, timeout)
			want := AsyncEvent{Type: uint32(rdmacore.AsyncSRQLimitReached), SRQ: Handle(p.srq)}
			if got := async(t, i, p.active, timeout); got != want {
				t.Errorf("event %+v, want %+v", got, want)
			}
		})
	}
}

// A guest that waits does not get the events of another, even if it is the one that reads the device.
func TestAsyncEventsAreTheGuestsOwn(t *testing.T) {
	a := connectPair(t)
	other := instanceOn(t, 1<<16, Config{Provider: a.provider, Serial: 1})
	b := connectIn(t, other, 0)
	put(other, asyncAt, AsyncEvent{StructSize: uint32(unsafe.Sizeof(AsyncEvent{}))})
	ended := make(chan int32, 1)
	go func() { ended <- call(t, other, "wait_async", 0, asyncAt, timeout) }()

	for range 3 { // one after the other, each with a connection of its own
		a.trespass(t)
		event := async(t, a.Instance, 0, timeout)
		if uint64(event.QP) != must(t, a.Instance, "ep_qp", a.passive) {
			t.Errorf("event %+v", event)
		}
		a = connectIn(t, a.Instance, 0)
	}
	// What a leaves unread, b does not get either.
	a.trespass(t)
	other.RequestStop()
	if got := <-ended; got != -int32(syscall.ECANCELED) {
		t.Errorf("the other's wait: %d, event %+v", got, take[AsyncEvent](other, asyncAt))
	}
	noAsync(t, other, 0)

	b.trespass(t)
	want := AsyncEvent{Type: uint32(rdmacore.AsyncQPAccessErr), QP: Handle(must(t, other, "ep_qp", b.passive))}
	if got := async(t, other, 0, 0); got != want {
		t.Errorf("event %+v, want %+v", got, want)
	}
}

// Many guests at once, each with events of its own, however they meet at the device.
func TestAsyncEventsOfManyGuests(t *testing.T) {
	first := newInstance(t, 1<<16, Config{})
	t.Run("guests", func(t *testing.T) {
		for serial := range uint32(8) {
			t.Run("", func(t *testing.T) {
				t.Parallel()
				i := instanceOn(t, 1<<16, Config{Provider: first.provider, Serial: serial})
				for range 20 {
					p := connectIn(t, i, 0)
					p.trespass(t)
					if event := async(t, i, 0, timeout); uint64(event.QP) != must(t, i, "ep_qp", p.passive) {
						t.Errorf("event %+v", event)
					}
				}
			})
		}
	})
	noAsync(t, first, 0)
}

// What a guest has not asked for ends with it.
func TestAsyncEventsGoWithTheGuest(t *testing.T) {
	a := connectPair(t)
	device, err := a.provider.DefaultDevice()
	if err != nil {
		t.Fatal(err)
	}
	b := connectIn(t, instanceOn(t, 1<<16, Config{Provider: a.provider, Serial: 1}), 0)
	b.trespass(t)
	noAsync(t, a.Instance, 0) // reads it, for b
	kept := 0
	count := func(rdmacore.AsyncEvent) bool { kept++; return false }
	if _, err := device.PendingAsyncEvents(count); err != nil || kept != 1 {
		t.Errorf("%d events are kept, %v", kept, err)
	}
	if _, err := b.Close(); err != nil {
		t.Error(err)
	}
	kept = 0
	if _, err := device.PendingAsyncEvents(count); err != nil || kept != 0 {
		t.Errorf("%d events are left, %v", kept, err)
	}
}

// The device reports its own event once, to one that asks.
func TestAsyncEventOfTheDevice(t *testing.T) {
	a := connectPair(t)
	b := connectIn(t, instanceOn(t, 1<<16, Config{Provider: a.provider, Serial: 1}), 0)
	removed, err := a.provider.Fault(rdmacore.Fault{Action: rdmacore.FaultRemoveDevice})
	if err != nil {
		t.Fatal(err)
	}
	put(b.Instance, asyncAt, AsyncEvent{StructSize: uint32(unsafe.Sizeof(AsyncEvent{}))})
	expect(t, b.Instance, syscall.ENODEV, "wait_async", 0, asyncAt, 0) // there is no default device now
	if got, want := async(t, a.Instance, a.active, timeout),
		(AsyncEvent{Type: uint32(rdmacore.AsyncDeviceFatal)}); got != want {
		t.Errorf("event %+v, want %+v", got, want)
	}
	expect(t, b.Instance, syscall.ETIMEDOUT, "wait_async", b.active, asyncAt, 0)
	if _, err := removed.Heal(); err != nil {
		t.Error(err)
	}
}

func TestAsyncArguments(t *testing.T) {
	p := connectPair(t)
	i := p.Instance
	p.trespass(t)
	put(i, asyncAt, AsyncEvent{StructSize: 4})
	expect(t, i, syscall.EINVAL, "wait_async", 0, asyncAt, 0)
	expect(t, i, syscall.EFAULT, "wait_async", 0, 1<<31, 0)
	expect(t, i, syscall.EFAULT, "wait_async", 0, 0, 0)
	put(i, 1<<16-8, uint32(unsafe.Sizeof(AsyncEvent{}))) // and no room for it
	expect(t, i, syscall.EFAULT, "wait_async", 0, 1<<16-8, 0)
	put(i, asyncAt, AsyncEvent{StructSize: uint32(unsafe.Sizeof(AsyncEvent{}))})
	expect(t, i, syscall.EBADF, "wait_async", p.pd, asyncAt, 0)
	if got := async(t, i, p.passive, 0); got.QP == 0 { // none of those took it
		t.Errorf("event %+v", got)
	}
}

func TestQueryPort(t *testing.T) {
	p := connectPair(t)
	i := p.Instance
	for _, ep := range []uint64{0, p.active} {
		put(i, portAt, PortAttr{StructSize: uint32(unsafe.Sizeof(PortAttr{}))})
		must(t, i, "query_port", ep, 1, portAt)
		got := take[PortAttr](i, portAt)
		if rdmacore.PortState(got.State) != rdmacore.PortActive ||
			rdmacore.LinkLayer(got.LinkLayer) != rdmacore.LinkLayerEthernet ||
			got.ActiveMTU != 4096 || got.MaxMTU != 4096 || got.GIDs == 0 || got.MaxMsgSize == 0 || got.Rate < 1000 {
			t.Errorf("port %+v", got)
		}
	}
	for _, number := range []uint64{0, 2, 257, 1 << 31} {
		expect(t, i, syscall.EINVAL, "query_port", 0, number, portAt)
	}
	expect(t, i, syscall.EBADF, "query_port", p.pd, 1, portAt)
	expect(t, i, syscall.EFAULT, "query_port", 0, 1, 1<<31)
}
