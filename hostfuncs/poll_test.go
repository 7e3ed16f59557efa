package hostfuncs

import (
	"context"
	"syscall"
	"testing"
	"unsafe"

	"rdmarun/rdmacore"
)

const pollAt = 0x3200

// polled calls poll_set and gives what it found of each entry.
func polled(t testing.TB, i *Instance, timeout uint64, entries ...PollEntry) (revents []uint32) {
	t.Helper()
	ready := 0
	for n, entry := range entries {
		put(i, pollAt+Pointer(n)*16, entry)
	}
	count := must(t, i, "poll_set", pollAt, uint64(len(entries)), timeout)
	for n := range entries {
		revents = append(revents, take[PollEntry](i, pollAt+Pointer(n)*16).Revents)
		if revents[n] != 0 {
			ready++
		}
	}
	if int(count) != ready {
		t.Errorf("%d are ready, the result is %d", ready, count)
	}
	return revents
}

func in(handle uint64) PollEntry  { return PollEntry{Handle: Handle(handle), Events: pollIn} }
func pri(handle uint64) PollEntry { return PollEntry{Handle: Handle(handle), Events: pollPri} }

// found wants these revents.
func found(t testing.TB, what string, got []uint32, want ...uint32) {
	t.Helper()
	for n := range want {
		if got[n] != want[n] {
			t.Errorf("%s: entry %d has revents %#x, not %#x", what, n, got[n], want[n])
		}
	}
}

func TestPollSetOfConnections(t *testing.T) {
	for name, options := range clocks() {
		t.Run(name, func(t *testing.T) {
			p := connectPair(t, options...)
			i := p.Instance
			all := []PollEntry{in(p.channel), in(p.active), in(p.passive), in(p.listener)}
			found(t, "nothing", polled(t, i, 0, all...), 0, 0, 0, 0)
			found(t, "nothing in time", polled(t, i, 1e6, all...), 0, 0, 0, 0)
			must(t, i, "disconnect", p.active)
			// Looking takes nothing, whichever way it is looked at.
			for range 2 {
				found(t, "the end", polled(t, i, timeout, all...), pollIn, 0, pollIn, 0)
			}
			// What another asks for is read, kept, and seen all the same.
			put(i, eventAt, CMEvent{StructSize: uint32(unsafe.Sizeof(CMEvent{}))})
			expect(t, i, syscall.ETIMEDOUT, "wait_event", p.channel, p.active, eventAt, 0)
			found(t, "kept", polled(t, i, 0, all...), pollIn, 0, pollIn, 0)
			p.event(t, p.passive, rdmacore.EventDisconnected)
			found(t, "taken", polled(t, i, 0, all...), 0, 0, 0, 0)
			must(t, i, "disconnect", p.passive)
			found(t, "of the other", polled(t, i, timeout, all...), pollIn, pollIn, 0, 0)
			p.event(t, p.active, rdmacore.EventDisconnected)
			found(t, "all of it", polled(t, i, 0, all...), 0, 0, 0, 0)
		})
	}
}

// A request is seen before it is taken; one that was lost would have its peer wait.
func TestPollSetOfASynchronousListener(t *testing.T) {
	for name, options := range clocks() {
		t.Run(name, func(t *testing.T) {
			p := connectPair(t, options...)
			i := p.Instance
			info := take[AddrInfo](i, infoAt)
			passive := AddrInfo{StructSize: uint32(unsafe.Sizeof(AddrInfo{})), Flags: raiPassive}
			put(i, infoAt, passive)
			listener := must(t, i, "create_ep", 0, infoAt, 0, 0)
			must(t, i, "listen", listener, 4)
			found(t, "no request", polled(t, i, 1e6, in(listener)), 0)
			info.Destination.Port = uint16(must(t, i, "src_port", listener))
			put(i, infoAt, info)
			active := must(t, i, "create_ep", 0, infoAt, p.pd, attrAt)
			must(t, i, "connect", active, 0)
			for range 2 {
				found(t, "a request", polled(t, i, timeout, in(active), in(listener)), 0, pollIn)
			}
			child := must(t, i, "get_request", listener, 0)
			found(t, "taken", polled(t, i, 0, in(listener)), 0)
			must(t, i, "create_qp", child, p.pd, attrAt)
			must(t, i, "accept", child, 0)
			found(t, "an answer", polled(t, i, timeout, in(active)), pollIn)
			must(t, i, "complete", active, timeout)
			found(t, "established", polled(t, i, timeout, in(child)), pollIn)
			must(t, i, "complete", child, timeout)
		})
	}
}

