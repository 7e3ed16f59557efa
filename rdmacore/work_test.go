package rdmacore

import (
	"context"
	"errors"
	"io"
	"runtime"
	"runtime/pprof"
	"sync"
	"syscall"
	"testing"
	"unsafe"
)

// worker is one end that posts and polls as a guest does, with all that it gives to C in memory that is not Go's.
type worker struct {
	*side
	work  *Work
	base  uintptr
	lkey  uint32
	sends []SendWR
	recvs []RecvWR
	sges  []SGE
	wcs   []WC
}

func newWorker(t testing.TB, s *side) *worker {
	t.Helper()
	const size = 1 << 16
	memory, err := NewMemory(size)
	must(t, err)
	mr, err := s.pd.RegMRAt(memory, 0, size, AccessLocalWrite)
	must(t, err)
	w := &worker{side: s, work: s.id.Channel().Provider().NewWork(), base: memory.Base(), lkey: mr.LKey()}
	t.Cleanup(func() {
		w.work.Free()
		must(t, mr.Dereg())
		memory.Release()
	})
	at := unsafe.Pointer(unsafe.SliceData(memory.Bytes()))
	w.sends = unsafe.Slice((*SendWR)(unsafe.Add(at, 0x1000)), 32)
	w.recvs = unsafe.Slice((*RecvWR)(unsafe.Add(at, 0x3000)), 32)
	w.sges = unsafe.Slice((*SGE)(unsafe.Add(at, 0x4000)), 32)
	w.wcs = unsafe.Slice((*WC)(unsafe.Add(at, 0x5000)), 512)
	return w
}

func (w *worker) send(id uint64, length uint32, cq *CQ, completions int, attempts uint32) (int, int, error) {
	w.sends[0] = SendWR{WRID: id, Opcode: OpSend, Flags: SendSignaled, NumSGE: 1}
	w.sges[0] = SGE{Address: 64, Length: length, LKey: w.lkey}
	return w.work.SendSpin(w.id.QP(), w.base, 1<<16, w.sends[:1], w.sges[:1], cq, w.wcs[:completions], attempts)
}

func (w *worker) recv(id uint64, cq *CQ, completions int, attempts uint32) (int, int, error) {
	w.recvs[0] = RecvWR{WRID: id, NumSGE: 1}
	w.sges[0] = SGE{Address: 0x8000, Length: 8192, LKey: w.lkey}
	return w.work.RecvSpin(w.id.QP(), w.base, 1<<16, w.recvs[:1], w.sges[:1], cq, w.wcs[:completions], attempts)
}

