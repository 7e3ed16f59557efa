package rdmacore

import (
	"errors"
	"net/netip"
	"syscall"
	"testing"
	"time"
)

var loopback = netip.AddrFrom4([4]byte{127, 0, 0, 1})

func fault(t *testing.T, p *Provider, f Fault) *FaultRule {
	t.Helper()
	f.From, f.To = loopback, loopback
	rule, err := p.Fault(f)
	must(t, err)
	return rule
}

func status(t *testing.T, cq *CQ) WCStatus {
	t.Helper()
	wcs := make([]WC, 1)
	_, err := cq.Wait(bounded(t), wcs)
	must(t, err)
	return wcs[0].Status
}

// A cut link: the requests are repeated for as long as the timeout and the retries say, then given up.
func TestFaultCutLink(t *testing.T) {
	p, client, server := virtualPair(t, 7)
	cut := fault(t, p, Fault{Data: true})
	began := p.Clock().Now()
	client.send(t, SendWR{WRID: 1, Opcode: OpSend, Flags: SendSignaled}, 0, 64)
	client.send(t, SendWR{WRID: 2, Opcode: OpSend, Flags: SendSignaled}, 0, 64)
	if got := status(t, client.id.SendCQ()); got != WCRetryExcErr {
		t.Errorf("the first ended with %s", got)
	}
	if got := status(t, client.id.SendCQ()); got != WCWRFlushErr {
		t.Errorf("the second ended with %s", got)
	}
	// 4.096 us * 2^19 for the first try and each of the 7 retries.
	if took, want := p.Clock().Now()-began, 8*4096*(1<<19)*time.Nanosecond; took != want {
		t.Errorf("gave up after %s, want %s", took, want)
	}
	lost, err := cut.Heal()
	must(t, err)
	if lost != 8*2 {
		t.Errorf("%d packets were lost, want two in each of 8 tries", lost)
	}
	if state, err := server.id.QP().Query(); err != nil || state.State != QPStateRTS {
		t.Errorf("the server's QP is in %s, %v", state.State, err)
	}
}

// What is lost once is repeated, whether it is the request or its acknowledgement, and executed once.
func TestFaultLostOnceIsRepeated(t *testing.T) {
	for name, skip := range map[string]int{"request": 0, "acknowledgement": 1} {
		t.Run(name, func(t *testing.T) {
			p, client, server := virtualPair(t, 7)
			server.recv(t, 1, 0, 64)
			server.recv(t, 2, 64, 64)
			rule := fault(t, p, Fault{Data: true, Skip: skip, Count: 1})
			client.send(t, SendWR{WRID: 1, Opcode: OpSend, Flags: SendSignaled}, 0, 64)
			if got := status(t, client.id.SendCQ()); got != WCSuccess {
				t.Errorf("ended with %s", got)
			}
			if got := status(t, server.id.RecvCQ()); got != WCSuccess {
				t.Errorf("received with %s", got)
			}
			if n, err := server.id.RecvCQ().Poll(make([]WC, 1)); n != 0 || err != nil {
				t.Errorf("received twice: %d, %v", n, err)
			}
			if lost, err := rule.Heal(); lost != 1 || err != nil {
				t.Errorf("lost %d, %v", lost, err)
			}
		})
	}
}

// Random losses, a tenth of all packets, both ways: everything arrives once and in order.
func TestFaultRandomLosses(t *testing.T) {
	p, client, server := virtualPair(t, 7)
	fault(t, p, Fault{Data: true, Probability: 0.1})
	for n := range uint64(200) {
		server.recv(t, n, 0, 8)
		client.bytes(0, 8)[0] = byte(n)
		client.send(t, SendWR{WRID: n, Opcode: OpSend, Flags: SendSignaled}, 0, 8)
		if got := status(t, client.id.SendCQ()); got != WCSuccess {
			t.Fatalf("message %d ended with %s", n, got)
		}
		wcs := make([]WC, 2)
		if got, err := server.id.RecvCQ().Poll(wcs); got != 1 || err != nil || wcs[0].WRID != n ||
			server.bytes(0, 8)[0] != byte(n) {
			t.Fatalf("message %d: %d completions, %v, %+v", n, got, err, wcs[0])
		}
	}
}

// A lost message of the connection manager is sent again after the response timeout of Linux. That of the active side
// includes the time there and back, and that of the passive side does not. After REP the active side has asked for
// time (MRA).
func TestFaultLostMessages(t *testing.T) {
	for name, test := range map[string]struct {
		message CMMessage
		want    time.Duration
	}{
		"REQ": {MessageREQ, 6144 * time.Millisecond},
		"REP": {MessageREP, 4096 * time.Millisecond},
		"RTU": {MessageRTU, 67584 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			p := openVirtual(t, 2)
			server, client := newSide(t, p), newSide(t, p)
			listener := listen(t, server, &usualQP)
			rule := fault(t, p, Fault{CM: true, Message: test.message, Count: 1})
			began := p.Clock().Now()
			request(t, client, listener, usualQP, &usualParam)
			server.id = expect(t, listener, EventConnectRequest, 0).ID
			must(t, server.id.Accept(&usualParam))
			expect(t, client.id, EventEstablished, 0)
			expect(t, server.id, EventEstablished, 0)
			if took := p.Clock().Now() - began; took != test.want {
				t.Errorf("established after %s, want %s", took, test.want)
			}
			if lost, err := rule.Heal(); lost != 1 || err != nil {
				t.Errorf("lost %d, %v", lost, err)
			}
		})
	}
}

