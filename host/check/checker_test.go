package check

import (
	"syscall"
	"testing"
	"time"

	"rdmarun/host/check/finding"
	"rdmarun/host/trace"
	"rdmarun/rdmacore"
)

// program makes calls as the trace shows them.
type program struct {
	t       *testing.T
	checker *Checker
	now     time.Duration
}

func newProgram(t *testing.T) *program {
	t.Helper()
	checker, err := NewChecker()
	if err != nil {
		t.Fatal(err)
	}
	return &program{t: t, checker: checker}
}

func (p *program) call(name string, result any, arguments, results []trace.Field, errno syscall.Errno) {
	p.now += 2
	p.checker.Take(&trace.Call{
		Process: 1, Thread: 1, Name: name, Start: p.now, End: p.now + 1, Arguments: arguments, Results: results,
		Result: result, Errno: errno,
	})
}

func word(text string) trace.Field { return trace.Field{Value: trace.Word(text)} }

// work makes a post or a poll, as the trace has it in numbers.
func (p *program) work(call trace.Call, errno syscall.Errno) {
	p.now += 2
	call.Process, call.Thread, call.Start, call.End, call.Errno = 1, 1, p.now, p.now+1, errno
	if errno == 0 {
		call.Taken = len(call.Posted)
	}
	p.checker.Take(&call)
}

// withSegment is a request with one segment.
func withSegment(id, address, length uint64, key uint32) trace.Request {
	return trace.Request{ID: id, Segments: []trace.Segment{{Address: address, Length: uint32(length), Key: key}}}
}

// connected makes a queue pair that is connected, and a region of 4096 bytes at 4096 with key 7.
func (p *program) connected() {
	p.call("ibv_create_cq", trace.Word("cq#1"), nil, []trace.Field{{Name: "entries", Value: int64(8)}}, 0)
	p.call("ibv_reg_mr", trace.Word("mr#1"), []trace.Field{
		word("pd#1"), {Name: "addr", Value: uint64(4096)}, {Name: "length", Value: uint64(4096)},
		{Name: "access", Value: trace.Word("LOCAL_WRITE|REMOTE_WRITE")},
	}, []trace.Field{{Name: "lkey", Value: uint64(7)}}, 0)
	p.call("ibv_create_qp", trace.Word("qp#1"), []trace.Field{
		word("pd#1"), {Value: trace.Struct{
			{Name: "send_cq", Value: trace.Word("cq#1")}, {Name: "recv_cq", Value: trace.Word("cq#1")},
		}},
	}, []trace.Field{{Name: "qp_num", Value: uint64(17)}}, 0)
	p.call("ibv_modify_qp", int64(0), []trace.Field{
		word("qp#1"), {Value: trace.Struct{{Name: "qp_state", Value: trace.Word("RTS")}}},
		{Name: "attr_mask", Value: trace.Word("STATE|SQ_PSN")},
	}, nil, 0)
}

func (p *program) receive(id, address, length uint64) {
	request := withSegment(id, address, length, 7)
	p.work(trace.Call{Name: "ibv_post_recv", Queue: "qp#1", Posted: []trace.Request{request}}, 0)
}

func (p *program) send(id uint64, flags rdmacore.SendFlags, address, length uint64, errno syscall.Errno) {
	request := withSegment(id, address, length, 7)
	request.Opcode, request.Flags = rdmacore.OpSend, flags
	p.work(trace.Call{Name: "ibv_post_send", Queue: "qp#1", Posted: []trace.Request{request}}, errno)
}

func (p *program) completion(id uint64, status rdmacore.WCStatus, opcode rdmacore.WCOpcode) {
	completion := trace.Completion{ID: id, Status: status, Opcode: opcode, QueuePair: 17}
	p.work(trace.Call{Name: "ibv_poll_cq", Queue: "cq#1", Polled: []trace.Completion{completion}}, 0)
}

func (p *program) deregister() { p.call("ibv_dereg_mr", int64(0), []trace.Field{word("mr#1")}, nil, 0) }

// found are the names of the findings, but for objects that are left.
func (p *program) found(end Ending) (names []string) {
	for _, each := range p.checker.Close([]string{finding.ObjectLeft}, func(int) Ending { return end }) {
		names = append(names, each.Name)
	}
	return names
}

