package rdmacore

import (
	"fmt"
	"syscall"
	"testing"
)

// TestPostErrors: what is wrong is found before anything is posted.
func TestPostErrors(t *testing.T) {
	client, _ := connected(t)
	qp := client.id.QP()
	good := SendWR{Opcode: OpRDMAWrite, NumSGE: 1}
	sges := []SGE{client.sge(0, 8), client.sge(8, 8)}
	seventeen := make([]SendWR, 17) // one more than a batch
	for i := range seventeen {
		seventeen[i] = good
	}
	seventeen[16].FirstSGE = 2
	for name, wrs := range map[string][]SendWR{
		"first entry out of range":   {{Opcode: OpSend, FirstSGE: 3}},
		"too many entries":           {{Opcode: OpSend, FirstSGE: 1, NumSGE: 2}},
		"numbers that wrap":          {{Opcode: OpSend, FirstSGE: 1, NumSGE: ^uint32(0)}},
		"bind without a window":      {{Opcode: OpBindMW}},
		"no such opcode":             {{Opcode: 77}},
		"wrong one in a later batch": seventeen,
	} {
		n, err := qp.PostSend(wrs, sges)
		if n != 0 {
			t.Errorf("%s: %d were posted", name, n)
		}
		refused(t, err, syscall.EINVAL)
	}
	recv := []RecvWR{{FirstSGE: 2, NumSGE: 1}}
	if n, err := qp.PostRecv(recv, sges); n != 0 || err == nil {
		t.Errorf("a receive with an entry out of range: %d, %v", n, err)
	}
	if n, err := qp.PostSend(nil, nil); n != 0 || err != nil {
		t.Errorf("nothing to send: %d, %v", n, err)
	}
	if n, err := qp.PostRecv(nil, nil); n != 0 || err != nil {
		t.Errorf("nothing to receive: %d, %v", n, err)
	}
}

// TestQueueFull: bad_wr of the man page, across batches.
func TestQueueFull(t *testing.T) {
	client, _ := connected(t)
	room := int(client.id.QP().InitAttr().MaxRecvWR)
	n, err := client.id.QP().PostRecv(make([]RecvWR, 2*room+50), nil)
	refused(t, err, syscall.ENOMEM)
	if n < room || n != room && onSoft("room for receives") {
		t.Errorf("%d of %d receives accepted", n, room)
	}
}

// TestGuestWindow: addresses of a guest are relative to its memory and stay in it.
func TestGuestWindow(t *testing.T) {
	client, server := connected(t)
	base, limit := client.memory.Base(), uint64(4096)
	mr, err := client.pd.RegMRAt(client.memory, 0, int(limit), 0)
	must(t, err)
	t.Cleanup(func() { must(t, mr.Dereg()) })
	for _, row := range []struct {
		address uint64
		length  uint32
		want    error
	}{
		{4096, 1, syscall.EFAULT},
		{4095, 2, syscall.EFAULT},
		{0, 4097, syscall.EFAULT},
		{^uint64(0), 2, syscall.EFAULT},
		{uint64(base), 8, syscall.EFAULT},
		{4096, 0, nil},
		{0, 4096, nil},
	} {
		t.Run(fmt.Sprintf("%#x+%d", row.address, row.length), func(t *testing.T) {
			sges := []SGE{{Address: row.address, Length: row.length, LKey: mr.LKey()}}
			wr := SendWR{WRID: 5, Opcode: OpRDMAWrite, Flags: SendSignaled, NumSGE: 1,
				RKey: server.mr.RKey(), RemoteAddress: server.mr.Address()}
			n, err := client.id.QP().postSendAt(base, limit, []SendWR{wr}, sges)
			if row.want == nil {
				must(t, err)
				completion(t, client.id.SendCQ(), 5, WCSuccess)
				return
			}
			refused(t, err, row.want)
			_, err = client.id.QP().postRecvAt(base, limit, []RecvWR{{NumSGE: 1}}, sges)
			refused(t, err, row.want)
			if n != 0 {
				t.Error("it was posted")
			}
		})
	}
	_, err = client.id.QP().postSendAt(base, 0, []SendWR{{Opcode: OpSend, NumSGE: 1}}, []SGE{{Length: 1}})
	refused(t, err, syscall.EFAULT)
	_, err = client.id.QP().postRecvAt(base, 0, []RecvWR{{NumSGE: 1}}, []SGE{{Length: 1}})
	refused(t, err, syscall.EFAULT)
}

// TestHotCallsAllocateNothing: the data path leaves no garbage.
func TestHotCallsAllocateNothing(t *testing.T) {
	if asan {
		t.Skip("AddressSanitizer moves what is given to C to the heap")
	}
	client, server := connected(t)
	mr, err := client.pd.RegMRAt(client.memory, 0, 64, 0)
	must(t, err)
	t.Cleanup(func() { must(t, mr.Dereg()) })
	if n := testing.AllocsPerRun(100, func() {
		recvs := [1]RecvWR{{WRID: 1, NumSGE: 1}}
		sends := [1]SendWR{{WRID: 2, Opcode: OpSend, Flags: SendSignaled, NumSGE: 1}}
		into, from := [1]SGE{server.sge(0, 64)}, [1]SGE{client.sge(0, 64)}
		if _, err := server.id.QP().PostRecv(recvs[:], into[:]); err != nil {
			t.Fatal(err)
		}
		if _, err := client.id.QP().PostSend(sends[:], from[:]); err != nil {
			t.Fatal(err)
		}
		relative := [1]SGE{{Length: 64, LKey: mr.LKey()}}
		if _, err := server.id.QP().PostRecv(recvs[:], into[:]); err != nil {
			t.Fatal(err)
		}
		if _, err := client.id.QP().postSendAt(client.memory.Base(), 64, sends[:], relative[:]); err != nil {
			t.Fatal(err)
		}
		for _, cq := range [...]*CQ{client.id.SendCQ(), server.id.RecvCQ()} {
			var wcs [4]WC
			for got := 0; got < 2; {
				polled, err := cq.poll(wcs[:], nil, 1000)
				if err != nil {
					t.Fatal(err)
				}
				got += polled
			}
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
