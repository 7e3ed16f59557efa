package rdmacore

import (
	"bytes"
	"crypto/rand"
	"testing"
)

// pattern fills a part of a buffer with random bytes and returns a copy of them.
func (s *side) pattern(t testing.TB, offset, length int) []byte {
	t.Helper()
	_, err := rand.Read(s.bytes(offset, length))
	must(t, err)
	return bytes.Clone(s.bytes(offset, length))
}

func TestSend(t *testing.T) {
	client, server := connected(t)
	for _, row := range []struct {
		name   string
		length int
		wr     SendWR
		want   WC
	}{
		{"plain", 1000, SendWR{Opcode: OpSend, Flags: SendSignaled}, WC{Opcode: WCRecv}},
		{"nothing", 0, SendWR{Opcode: OpSend, Flags: SendSignaled}, WC{Opcode: WCRecv}},
		{"inline", 64, SendWR{Opcode: OpSend, Flags: SendSignaled | SendInline}, WC{Opcode: WCRecv}},
		{"immediate", 10, SendWR{Opcode: OpSendWithImm, Flags: SendSignaled | SendSolicited, ImmData: 0x01020304},
			WC{Opcode: WCRecv, WCFlags: WCWithImm, ImmData: 0x01020304}},
	} {
		t.Run(row.name, func(t *testing.T) {
			server.recv(t, 1, 0, 4096)
			want := client.pattern(t, 0, row.length)
			row.wr.WRID = 2
			client.send(t, row.wr, 0, row.length)
			got := completion(t, server.id.RecvCQ(), 1, WCSuccess)
			if got.ByteLen != uint32(row.length) || got.Opcode != row.want.Opcode ||
				got.WCFlags&WCWithImm != row.want.WCFlags || got.QPNum != server.id.QP().Num() {
				t.Errorf("completion %+v", got)
			}
			if row.want.WCFlags != 0 && got.ImmData != row.want.ImmData {
				t.Errorf("immediate data %#x", got.ImmData)
			}
			if !bytes.Equal(server.bytes(0, row.length), want) {
				t.Error("other bytes arrived")
			}
			if got := completion(t, client.id.SendCQ(), 2, WCSuccess); got.Opcode != WCSend {
				t.Errorf("opcode %s", got.Opcode)
			}
		})
	}
}

func TestWriteAndRead(t *testing.T) {
	client, server := connected(t)
	want := client.pattern(t, 0, 20000)
	remote := SendWR{Flags: SendSignaled, RKey: server.mr.RKey(), RemoteAddress: server.mr.Address() + 512}
	write, read := remote, remote
	write.Opcode, write.WRID = OpRDMAWrite, 1
	client.send(t, write, 0, len(want))
	if got := completion(t, client.id.SendCQ(), 1, WCSuccess); got.Opcode != WCRDMAWrite {
		t.Errorf("opcode %s", got.Opcode)
	}
	if !bytes.Equal(server.bytes(512, len(want)), want) {
		t.Error("other bytes were written")
	}
	read.Opcode, read.WRID = OpRDMARead, 2
	client.send(t, read, 30000, len(want))
	got := completion(t, client.id.SendCQ(), 2, WCSuccess)
	if got.Opcode != WCRDMARead || !bytes.Equal(client.bytes(30000, len(want)), want) {
		t.Errorf("other bytes were read, opcode %s", got.Opcode)
	}
	write.Opcode, write.WRID, write.ImmData = OpRDMAWriteWithImm, 3, 7
	server.recv(t, 4, 0, 0)
	client.send(t, write, 0, 100)
	completion(t, client.id.SendCQ(), 3, WCSuccess)
	if got := completion(t, server.id.RecvCQ(), 4, WCSuccess); got.Opcode != WCRecvRDMAWithImm ||
		got.ImmData != 7 || got.ByteLen != 100 {
		t.Errorf("completion %+v", got)
	}
}

