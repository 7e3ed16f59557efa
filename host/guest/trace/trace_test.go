package trace

import (
	"encoding/binary"
	"strings"
	"testing"
	"time"

	"rdmarun/hostfuncs"
	"rdmarun/hostfuncs/model"
	"rdmarun/rdmacore"
)

func newInstance(t *testing.T, memory []byte) *hostfuncs.Instance {
	t.Helper()
	provider, err := rdmacore.Open("soft")
	if err != nil {
		t.Fatal(err)
	}
	instance := hostfuncs.NewInstance(hostfuncs.Config{Provider: provider})
	region, err := rdmacore.NewMemory(max(len(memory), 1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := instance.Close(); err != nil {
			t.Error(err)
		}
		region.Release()
		if err := provider.Close(); err != nil {
			t.Error(err)
		}
	})
	copy(region.Bytes(), memory)
	instance.SetMemory(region, len(memory))
	return instance
}

// shown is how a call with a result looks.
func shown(t *testing.T, memory []byte, name string, result int32, given ...uint64) string {
	t.Helper()
	m := model.Of()
	c := callsOf(&m)[name]
	if len(given) != len(c.params) {
		t.Fatalf("%s has %d parameters", name, len(c.params))
	}
	var text strings.Builder
	c.before(&text, memory, given)
	c.after(&text, newInstance(t, memory), given, result)
	return text.String()
}

func TestCalls(t *testing.T) {
	memory := make([]byte, 4096)
	put := func(at int, words ...uint32) {
		for i, word := range words {
			binary.LittleEndian.PutUint32(memory[at+4*i:], word)
		}
	}
	put(128, 7, 0, 2, 2|4, 0, 1)                            // a send_wr: SEND, signaled and solicited
	put(256, 1024, 0, 64, 9)                                // an sge
	put(512, 7, 0, 0, 0, 0, 64)                             // a completion
	put(1024, 20, 1<<8|3, 0xff, 0xff, 1, 99)                // a conn_param that ends before the last two words
	put(1664, 8, 1, 0, 0, 9, 3, 0, 0, 8, 1, 1, 0, 7, 1, 16) // four poll_entries, of which the last two are ready
	put(1792, 392)                                          // addr_query
	copy(memory[1792+72:], "::1\x00x")
	copy(memory[2048:], "a\x1b[31m\nb")
	garbage := uint64(0xdead_0000_0000)
	for name, c := range map[string]struct {
		want   string
		result int32
		given  []uint64
	}{
		"post_send": {"rdma.post_send(qp=0x30000001, wrs=[{wr_id=7 opcode=SEND send_flags=SIGNALED|SOLICITED " +
			"num_sge=1}], " +
			"sges=[{addr=0x400 length=64 lkey=0x9}]) = 1", 1,
			[]uint64{garbage | 0x30000001, 128, garbage | 1, 256, 1, 0}},
		"poll_set": {"rdma.poll_set(entries=[{handle=0x8 events=IN} {handle=0x9 events=IN|PRI} {handle=0x8 " +
			"events=IN revents=IN} " +
			"{handle=0x7 events=IN revents=HUP}], timeout_ns=0s) = 2, entries=[{handle=0x8 events=IN revents=IN} " +
			"{handle=0x7 events=IN revents=HUP}]",
			2, []uint64{1664, 4, 0}},
		"getaddrinfo": {`rdma.getaddrinfo(query={node="::1"}, timeout_ns=0s) = -ENOENT`, -2, []uint64{1792, 2200, 0}},
		"poll_cq": {
			"rdma.poll_cq(cq=0x1, max=16) = 1, wc=[{wr_id=7 status=SUCCESS opcode=SEND byte_len=64}]", 1,
			[]uint64{1, 512, 16},
		},
		"log": {`rdma.log(level=WARN, text="a␛[31m␊b") = 0`, 0, []uint64{2, 2048, 8}},
		"reg_mr": {
			"rdma.reg_mr(pd=0x1, start=100 bytes at 0x80, access=LOCAL_WRITE|REMOTE_READ) = -EINVAL", -22,
			[]uint64{1, 128, 100, 5, 0},
		},
		"wait_cq": {"rdma.wait_cq(cq=0, max=1, timeout_ns=1.5s) = 0", 0, []uint64{0, 512, 1, 1500000000}},
		"connect": {
			"rdma.connect(ep=0x1, param={responder_resources=3 initiator_depth=1 rnr_retry_count=255 qp_num=255}) = 0",
			0, []uint64{1, 1024},
		},
		"listen": {"rdma.listen(ep=0x1, backlog=4294967295) = -12345", -12345, []uint64{1, 1<<32 - 1}},
		"post_recv": {
			"rdma.post_recv(qp=0x1, wrs=[0xfff, outside its memory], sges=[]) = 0", 0,
			[]uint64{1, 4095, 1 << 31, 256, 0, 0},
		},
	} {
		if got := shown(t, memory, name, c.result, c.given...); got != c.want {
			t.Errorf("%s\nis    %s\nwants %s", name, got, c.want)
		}
	}
}