// expect checks that there is that finding, or none.
func (p *program) expect(end Ending, want string) {
	p.t.Helper()
	found := p.found(end)
	if want == "" && len(found) > 0 || want != "" && (len(found) != 1 || found[0] != want) {
		p.t.Errorf("found %q, not %q", found, want)
	}
}

// TestRequestsEnd: a request is outstanding until its completion was polled. Another thread may have polled it before
// the record of the post came. Then its memory may be used, and its region deregistered.
func TestRequestsEnd(t *testing.T) {
	for name, test := range map[string]struct {
		calls func(p *program)
		end   Ending
		want  string // one finding, or none
	}{
		"outstanding": {calls: func(p *program) {
			p.receive(1, 4096, 64)
			p.deregister()
		}, want: finding.RegionInUse},
		"polled": {calls: func(p *program) {
			p.receive(1, 4096, 64)
			p.completion(1, rdmacore.WCSuccess, rdmacore.WCRecv)
			p.receive(2, 4096, 64)
			p.completion(2, rdmacore.WCSuccess, rdmacore.WCRecv)
			p.deregister()
		}},
		"polled before the record of the post": {calls: func(p *program) {
			p.completion(1, rdmacore.WCSuccess, rdmacore.WCRecv)
			p.receive(1, 4096, 64)
			p.deregister()
		}},
		"not signaled, and a signaled one behind it is polled": {calls: func(p *program) {
			p.send(1, 0, 4096, 64, 0)
			p.send(2, rdmacore.SendSignaled, 4160, 64, 0)
			p.completion(2, rdmacore.WCSuccess, rdmacore.WCSend)
			p.deregister()
		}},
		"flushed": {calls: func(p *program) {
			p.receive(1, 4096, 64)
			p.send(2, rdmacore.SendSignaled, 4160, 64, 0)
			p.completion(2, rdmacore.WCRNRRetryExcErr, 0)
			p.deregister()
		}},
		"reset": {calls: func(p *program) {
			p.receive(1, 4096, 64)
			p.reset()
			p.deregister()
		}},
		"two receives into one buffer": {calls: func(p *program) {
			p.receive(1, 4096, 64)
			p.receive(2, 4159, 64)
		}, want: finding.ReceiveOverlap},
		"next to each other": {calls: func(p *program) {
			p.receive(1, 4096, 64)
			p.receive(2, 4160, 64)
		}},
		"beyond the region by a length that wraps around": {calls: func(p *program) {
			p.receive(1, 8191, 1<<32-1)
		}, want: finding.OutsideRegion},
		"refused, and posted again": {calls: func(p *program) {
			p.send(1, rdmacore.SendSignaled, 4096, 64, syscall.ENOMEM)
			p.send(1, rdmacore.SendSignaled, 4096, 64, 0)
		}},
		"refused": {calls: func(p *program) {
			p.send(1, rdmacore.SendSignaled, 4096, 64, syscall.ENOMEM)
		}, want: finding.PostIgnored},
		"refused, and the program ends with an error": {calls: func(p *program) {
			p.send(1, rdmacore.SendSignaled, 4096, 64, syscall.ENOMEM)
		}, end: Failed},
		"posted after a failure": {calls: func(p *program) {
			p.send(1, rdmacore.SendSignaled, 4096, 64, 0)
			p.completion(1, rdmacore.WCRetryExcErr, 0)
			p.send(2, rdmacore.SendSignaled, 4096, 64, 0)
		}, want: finding.FailureIgnored},
		"more than the completion queue has room for": {calls: func(p *program) {
			for i := range uint64(9) {
				p.receive(i, 4096+64*i, 64)
			}
		}, want: finding.QueueOverrun},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProgram(t)
			p.connected()
			test.calls(p)
			p.expect(test.end, test.want)
		})
	}
}

// event is one of connection management for the endpoint of qp#1.
func (p *program) event(kind string) {
	p.call("rdma_get_cm_event", int64(0), nil, []trace.Field{
		{Name: "id", Value: trace.Word("id#1")}, {Name: "event", Value: trace.Word(kind)},
	}, 0)
}

func (p *program) onID(name string) { p.call(name, int64(0), []trace.Field{word("id#1")}, nil, 0) }

func (p *program) reset() {
	p.call("ibv_modify_qp", int64(0), []trace.Field{
		word("qp#1"), {Value: trace.Struct{{Name: "qp_state", Value: trace.Word("RESET")}}},
		{Name: "attr_mask", Value: trace.Word("STATE")},
	}, nil, 0)
}

