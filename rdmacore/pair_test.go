package rdmacore

import (
	"errors"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// side is one end of a connection with a registered buffer.
type side struct {
	channel *EventChannel
	id      *ID
	pd      *PD
	memory  *Memory
	mr      *MR
}

const bufferSize = 64 << 10

const allAccess = AccessLocalWrite | AccessRemoteWrite | AccessRemoteRead

var usualQP = QPInitAttr{MaxSendWR: 32, MaxRecvWR: 32, MaxSendSGE: 4, MaxRecvSGE: 4, MaxInlineData: 64}

var usualParam = ConnParam{ResponderResources: 4, InitiatorDepth: 4, RetryCount: 7, RNRRetryCount: 7}

func newChannel(t testing.TB, p *Provider) *EventChannel {
	t.Helper()
	channel, err := p.CreateEventChannel()
	must(t, err)
	atEnd(t, channel.Close)
	return channel
}

func newPD(t testing.TB, p *Provider) *PD {
	t.Helper()
	device, err := p.DefaultDevice()
	must(t, err)
	pd, err := device.AllocPD()
	must(t, err)
	atEnd(t, pd.Dealloc)
	return pd
}

// newSide makes channel, PD and buffer; the id comes later.
func newSide(t testing.TB, p *Provider) *side {
	t.Helper()
	s := &side{channel: newChannel(t, p), pd: newPD(t, p)}
	var err error
	s.memory, err = NewMemory(bufferSize)
	must(t, err)
	s.mr, err = s.pd.RegMR(s.memory, 0, bufferSize, allAccess)
	must(t, err)
	s.memory.Release() // the MR holds it from here on
	atEnd(t, s.mr.Dereg)
	t.Cleanup(func() {
		if s.id != nil {
			if err := s.id.DestroyEP(); err != nil {
				t.Errorf("clean-up: %v", err)
			}
		}
	})
	return s
}

// destroy destroys the id now instead of at the end.
func (s *side) destroy(t testing.TB) {
	t.Helper()
	id := s.id
	s.id = nil
	must(t, id.DestroyEP())
}

// expect waits for the next event of an id.
func expect(t testing.TB, id *ID, want EventType, status int) *Event {
	t.Helper()
	event, err := id.Channel().Wait(bounded(t), id)
	must(t, err)
	if event.Type != want || event.Status != status {
		t.Fatalf("event %s with status %d, want %s with %d", event.Type, event.Status, want, status)
	}
	return event
}

// readable waits until there is an event, without reading it.
func readable(t testing.TB, channel *EventChannel) {
	t.Helper()
	fds := []unix.PollFd{{Fd: int32(channel.c.fd), Events: unix.POLLIN}}
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); {
		if n, err := unix.Poll(fds, 1000); n == 1 {
			return
		} else if err != nil && err != unix.EINTR {
			t.Fatal(err)
		}
	}
	t.Fatal("no event")
}

// listen makes a listener on a port of the provider's choice.
func listen(t testing.TB, s *side, qp *QPInitAttr) *ID {
	t.Helper()
	listener, err := s.channel.CreateEP(bounded(t), EPConfig{Passive: true, Source: here(t, 0), PD: s.pd, QP: qp})
	must(t, err)
	t.Cleanup(func() {
		if listener.open() {
			must(t, listener.Destroy())
		}
	})
	must(t, listener.Listen(8))
	return listener
}

// request makes the client of a listener and lets it ask for a connection.
func request(t testing.TB, s *side, listener *ID, qp QPInitAttr, param *ConnParam) {
	t.Helper()
	var err error
	s.id, err = s.channel.CreateEP(bounded(t), EPConfig{Destination: listener.LocalAddr(), PD: s.pd, QP: &qp})
	must(t, err)
	must(t, s.id.Connect(param))
}

// connected is an established connection, client first.
func connected(t testing.TB) (client, server *side) {
	t.Helper()
	return connectedWith(t, usualQP, usualParam)
}

func connectedWith(t testing.TB, qp QPInitAttr, param ConnParam) (client, server *side) {
	t.Helper()
	p := opened(t)
	client, server = newSide(t, p), newSide(t, p)
	listener := listen(t, server, &qp)
	request(t, client, listener, qp, &param)
	server.id = expect(t, listener, EventConnectRequest, 0).ID
	must(t, server.id.Accept(&param))
	expect(t, client.id, EventEstablished, 0)
	expect(t, server.id, EventEstablished, 0)
	return client, server
}

// sge names length bytes of the buffer from offset.
func (s *side) sge(offset, length int) SGE {
	return SGE{Address: s.mr.Address() + uint64(offset), Length: uint32(length), LKey: s.mr.LKey()}
}

func (s *side) bytes(offset, length int) []byte {
	return s.memory.Bytes()[offset : offset+length]
}

func (s *side) recv(t testing.TB, id uint64, offset, length int) {
	t.Helper()
	_, err := s.id.QP().PostRecv([]RecvWR{{WRID: id, NumSGE: 1}}, []SGE{s.sge(offset, length)})
	must(t, err)
}

func (s *side) send(t testing.TB, wr SendWR, offset, length int) {
	t.Helper()
	wr.NumSGE = 1
	_, err := s.id.QP().PostSend([]SendWR{wr}, []SGE{s.sge(offset, length)})
	must(t, err)
}

// completion waits for the one next completion.
func completion(t testing.TB, cq *CQ, id uint64, status WCStatus) WC {
	t.Helper()
	var wcs [1]WC
	n, err := cq.Wait(bounded(t), wcs[:])
	must(t, err)
	if n != 1 || wcs[0].WRID != id || wcs[0].Status != status {
		t.Fatalf("completion of %d with %s, want %d with %s", wcs[0].WRID, wcs[0].Status, id, status)
	}
	return wcs[0]
}

// refused checks an errno.
func refused(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("error %v, want %v", err, want)
	}
}