func TestPollSetOfQueues(t *testing.T) {
	for name, options := range clocks() {
		t.Run(name, func(t *testing.T) {
			p := connectPair(t, options...)
			i := p.Instance
			qp, cq := must(t, i, "ep_qp", p.active), must(t, i, "ep_send_cq", p.active)
			must(t, i, "reg_mr", p.pd, bufferAt, 64, uint64(fuzzRights), mrAt)
			mr := take[MR](i, mrAt)
			put(i, sgeAt, SGE{Address: bufferAt, Length: 8, LKey: mr.LKey})
			write := func(id uint64) {
				put(i, wrAt, SendWR{WRID: id, Opcode: uint32(rdmacore.OpRDMAWrite),
					Flags: uint32(rdmacore.SendSignaled), NumSGE: 1,
					RKey: mr.RKey, RemoteAddress: mr.Address + 32})
				must(t, i, "post_send", qp, wrAt, 1, sgeAt, 1, 0)
			}
			both := []PollEntry{{Handle: Handle(cq), Events: pollIn | pollPri | pollOut}, pri(0)}
			found(t, "nothing", polled(t, i, 1e6, both...), 0, 0)
			write(1)
			write(2)
			for range 2 {
				found(t, "a completion", polled(t, i, timeout, both...), pollIn, 0)
			}
			if n := must(t, i, "poll_cq", cq, wcAt, 4); n == 0 || take[WC](i, wcAt).WRID != 1 {
				t.Errorf("%d completions, the first of %d", n, take[WC](i, wcAt).WRID)
			}
			for must(t, i, "poll_cq", cq, wcAt, 4) != 0 {
			}
			found(t, "taken", polled(t, i, 0, both...), 0, 0)
			must(t, i, "req_notify", cq, 0)
			write(3)
			found(t, "an event", polled(t, i, timeout, pri(cq)), pollPri)
			must(t, i, "wait_cq_event", cq, 0)
			found(t, "the event is taken", polled(t, i, 0, both...), pollIn, 0)
			must(t, i, "poll_cq", cq, wcAt, 4)
			p.trespass(t)
			found(t, "an asynchronous event", polled(t, i, timeout, both[1], pri(p.active)), pollPri, pollPri)
			async(t, i, 0, 0)
			found(t, "which is taken", polled(t, i, 0, both[1], pri(p.active)), 0, 0)
		})
	}
}

// A completion that was looked at goes with its QP, as those do that were not.
func TestPollSetLeavesNoCompletionOfADeadQP(t *testing.T) {
	p := connectPair(t)
	i := p.Instance
	cq := must(t, i, "create_cq", 0, 8)
	must(t, i, "destroy_qp", p.active)
	put(i, attrAt, QPInitAttr{
		StructSize: uint32(unsafe.Sizeof(QPInitAttr{})), MaxSendWR: 8, MaxRecvWR: 8, MaxSendSGE: 1,
		MaxRecvSGE: 1, SendCQ: Handle(cq), RecvCQ: Handle(cq)})
	qp := must(t, i, "create_qp", p.active, p.pd, attrAt)
	must(t, i, "modify_qp", qp, func() uint64 {
		put(i, bufferAt, QPAttr{StructSize: uint32(unsafe.Sizeof(QPAttr{})), State: uint32(rdmacore.QPStateErr)})
		return bufferAt
	}(), 1)
	put(i, wrAt, RecvWR{WRID: 1})
	must(t, i, "post_recv", qp, wrAt, 1, 0, 0, 0)
	found(t, "flushed", polled(t, i, timeout, in(cq)), pollIn)
	must(t, i, "destroy_qp", p.active)
	if n := must(t, i, "poll_cq", cq, wcAt, 4); n != 0 {
		t.Errorf("%d completions of a QP that is gone", n)
	}
}

func TestPollSetOfEventFDs(t *testing.T) {
	i := newInstance(t, 1<<16, Config{})
	fd, semaphore := must(t, i, "create_eventfd", 0, 0), must(t, i, "create_eventfd", 2, 1)
	both := []PollEntry{{Handle: Handle(fd), Events: pollIn | pollOut}, in(semaphore)}
	found(t, "at first", polled(t, i, 0, both...), pollOut, pollIn)
	must(t, i, "eventfd_write", fd, 3)
	found(t, "signalled", polled(t, i, timeout, both...), pollIn|pollOut, pollIn)
	must(t, i, "eventfd_write", fd, 1<<64-2-3)
	expect(t, i, syscall.EAGAIN, "eventfd_write", fd, 1)
	expect(t, i, syscall.EINVAL, "eventfd_write", fd, 1<<64-1)
	found(t, "full", polled(t, i, 0, both...), pollIn, pollIn)
	must(t, i, "eventfd_read", fd, bufferAt)
	if got := take[uint64](i, bufferAt); got != 1<<64-2 {
		t.Errorf("read %d", got)
	}
	for range 2 {
		must(t, i, "eventfd_read", semaphore, bufferAt)
		if got := take[uint64](i, bufferAt); got != 1 {
			t.Errorf("a semaphore gave %d", got)
		}
	}
	for _, empty := range []uint64{fd, semaphore} {
		expect(t, i, syscall.EAGAIN, "eventfd_read", empty, bufferAt)
	}
	found(t, "empty", polled(t, i, 1e6, both...), pollOut, 0)
	expect(t, i, syscall.EINVAL, "create_eventfd", 0, 2)
	must(t, i, "destroy_eventfd", fd)
	found(t, "destroyed", polled(t, i, timeout, both...), pollNval, 0)
}