// TestEventsOfConnections: what a program must do after an event, and what it may do.
func TestEventsOfConnections(t *testing.T) {
	for name, test := range map[string]struct {
		calls func(p *program)
		want  string
	}{
		"a request after DISCONNECTED": {func(p *program) {
			p.event("DISCONNECTED")
			p.send(1, rdmacore.SendSignaled, 4096, 64, 0)
		}, finding.ConnectionOver},
		"a request after REJECTED": {func(p *program) {
			p.event("REJECTED")
			p.send(1, rdmacore.SendSignaled, 4096, 64, 0)
		}, finding.ConnectionOver},
		"a last request after rdma_disconnect": {func(p *program) {
			p.event("DISCONNECTED")
			p.onID("rdma_disconnect")
			p.send(1, rdmacore.SendSignaled, 4096, 64, 0)
		}, ""},
		"the own end of the connection": {func(p *program) {
			p.onID("rdma_disconnect")
			p.event("DISCONNECTED")
			p.send(1, rdmacore.SendSignaled, 4096, 64, 0)
		}, ""},
		"used again at once": {func(p *program) {
			p.event("DISCONNECTED")
			p.reset()
		}, finding.TimewaitIgnored},
		"used again after TIMEWAIT_EXIT": {func(p *program) {
			p.event("DISCONNECTED")
			p.event("TIMEWAIT_EXIT")
			p.reset()
		}, ""},
		"a removed device": {func(p *program) { p.event("DEVICE_REMOVAL") }, finding.RemovalIgnored},
		"a removed device, and the id is destroyed": {func(p *program) {
			p.event("DEVICE_REMOVAL")
			p.onID("rdma_destroy_id")
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProgram(t)
			p.connected()
			p.checker.processes[1].endpointOf("id#1").queuePair = "qp#1"
			test.calls(p)
			p.expect(Succeeded, test.want)
		})
	}
}

// TestSingleThreaded: only calls at the same time are a mistake, because two threads may take turns.
func TestSingleThreaded(t *testing.T) {
	for name, test := range map[string]struct {
		flags uint64
		start time.Duration
		want  int
	}{
		"at the same time":       {singleThreadedCQ, 14, 1},
		"one after another":      {singleThreadedCQ, 15, 0},
		"a queue for any thread": {0, 14, 0},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProgram(t)
			p.call("ibv_create_cq_ex", trace.Word("cq#1"), []trace.Field{{Name: "flags", Value: test.flags}}, nil, 0)
			poll := func(thread int, start, end time.Duration) {
				p.checker.Take(&trace.Call{
					Process: 1, Thread: thread, Name: "ibv_poll_cq", Start: start, End: end, Result: int64(1),
					Queue: "cq#1",
				})
			}
			poll(1, 10, 15)
			poll(2, test.start, 20)
			found := p.found(Succeeded)
			if len(found) != test.want || test.want == 1 && found[0] != finding.SingleThreaded {
				t.Errorf("found %q", found)
			}
		})
	}
}

// TestMemoryOfRequests: memory may be given back when no request uses it, and its region is gone.
func TestMemoryOfRequests(t *testing.T) {
	free := func(p *program, address, length uint64) {
		p.call("free", nil, []trace.Field{{Name: "addr", Value: address}, {Name: "length", Value: length}}, nil, 0)
	}
	changed := func(p *program) {
		p.call("memory_changed", nil, []trace.Field{
			{Name: "qp_num", Value: uint64(17)}, {Name: "wr_id", Value: uint64(1)}, {Name: "addr", Value: uint64(4096)},
			{Name: "length", Value: uint64(64)},
		}, nil, 0)
	}
	onConnection(t, map[string]connectionCase{
		"freed under a receive": {func(p *program) {
			p.receive(1, 4160, 64)
			free(p, 4096, 128)
		}, finding.FreedInUse},
		"freed next to a receive": {func(p *program) {
			p.receive(1, 4224, 64)
			free(p, 4096, 128)
		}, finding.FreedRegistered},
		"freed after it was deregistered": {func(p *program) {
			p.deregister()
			free(p, 4096, 128)
		}, ""},
		"other memory": {func(p *program) { free(p, 8192, 128) }, ""},
		"changed while it is sent": {func(p *program) {
			p.send(1, rdmacore.SendSignaled, 4096, 64, 0)
			changed(p)
		}, finding.ChangedInFlight},
		"a receive may have changed it": {func(p *program) {
			p.receive(2, 4096, 64)
			p.send(1, rdmacore.SendSignaled, 4096, 64, 0)
			changed(p)
		}, finding.SentTooEarly},
	})
}

