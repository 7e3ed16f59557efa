package rdmacore

import (
	"syscall"
	"testing"
)

// A shared receive queue of an id: posted to by the id, used by its QP, destroyed after it.
func TestSharedReceiveQueueOfAnID(t *testing.T) {
	p := opened(t)
	client, server := newSide(t, p), newSide(t, p)
	listener := listen(t, server, nil)
	refused(
		t, newID(t, server.channel, PortSpaceTCP).CreateSRQ(server.pd, SRQAttr{MaxWR: 8, MaxSGE: 1}), syscall.EINVAL,
	)
	request(t, client, listener, usualQP, &usualParam)
	server.id = expect(t, listener, EventConnectRequest, 0).ID
	err := server.id.CreateSRQ(server.pd, SRQAttr{MaxWR: 8, MaxSGE: 1})
	lacking(t, err)
	must(t, err)
	refused(t, server.id.CreateSRQ(server.pd, SRQAttr{MaxWR: 8, MaxSGE: 1}), syscall.EINVAL)
	refused(t, server.id.SRQ().Destroy(), syscall.EINVAL)
	qp := usualQP
	qp.SRQ = server.id.SRQ()
	must(t, server.id.CreateQP(server.pd, qp))
	_, err = server.id.SRQ().PostRecv([]RecvWR{{WRID: 7, NumSGE: 1}}, []SGE{server.sge(0, 64)})
	must(t, err)
	must(t, server.id.Accept(&usualParam))
	expect(t, client.id, EventEstablished, 0)
	expect(t, server.id, EventEstablished, 0)
	client.send(t, SendWR{WRID: 8, Opcode: OpSend, Flags: SendSignaled}, 0, 16)
	completion(t, server.id.RecvCQ(), 7, WCSuccess)
	completion(t, client.id.SendCQ(), 8, WCSuccess)
	refused(t, server.id.DestroySRQ(), syscall.EBUSY)
	must(t, server.id.DestroyQP())
	refused(t, server.id.Destroy(), syscall.EBUSY)
	must(t, server.id.DestroySRQ())
	refused(t, server.id.DestroySRQ(), syscall.EBADF)
}

// A datagram to the peer that a connection manager event named.
func TestDatagramToPeerOfEvent(t *testing.T) {
	p := opened(t)
	server, client := newSide(t, p), newSide(t, p)
	qp := usualQP
	qp.MaxInlineData = 0
	var err error
	server.id, err = server.channel.CreateID(PortSpaceUDP)
	if err != nil {
		t.Skip(err)
	}
	datagramID(t, server.id, server.pd)
	listener, err := server.channel.CreateEP(bounded(t), EPConfig{
		Passive: true, PortSpace: PortSpaceUDP, Source: here(t, 0),
	})
	must(t, err)
	destroyAtEnd(t, listener)
	must(t, listener.Listen(4))
	client.id, err = client.channel.CreateEP(bounded(t),
		EPConfig{PortSpace: PortSpaceUDP, Destination: listener.LocalAddr(),
			PD: client.pd, QP: &qp})
	must(t, err)
	must(t, client.id.Connect(&usualParam))
	child := expect(t, listener, EventConnectRequest, 0).ID
	destroyAtEnd(t, child)
	must(t, child.Accept(&ConnParam{QPNum: server.id.QP().Num()}))
	peer := expect(t, client.id, EventEstablished, 0).UD
	if peer == nil || peer.QPNum != server.id.QP().Num() || peer.QKey != UDPQKey {
		t.Fatalf("peer %+v", peer)
	}
	ah, err := client.pd.CreateAH(peer.AH)
	must(t, err)
	server.recv(t, 1, 0, 64+GRHLength)
	client.send(t, SendWR{
		WRID: 2, Opcode: OpSend, Flags: SendSignaled, AH: ah.Number(), RemoteQPN: peer.QPNum, RemoteQKey: UDPQKey,
	}, 0, 16)
	completion(t, client.id.SendCQ(), 2, WCSuccess)
	if wc := completion(t, server.id.RecvCQ(), 1, WCSuccess); wc.ByteLen != 16+GRHLength {
		t.Errorf("%d bytes", wc.ByteLen)
	}
	must(t, ah.Destroy())
}
