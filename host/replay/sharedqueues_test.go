package replay_test

import (
	"strings"
	"testing"

	"rdmarun/host/trace"
)

// TestSharedQueue: receives of a shared queue are posted to it. A completion ends one of them, and does not say which.
func TestSharedQueue(t *testing.T) {
	for name, make := range map[string]func(*recording) string{
		"of a device": func(r *recording) string {
			r.Take(&trace.Call{
				Process: 2, Name: "ibv_create_srq", Start: r.now, End: r.now, Result: trace.Word("srq#1"),
				Arguments: []trace.Field{number("max_wr", 5), number("max_sge", 2)},
			})
			return "create_srq: {max_wr: 5, max_sge: 2}, as: srq1"
		},
		"of an id": func(r *recording) string {
			r.call(2, "rdma_create_srq", []trace.Field{object("id#7"), number("max_wr", 5), number("max_sge", 2)},
				[]trace.Field{object("srq#1")})
			return "create_srq: {ep: ep2, max_wr: 5, max_sge: 2}, as: srq1"
		},
	} {
		r := connected()
		r.register(2, 5000, 7)
		r.createID(2, "id#7")
		want := []string{make(r)}
		r.call(2, "rdma_create_qp", []trace.Field{object("id#7"), word("srq", "srq#1")},
			[]trace.Field{object("qp#2"), number("qp_num", 99)})
		for id := range 3 {
			r.call(2, "ibv_post_srq_recv", []trace.Field{
				object("srq#1"), {Value: trace.Struct{number("wr_id", id), sge(5000, 100, 7)}},
			}, nil)
		}
		r.call(2, "ibv_poll_cq", []trace.Field{object("cq#1")}, []trace.Field{{Value: trace.List{trace.Struct{
			number("wr_id", 1), word("status", "SUCCESS"), word("opcode", "RECV"), number("byte_len", 40),
			number("qp_num", 99),
		}}}})
		r.call(2, "ibv_destroy_srq", []trace.Field{object("srq#1")}, nil)
		const post = "post_srq_recv: {srq: srq1, buffer: mr1, offset: 0, length: 100, wr_id: "
		want = append(want, ", srq: srq1}}", post+"0}, leftovers: ignore}", post+"1}}", post+"2}, leftovers: ignore}",
			"poll: {ep: ep2, cq: recv}, expect: {opcode: RECV, byte_len: 40}}", "destroy_srq: {srq: srq1}}")
		steps := r.steps(t)
		for i, want := range want {
			if got := steps[len(steps)-7+i]; !strings.Contains(got, want) {
				t.Errorf("%s: step %s, want %s", name, got, want)
			}
		}
		if missing := r.Missing(); missing != nil {
			t.Errorf("%s: missing: %q", name, missing)
		}
	}
}

// TestUnknownSharedQueue: what a scenario cannot have is named, with the queue pairs of it.
func TestUnknownSharedQueue(t *testing.T) {
	r := connected()
	r.call(2, "ibv_create_srq_ex", []trace.Field{number("srq_type", 1)}, nil)
	r.createID(2, "id#7")
	r.call(2, "rdma_create_qp", []trace.Field{object("id#7"), word("srq", "srq#1")}, nil)
	r.call(2, "ibv_post_srq_recv", []trace.Field{object("srq#1"), {Value: trace.Struct{number("wr_id", 1)}}}, nil)
	want := "not in the scenario: a queue pair with a shared receive queue that was not recorded (1 times)\n" +
		"not in the scenario: a shared receive queue of XRC or of tag matching (1 times)\n" +
		"not in the scenario: ibv_post_srq_recv of an object that was not recorded (1 times)"
	if got := strings.Join(r.Missing(), "\n"); got != want {
		t.Errorf("missing:\n%s\nwant\n%s", got, want)
	}
}