// A message that is late, that comes twice, or that waits to be reordered: the connection is made all the same.
func TestFaultOtherThanLoss(t *testing.T) {
	for name, test := range map[string]struct {
		action      FaultAction
		delay, want time.Duration
	}{
		"late":      {FaultDelay, 30 * time.Millisecond, 30 * time.Millisecond},
		"twice":     {FaultDuplicate, 0, 0},
		"overtaken": {FaultReorder, 50 * time.Millisecond, 50 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			p := openVirtual(t, 2)
			server, client := newSide(t, p), newSide(t, p)
			listener := listen(t, server, &usualQP)
			rule := fault(t, p, Fault{CM: true, Message: MessageRTU, Action: test.action, Delay: test.delay, Count: 1})
			request(t, client, listener, usualQP, &usualParam)
			server.id = expect(t, listener, EventConnectRequest, 0).ID
			must(t, server.id.Accept(&usualParam))
			expect(t, client.id, EventEstablished, 0)
			began := p.Clock().Now()
			expect(t, server.id, EventEstablished, 0)
			if took := p.Clock().Now() - began; took != test.want {
				t.Errorf("established after %s, want %s", took, test.want)
			}
			if done, err := rule.Heal(); done != 1 || err != nil {
				t.Errorf("done to %d, %v", done, err)
			}
		})
	}
}

func TestFaultRefused(t *testing.T) {
	p, err := Open("soft")
	must(t, err)
	defer p.Close()
	for name, f := range map[string]Fault{
		"nothing":     {},
		"probability": {Data: true, Probability: 1.5},
		"negative":    {CM: true, Skip: -1},
		"late data":   {Data: true, Action: FaultDelay, Delay: time.Second},
	} {
		f.From, f.To = loopback, loopback
		if _, err := p.Fault(f); !errors.Is(err, syscall.EINVAL) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := p.Fault(Fault{Data: true}); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("no addresses: %v", err)
	}
}

// The device that comes back is another one: ids and queue pairs of the old one are of no use any more.
func TestFaultRemoveDevice(t *testing.T) {
	p, client, server := virtualPair(t, 7)
	old := client.id.Device()
	gone, err := p.Fault(Fault{Action: FaultRemoveDevice})
	must(t, err)
	if _, err := p.Fault(Fault{Action: FaultRemoveDevice}); !errors.Is(err, syscall.EBUSY) {
		t.Errorf("removed twice: %v", err)
	}
	if devices, err := p.Devices(); len(devices) != 0 || err != nil {
		t.Errorf("while it is away there are %v, %v", devices, err)
	}
	for _, end := range []*side{client, server} {
		expect(t, end.id, EventDeviceRemoval, 0)
		if err := end.id.Disconnect(); !errors.Is(err, syscall.EIO) {
			t.Errorf("disconnect: %v", err)
		}
	}
	event, err := old.WaitAsyncEvent(bounded(t), anyEvent)
	must(t, err)
	if event.Type != AsyncDeviceFatal {
		t.Errorf("the device says %s", event.Type)
	}
	if _, err := old.AllocPD(); !errors.Is(err, syscall.EIO) {
		t.Errorf("alloc_pd: %v", err)
	}
	if reported, err := gone.Heal(); reported < 2 || err != nil {
		t.Errorf("reported %d, %v", reported, err)
	}
	devices, err := p.Devices()
	must(t, err)
	if len(devices) != 1 || devices[0] == old || devices[0].Name() != old.Name() {
		t.Fatalf("there are %v now", devices)
	}
	pd, err := devices[0].AllocPD()
	must(t, err)
	must(t, pd.Dealloc())
}

// A hint, once for each change, to those whom it concerns.
func TestFaultChangeAddress(t *testing.T) {
	p, client, _ := virtualPair(t, 7)
	if _, err := p.Fault(Fault{Action: FaultChangeAddress, Count: 1}); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("with a number that means nothing: %v", err)
	}
	changed, err := p.Fault(Fault{Action: FaultChangeAddress})
	must(t, err)
	expect(t, client.id, EventAddrChange, 0)
	if reported, err := changed.Heal(); reported < 2 || err != nil {
		t.Errorf("reported %d, %v", reported, err)
	}
	must(t, client.id.Disconnect())
}
