package peer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"rdmarun/host/guest"
	"rdmarun/host/record"
	"rdmarun/host/scenario/meeting"
	"rdmarun/host/scenario/testbed"
)

// hub joins the mailboxes of processes.  A message arrives at once.
type hub struct {
	mu      sync.Mutex
	changed *sync.Cond
	boxes   map[string]map[meeting.Key]json.RawMessage
	gone    map[string]bool
}

func newHub(names ...string) *hub {
	h := &hub{boxes: make(map[string]map[meeting.Key]json.RawMessage), gone: make(map[string]bool)}
	h.changed = sync.NewCond(&h.mu)
	for _, name := range names {
		h.boxes[name] = make(map[meeting.Key]json.RawMessage)
	}
	return h
}

// lose has a process be gone.
func (h *hub) lose(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.gone[name] = true
	h.changed.Broadcast()
}

// of is the mailbox of a process.
func (h *hub) of(name string) *hubBox { return &hubBox{h, name} }

// hubBox is a mailbox of a process.
type hubBox struct {
	hub  *hub
	name string
}

func (b *hubBox) Name() string                      { return b.name }
func (b *hubBox) Broadcast(key string, v any) error { return b.Send("", key, v) }
func (b *hubBox) Close()                            {}
func (b *hubBox) HasCome(from string, k []byte) bool {
	return b.has(meeting.Key{From: from, Name: string(k)})
}

func (b *hubBox) has(key meeting.Key) bool {
	b.hub.mu.Lock()
	defer b.hub.mu.Unlock()
	_, came := b.hub.boxes[b.name][key]
	return came
}

func (b *hubBox) Send(to, key string, value any) error {
	raw, err := json.Marshal(value)
	if err != nil {
		return err
	}
	b.hub.mu.Lock()
	defer b.hub.mu.Unlock()
	for name, box := range b.hub.boxes {
		if name != b.name && (to == "" || to == name) {
			box[meeting.Key{From: b.name, Name: key}] = raw
		}
	}
	b.hub.changed.Broadcast()
	return nil
}

func (b *hubBox) Await(ctx context.Context, from string, names ...string) (string, json.RawMessage, error) {
	var keys []meeting.Key
	for _, name := range names {
		keys = append(keys, meeting.Key{From: from, Name: name})
	}
	key, raw, err := b.AwaitWith(ctx, []string{from}, keys...)
	return key.Name, raw, err
}

func (b *hubBox) AwaitWith(
	ctx context.Context, all []string, keys ...meeting.Key,
) (meeting.Key, json.RawMessage, error) {
	h := b.hub
	defer context.AfterFunc(ctx, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.changed.Broadcast()
	})()
	h.mu.Lock()
	defer h.mu.Unlock()
	for {
		for _, key := range keys {
			if raw, came := h.boxes[b.name][key]; came {
				delete(h.boxes[b.name], key)
				return key, raw, nil
			}
		}
		for _, name := range all {
			if h.gone[name] {
				return meeting.Key{}, nil, &meeting.GoneError{Who: name, Why: "has ended"}
			}
		}
		if ctx.Err() != nil {
			return meeting.Key{}, nil, context.Cause(ctx)
		}
		h.changed.Wait()
	}
}

func (b *hubBox) Take(from, name string) (json.RawMessage, bool) {
	b.hub.mu.Lock()
	defer b.hub.mu.Unlock()
	key := meeting.Key{From: from, Name: name}
	raw, came := b.hub.boxes[b.name][key]
	delete(b.hub.boxes[b.name], key)
	return raw, came
}

func (b *hubBox) Forget(prefix string) {
	b.hub.mu.Lock()
	defer b.hub.mu.Unlock()
	for key := range b.hub.boxes[b.name] {
		if strings.HasPrefix(key.Name, prefix) {
			delete(b.hub.boxes[b.name], key)
		}
	}
}

