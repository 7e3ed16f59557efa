package replay_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"rdmarun/host/replay"
	"rdmarun/host/trace"
)

// recording is what two processes do: 1 and 2.
type recording struct {
	*replay.Recorder
	now time.Duration
}

func newRecording() *recording { return &recording{Recorder: replay.NewRecorder()} }

// call records a call that took no time.
func (r *recording) call(process int, name string, arguments, results []trace.Field) *trace.Call {
	return r.during(process, name, 0, arguments, results)
}

// during records a call that took some time and ends now.
func (r *recording) during(
	process int, name string, took time.Duration, arguments, results []trace.Field,
) *trace.Call {
	r.now += time.Millisecond
	call := &trace.Call{
		Process: process, Thread: process, Name: name, Start: r.now - took, End: r.now, Arguments: arguments,
		Results: results,
	}
	r.Take(call)
	return call
}

func word(name, value string) trace.Field   { return trace.Field{Name: name, Value: trace.Word(value)} }
func object(name string) trace.Field        { return word("", name) }
func number(name string, n int) trace.Field { return trace.Field{Name: name, Value: int64(n)} }

// createID records an id with an event channel.
func (r *recording) createID(process int, name string) {
	r.call(process, "rdma_create_id", []trace.Field{object("channel#1"), word("ps", "TCP")},
		[]trace.Field{object(name)})
}

// connected records a listener of process 1 and an id of process 2, with a queue pair each.
func connected() *recording {
	r := newRecording()
	attributes := trace.Field{Value: trace.Struct{
		word("qp_type", "RC"), number("max_send_wr", 4), number("max_recv_wr", 4), number("max_send_sge", 1),
		number("max_recv_sge", 1),
	}}
	r.createID(1, "id#1")
	r.call(1, "rdma_bind_addr", []trace.Field{object("id#1"), word("addr", "0.0.0.0:7471")}, nil)
	r.call(1, "rdma_listen", []trace.Field{object("id#1"), number("backlog", 3)}, nil)
	r.createID(2, "id#1")
	r.call(2, "rdma_resolve_addr", []trace.Field{object("id#1"), word("dst_addr", "127.0.0.1:7471")}, nil)
	r.call(2, "rdma_create_qp", []trace.Field{object("id#1"), attributes},
		[]trace.Field{object("qp#1"), number("qp_num", 17)})
	r.call(1, "rdma_get_cm_event", []trace.Field{object("channel#1")},
		[]trace.Field{word("event", "CONNECT_REQUEST"), object("id#2"), word("listen_id", "id#1")})
	r.call(1, "rdma_create_qp", []trace.Field{object("id#2"), attributes},
		[]trace.Field{object("qp#1"), number("qp_num", 18)})
	return r
}

// steps are those of the scenario.
func (r *recording) steps(t *testing.T) []string {
	t.Helper()
	var text strings.Builder
	if err := r.Write(&text, "name", []string{"program", "with\nlines"}); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(text.String(), "# Recorded by rdmarun of: program with␊lines\nrdmarun: v1\n") {
		t.Errorf("the scenario begins with %.80q", text.String())
	}
	_, steps, _ := strings.Cut(text.String(), "\nsteps:\n")
	return strings.Split(strings.TrimSpace(steps), "\n")
}

func (r *recording) last(t *testing.T, want string) {
	t.Helper()
	steps := r.steps(t)
	if got := strings.TrimSpace(steps[len(steps)-1]); got != want {
		t.Errorf("the last step is\n%s, want\n%s", got, want)
	}
}