// TestImmediates: imm_data is what the peers mean, where there is one, and a key where it is one.
func TestImmediates(t *testing.T) {
	m := model.Of()
	v := newValues(&m)
	for _, c := range []struct {
		name  string
		words map[int]uint32
		want  string
	}{
		{"send_wr", map[int]uint32{8: 3, 24: 0x2a000000}, "{opcode=SEND_WITH_IMM imm_data=42}"},
		{"send_wr", map[int]uint32{8: 9, 24: 0x77}, "{opcode=SEND_WITH_INV invalidate_rkey=0x77}"},
		{"send_wr", map[int]uint32{8: 7, 24: 0x77}, "{opcode=LOCAL_INV invalidate_rkey=0x77}"},
		{"send_wr", map[int]uint32{8: 14}, "{opcode=FLUSH selectivity=RANGE}"},
		{"wc", map[int]uint32{12: 128, 36: 2}, "{status=SUCCESS opcode=RECV imm_data=0 wc_flags=WITH_IMM}"},
		{
			"wc", map[int]uint32{12: 128, 24: 0x77, 36: 8},
			"{status=SUCCESS opcode=RECV invalidated_rkey=0x77 wc_flags=WITH_INV}",
		},
	} {
		content := make([]byte, v.structs[c.name].size)
		for at, word := range c.words {
			binary.LittleEndian.PutUint32(content[at:], word)
		}
		var text strings.Builder
		v.structs[c.name].write(&text, content)
		if text.String() != c.want {
			t.Errorf("is    %s\nwants %s", &text, c.want)
		}
	}
}

// Whatever a guest passes, a line has an end.
func TestLinesAreBounded(t *testing.T) {
	memory := make([]byte, 1<<16)
	for i := range memory {
		memory[i] = 0xff
	}
	instance := newInstance(t, memory)
	m := model.Of()
	for name, c := range callsOf(&m) {
		for _, value := range []uint64{0, 1, 64, 0xff00, 0xfffe, 1<<32 - 1, 1<<64 - 1} {
			given := make([]uint64, len(c.params))
			for at := range given {
				given[at] = value
			}
			for _, result := range []int32{0, 1, 1<<31 - 1, -1, -1 << 31} {
				var text strings.Builder
				c.before(&text, memory, given)
				c.after(&text, instance, given, result)
				if text.Len() > 4*maxText || strings.ContainsAny(text.String(), "\n\x1b") {
					t.Fatalf("%s: %d bytes: %s", name, text.Len(), &text)
				}
			}
		}
	}
}

