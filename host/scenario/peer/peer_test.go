package peer

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"rdmarun/host/record"
	"rdmarun/host/scenario/meeting"
	"rdmarun/host/scenario/progress"
	"rdmarun/host/scenario/testbed"
)

// fakeMailbox keeps the messages that are sent, and has those that have arrived.
type fakeMailbox struct {
	Mailbox
	mu      sync.Mutex
	sent    []string // key value
	arrived map[meeting.Key]string
	broken  error
}

func (*fakeMailbox) Name() string { return "me" }

func (s *fakeMailbox) Broadcast(key string, value any) error {
	raw, err := json.Marshal(value)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent = append(s.sent, key+" "+string(raw))
	return s.broken
}

func (s *fakeMailbox) all() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.sent, "\n")
}

func (s *fakeMailbox) AwaitWith(
	ctx context.Context, _ []string, keys ...meeting.Key,
) (key meeting.Key, value json.RawMessage, err error) {
	for _, key := range keys {
		if text, came := s.arrived[key]; came {
			delete(s.arrived, key)
			return key, json.RawMessage(text), nil
		}
	}
	<-ctx.Done()
	return meeting.Key{}, nil, context.Cause(ctx)
}

func (s *fakeMailbox) Await(ctx context.Context, from string, names ...string) (string, json.RawMessage, error) {
	var keys []meeting.Key
	for _, name := range names {
		keys = append(keys, meeting.Key{From: from, Name: name})
	}
	key, raw, err := s.AwaitWith(ctx, nil, keys...)
	return key.Name, raw, err
}

func (s *fakeMailbox) Take(from, name string) (json.RawMessage, bool) {
	key := meeting.Key{From: from, Name: name}
	text, came := s.arrived[key]
	delete(s.arrived, key)
	return json.RawMessage(text), came
}

func (s *fakeMailbox) HasCome(from string, key []byte) bool {
	_, came := s.arrived[meeting.Key{From: from, Name: string(key)}]
	return came
}

// TestSpend: the messages of others are kept up to a limit.  The error names the process that has sent most, whichever
// sent the last.
func TestSpend(t *testing.T) {
	g := NewGroup(nil, nil)
	for range maxReceived >> 27 {
		if err := g.Spend("a", make(json.RawMessage, 1<<27)); err != nil {
			t.Fatal(err)
		}
	}
	if err := g.Spend("b", json.RawMessage("1")); err == nil ||
		!strings.Contains(err.Error(), "more than 256MiB in one case: the process of a sent 256MiB of it") {
		t.Error(err)
	}
}

// TestAwait: a message is taken before an end, an end of any process ends the wait, and then all others.
func TestAwait(t *testing.T) {
	mailbox := &fakeMailbox{arrived: map[meeting.Key]string{
		{From: "a", Name: "step"}:  "7",
		{From: "b", Name: "end/b"}: `{"status":"failed","failures":[{"what":"wrong","line":9}]}`,
	}}
	g := NewGroup(mailbox, []string{"a", "b"})
	if key, raw, err := g.Await(t.Context(), "a", nil, "other", "step"); err != nil || key != "step" ||
		string(raw) != "7" {
		t.Errorf("%s %s %v", key, raw, err)
	}
	_, _, err := g.Await(t.Context(), "a", nil, "step")
	var failure *testbed.Failure
	if !errors.As(err, &failure) || failure.What != "the process of b has ended the case" ||
		failure.Got != "wrong" {
		t.Errorf("%+v", err)
	}
	if end, reported := g.EndOf("b"); !reported || end.Status != record.Failed {
		t.Errorf("%+v, %t", end, reported)
	}
	if _, _, err = g.Await(t.Context(), "a", nil, "never"); !errors.As(err, &failure) {
		t.Errorf("a wait after the end: %v", err)
	}
}

// TestAwaitLast: a message before the end of its process arrives, and its absence is no error.
func TestAwaitLast(t *testing.T) {
	mailbox := &fakeMailbox{arrived: map[meeting.Key]string{
		{From: "a", Name: "end/a"}: `{"status":"passed"}`, {From: "b", Name: "looked/b"}: "true",
		{From: "c", Name: "end/c"}: `nonsense`,
	}}
	g := NewGroup(mailbox, []string{"a", "b", "c"})
	for _, test := range []struct {
		from string
		came bool
	}{{"a", false}, {"a", false}, {"b", true}, {"c", false}} {
		if _, came, err := g.AwaitLast(t.Context(), test.from, Key("looked", test.from)); came != test.came ||
			err != nil {
			t.Errorf("%s: %t, %v", test.from, came, err)
		}
	}
	if end, _ := g.EndOf("c"); end.Status != record.Errored || !strings.Contains(end.Reason, "cannot be read") {
		t.Errorf("an end that cannot be read: %+v", end)
	}
	var environment *testbed.EnvironmentError
	if err := g.EndedBy("c"); !errors.As(err, &environment) {
		t.Errorf("the end of c is no error: %v", err)
	}
}

