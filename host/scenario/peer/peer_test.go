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

// said is a mailbox that keeps what is told, and has what others have told.
type said struct {
	Mailbox
	mu      sync.Mutex
	told    []string // key value
	arrived map[meeting.Key]string
	broken  error
}

func (*said) Name() string { return "me" }

func (s *said) Tell(key string, value any) error {
	raw, err := json.Marshal(value)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told = append(s.told, key+" "+string(raw))
	return s.broken
}

func (s *said) all() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.told, "\n")
}

func (s *said) AwaitWith(
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

func (s *said) Await(ctx context.Context, from string, names ...string) (string, json.RawMessage, error) {
	var keys []meeting.Key
	for _, name := range names {
		keys = append(keys, meeting.Key{From: from, Name: name})
	}
	key, raw, err := s.AwaitWith(ctx, nil, keys...)
	return key.Name, raw, err
}

func (s *said) Take(from, name string) (json.RawMessage, bool) {
	text, came := s.arrived[meeting.Key{From: from, Name: name}]
	return json.RawMessage(text), came
}

// TestSpend: the messages of others are kept up to a limit.  The error names the process that has sent most, whichever
// sent the last.
func TestSpend(t *testing.T) {
	g := NewGroup(nil, nil)
	for range mostTold >> 27 {
		if err := g.Spend("a", make(json.RawMessage, 1<<27)); err != nil {
			t.Fatal(err)
		}
	}
	if err := g.Spend("b", json.RawMessage("1")); err == nil ||
		!strings.Contains(err.Error(), "more than 256 MiB in one case, and that of a 256 MiB of it") {
		t.Error(err)
	}
}

// TestHear: a message is taken before an end, an end of any process ends the wait, and then all others.
func TestHear(t *testing.T) {
	mailbox := &said{arrived: map[meeting.Key]string{
		{From: "a", Name: "step"}:  "7",
		{From: "b", Name: "end/b"}: `{"status":"failed","failures":[{"what":"wrong","line":9}]}`,
	}}
	g := NewGroup(mailbox, []string{"a", "b"})
	if key, raw, err := g.Hear(t.Context(), "a", nil, "other", "step"); err != nil || key != "step" ||
		string(raw) != "7" {
		t.Errorf("%s %s %v", key, raw, err)
	}
	_, _, err := g.Hear(t.Context(), "a", nil, "step")
	var failure *testbed.Failure
	if !errors.As(err, &failure) || failure.What != "the process of b has ended the case" ||
		failure.Got != "wrong" {
		t.Errorf("%+v", err)
	}
	if end, told := g.EndOf("b"); !told || end.Status != record.Failed {
		t.Errorf("%+v, %t", end, told)
	}
	if _, _, err = g.Hear(t.Context(), "a", nil, "never"); !errors.As(err, &failure) {
		t.Errorf("a wait after the end: %v", err)
	}
}

// TestHearLast: what a process has told before its end is heard, and that it has told nothing is no error.
func TestHearLast(t *testing.T) {
	mailbox := &said{arrived: map[meeting.Key]string{
		{From: "a", Name: "end/a"}: `{"status":"passed"}`, {From: "b", Name: "looked/b"}: "true",
		{From: "c", Name: "end/c"}: `nonsense`,
	}}
	g := NewGroup(mailbox, []string{"a", "b", "c"})
	for _, test := range []struct {
		from string
		came bool
	}{{"a", false}, {"a", false}, {"b", true}, {"c", false}} {
		if _, came, err := g.HearLast(t.Context(), test.from, Key("looked", test.from)); came != test.came ||
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

// TestQuiet: many steps are told by one number, each branch by its own, and before what is told after them.
func TestQuiet(t *testing.T) {
	mailbox := &said{}
	q := NewQuiet(mailbox)
	q.timed = true // no timer tells first
	for number := 1; number <= 1000; number++ {
		if err := q.Passed("", number); err != nil {
			t.Fatal(err)
		}
	}
	if err := q.Passed("3.0/", 1); err != nil {
		t.Fatal(err)
	}
	if err := q.Flush(); err != nil {
		t.Fatal(err)
	}
	if got := mailbox.all(); got != "quiet/me/ 1000\nquiet/me/3.0/ 1" {
		t.Errorf("%s", got)
	}
	if err := q.Flush(); err != nil || len(mailbox.told) != 2 {
		t.Errorf("nothing is told twice: %v, %v", mailbox.told, err)
	}
	mailbox.broken = errors.New("gone")
	if err := q.Passed("", 1001); err != nil {
		t.Errorf("told before its time: %v", err)
	}
	if err := q.End(); !errors.Is(err, mailbox.broken) {
		t.Errorf("the end does not say what could not be told: %v", err)
	}
	_ = q.Passed("", 1002)
	if _ = q.Flush(); len(mailbox.told) != 3 {
		t.Errorf("told after the end: %v", mailbox.told)
	}
}

// TestQuietInTime: who waits hears of a step without another one.
func TestQuietInTime(t *testing.T) {
	mailbox := &said{}
	q := NewQuiet(mailbox)
	if err := q.Passed("", 7); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(30 * time.Second); mailbox.all() != "quiet/me/ 7"; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the step is never told")
		}
	}
}

// TestQuietOf: the number of a process only grows, and another value than a number is an error.
func TestQuietOf(t *testing.T) {
	of := NewQuietOf("a", "2.1/")
	if of.Key != "quiet/a/2.1/" {
		t.Error(of.Key)
	}
	for _, raw := range []string{"5", "3"} {
		if err := of.Note(json.RawMessage(raw)); err != nil || of.Last != 5 {
			t.Errorf("%s: %d, %v", raw, of.Last, err)
		}
	}
	if err := of.Note(json.RawMessage(`"x"`)); err == nil || of.Last != 5 {
		t.Errorf("%d, %v", of.Last, err)
	}
}

// TestAlive: nothing is told after the end of a loop.
func TestAlive(t *testing.T) {
	mailbox, steps := &said{}, &progress.Steps{}
	a := &Alive{Mailbox: mailbox, Key: "step/1/rounds", Advance: steps.Begin("round", 9)}
	a.Start()
	a.Advance.At.Store(4)
	a.tell()
	a.tell() // no news
	if err := a.Stop(); err != nil || mailbox.all() != "step/1/rounds 4" {
		t.Errorf("%s, %v", mailbox.all(), err)
	}
	a.Advance.At.Store(5)
	a.tell()
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
	here := &said{}
	count, err := NewGroup(here, nil).TellEarlier(earlier)
	if err != nil || count != 4 {
		t.Fatalf("%d parts: %v", count, err)
	}
	there := &said{arrived: make(map[meeting.Key]string)}
	for _, each := range here.told {
		key, value, _ := strings.Cut(each, " ")
		there.arrived[meeting.Key{From: "me", Name: key}] = value
	}
	g := NewGroup(there, []string{"me"})
	got, err := g.TakeEarlier(t.Context(), "me", count)
	if err != nil || len(got.Measures) != 2 || got.Measures[1].BitsPerSecond != 2e9 ||
		len(got.Pairs) != pairsAtOnce+1 {
		t.Errorf("%+v, %v", got, err)
	}
	for _, wrong := range []int{-1, mostBaseline + 1} {
		if _, err := g.TakeEarlier(t.Context(), "me", wrong); err == nil {
			t.Errorf("%d parts are taken", wrong)
		}
	}
}

// TestTellMeasured: histograms are left out of what would be too long, and stay where they were.
func TestTellMeasured(t *testing.T) {
	mailbox := &said{}
	found := []*record.Measure{{
		Role: "client", Latency: []record.Distribution{{Of: "total", HDR: strings.Repeat("x", longestMeasured)}},
	}}
	if err := TellMeasured(mailbox, "step/1/measured/0", found); err != nil {
		t.Fatal(err)
	}
	if len(mailbox.told[0]) > longestMeasured || len(found[0].Latency[0].HDR) != longestMeasured {
		t.Errorf("%d bytes are told, %d kept", len(mailbox.told[0]), len(found[0].Latency[0].HDR))
	}
	_, raw, _ := strings.Cut(mailbox.told[0], " ")
	if got, err := ReadMeasured(json.RawMessage(raw), "a", []string{"client"}); err != nil || got[0].Role != "client" {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := ReadMeasured(json.RawMessage(raw), "a", []string{"server"}); err == nil ||
		!strings.Contains(err.Error(), "not the roles of the step") {
		t.Errorf("another role: %v", err)
	}
}