// lines collects what is written.
func lines(t *testing.T, names []string, trace func(*Guest)) string {
	t.Helper()
	var out strings.Builder
	tracer, err := New(&out, names)
	if err != nil {
		t.Fatal(err)
	}
	guest := tracer.Guest("g")
	trace(guest)
	guest.End()
	if err := tracer.Close(); err != nil {
		t.Error(err)
	}
	return out.String()
}

func TestRepetitionsAreCounted(t *testing.T) {
	got := lines(t, nil, func(g *Guest) {
		for _, each := range strings.Fields("a b a b a b c d e f f g") {
			g.show(each, 1500*time.Nanosecond)
		}
	})
	want := "a b a(2) b(2) c d e f f(1) g"
	want = strings.NewReplacer("(", " (", ")", " times more)").Replace(want)
	var lines []string
	for _, line := range strings.Split(strings.TrimSpace(got), "\n") {
		lines = append(lines, strings.TrimSuffix(strings.TrimPrefix(line, "g: "), " <1.5µs>"))
	}
	if strings.Join(lines, " ") != want {
		t.Errorf("%q, not %q", lines, want)
	}
}

// TestElsewhere: what comes from elsewhere is text.
func TestElsewhere(t *testing.T) {
	got := lines(t, nil, func(g *Guest) {
		g.tracer.Elsewhere("a", "server: \x1b[2J\n\xff ##vso[x]"+strings.Repeat("x", 1<<20))
	})
	if !strings.HasPrefix(got, "a: server: ␛[2J␊\ufffd # #vso[x]xxx") || !strings.HasSuffix(got, "x...\n") ||
		len(got) > 2*maxElsewhere {
		t.Errorf("%d bytes, %.80q", len(got), got)
	}
}

func TestManyLines(t *testing.T) {
	if testing.Short() {
		t.Skip("half a million lines")
	}
	got := lines(t, nil, func(g *Guest) {
		for i := range maxLines + 1000 {
			g.show(strings.Repeat("x", 1+i%7), 0)
		}
	})
	if n := strings.Count(got, "\n"); n != maxLines || !strings.HasSuffix(got, "... more calls are not shown\n") {
		t.Errorf("%d lines", n)
	}
}

func TestNames(t *testing.T) {
	if _, err := New(nil, []string{"post_sent"}); err == nil || !strings.Contains(err.Error(), `"post_sent"`) {
		t.Error(err)
	}
}

func TestTimes(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 999: "999ns", 1234: "1.2µs", 1234567: "1.2ms", 1234567890: "1.2s",
	} {
		if got := timeText(d); got != want {
			t.Errorf("%d: %s", d, got)
		}
	}
}

// unread is an output that is not read until it goes on.
type unread struct {
	begun, goOn chan bool
	lines       int
}

func (u *unread) Write(data []byte) (int, error) {
	select {
	case u.begun <- true:
	default:
	}
	<-u.goOn
	u.lines += strings.Count(string(data), "\n")
	return len(data), nil
}

// TestWhoWaits: a guest that waits for the reader of the lines does not keep the tracer from ending, which ends the
// wait.
func TestWhoWaits(t *testing.T) {
	out := &unread{begun: make(chan bool, 1), goOn: make(chan bool)}
	tracer, err := New(out, nil)
	if err != nil {
		t.Fatal(err)
	}
	tracer.write("first", writeTimeout)
	<-out.begun
	for range cap(tracer.lines) {
		tracer.write("more", writeTimeout)
	}
	waited, closed := make(chan bool), make(chan error, 1)
	go func() {
		tracer.write("too many", time.Hour)
		close(waited)
	}()
	go func() { closed <- tracer.Close() }()
	<-waited
	close(out.goOn)
	if err := <-closed; err != nil || out.lines != 1+cap(tracer.lines) || tracer.lost.Load() != 0 {
		t.Errorf("%d lines, %d lost: %v", out.lines, tracer.lost.Load(), err)
	}
	tracer.write("after the end", writeTimeout)
	if err := tracer.Close(); err != nil {
		t.Error(err)
	}
}