// TestConn: two halves of a step exchange values in the order of each direction; nothing of one step is another's.
func TestConn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := newHub("a", "b")
		ends := func(step string) (one, other *Conn) {
			key := "step/" + step + "/client>server/"
			a, b := NewGroup(h.of("a"), []string{"b"}), NewGroup(h.of("b"), []string{"a"})
			return &Conn{Group: a, Process: "b", Key: key, Local: "from", Remote: "to"},
				&Conn{Group: b, Process: "a", Key: key, Local: "to", Remote: "from"}
		}
		here, there := ends("1")
		otherHere, otherThere := ends("2")
		type direction struct {
			send, receive *Conn
			sent, taken   int
		}
		directions := []*direction{
			{send: here, receive: there}, {send: there, receive: here}, {send: otherHere, receive: otherThere},
		}
		for range rapid.IntRange(0, 40).Draw(t, "actions") {
			d := directions[rapid.IntRange(0, 2).Draw(t, "direction")]
			if d.sent == d.taken || rapid.Bool().Draw(t, "send") {
				d.sent++
				if err := d.send.Send(d.sent); err != nil {
					t.Fatal(err)
				}
				continue
			}
			var got int
			ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
			err := d.receive.Receive(ctx, &got)
			if cancel(); err != nil || got != d.taken+1 {
				t.Fatalf("%d after %d: %v", got, d.taken, err)
			}
			d.taken++
		}
	})
}

// TestConnEnds: a half does not wait when its peer is gone, or has ended the case; what came before counts.
func TestConnEnds(t *testing.T) {
	h := newHub("a", "b")
	conn := &Conn{Group: NewGroup(h.of("a"), []string{"b"}), Process: "b", Key: "step/1/", Local: "from", Remote: "to"}
	if err := h.of("b").Send("a", "step/1/to/1", "text"); err != nil {
		t.Fatal(err)
	}
	var number int
	if err := conn.Receive(t.Context(), &number); err == nil {
		t.Errorf("a text is %d", number)
	}
	if err := h.of("b").Send("a", "step/1/to/2", 7); err != nil {
		t.Fatal(err)
	}
	h.lose("b")
	if err := conn.Receive(t.Context(), &number); err != nil || number != 7 {
		t.Errorf("what came before the end: %d, %v", number, err)
	}
	var environment *testbed.EnvironmentError
	var gone *meeting.GoneError
	if err := conn.Receive(t.Context(), &number); !errors.As(err, &environment) || !errors.As(err, &gone) {
		t.Errorf("%v", err)
	}
	ended := newHub("a", "b")
	conn.Group = NewGroup(ended.of("a"), []string{"b"})
	if err := NewGroup(ended.of("b"), nil).SendOnce("end", End{Status: record.Interrupted}); err != nil {
		t.Fatal(err)
	}
	if err := conn.Receive(t.Context(), &number); !errors.As(err, &environment) ||
		!strings.Contains(err.Error(), "the process of b has ended the case") {
		t.Errorf("%v", err)
	}
}

// TestLeave: all waits for steps end when the process leaves the case, however many there are, and later ones at once.
func TestLeave(t *testing.T) {
	g := NewGroup(newHub("a", "b").of("a"), []string{"b"})
	why := errors.New("a step has failed here")
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	waited := make(chan error)
	for i := range 5 {
		go func() {
			_, _, err := g.Await(ctx, "b", nil, fmt.Sprint("step/", i))
			waited <- err
		}()
	}
	g.Leave(why)
	for range 5 {
		if err := <-waited; err != why {
			t.Error(err)
		}
	}
	if _, _, err := g.Await(ctx, "b", nil, "step/9"); err != why {
		t.Error(err)
	}
}

// TestReportModel compares what another process knows of steps with the steps that have ended, over branches, outcomes
// and readers at any time. A step is known to have ended only when it has. Its outcome is available when a later step
// is known, and all are known after the end.
func TestReportModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := newHub("me", "other")
		mine, theirs := NewGroup(h.of("me"), []string{"other"}), h.of("other")
		mine.EmptySteps.timed = true // no timer reports first
		branches := []string{"", "3.0/"}
		ended := make(map[string]int)
		outcomes := make(map[string]map[int]bool)
		known := make(map[string]*peerEmptySteps)
		for _, branch := range branches {
			outcomes[branch], known[branch] = make(map[int]bool), newPeerEmptySteps("me", branch)
		}
		look := func(all bool) {
			for _, branch := range branches {
				of := known[branch]
				if raw, came := theirs.Take("me", of.key); came {
					if err := of.note(raw); err != nil {
						t.Fatal(err)
					}
				}
				if of.last > ended[branch] {
					t.Fatalf("step %d of %q is known, and %d have ended", of.last, branch, ended[branch])
				}
				for number := range ended[branch] {
					number++
					has := theirs.HasCome("me", (&Position{branch: branch, number: number}).appendKey(nil))
					if has != outcomes[branch][number] {
						t.Fatalf("the outcome of step %d of %q is there: %t", number, branch, has)
					}
					if all && !has && number > of.last {
						t.Fatalf("step %d of %q is not known at the end", number, branch)
					}
				}
			}
		}
		for range rapid.IntRange(0, 30).Draw(t, "steps") {
			branch := rapid.SampledFrom(branches).Draw(t, "branch")
			ended[branch]++
			number := ended[branch]
			var outcome Outcome
			measured := false
			switch rapid.IntRange(0, 5).Draw(t, "outcome") {
			case 0:
				outcome.Failure = &Failure{Failure: record.Failure{What: "wrong"}}
			case 1:
				outcome.Bound = []Result{{Role: "client", Name: "x", Own: number}}
			case 2:
				measured = true
			}
			outcomes[branch][number] = measured || !outcome.Empty()
			if err := mine.Report(&Position{branch: branch, number: number}, measured, outcome); err != nil {
				t.Fatal(err)
			}
			look(false)
		}
		if err := mine.EmptySteps.End(); err != nil {
			t.Fatal(err)
		}
		look(true)
	})
}