// TestRepeatedFindings are one, with their number.
func TestRepeatedFindings(t *testing.T) {
	p := newProgram(t)
	p.connected()
	for i := range uint64(5) {
		p.receive(i, 8192, 64)
		p.completion(i, rdmacore.WCSuccess, rdmacore.WCRecv)
	}
	found := p.checker.Close(nil, func(int) Ending { return Killed })
	if len(found) != 1 || found[0].Count != 5 {
		t.Errorf("%+v", found)
	}
}

// TestMissingCalls: after a gap in the trace, a key that no region has is no mistake.
func TestMissingCalls(t *testing.T) {
	p := newProgram(t)
	p.connected()
	p.work(trace.Call{
		Name: "ibv_post_recv", Queue: "qp#1", Posted: []trace.Request{withSegment(1, 4096, 64, 8)},
	}, 0)
	p.checker.Take(&trace.Call{Process: 1, Note: "3 calls are missing"})
	if found := p.found(Succeeded); len(found) > 0 {
		t.Errorf("found %q", found)
	}
	if missing := p.checker.Missing(); len(missing) != 1 || missing[0] != "3 calls are missing" {
		t.Errorf("missing: %q", missing)
	}
}

// TestProcessesEnd: a process that has left nothing is forgotten.
func TestProcessesEnd(t *testing.T) {
	for name, test := range map[string]struct {
		arguments []trace.Field
		left      int
	}{
		"nothing is left": {[]trace.Field{word("pd#1")}, 0},
		"a domain is":     {[]trace.Field{word("pd#2")}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProgram(t)
			p.call("ibv_alloc_pd", trace.Word("pd#1"), nil, nil, 0)
			p.call("ibv_dealloc_pd", int64(0), test.arguments, nil, 0)
			p.call("exit", nil, nil, nil, 0)
			if len(p.checker.processes) != test.left {
				t.Errorf("%d processes are known", len(p.checker.processes))
			}
			if found := p.checker.Close(nil, func(int) Ending { return Succeeded }); len(found) != test.left {
				t.Errorf("found %+v", found)
			}
		})
	}
}

// TestKilledProcess: a process that a signal ends cannot destroy its objects. Of the others only the trace knows it.
func TestKilledProcess(t *testing.T) {
	for name, test := range map[string]struct {
		killed bool
		end    Ending
		left   int
	}{
		"another process exits":     {false, Unknown, 1},
		"another process is killed": {true, Unknown, 0},
		"the program exits":         {true, Succeeded, 1}, // without a function of the C library
		"the program is killed":     {true, Killed, 0},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProgram(t)
			p.call("ibv_alloc_pd", trace.Word("pd#1"), nil, nil, 0)
			p.checker.Take(&trace.Call{Process: 1, Name: "exit", Killed: test.killed})
			if found := p.checker.Close(nil, func(int) Ending { return test.end }); len(found) != test.left {
				t.Errorf("found %+v", found)
			}
		})
	}
}

// TestExec: the objects of a program end when it executes another one, which has others of the same names.
func TestExec(t *testing.T) {
	p := newProgram(t)
	p.connected()
	for i := range uint64(8) { // as many as the completion queue has entries
		p.receive(i, 4096+64*i, 64)
	}
	p.call("exec", nil, nil, nil, 0)
	p.connected()
	p.receive(1, 4096, 64)
	p.completion(1, rdmacore.WCSuccess, rdmacore.WCRecv)
	p.call("ibv_destroy_qp", int64(0), []trace.Field{word("qp#1")}, nil, 0)
	p.expect(Succeeded, "")
	if len(p.checker.former) != 1 {
		t.Errorf("%d programs have left objects, not 1", len(p.checker.former))
	}
}

// connectionCase is what a program with a connection does, and the code of its one finding; "" for none.
type connectionCase struct {
	calls func(p *program)
	want  string
}

func onConnection(t *testing.T, cases map[string]connectionCase) {
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			p := newProgram(t)
			p.connected()
			test.calls(p)
			p.expect(Succeeded, test.want)
		})
	}
}
