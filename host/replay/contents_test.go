package replay_test

import (
	"slices"
	"strings"
	"testing"

	"rdmarun/host/trace"
)

// content records what memory of a message contains.
func (r *recording) content(process int, name string, queuePair, id, address, length, period int, data string) {
	r.call(process, name, []trace.Field{
		number("qp_num", queuePair), number("wr_id", id), number("addr", address), number("length", length),
		number("period", period),
		{Name: "data", Value: trace.Bytes{Data: []byte(data), Length: uint64(max(len(data), length))}},
	}, nil)
}

// fills are the steps that fill buffers and those that post, in short.
func (r *recording) fills(t *testing.T) (fills []string) {
	t.Helper()
	for _, step := range r.steps(t) {
		_, step, _ = strings.Cut(step, "role: ")
		switch {
		case strings.Contains(step, " fill: "):
			fills = append(fills, strings.TrimSuffix(step, "}"))
		case strings.Contains(step, " post_"):
			verb, _, _ := strings.Cut(step, ":")
			fills = append(fills, verb)
		}
	}
	return fills
}

// contents are the contents of three buffers of process 2: regions of 100 bytes at 5000, and of process 1 at 1000.
func contents() *recording {
	r := connected()
	r.register(1, 1000, 5)
	r.register(2, 5000, 7)
	return r
}

// TestContents: a message has the bytes that the program has sent. A buffer is filled only if it does not have them.
func TestContents(t *testing.T) {
	send := func(r *recording, address, length, period int, data string) {
		r.content(2, "memory_sent", 17, 9, address, length, period, data)
		r.send(2, 9, word("opcode", "SEND"), sge(address, length, 7))
	}
	const ab = `client, fill: {buffer: mr1, offset: 4, length: 2, hex: "6162"}`
	for name, test := range map[string]struct {
		calls   func(*recording)
		want    []string
		missing string
	}{
		"once": {func(r *recording) {
			send(r, 5004, 2, 0, "ab")
			send(r, 5004, 2, 0, "ab")
		}, []string{ab, "client, repeat"}, ""},
		"changed": {func(r *recording) {
			send(r, 5004, 2, 0, "ab")
			send(r, 5004, 2, 0, "cd")
		}, []string{
			ab, "client, post_send", `client, fill: {buffer: mr1, offset: 4, length: 2, hex: "6364"}`, "client, post_send",
		}, ""},
		"zeros are there": {func(r *recording) { send(r, 5000, 50, 1, "\x00") }, []string{"client, post_send"}, ""},
		"zeros again": {func(r *recording) {
			send(r, 5004, 2, 0, "ab")
			send(r, 5000, 50, 1, "\x00")
		}, []string{
			ab, "client, post_send", `client, fill: {buffer: mr1, offset: 0, length: 50, hex: "00"}`, "client, post_send",
		}, ""},
		"bytes repeat": {func(r *recording) { send(r, 5000, 50, 3, "abc") }, []string{
			`client, fill: {buffer: mr1, offset: 0, length: 50, hex: "616263"}`, "client, post_send",
		}, ""},
		"longer than what is recorded": {func(r *recording) { send(r, 5000, 50, 0, "abc") }, []string{
			`client, fill: {buffer: mr1, offset: 0, length: 3, hex: "616263"}`, "client, post_send",
		}, "not in the scenario: data after the first 3 bytes of a message (1 times)"},
		"a buffer that receives": {func(r *recording) {
			send(r, 5004, 2, 0, "ab")
			receive := trace.Field{Value: trace.Struct{number("wr_id", 1), sge(5000, 100, 7)}}
			r.call(2, "ibv_post_recv", []trace.Field{object("qp#1"), receive}, nil)
			send(r, 5004, 2, 0, "ab")
		}, []string{ab, "client, post_send", "client, post_recv", ab, "client, post_send"}, ""},
		"inline": {func(r *recording) {
			r.content(2, "memory_sent", 17, 9, 77, 2, 0, "ab")
			r.content(2, "memory_sent", 17, 9, 99, 1, 0, "c")
			r.send(2, 9, word("opcode", "SEND"), word("flags", "INLINE"), trace.Field{Name: "sge", Value: trace.List{
				trace.Struct{number("addr", 77), number("length", 2)},
				trace.Struct{number("addr", 99), number("length", 1)},
			}})
		}, []string{
			`client, fill: {buffer: inline, offset: 0, length: 2, hex: "6162"}`,
			`client, fill: {buffer: inline, offset: 2, length: 1, hex: "63"}`, "client, post_send",
		}, ""},
		"of another post": {func(r *recording) {
			r.content(2, "memory_sent", 17, 8, 5004, 2, 0, "ab")
			r.send(2, 9, word("opcode", "SEND"), sge(5004, 2, 7))
			r.send(2, 8, word("opcode", "SEND"), sge(5004, 2, 7))
		}, []string{"client, post_send", "client, post_send"}, ""},
	} {
		r := contents()
		test.calls(r)
		if got := r.fills(t); !slices.Equal(got, test.want) {
			t.Errorf("%s: steps\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(test.want, "\n"))
		}
		if got := strings.Join(r.Missing(), "\n"); got != test.missing {
			t.Errorf("%s: missing %q, want %q", name, got, test.missing)
		}
	}
}

// TestReadContents: the memory of the peer has what a READ has brought, before the READ.
func TestReadContents(t *testing.T) {
	r := contents()
	read := func(id, address int) {
		r.send(2, id, word("opcode", "RDMA_READ"), number("remote_addr", address), number("rkey", 6), sge(5010, 2, 7))
	}
	read(1, 1020)
	read(2, 1020)
	read(3, 1099) // only one byte is in the region
	r.content(2, "memory_read", 17, 1, 5010, 2, 0, "ab")
	r.content(2, "memory_read", 17, 2, 5010, 2, 0, "cd")
	r.content(2, "memory_read", 17, 3, 5010, 2, 0, "ef")
	r.content(2, "memory_read", 17, 4, 5010, 2, 0, "gh")
	want := []string{
		`server, fill: {buffer: mr1, offset: 20, length: 2, hex: "6162"}`, "client, post_read",
		`server, fill: {buffer: mr1, offset: 20, length: 2, hex: "6364"}`, "client, post_read", "client, post_read",
	}
	if got := r.fills(t); !slices.Equal(got, want) {
		t.Errorf("steps\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
