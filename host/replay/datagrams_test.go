package replay_test

import (
	"slices"
	"strings"
	"testing"

	"rdmarun/host/trace"
)

// handle records an address handle. A trace names it by its result.
func (r *recording) handle(process int, call, name string, arguments ...trace.Field) {
	r.Take(&trace.Call{
		Process: process, Name: call, Start: r.now, End: r.now, Result: trace.Word(name), Arguments: arguments,
	})
}

// TestDatagrams: a datagram goes to the role of the queue pair with its number. Handles that nothing is sent with are
// left out.
func TestDatagrams(t *testing.T) {
	create := func(r *recording, process, queuePair int) {
		r.Take(&trace.Call{
			Process: process, Name: "ibv_create_qp", Start: r.now, End: r.now, Result: trace.Word("qp#1"),
			Arguments: []trace.Field{word("qp_type", "UD")}, Results: []trace.Field{number("qp_num", queuePair)},
		})
	}
	send := func(r *recording, handle string, to int) {
		r.send(1, 9, word("opcode", "SEND"), word("ah", handle), number("remote_qpn", to), number("remote_qkey", 255))
	}
	const post = "client1, post_send: {ep: ep1, sges: [], "
	for name, test := range map[string]struct {
		calls   func(*recording)
		want    []string
		missing string
	}{
		"to a role": {func(r *recording) {
			r.handle(1, "ibv_create_ah", "ah#1", word("dgid", "::1"))
			send(r, "ah#1", 18)
			r.call(1, "ibv_destroy_ah", []trace.Field{object("ah#1")}, nil)
		}, []string{
			`client1, create_ah: {gid: "$(client2.address)"}, as: ah1`,
			post + `ah: ah1, remote_qpn: $(client2.ep1_qp.qp_num), remote_qkey: 0xff`, "client1, destroy_ah: {ah: ah1}",
		}, ""},
		"to the sender of a datagram": {func(r *recording) {
			r.handle(1, "ibv_create_ah_from_wc", "ah#1")
			send(r, "ah#1", 18)
		}, []string{
			`client1, create_ah: {gid: "$(client2.address)"}, as: ah1`,
			post + `ah: ah1, remote_qpn: $(client2.ep1_qp.qp_num), remote_qkey: 0xff`,
		}, ""},
		"to another program": {func(r *recording) {
			r.handle(1, "ibv_create_ah", "ah#1", word("dgid", "::1"))
			send(r, "ah#1", 77)
		}, []string{
			`client1, create_ah: {gid: "::1"}, as: ah1`, post + `ah: ah1, remote_qpn: 77, remote_qkey: 0xff`,
		}, ""},
		"to another program that has sent": {func(r *recording) {
			r.handle(1, "ibv_create_ah_from_wc", "ah#1")
			send(r, "ah#1", 77)
		}, nil, "not in the scenario: a datagram to an address that was not recorded (1 times)"},
		"nowhere": {func(r *recording) {
			r.handle(1, "ibv_create_ah", "ah#1", word("dgid", "::1"))
			r.call(1, "ibv_destroy_ah", []trace.Field{object("ah#1")}, nil)
			send(r, "ah#2", 18)
		}, nil, "not in the scenario: a datagram to an address that was not recorded (1 times)"},
	} {
		r := newRecording()
		create(r, 1, 17)
		create(r, 2, 18)
		before := len(r.steps(t))
		test.calls(r)
		steps := r.steps(t)[before:]
		fits := func(step, want string) bool { return strings.Contains(step, "{role: "+want) }
		if !slices.EqualFunc(steps, test.want, fits) {
			t.Errorf("%s: steps\n%s\nwant\n%s", name, strings.Join(steps, "\n"), strings.Join(test.want, "\n"))
		}
		if got := strings.Join(r.Missing(), "\n"); got != test.missing {
			t.Errorf("%s: missing %q, want %q", name, got, test.missing)
		}
	}
}