func TestConnection(t *testing.T) {
	qp := "{type: RC, max_send_wr: 4, max_recv_wr: 4, max_send_sge: 1, max_recv_sge: 1, max_inline_data: 0, " +
		"sig_all: false}"
	want := []string{
		"- {role: server, create_id: {port_space: TCP}, as: ep1}",
		"- {role: server, bind_addr: {ep: ep1, port: 7471, address: any}}",
		"- {role: server, listen: {ep: ep1, backlog: 3}}",
		"- {role: client, create_id: {port_space: TCP}, as: ep1}",
		"- {role: client, resolve_addr: {ep: ep1, to: server, port: 7471}}",
		"- {role: client, create_qp: {ep: ep1, qp: " + qp + "}}",
		"- {role: server, wait_event: {ep: ep1, type: CONNECT_REQUEST}, as: ep2}",
		"- {role: server, create_qp: {ep: ep2, qp: " + qp + "}}",
	}
	r := connected()
	var got []string
	for _, each := range r.steps(t) {
		got = append(got, strings.TrimSpace(each))
	}
	if !slices.Equal(got, want) {
		t.Errorf("steps\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if missing := r.Missing(); missing != nil {
		t.Errorf("missing: %q", missing)
	}
}

// A call that begins something takes the place of its begin, also if what it causes has returned before it.
func TestOrder(t *testing.T) {
	r := connected()
	r.call(1, "rdma_get_cm_event", []trace.Field{object("channel#1")},
		[]trace.Field{word("event", "ESTABLISHED"), object("id#2")})
	r.during(2, "rdma_connect", 1500*time.Microsecond, []trace.Field{object("id#1")}, nil)
	steps := r.steps(t)
	if last := steps[len(steps)-2:]; !strings.Contains(last[0], "connect: {ep: ep1, no_params: true}") ||
		!strings.Contains(last[1], "wait_event: {ep: ep2, type: ESTABLISHED}") {
		t.Errorf("the last steps are\n%s", strings.Join(last, "\n"))
	}
}

// TestLateEvent: the event of a connect comes before what it causes, also if the call that takes it returns later.
func TestLateEvent(t *testing.T) {
	poll := func(r *recording, process, queuePair int, status string) {
		r.call(process, "ibv_poll_cq", []trace.Field{object("cq#1")}, []trace.Field{{Value: trace.List{trace.Struct{
			number("wr_id", 1), word("status", status), word("opcode", "SEND"), number("qp_num", queuePair),
		}}}})
	}
	for name, test := range map[string]struct {
		event  string
		effect func(*recording)
		role   string
	}{
		"established": {"ESTABLISHED", func(r *recording) {
			r.call(1, "rdma_get_cm_event", []trace.Field{object("channel#1")},
				[]trace.Field{word("event", "ESTABLISHED"), object("id#2")})
		}, "server"},
		"completed": {"ESTABLISHED", func(r *recording) { poll(r, 1, 18, "SUCCESS") }, "server"},
		"flushed":   {"REJECTED", func(r *recording) { poll(r, 2, 17, "WR_FLUSH_ERR") }, "client"},
	} {
		r := connected()
		r.call(2, "rdma_connect", []trace.Field{object("id#1")}, nil)
		r.call(1, "rdma_accept", []trace.Field{object("id#2")}, nil)
		test.effect(r)
		r.call(1, "ibv_post_recv", []trace.Field{object("qp#1"), {Value: trace.Struct{number("wr_id", 3)}}}, nil)
		r.during(2, "rdma_get_cm_event", 2500*time.Microsecond, []trace.Field{object("channel#1")},
			[]trace.Field{word("event", test.event), object("id#1")})
		steps := r.steps(t)
		for i, want := range []string{
			"server, accept", "client, wait_event: {ep: ep1, type: " + test.event, test.role, "server, post_recv",
		} {
			if got := steps[len(steps)-4+i]; !strings.Contains(got, "{role: "+want) {
				t.Errorf("%s: step %s, want %s", name, got, want)
			}
		}
	}
}

// TestDestroyOrder: what a thread takes of an endpoint comes before its end, also if the call of another thread that
// destroys it began earlier.
func TestDestroyOrder(t *testing.T) {
	const long = 1500 * time.Microsecond // longer than two calls are apart
	event := func(r *recording) {
		r.call(2, "rdma_get_cm_event", []trace.Field{object("channel#1")},
			[]trace.Field{word("event", "DISCONNECTED"), object("id#1")})
	}
	poll := func(r *recording, took time.Duration) {
		r.during(2, "ibv_poll_cq", took, []trace.Field{object("cq#1")}, []trace.Field{{Value: trace.List{trace.Struct{
			number("wr_id", 1), word("status", "WR_FLUSH_ERR"), number("qp_num", 17),
		}}}})
	}
	destroy := func(r *recording, name string, took time.Duration) {
		r.during(2, name, took, []trace.Field{object("id#1")}, nil)
	}
	for name, test := range map[string]struct {
		calls func(*recording)
		want  []string
	}{
		"event": {
			func(r *recording) { event(r); destroy(r, "rdma_destroy_id", long) }, []string{"wait_event", "destroy_ep"},
		},
		"completion": {
			func(r *recording) { poll(r, 0); destroy(r, "rdma_destroy_qp", long) }, []string{"poll", "destroy_qp"},
		},
		"poll that returns late": {
			func(r *recording) { destroy(r, "rdma_destroy_qp", 0); poll(r, long) }, []string{"poll", "destroy_qp"},
		},
		"event after the queue pair": {
			func(r *recording) { event(r); destroy(r, "rdma_destroy_qp", long) }, []string{"destroy_qp", "wait_event"},
		},
		"poll of the next queue pair": {
			func(r *recording) {
				destroy(r, "rdma_destroy_qp", 0)
				r.call(2, "rdma_create_qp", []trace.Field{object("id#1")},
					[]trace.Field{object("qp#2"), number("qp_num", 17)})
				poll(r, 0)
			}, []string{"destroy_qp", "create_qp", "poll"},
		},
	} {
		r := connected()
		test.calls(r)
		steps := r.steps(t)
		for i, want := range test.want {
			if got := steps[len(steps)-len(test.want)+i]; !strings.Contains(got, want+": {ep: ep1") {
				t.Errorf("%s: step %s, want %s", name, got, want)
			}
		}
		if missing := r.Missing(); missing != nil {
			t.Errorf("%s: missing: %q", name, missing)
		}
	}
}

// A connect that began before the listen has found it by repetition.
func TestConnectBeforeListen(t *testing.T) {
	for name, test := range map[string]struct {
		event string
		last  string
	}{
		"established": {"ESTABLISHED", "connect"},
		"rejected":    {"REJECTED", "listen"},
	} {
		r := connected()
		r.createID(2, "id#7")
		r.call(2, "rdma_resolve_addr", []trace.Field{object("id#7"), word("dst_addr", "127.0.0.1:7777")}, nil)
		r.call(2, "rdma_connect", []trace.Field{object("id#7")}, nil)
		r.createID(1, "id#8")
		r.call(1, "rdma_bind_addr", []trace.Field{object("id#8"), word("addr", "127.0.0.1:7777")}, nil)
		r.call(1, "rdma_listen", []trace.Field{object("id#8"), number("backlog", 3)}, nil)
		r.call(2, "rdma_get_cm_event", []trace.Field{object("channel#1")},
			[]trace.Field{word("event", test.event), object("id#7")})
		steps := r.steps(t)
		if before := steps[len(steps)-2]; !strings.Contains(before, ", "+test.last+": ") {
			t.Errorf("%s: the step before the event is %s", name, before)
		}
	}
}

func TestParameters(t *testing.T) {
	r := connected()
	r.call(2, "rdma_connect", []trace.Field{object("id#1"), {Value: trace.Struct{
		number("responder_resources", 1), number("retry_count", 7), number("rnr_retry_count", 0),
		{Name: "private_data", Value: trace.Bytes{Data: []byte{1, 0xff}, Length: 4}},
	}}}, nil)
	r.last(t, `- {role: client, connect: {ep: ep1, responder_resources: 1, retry_count: 7, rnr_retry_count: 0, `+
		`private_data: {hex: "01ff0000"}}}`)
	r.call(2, "rdma_disconnect", []trace.Field{object("id#1")}, nil).Errno = 0
	r.last(t, "- {role: client, disconnect: {ep: ep1}}")
}

func TestFailedCall(t *testing.T) {
	r := connected()
	r.now += time.Millisecond
	r.Take(&trace.Call{
		Process: 1, Name: "rdma_accept", Start: r.now, End: r.now, Errno: 22, Arguments: []trace.Field{object("id#2")},
	})
	r.last(t, "- {role: server, accept: {ep: ep2, no_params: true}, expect: {errno: EINVAL}}")
}

// A synchronous id waits for the event in the call.
func TestSynchronousCalls(t *testing.T) {
	for _, test := range []struct {
		errno syscall.Errno
		want  []string
	}{
		{0, []string{"connect: {ep: ep2, no_params: true}}", "wait_event: {ep: ep2, type: ESTABLISHED}}"}},
		{syscall.ECONNREFUSED, []string{
			"connect: {ep: ep2, no_params: true}}", "wait_event: {ep: ep2, type: REJECTED}, expect: {status: {ne: 0}}}",
		}},
		{syscall.ETIMEDOUT, []string{
			"connect: {ep: ep2, no_params: true}}",
			"wait_event: {ep: ep2, type: UNREACHABLE}, expect: {status: ETIMEDOUT}}",
		}},
		{syscall.EINVAL, []string{"connect: {ep: ep2, no_params: true}, expect: {errno: EINVAL}}"}},
	} {
		r := connected()
		r.call(2, "rdma_create_id", []trace.Field{word("", "NULL"), word("ps", "TCP")}, []trace.Field{object("id#2")})
		r.now += time.Millisecond
		r.Take(&trace.Call{
			Process: 2, Name: "rdma_connect", Start: r.now, End: r.now + 1, Errno: test.errno,
			Arguments: []trace.Field{object("id#2")},
		})
		steps := r.steps(t)
		for i, want := range test.want {
			if got := steps[len(steps)-len(test.want)+i]; got != "  - {role: client, "+want {
				t.Errorf("%v: step %s, want %s", test.errno, got, want)
			}
		}
	}
}

// register records a region of 100 bytes at that address.
func (r *recording) register(process, address, key int) {
	r.call(process, "ibv_reg_mr", []trace.Field{
		object("pd#1"), number("addr", address), number("length", 100), word("access", "LOCAL_WRITE|REMOTE_WRITE"),
	}, []trace.Field{number("lkey", key), number("rkey", key+1)})
}

func sge(address, length, key int) trace.Field {
	return trace.Field{Name: "sge", Value: trace.List{
		trace.Struct{number("addr", address), number("length", length), number("lkey", key)},
	}}
}

func (r *recording) send(process, id int, more ...trace.Field) {
	request := append(trace.Struct{number("wr_id", id)}, more...)
	r.call(process, "ibv_post_send", []trace.Field{object("qp#1"), {Value: request}}, nil)
}

func TestRequests(t *testing.T) {
	r := connected()
	r.register(1, 1000, 5)
	r.register(2, 5000, 7)
	r.send(2, 9, word("opcode", "RDMA_WRITE"), word("flags", "SIGNALED|FENCE"), number("remote_addr", 1010),
		number("rkey", 6), sge(5020, 30, 7))
	r.last(t, "- {role: client, post_write: {ep: ep1, buffer: mr1, offset: 20, length: 30, "+
		"to: {addr: $(server.mr1.addr + 10), rkey: $(server.mr1.rkey)}, wr_id: 9, fence: true, signaled: true}, "+
		"leftovers: ignore}")
	r.send(2, 10, word("opcode", "SEND"), word("flags", "INLINE"), sge(77, 12, 0))
	r.last(t, "- {role: client, post_send: {ep: ep1, buffer: inline, offset: 0, length: 12, wr_id: 10, inline: true}, "+
		"leftovers: ignore}")
	r.send(2, 11, word("opcode", "SEND"), sge(5090, 11, 7))
	r.send(2, 12, word("opcode", "SEND"), sge(1<<62, 1<<62, 7))
	r.send(2, 13, word("opcode", "DRIVER1"), sge(5000, 1, 7))
	r.call(2, "ibv_modify_srq", nil, nil)
	want := []string{
		"not in the scenario: a request with memory outside of its region (2 times)",
		"not in the scenario: ibv_modify_srq (1 times)",
		"not in the scenario: operation DRIVER1 (1 times)",
	}
	if missing := r.Missing(); !slices.Equal(missing, want) {
		t.Errorf("missing: %q, want %q", missing, want)
	}
}

// A completion is polled from the queue of its request, also a failed one, which has no opcode.
func TestCompletions(t *testing.T) {
	r := connected()
	r.register(2, 5000, 7)
	complete := func(fields ...trace.Field) {
		t.Helper()
		r.call(2, "ibv_poll_cq", []trace.Field{object("cq#1")}, []trace.Field{{Value: trace.List{
			append(trace.Struct(fields), number("qp_num", 17)),
		}}})
	}
	receive := trace.Field{Value: trace.Struct{number("wr_id", 1), sge(5000, 100, 7)}}
	r.call(2, "ibv_post_recv", []trace.Field{object("qp#1"), receive}, nil)
	r.send(2, 1, word("opcode", "SEND"), sge(5000, 1, 7))
	complete(number("wr_id", 1), word("status", "RETRY_EXC_ERR"))
	r.last(t, "- {role: client, poll: {ep: ep1, cq: send}, expect: {wr_id: 1, status: RETRY_EXC_ERR}}")
	complete(number("wr_id", 1), word("status", "WR_FLUSH_ERR"))
	r.last(t, "- {role: client, poll: {ep: ep1, cq: recv}, expect: {wr_id: 1, status: WR_FLUSH_ERR}}")
	for _, each := range r.steps(t) {
		if strings.Contains(each, "leftovers") {
			t.Errorf("its completion was taken: %s", each)
		}
	}
	complete(number("wr_id", 2), word("status", "SUCCESS"), word("opcode", "RECV"), number("byte_len", 40))
	r.last(t, "- {role: client, poll: {ep: ep1, cq: recv}, expect: {wr_id: 2, opcode: RECV, byte_len: 40}}")
}

// A thread may take a completion before the call that posted its request returns.
func TestEarlyCompletion(t *testing.T) {
	r := connected()
	r.register(2, 5000, 7)
	receive := trace.Field{Value: trace.Struct{number("wr_id", 0), sge(5000, 100, 7)}}
	r.call(2, "ibv_post_recv", []trace.Field{object("qp#1"), receive}, nil)
	poll := func(fields ...trace.Field) {
		r.call(2, "ibv_poll_cq", []trace.Field{object("cq#1")}, []trace.Field{{Value: trace.List{
			append(trace.Struct(fields), number("wr_id", 0), number("qp_num", 17)),
		}}})
	}
	poll(word("status", "SUCCESS"), word("opcode", "SEND"))
	r.during(2, "ibv_post_send", 1500*time.Microsecond, []trace.Field{object("qp#1"), {Value: trace.Struct{
		number("wr_id", 0), word("opcode", "SEND"), word("flags", "SIGNALED"), sge(5000, 1, 7),
	}}}, nil)
	poll(word("status", "WR_FLUSH_ERR"))
	r.last(t, "- {role: client, poll: {ep: ep1, cq: recv}, expect: {wr_id: 0, status: WR_FLUSH_ERR}}")
}

// What a process leaves is destroyed at its exit, so its peer sees the end of the connection.
func TestExit(t *testing.T) {
	r := connected()
	r.call(1, "exit", nil, nil)
	steps := r.steps(t)
	want := []string{
		"  - {role: server, destroy_id: {ep: ep1}, leftovers: ignore}",
		"  - {role: server, destroy_ep: {ep: ep2}, leftovers: ignore}",
	}
	if last := steps[len(steps)-2:]; !slices.Equal(last, want) {
		t.Errorf("the last steps are %q", last)
	}
}

// The same step several times is one step with repeat.
func TestRepeatedSteps(t *testing.T) {
	r := connected()
	r.register(2, 5000, 7)
	for range 3 {
		r.call(2, "ibv_post_recv", []trace.Field{object("qp#1"), {Value: trace.Struct{
			number("wr_id", 1), sge(5000, 100, 7),
		}}}, nil)
	}
	r.last(t, "- {role: client, repeat: 3, post_recv: {ep: ep1, buffer: mr1, offset: 0, length: 100, wr_id: 1}, "+
		"leftovers: ignore}")
}

func TestNothing(t *testing.T) {
	r := newRecording()
	r.call(1, "ibv_open_device", nil, nil)
	if err := r.Write(&strings.Builder{}, "name", nil); !errors.Is(err, replay.ErrNothing) {
		t.Errorf("an empty recording: %v", err)
	}
}

// Numbers of queue pairs are used again, and two devices may give out the same one. A queue pair connects to the last
// that the number was given to, and to another one rather than to itself. A completion is of the last one.
func TestNumbersUsedAgain(t *testing.T) {
	r := newRecording()
	create := func(process int, name string, qpNumber int) {
		r.now += time.Millisecond
		r.Take(&trace.Call{
			Process: process, Name: "ibv_create_qp", Start: r.now, End: r.now, Result: trace.Word(name),
			Arguments: []trace.Field{word("qp_type", "RC")}, Results: []trace.Field{number("qp_num", qpNumber)},
		})
	}
	modify := func(process int, name string, peer int) {
		r.call(process, "ibv_modify_qp", []trace.Field{
			object(name), word("attr_mask", "STATE|DEST_QPN"), word("qp_state", "RTR"), number("dest_qp_num", peer),
		}, nil)
	}
	create(1, "qp#1", 17)
	create(2, "qp#1", 17)
	modify(1, "qp#1", 17)
	r.last(t, "- {role: client1, modify_qp: {ep: ep1, state: RTR, "+
		"dest_qp_num: $(client2.ep1_qp.qp_num), gid: $(client2.address)}}")
	r.call(2, "ibv_destroy_qp", []trace.Field{object("qp#1")}, nil)
	create(2, "qp#2", 17)
	modify(1, "qp#1", 17)
	r.last(t, "- {role: client1, modify_qp: {ep: ep1, state: RTR, "+
		"dest_qp_num: $(client2.ep2_qp.qp_num), gid: $(client2.address)}}")
	modify(1, "qp#1", 99)
	r.last(t, "- {role: client1, modify_qp: {ep: ep1, state: RTR, dest_qp_num: 99}}")
	create(3, "qp#1", 18)
	modify(3, "qp#1", 18)
	r.last(t, "- {role: client3, modify_qp: {ep: ep1, state: RTR, "+
		"dest_qp_num: $(client3.ep1_qp.qp_num), gid: $(client3.address)}}")
	create(2, "qp#3", 17)
	r.call(2, "ibv_poll_cq", []trace.Field{object("cq#1")}, []trace.Field{{Value: trace.List{trace.Struct{
		number("wr_id", 1), word("status", "WR_FLUSH_ERR"), number("qp_num", 17),
	}}}})
	r.last(t, "- {role: client2, poll: {ep: ep3, cq: recv}, expect: {wr_id: 1, status: WR_FLUSH_ERR}}")
}

// A program that does not end is not kept whole.
func TestLongRecording(t *testing.T) {
	r := newRecording()
	const calls = 25_000
	for i := range calls {
		r.createID(1, fmt.Sprintf("id#%d", i+1))
	}
	if steps := r.steps(t); len(steps) != 20_000 {
		t.Errorf("%d steps", len(steps))
	}
	want := "not in the scenario: 5000 calls after the first 20000 steps"
	if missing := r.Missing(); len(missing) != 1 || missing[0] != want {
		t.Errorf("missing: %q, want %q", missing, want)
	}
}

// TestPauses: a time in which no process is in a call is a step, if it is long enough. A call that waits is no pause.
func TestPauses(t *testing.T) {
	for name, test := range map[string]struct {
		pauses, idle, waits time.Duration
		want                string
	}{
		"long":              {10 * time.Millisecond, 30 * time.Millisecond, 0, "  - {sleep: 30ms}\n"},
		"short":             {10 * time.Millisecond, 5 * time.Millisecond, 0, ""},
		"a call that waits": {10 * time.Millisecond, 30 * time.Millisecond, 30 * time.Millisecond, ""},
		"not asked for":     {0, 30 * time.Millisecond, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := connected()
			r.Pauses = test.pauses
			r.now += test.idle - time.Millisecond
			r.during(2, "rdma_disconnect", test.waits, []trace.Field{object("id#1")}, nil)
			var text strings.Builder
			if err := r.Write(&text, "name", []string{"program"}); err != nil {
				t.Fatal(err)
			}
			if got := strings.Count(text.String(), "sleep"); got != min(1, len(test.want)) ||
				!strings.Contains(text.String(), test.want) {
				t.Errorf("not %q in:\n%s", test.want, text.String())
			}
		})
	}
}
