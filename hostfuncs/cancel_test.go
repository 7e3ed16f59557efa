package hostfuncs

import (
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"rdmarun/rdmacore"
)

// A completion arrives just when a timeout or a request to stop ends a wait. This wait or the next one returns the
// completion, once, and the request ends one wait.
func TestEndsOfWaitsBesideCompletions(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for range 20 {
		p := connectPair(t)
		i := p.Instance
		must(t, i, "reg_mr", p.pd, bufferAt, 64, 1, mrAt)
		put(i, sgeAt, SGE{Address: bufferAt, Length: 8, LKey: take[MR](i, mrAt).LKey})
		from, to, cq := must(t, i, "ep_qp", p.active), must(t, i, "ep_qp", p.passive),
			must(t, i, "ep_recv_cq", p.passive)
		sends := must(t, i, "ep_send_cq", p.active)
		time.AfterFunc(time.Duration(random.IntN(2000))*time.Microsecond, i.RequestStop)
		stopped := 0
		waited := func(name string, words ...uint64) int32 {
			for {
				result := call(t, i, name, words...)
				switch {
				case result == -int32(syscall.ECANCELED):
					stopped++
				case result == -int32(syscall.ETIMEDOUT):
				case result < 0:
					t.Fatalf("%s: %v", name, i.lastError)
				default:
					return result
				}
			}
		}
		for id := range uint64(50) {
			put(i, wrAt, RecvWR{WRID: id, NumSGE: 1})
			must(t, i, "post_recv", to, wrAt, 1, sgeAt, 1, postedAt)
			must(t, i, "req_notify", cq, 0)
			put(i, wrAt, SendWR{
				WRID: id, Opcode: uint32(rdmacore.OpSend), Flags: uint32(rdmacore.SendSignaled), NumSGE: 1,
			})
			must(t, i, "post_send", from, wrAt, 1, sgeAt, 1, postedAt)
			short := uint64(random.IntN(30000))
			if id%2 == 0 {
				waited("wait_cq_event", cq, short)
			}
			for _, queue := range []uint64{cq, sends} {
				if n := waited("wait_cq", queue, wcAt, 4, short); n != 1 || take[WC](i, wcAt).WRID != id {
					t.Fatalf("%d completions, that of request %d for %d", n, take[WC](i, wcAt).WRID, id)
				}
			}
		}
		for stopped == 0 { // it may come late
			if call(t, i, "wait_cq", cq, wcAt, 1, uint64(10*time.Second)) == -int32(syscall.ECANCELED) {
				stopped++
			}
		}
		if stopped != 1 || must(t, i, "stop_requested") != 1 {
			t.Errorf("%d waits were ended by one request", stopped)
		}
		if n := must(t, i, "poll_cq", cq, wcAt, 4); n != 0 {
			t.Errorf("%d completions too many", n)
		}
		if _, err := p.Close(); err != nil {
			t.Error(err)
		}
	}
}