// TestManyRequests: more requests and entries in one call than the C core converts at a time.
func TestManyRequests(t *testing.T) {
	const count, perRequest, piece = 40, 3, 50
	qp := QPInitAttr{MaxSendWR: count, MaxRecvWR: count, MaxSendSGE: perRequest, MaxRecvSGE: 1}
	client, server := connectedWith(t, qp, usualParam)
	want := client.pattern(t, 0, count*perRequest*piece)
	var recvs []RecvWR
	var sends []SendWR
	var into, from []SGE
	for i := range uint32(count) {
		recvs = append(recvs, RecvWR{WRID: uint64(i), FirstSGE: i, NumSGE: 1})
		into = append(into, server.sge(int(i)*perRequest*piece, perRequest*piece))
		sends = append(sends, SendWR{WRID: uint64(i), Opcode: OpSend, Flags: SendSignaled,
			FirstSGE: i * perRequest, NumSGE: perRequest})
		for part := range perRequest {
			from = append(from, client.sge((int(i)*perRequest+part)*piece, piece))
		}
	}
	n, err := server.id.QP().PostRecv(recvs, into)
	must(t, err)
	if n != count {
		t.Fatalf("%d of %d receives accepted", n, count)
	}
	n, err = client.id.QP().PostSend(sends, from)
	must(t, err)
	if n != count {
		t.Fatalf("%d of %d sends accepted", n, count)
	}
	for i := range uint64(count) {
		completion(t, client.id.SendCQ(), i, WCSuccess)
		completion(t, server.id.RecvCQ(), i, WCSuccess)
	}
	if !bytes.Equal(server.bytes(0, len(want)), want) {
		t.Error("other bytes arrived")
	}
}

// TestWrongRemoteKey: the connection breaks, the requester learns why, and the target's memory is whole.
func TestWrongRemoteKey(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, wr *SendWR, server *side){
		"key":      func(t *testing.T, wr *SendWR, server *side) { wr.RKey ^= 0xff },
		"past end": func(t *testing.T, wr *SendWR, server *side) { wr.RemoteAddress += bufferSize - 99 },
		"before":   func(t *testing.T, wr *SendWR, server *side) { wr.RemoteAddress-- },
		"no rights": func(t *testing.T, wr *SendWR, server *side) {
			memory, err := NewMemory(4096)
			must(t, err)
			mr, err := server.pd.RegMR(memory, 0, 4096, AccessLocalWrite)
			must(t, err)
			memory.Release()
			atEnd(t, mr.Dereg)
			wr.RKey, wr.RemoteAddress = mr.RKey(), mr.Address()
		},
	} {
		t.Run(name, func(t *testing.T) {
			client, server := connected(t)
			before := server.pattern(t, 0, bufferSize)
			wr := SendWR{WRID: 1, Opcode: OpRDMAWrite, Flags: SendSignaled, RKey: server.mr.RKey(),
				RemoteAddress: server.mr.Address()}
			spoil(t, &wr, server)
			client.send(t, wr, 0, 100)
			completion(t, client.id.SendCQ(), 1, WCRemAccessErr)
			if !bytes.Equal(server.bytes(0, bufferSize), before) {
				t.Error("the memory was written")
			}
			client.send(t, wr, 0, 100)
			completion(t, client.id.SendCQ(), 1, WCWRFlushErr)
			attr, err := client.id.QP().Query()
			must(t, err)
			if attr.State != QPStateErr {
				t.Errorf("state %s", attr.State)
			}
		})
	}
}

func TestReceiverNotReady(t *testing.T) {
	param := usualParam
	param.RNRRetryCount = 0
	client, _ := connectedWith(t, usualQP, param)
	client.send(t, SendWR{WRID: 1, Opcode: OpSend, Flags: SendSignaled}, 0, 10)
	completion(t, client.id.SendCQ(), 1, WCRNRRetryExcErr)
}

func TestReceiveTooSmall(t *testing.T) {
	client, server := connected(t)
	server.recv(t, 1, 0, 10)
	client.send(t, SendWR{WRID: 2, Opcode: OpSend, Flags: SendSignaled}, 0, 11)
	if onSoft("messages longer than their receive") {
		completion(t, server.id.RecvCQ(), 1, WCLocLenErr)
		completion(t, client.id.SendCQ(), 2, WCRemInvReqErr)
	} else {
		completion(t, server.id.RecvCQ(), 1, WCLocQPOpErr)
		completion(t, client.id.SendCQ(), 2, WCRemOpErr)
	}
}