// TestReportFails: a value that cannot be sent is named, and the steps before it are known.
func TestReportFails(t *testing.T) {
	mailbox := &fakeMailbox{}
	g := NewGroup(mailbox, nil)
	g.EmptySteps.timed = true
	at := &Position{}
	at.Next()
	if err := g.Report(at, false, Outcome{}); err != nil || mailbox.all() != "" {
		t.Fatal(err)
	}
	at.Next()
	err := g.Report(at, false, Outcome{Bound: []Result{{Name: "handle", Own: struct{}{}}}})
	if err == nil || !strings.HasPrefix(err.Error(), "handle: ") || mailbox.all() != "quiet/me/ 1" {
		t.Errorf("%v, %q", err, mailbox.all())
	}
	mailbox.broken = errors.New("the bus has ended")
	at.Next()
	if err := g.Report(at, true, Outcome{}); !errors.Is(err, mailbox.broken) {
		t.Error(err)
	}
}

// TestFailures: a failure is sent without the fields of its own process, and a wait for its step reports how the
// process has ended.
func TestFailures(t *testing.T) {
	full := record.Failure{
		Kind: "expectation", File: "f", Line: 7, Column: 8, Excerpt: []string{"x"}, Role: "r", Host: "h",
		Action: "poll", What: "wrong", Expected: "1", Got: "2", Hint: "look", Details: []string{"d"},
		Timeline: []record.Moment{{}},
		Path:     []string{"p"}, Used: []string{"u"}, Rerun: "rdmarun run",
	}
	sent := FailureOf(full)
	want := record.Failure{
		Kind: "expectation", Line: 7, Column: 8, Role: "r", Host: "h", Action: "poll", What: "wrong", Expected: "1",
		Got: "2", Hint: "look", Details: []string{"d"},
	}
	if fmt.Sprintf("%+v", sent.Failure) != fmt.Sprintf("%+v", want) || full.Rerun == "" {
		t.Errorf("%+v", sent.Failure)
	}
	if here := sent.Here(); here.What != "wrong" || here.Expected != "1" || here.Got != "2" || here.Hint != "look" {
		t.Errorf("%+v", here)
	}
	for text, test := range map[string]struct {
		end         End
		environment bool
	}{
		"has ended the case: no device":   {End{Status: record.Errored, Reason: "no device"}, true},
		"has ended the case: error":       {End{Status: record.Errored}, true},
		"has ended the case: interrupted": {End{Status: record.Interrupted}, true},
		"has ended the case: timed_out":   {End{Status: record.TimedOut}, true},
		"has ended the case: skipped":     {End{Status: record.Skipped}, false},
		"has ended the case: wrong":       {End{Status: record.Failed, Failures: []Failure{sent}}, false},
	} {
		err := test.end.failure("a")
		var environment *testbed.EnvironmentError
		var failure *testbed.Failure
		if errors.As(err, &failure) {
			err = fmt.Errorf("%s: %s", failure.What, failure.Got)
		}
		if errors.As(err, &environment) != test.environment || err.Error() != "the process of a "+text {
			t.Errorf("%v", err)
		}
		if len(test.end.Failures) > 0 && failure.Hint != "line 7 there says more" {
			t.Error(failure.Hint)
		}
	}
	long := strings.Repeat("x", 9999)
	hostile := End{Reason: long, Failures: []Failure{{Failure: record.Failure{What: long, Details: []string{long}}}}}
	hostile.Brief()
	for _, text := range []string{hostile.Reason, hostile.Failures[0].What, hostile.Failures[0].Details[0]} {
		if len(text) > 700 {
			t.Errorf("%d bytes", len(text))
		}
	}
}