// TestEmptySteps: one number stands for many steps, each branch has its own, and it is sent before later messages.
func TestEmptySteps(t *testing.T) {
	mailbox := &fakeMailbox{}
	q := newEmptySteps(mailbox)
	q.timed = true // no timer reports first
	for number := 1; number <= 1000; number++ {
		if err := q.add("", number); err != nil {
			t.Fatal(err)
		}
	}
	if err := q.add("3.0/", 1); err != nil {
		t.Fatal(err)
	}
	if err := q.Flush(); err != nil {
		t.Fatal(err)
	}
	if got := mailbox.all(); got != "quiet/me/ 1000\nquiet/me/3.0/ 1" {
		t.Errorf("%s", got)
	}
	if err := q.Flush(); err != nil || len(mailbox.sent) != 2 {
		t.Errorf("nothing is reported twice: %v, %v", mailbox.sent, err)
	}
	mailbox.broken = errors.New("gone")
	if err := q.add("", 1001); err != nil {
		t.Errorf("reported before its time: %v", err)
	}
	if err := q.End(); !errors.Is(err, mailbox.broken) {
		t.Errorf("the end does not say what could not be reported: %v", err)
	}
	_ = q.add("", 1002)
	if _ = q.Flush(); len(mailbox.sent) != 3 {
		t.Errorf("reported after the end: %v", mailbox.sent)
	}
}

// TestEmptyStepsInTime: a step is reported without another one after it.
func TestEmptyStepsInTime(t *testing.T) {
	mailbox := &fakeMailbox{}
	q := newEmptySteps(mailbox)
	if err := q.add("", 7); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(30 * time.Second); mailbox.all() != "quiet/me/ 7"; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the step is never reported")
		}
	}
}

// TestPeerEmptySteps: the number of a process only grows, and another value than a number is an error.
func TestPeerEmptySteps(t *testing.T) {
	of := newPeerEmptySteps("a", "2.1/")
	if of.key != "quiet/a/2.1/" {
		t.Error(of.key)
	}
	for _, raw := range []string{"5", "3"} {
		if err := of.note(json.RawMessage(raw)); err != nil || of.last != 5 {
			t.Errorf("%s: %d, %v", raw, of.last, err)
		}
	}
	if err := of.note(json.RawMessage(`"x"`)); err == nil || of.last != 5 {
		t.Errorf("%d, %v", of.last, err)
	}
}

// TestAlive: nothing is sent after the end of a loop.
func TestAlive(t *testing.T) {
	mailbox, steps := &fakeMailbox{}, &progress.Steps{}
	a := &Alive{Mailbox: mailbox, Key: "step/1/rounds", Progress: steps.Begin("round", 9)}
	a.Start()
	a.Progress.At.Store(4)
	a.send()
	a.send() // no news
	if err := a.Stop(); err != nil || mailbox.all() != "step/1/rounds 4" {
		t.Errorf("%s, %v", mailbox.all(), err)
	}
	a.Progress.At.Store(5)
	a.send()
	if mailbox.all() != "step/1/rounds 4" {
		t.Errorf("after its end: %s", mailbox.all())
	}
}

// TestEarlier: what an earlier run has found is the same at the other end, and too many parts are refused.
func TestEarlier(t *testing.T) {
	earlier := &record.Earlier{Measures: []record.Measure{
		{What: record.What{Name: "one", Type: "bandwidth"}, Role: "client", BitsPerSecond: 1e9, Messages: 1},
		{What: record.What{Name: "two", Type: "bandwidth"}, Role: "client", BitsPerSecond: 2e9, Messages: 1},
	}}
	for i := range pairsAtOnce + 1 {
		earlier.AddPair(record.Measure{
			What: record.What{Type: "bandwidth"}, How: record.How{Size: int64(i + 1)}, Role: "client", Messages: 1,
		})
	}
	here := &fakeMailbox{}
	count, err := NewGroup(here, nil).SendEarlier(earlier)
	if err != nil || count != 4 {
		t.Fatalf("%d parts: %v", count, err)
	}
	there := &fakeMailbox{arrived: make(map[meeting.Key]string)}
	for _, each := range here.sent {
		key, value, _ := strings.Cut(each, " ")
		there.arrived[meeting.Key{From: "me", Name: key}] = value
	}
	g := NewGroup(there, []string{"me"})
	got, err := g.ReceiveEarlier(t.Context(), "me", count)
	if err != nil || len(got.Measures) != 2 || got.Measures[1].BitsPerSecond != 2e9 ||
		len(got.Pairs) != pairsAtOnce+1 {
		t.Errorf("%+v, %v", got, err)
	}
	for _, wrong := range []int{-1, maxBaseline + 1} {
		if _, err := g.ReceiveEarlier(t.Context(), "me", wrong); err == nil {
			t.Errorf("%d parts are taken", wrong)
		}
	}
}

// TestSendMeasured: histograms are left out of what would be too long, and stay where they were.
func TestSendMeasured(t *testing.T) {
	mailbox := &fakeMailbox{}
	found := []*record.Measure{{
		Role: "client", Latency: []record.Distribution{{Of: "total", HDR: strings.Repeat("x", maxMeasured)}},
	}}
	if err := SendMeasured(mailbox, "step/1/measured/0", found); err != nil {
		t.Fatal(err)
	}
	if len(mailbox.sent[0]) > maxMeasured || len(found[0].Latency[0].HDR) != maxMeasured {
		t.Errorf("%d bytes are sent, %d kept", len(mailbox.sent[0]), len(found[0].Latency[0].HDR))
	}
	_, raw, _ := strings.Cut(mailbox.sent[0], " ")
	if got, err := ReadMeasured(json.RawMessage(raw), "a", []string{"client"}); err != nil || got[0].Role != "client" {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := ReadMeasured(json.RawMessage(raw), "a", []string{"server"}); err == nil ||
		!strings.Contains(err.Error(), "not the roles of the step") {
		t.Errorf("another role: %v", err)
	}
}
