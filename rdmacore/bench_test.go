package rdmacore

import (
	"context"
	"testing"
)

// BenchmarkPollEmpty is the price of crossing into C and back with nothing to do.
func BenchmarkPollEmpty(b *testing.B) {
	client, _ := connected(b)
	cq := client.id.SendCQ()
	wcs := make([]WC, 16)
	b.ReportAllocs()
	for b.Loop() {
		if n, err := cq.Poll(wcs); n != 0 || err != nil {
			b.Fatal(n, err)
		}
	}
}

// BenchmarkWrite is an RDMA WRITE of 64 bytes, posted and polled by the same goroutine.
func BenchmarkWrite(b *testing.B) {
	client, server := connected(b)
	benchmarkWrite(b, client, server)
}

// BenchmarkWriteBuilt is the same by a builder.
func BenchmarkWriteBuilt(b *testing.B) {
	qp := usualQP
	qp.SendOps = SendOpRDMAWrite
	client, server := connectedWith(b, qp, usualParam)
	benchmarkWrite(b, client, server)
}

func benchmarkWrite(b *testing.B, client, server *side) {
	wrs := []SendWR{{Opcode: OpRDMAWrite, Flags: SendSignaled, NumSGE: 1, RKey: server.mr.RKey(),
		RemoteAddress: server.mr.Address()}}
	sges := []SGE{client.sge(0, 64)}
	wcs := make([]WC, 1)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := client.id.QP().PostSend(wrs, sges); err != nil {
			b.Fatal(err)
		}
		if n, err := client.id.SendCQ().Wait(b.Context(), wcs); n != 1 || err != nil || wcs[0].Status != WCSuccess {
			b.Fatal(n, err, wcs[0].Status)
		}
	}
}

// BenchmarkPingPong is SEND of 64 bytes there and back between two goroutines; an operation is a round
// trip.
func BenchmarkPingPong(b *testing.B) {
	client, server := connected(b)
	done := make(chan error, 1)
	ctx, stop := context.WithCancel(b.Context())
	for id := range uint64(8) {
		server.recv(b, id, 0, 64)
	}
	echo := func(s *side, wcs []WC, wrs []SendWR, recvs []RecvWR, from, into []SGE) error {
		if _, err := s.id.RecvCQ().Wait(ctx, wcs); err != nil {
			return err
		}
		if _, err := s.id.QP().PostRecv(recvs, into); err != nil {
			return err
		}
		_, err := s.id.QP().PostSend(wrs, from)
		return err
	}
	ping := func(s *side) func() error {
		wcs := make([]WC, 1)
		wrs := []SendWR{{Opcode: OpSend, NumSGE: 1, Flags: SendSignaled}}
		recvs := []RecvWR{{NumSGE: 1}}
		from, into := []SGE{s.sge(0, 64)}, []SGE{s.sge(64, 64)}
		reap := make([]WC, 8)
		return func() error {
			if err := echo(s, wcs, wrs, recvs, from, into); err != nil {
				return err
			}
			_, err := s.id.SendCQ().Poll(reap)
			return err
		}
	}
	pong := ping(server)
	go func() {
		for {
			if err := pong(); err != nil {
				done <- err
				return
			}
		}
	}()
	for id := range uint64(8) {
		client.recv(b, id, 64, 64)
	}
	client.send(b, SendWR{Opcode: OpSend}, 0, 64)
	back := ping(client)
	b.ReportAllocs()
	for b.Loop() {
		if err := back(); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	stop()
	<-done
}
