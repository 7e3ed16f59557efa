package rdmacore

import (
	"syscall"
	"testing"
	"time"
)

const everyField = WCFieldsStandard | WCFieldTimestamp | WCFieldWallclock

// extendedPair is a connection with one queue, with those fields, for the completions of both ends.
func extendedPair(t testing.TB, fields WCFields) (cq *CQ, client, server *side) {
	t.Helper()
	device, err := opened(t).DefaultDevice()
	must(t, err)
	attr, err := device.Attr()
	must(t, err)
	if cq, err = device.CreateCQEx(64, fields); fields&^WCFieldsStandard != 0 && attr.CompletionTimestampMask == 0 {
		refused(t, err, syscall.EOPNOTSUPP)
		t.Skip(err)
	}
	must(t, err)
	atEnd(t, cq.Destroy)
	qp := usualQP
	qp.SendCQ = cq
	client, server = connectedWith(t, qp, usualParam)
	return cq, client, server
}

func (s *side) write(t testing.TB, id uint64, to *MR) {
	t.Helper()
	s.send(
		t, SendWR{WRID: id, Opcode: OpRDMAWrite, Flags: SendSignaled, RKey: to.RKey(), RemoteAddress: to.Address()}, 0,
		8,
	)
}

func TestExtendedCQ(t *testing.T) {
	cq, client, server := extendedPair(t, WCFieldsStandard)
	if fields, extended := cq.Fields(); fields != WCFieldsStandard || !extended {
		t.Errorf("fields %s, %v", fields, extended)
	}
	if fields, extended := client.id.RecvCQ().Fields(); fields != 0 || extended {
		t.Errorf("of a plain one: fields %s, %v", fields, extended)
	}
	refused(t, cq.Destroy(), syscall.EBUSY)
	if n, err := cq.Poll(make([]WC, 4)); n != 0 || err != nil {
		t.Errorf("%d completions, %v", n, err)
	}
	server.recv(t, 1, 0, 64)
	client.send(t, SendWR{WRID: 2, Opcode: OpSend, Flags: SendSignaled}, 0, 8)
	if wc := completion(t, cq, 2, WCSuccess); wc.Opcode != WCSend || wc.QPNum != client.id.QP().Num() {
		t.Errorf("completion %+v", wc)
	}
	completion(t, server.id.RecvCQ(), 1, WCSuccess)
	must(t, cq.RequestNotify(false))
	server.write(t, 3, client.mr)
	must(t, cq.WaitEvent(bounded(t)))
	if wc := completion(t, cq, 3, WCSuccess); wc.Opcode != WCRDMAWrite || wc.QPNum != server.id.QP().Num() {
		t.Errorf("completion %+v", wc)
	}
	must(t, cq.Resize(128))
	// Several at once, and the last of them a failure.
	for id := range uint64(3) {
		client.write(t, id, server.mr)
	}
	client.send(t, SendWR{WRID: 3, Opcode: OpRDMAWrite, Flags: SendSignaled, RKey: server.mr.RKey() + 1,
		RemoteAddress: server.mr.Address()}, 0, 8)
	for id := range uint64(3) {
		completion(t, cq, id, WCSuccess)
	}
	if wc := completion(t, cq, 3, WCRemAccessErr); wc.ByteLen != 0 || wc.QPNum != client.id.QP().Num() {
		t.Errorf("completion %+v", wc)
	}
}

func TestTimestamps(t *testing.T) {
	cq, client, server := extendedPair(t, everyField)
	device := client.id.Device()
	before, err := device.RawClock()
	must(t, err)
	began := time.Now().Add(-time.Second)
	var wcs [4]WC
	var stamps [4]Timestamp
	for id := range uint64(4) {
		client.write(t, id, server.mr)
	}
	for taken := 0; taken < len(wcs); {
		n, err := cq.WaitTimestamps(bounded(t), wcs[taken:], stamps[taken:])
		must(t, err)
		taken += n
	}
	after, err := device.RawClock()
	must(t, err)
	for at, stamp := range stamps {
		wall := time.Unix(0, int64(stamp.Wallclock))
		if wcs[at].WRID != uint64(at) || stamp.Raw < before || stamp.Raw > after || wall.Before(began) ||
			wall.After(time.Now().Add(time.Second)) {
			t.Errorf("completion %d at %d of %d to %d, %v", wcs[at].WRID, stamp.Raw, before, after, wall)
		}
		before = stamp.Raw
	}
	n, err := cq.PollTimestamps(wcs[:], stamps[:], 3)
	if n != 0 || err != nil {
		t.Errorf("%d completions, %v", n, err)
	}
	_, err = cq.PollTimestamps(wcs[:], stamps[:3], 1)
	refused(t, err, syscall.EINVAL)
	_, err = cq.WaitTimestamps(bounded(t), wcs[:], nil)
	refused(t, err, syscall.EINVAL)
}