// What is posted completes in the same call, whichever way that takes, and what is refused is as it is without polling.
func TestPostThenPollIsOneCall(t *testing.T) {
	client, server := connected(t)
	a, b := newWorker(t, client), newWorker(t, server)
	for id, length := range []uint32{64, 4096, 4097, 8192, 64} { // the long one, and what follows it, go by cgo
		if _, n, err := b.recv(uint64(id), server.id.RecvCQ(), 1, 3); n != 0 || err != nil {
			t.Fatalf("%d completions before there is a message, %v", n, err)
		}
		posted, n, err := a.send(uint64(id), length, client.id.SendCQ(), 2, 1<<16)
		if posted != 1 || n != 1 || err != nil || a.wcs[0].WRID != uint64(id) || a.wcs[0].Status != WCSuccess {
			t.Fatalf("message %d: %d posted, %d completions, %v, %+v", id, posted, n, err, a.wcs[0])
		}
		n, err = b.work.Poll(server.id.RecvCQ(), b.wcs[:1], 1<<16)
		if n != 1 || err != nil || b.wcs[0].ByteLen != length {
			t.Fatalf("message %d: %d received, %v, %+v", id, n, err, b.wcs[0])
		}
	}
	// A completion that was looked at comes first, by whichever call.
	source, err := server.id.RecvCQ().Source()
	must(t, err)
	for _, poll := range []func() (int, error){
		func() (int, error) { return b.work.Poll(server.id.RecvCQ(), b.wcs[:4], 1) },
		func() (int, error) { _, n, err := b.recv(7, server.id.RecvCQ(), 4, 1); return n, err },
	} {
		for id := range 2 {
			_, _, err := b.recv(uint64(id), nil, 0, 0)
			must(t, err)
			_, _, err = a.send(uint64(id), 8, client.id.SendCQ(), 1, 1<<16)
			must(t, err)
		}
		for found := [1]Readiness{}; (*Poller)(nil).Look(context.Background(), []Source{source}, found[:]) == 0; {
			runtime.Gosched()
		}
		for got := uint64(0); got < 2; {
			n, err := poll()
			must(t, err)
			for _, wc := range b.wcs[:n] {
				if wc.WRID != got {
					t.Errorf("completion of %d, not of %d", wc.WRID, got)
				}
				got++
			}
			poll = func() (int, error) { return b.work.Poll(server.id.RecvCQ(), b.wcs[:4], 1) }
		}
	}
	a.sends[0].Opcode = Opcode(99)
	if _, _, err := a.work.SendSpin(
		client.id.QP(), a.base, 1<<16, a.sends[:1], a.sges[:1], client.id.SendCQ(), a.wcs[:1], 10,
	); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("no such operation: %v", err)
	}
	if n, err := a.work.Poll(nil, a.wcs[:1], 1); n != 0 || !errors.Is(err, syscall.EBADF) {
		t.Errorf("no queue: %d, %v", n, err)
	}
}

// Calls that Go's scheduler does not see, during all that stops, scans and samples goroutines.
func TestCallsOnAStackOfTheirOwn(t *testing.T) {
	// In Go 1.26, runtime.Stack may crash while another thread reads the clock as it leaves cgo.  It reads registers
	// that this thread saves for the vDSO (vdsoPC, vdsoSP) between two stores, likely on an emulated kernel.
	softOnly(t, "calls that Go does not see")
	client, server := connected(t)
	ends := [2]*worker{newWorker(t, client), newWorker(t, server)}
	const rounds = 20_000
	if err := pprof.StartCPUProfile(io.Discard); err != nil {
		t.Fatal(err)
	}
	defer pprof.StopCPUProfile()
	over := make(chan bool)
	var stopping, playing sync.WaitGroup
	stopping.Go(func() {
		for {
			select {
			case <-over:
				return
			default:
				runtime.GC()
				stack := make([]byte, 1<<12)
				runtime.Stack(stack, true)
			}
		}
	})
	for _, w := range ends {
		for range 2 {
			_, _, err := w.recv(0, nil, 0, 0)
			must(t, err)
		}
	}
	for n, w := range ends {
		playing.Go(func() {
			// A stack that grows and shrinks between the calls, as host functions have it.
			var deep func(depth int) byte
			deep = func(depth int) byte {
				var frame [256]byte
				if depth == 0 {
					return frame[0]
				}
				return deep(depth-1) + frame[depth%256]
			}
			recvCQ, sendCQ := w.id.RecvCQ(), w.id.SendCQ()
			for round := range rounds {
				deep(round % 50)
				got, err := 0, error(nil)
				if n == 0 {
					_, got, err = w.send(0, 64, recvCQ, 1, 5000)
				}
				for got == 0 && err == nil {
					if got, err = w.work.Poll(recvCQ, w.wcs[:1], 5000); got == 0 {
						runtime.Gosched()
					}
				}
				if err == nil {
					_, _, err = w.recv(0, nil, 0, 0)
				}
				if n == 1 && err == nil {
					_, _, err = w.send(0, 64, nil, 0, 0)
				}
				for sent := 0; sent == 0 && err == nil; {
					sent, err = w.work.Poll(sendCQ, w.wcs[:1], 5000)
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	playing.Wait()
	close(over)
	stopping.Wait()
}