// TestReadMeasured: of the results of a size those are taken that are possible and of the step's roles.
func TestReadMeasured(t *testing.T) {
	roles := []string{"client", "server"}
	for name, test := range map[string]struct{ text, want string }{
		"one end":            {`[{"role":"client","messages":5}]`, ""},
		"two ends":           {`[{"role":"client","peer":"server"},{"role":"server","peer":"client"}]`, ""},
		"none":               {`[]`, "cannot be read"},
		"three":              {`[{"role":"client"},{"role":"client"},{"role":"client"}]`, "cannot be read"},
		"nothing":            {`null`, "cannot be read"},
		"nothing of one end": {`[{"role":"client"},null]`, "cannot be read"},
		"another role":       {`[{"role":"x"}]`, `the process of a has measured from "x" to ""`},
		"another peer":       {`[{"role":"client","peer":"\u001b"}]`, `from "client" to "\x1b"`},
		"no role":            {`[{}]`, `from "" to ""`},
		"the impossible":     {`[{"role":"client","took_ns":-1}]`, "the process of a reports an impossible value: "},
		"no JSON":            {`[{"role":7}]`, "cannot unmarshal"},
	} {
		found, err := ReadMeasured(json.RawMessage(test.text), "a", roles)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", name, err)
		}
		if (err == nil) != (found != nil) {
			t.Errorf("%s: %v with %v", name, found, err)
		}
	}
	long := fmt.Sprintf(`[{"role":"client","name":"\u001b%s"}]`, strings.Repeat("x", 2*maxName))
	found, err := ReadMeasured(json.RawMessage(long), "a", roles)
	if err != nil || len(found[0].Name) > maxName+8 || strings.Contains(found[0].Name, "\x1b") {
		t.Errorf("%v, %v", found, err)
	}
}

// TestStreams: guests of two processes exchange bytes; a process that is gone, or sends no frames, ends its streams and
// no others.
func TestStreams(t *testing.T) {
	for name, end := range map[string]func(*hub){
		"gone":      func(h *hub) { h.lose("b") },
		"malformed": func(h *hub) { _ = h.of("b").Send("a", "stream/b>a/9", 7) },
	} {
		t.Run(name, func(t *testing.T) {
			h := newHub("a", "b", "c")
			exchanges := make(map[string]*guest.Exchange)
			var stops []func()
			names := []string{"a", "b", "c"}
			for _, name := range names {
				e := guest.NewExchange()
				exchanges[name] = e
				others := slices.DeleteFunc(slices.Clone(names), func(other string) bool { return other == name })
				e.Reach(others, func(role string) string { return role })
				stops = append(stops, CarryStreams(h.of(name), e, others))
			}
			defer func() {
				for _, stop := range stops {
					stop()
				}
			}()
			listener, err := exchanges["a"].Participant("a").Listen(1, 4)
			if err != nil {
				t.Fatal(err)
			}
			awaitTrue(t, func() bool {
				return exchanges["b"].Participant("b").CanConnect("a", 1) &&
					exchanges["c"].Participant("c").CanConnect("a", 1)
			})
			ends := make(map[string]interface {
				State() (readable, writable, over bool)
			})
			for _, from := range []string{"b", "c"} {
				far, err := exchanges[from].Participant(from).Connect("a", 1)
				if err != nil {
					t.Fatal(err)
				}
				awaitTrue(t, listener.Pending)
				here, err := listener.Accept()
				if err != nil {
					t.Fatal(err)
				}
				if n, err := far.Write([]byte("of " + from)); err != nil || n != 4 {
					t.Fatal(n, err)
				}
				got := make([]byte, 8)
				awaitTrue(t, func() bool { readable, _, _ := here.State(); return readable })
				if n, err := here.Read(got); err != nil || string(got[:n]) != "of "+from {
					t.Errorf("%q, %v", got[:n], err)
				}
				ends[from] = here
			}
			if name == "malformed" { // the number of the next frame depends on the ones before
				for i := range 20 {
					_ = h.of("b").Send("a", fmt.Sprint("stream/b>a/", i), 7)
				}
			}
			end(h)
			over := func(from string) bool { _, _, over := ends[from].State(); return over }
			awaitTrue(t, func() bool { return over("b") })
			if over("c") {
				t.Error("the stream of another process has ended")
			}
		})
	}
}

// awaitTrue waits until a condition holds.
func awaitTrue(t *testing.T, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for !holds() {
		if ctx.Err() != nil {
			t.Fatal("it never holds")
		}
		time.Sleep(time.Millisecond)
	}
}