// A queue without time stamps, of whichever kind, returns none.
func TestNoTimestamps(t *testing.T) {
	cq, client, server := extendedPair(t, WCFieldsStandard&^WCFieldQPNum)
	client.write(t, 1, server.mr)
	server.send(t, SendWR{WRID: 2, Opcode: OpSend}, 0, 8)
	client.recv(t, 2, 64, 64)
	for _, queue := range []*CQ{cq, client.id.RecvCQ()} {
		wcs, stamps := [1]WC{{QPNum: 9}}, [1]Timestamp{{Raw: 1, Wallclock: 1}}
		n, err := queue.WaitTimestamps(bounded(t), wcs[:], stamps[:])
		must(t, err)
		if n != 1 || stamps[0] != (Timestamp{}) {
			t.Errorf("%d completions at %+v", n, stamps[0])
		}
		if queue == cq && wcs[0].QPNum != 0 {
			t.Errorf("a field that was not asked for is %d", wcs[0].QPNum)
		}
	}
}

// On a virtual clock they are exact.
func TestTimestampsOfAVirtualClock(t *testing.T) {
	p := openVirtual(t, 1)
	device, err := p.DefaultDevice()
	must(t, err)
	cq, err := device.CreateCQEx(16, everyField)
	must(t, err)
	atEnd(t, cq.Destroy)
	client, server, qp := newSide(t, p), newSide(t, p), usualQP
	qp.SendCQ = cq
	listener := listen(t, server, &qp)
	request(t, client, listener, qp, &usualParam)
	server.id = expect(t, listener, EventConnectRequest, 0).ID
	must(t, server.id.Accept(&usualParam))
	expect(t, client.id, EventEstablished, 0)
	expect(t, server.id, EventEstablished, 0)
	var stamps [2]Timestamp
	for at := range stamps {
		must(t, p.Clock().Sleep(bounded(t), 5*time.Millisecond))
		client.write(t, uint64(at), server.mr)
		_, err := cq.WaitTimestamps(bounded(t), make([]WC, 1), stamps[at:])
		must(t, err)
		if raw, err := device.RawClock(); err != nil || raw != stamps[at].Raw {
			t.Errorf("the completion came at %d, and it is %d, %v", stamps[at].Raw, raw, err)
		}
	}
	if raw, wall := stamps[1].Raw-stamps[0].Raw, stamps[1].Wallclock-stamps[0].Wallclock; raw != 5e6 || wall != 5e6 {
		t.Errorf("%d ns and %d ns apart", raw, wall)
	}
}

func TestBadExtendedCQs(t *testing.T) {
	device, err := opened(t).DefaultDevice()
	must(t, err)
	live := opened(t).Live()
	for _, entries := range []int{0, -1, 1<<30 + 1} {
		_, err := device.CreateCQEx(entries, WCFieldsStandard)
		refused(t, err, syscall.EINVAL)
	}
	_, err = device.CreateCQEx(8, WCFieldsStandard|1<<20)
	refused(t, err, syscall.EOPNOTSUPP)
	if now := opened(t).Live(); now.String() != live.String() {
		t.Errorf("left behind: %s, before %s", now, live)
	}
	_, err = (*Device)(nil).CreateCQEx(8, 0)
	refused(t, err, syscall.EBADF)
	cq, err := device.CreateCQEx(8, 0)
	must(t, err)
	must(t, cq.Destroy())
	_, err = cq.PollTimestamps(make([]WC, 1), make([]Timestamp, 1), 1)
	refused(t, err, syscall.EBADF)
	_, err = (*CQ)(nil).PollTimestamps(make([]WC, 1), make([]Timestamp, 1), 1)
	refused(t, err, syscall.EBADF)
}