func TestBadPollSets(t *testing.T) {
	p := connectPair(t)
	i := p.Instance
	end := uint64(len(i.memory))
	for name, c := range map[string]struct {
		at, count uint64
		want      syscall.Errno
	}{
		"outside":      {end, 1, syscall.EFAULT},
		"past the end": {end - 8, 1, syscall.EFAULT},
		"null":         {0, 1, syscall.EFAULT},
		"not aligned":  {pollAt + 2, 1, syscall.EINVAL},
		"too many":     {pollAt, 1e5, syscall.EINVAL},
		"wraps around": {pollAt, 1<<32 - 1, syscall.EINVAL},
	} {
		if got := call(t, i, "poll_set", c.at, c.count, 0); got != -int32(c.want) {
			t.Errorf("%s: %d (%v), not %v", name, got, i.lastError, c.want)
		}
	}
	put(i, pollAt, PollEntry{Handle: Handle(p.channel), Events: 0x40})
	expect(t, i, syscall.EINVAL, "poll_set", pollAt, 1, 0)
	// None and nothing: a pause.
	if n := must(t, i, "poll_set", 0, 0, 1000); n != 0 {
		t.Error(n)
	}
	found(t, "not to be waited for", polled(t, i, timeout, in(p.pd), in(7), PollEntry{}), pollNval, pollNval, 0)
	i.RequestStop()
	expect(t, i, syscall.ECANCELED, "poll_set", 0, 0, timeout)
}

// As many entries as there may be of one queue are looked at within a call.
func TestPollSetOfManyEntries(t *testing.T) {
	i := newInstance(t, 1<<20, Config{})
	cq := must(t, i, "create_cq", 0, 8)
	const at, count = 0x4000, 16384
	for n := range Pointer(count) {
		put(i, at+16*n, in(cq))
	}
	if n := must(t, i, "poll_set", at, count, 1e6); n != 0 {
		t.Error(n)
	}
}

// Guests that wait for messages, each by a set of its own: no wakeup is lost, on whatever it waits.
func TestPollSetWakesUp(t *testing.T) {
	first := newInstance(t, 1<<16, Config{})
	const rounds = 300
	ended := make(chan bool)
	ends := [2]*pair{
		connectIn(t, first, 0), connectIn(t, instanceOn(t, 1<<16, Config{Provider: first.provider, Serial: 1}), 0),
	}
	for n, p := range ends {
		go func() {
			defer func() { ended <- true }()
			i := p.Instance
			recvCQ, receiver := must(t, i, "ep_recv_cq", p.passive), must(t, i, "ep_qp", p.passive)
			sender, _ := i.qps.get(Handle(must(t, i, "ep_qp", p.active)))
			sendCQ, _ := i.cqs.get(Handle(must(t, i, "ep_send_cq", p.active)))
			sent := make(chan bool)
			for round := range rounds {
				put(i, wrAt, RecvWR{WRID: uint64(round)})
				must(t, i, "post_recv", receiver, wrAt, 1, 0, 0, 0)
				entries := []PollEntry{in(recvCQ), in(p.channel), pri(0)}
				if n == 1 {
					must(t, i, "req_notify", recvCQ, 0)
					entries[0] = pri(recvCQ)
				}
				go func() {
					var wcs [1]rdmacore.WC
					_, err := sender.PostSend(
						[]rdmacore.SendWR{{Opcode: rdmacore.OpSend, Flags: rdmacore.SendSignaled}}, nil,
					)
					if err == nil {
						_, err = sendCQ.Wait(context.Background(), wcs[:])
					}
					if err != nil {
						t.Error(err)
					}
					sent <- true
				}()
				found(t, "a message", polled(t, i, timeout, entries...), entries[0].Events, 0, 0)
				if n == 1 {
					must(t, i, "wait_cq_event", recvCQ, 0)
				}
				if must(t, i, "poll_cq", recvCQ, wcAt, 4) != 1 {
					t.Error("no message")
					return
				}
				<-sent
			}
		}()
	}
	for range ends {
		<-ended
	}
}

// What the host needs to look at many entries is the guest's.
func TestPollSetIsCharged(t *testing.T) {
	budget := NewBudget(Limits{Memory: 100 * pollEntrySize})
	i := newInstance(t, 1<<20, Config{Budget: budget})
	for count, want := range map[uint64]syscall.Errno{100: 0, 101: syscall.ENOMEM, 16384: syscall.ENOMEM} {
		if got := call(t, i, "poll_set", pollAt, count, 0); got < 0 != (want != 0) || want != 0 && got != -int32(want) {
			t.Errorf("%d entries: %d", count, got)
		}
	}
	if used := budget.Used(); used != (Cost{}) {
		t.Errorf("%+v stays charged", used)
	}
}
