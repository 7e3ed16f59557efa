package record

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"
)

// taker is an output that copies the records of some kinds, and fails after some of them.
type taker struct {
	wants func(Kind) bool
	after int // 0: it does not fail
	taken []Record
	busy  sync.Mutex
}

func (c *taker) Wants(kind Kind) bool { return c.wants == nil || c.wants(kind) }

func (c *taker) Record(r *Record) error {
	if !c.busy.TryLock() {
		return errors.New("two records came at once")
	}
	defer c.busy.Unlock()
	c.taken = append(c.taken, *r)
	if c.after > 0 && len(c.taken) == c.after {
		return fmt.Errorf("no space after %d records", c.after)
	}
	return nil
}

// streams are both kinds of streams.
var streams = map[string]func(...Consumer) *Stream{"direct": NewStream, "queued": NewQueuedStream}

// TestOrder: each output has all records of many writers, one at a time. Those of each writer are in its order, and
// times do not go back.
func TestOrder(t *testing.T) {
	const writers, each = 8, 200
	for name, make := range streams {
		t.Run(name, func(t *testing.T) {
			out, second := &taker{}, &taker{}
			stream := make(out, nil, second)
			var writing sync.WaitGroup
			for writer := range writers {
				writing.Go(func() {
					for i := range each {
						stream.Write(&Record{Kind: Output, Attempt: i, Line: &Line{Role: fmt.Sprint(writer)}})
					}
				})
			}
			writing.Wait()
			stream.Close()
			if err := stream.Err(); err != nil {
				t.Fatal(err)
			}
			if len(out.taken) != writers*each || !reflect.DeepEqual(out.taken, second.taken) {
				t.Fatalf("%d and %d records", len(out.taken), len(second.taken))
			}
			next := map[string]int{}
			for i := range out.taken {
				r := &out.taken[i]
				if r.Attempt != next[r.Line.Role] {
					t.Fatalf("record %d of writer %s comes after %d", r.Attempt, r.Line.Role, next[r.Line.Role]-1)
				}
				next[r.Line.Role]++
				if r.Version != Version || r.Time.IsZero() {
					t.Fatalf("%+v", r)
				}
				if i > 0 && r.Elapsed < out.taken[i-1].Elapsed {
					t.Fatalf("%s comes after %s", r.Elapsed, out.taken[i-1].Elapsed)
				}
			}
		})
	}
}

// TestWants: an output has the kinds that it wants, and no stream makes records that no output wants.
func TestWants(t *testing.T) {
	steps := &taker{wants: func(k Kind) bool { return k == StepEnd }}
	ends := &taker{wants: func(k Kind) bool { return k == CaseEnd }}
	stream := NewStream(steps, ends)
	for kind, wanted := range map[Kind]bool{StepEnd: true, CaseEnd: true, Output: false, RunEnd: false} {
		if stream.Wants(kind) != wanted {
			t.Errorf("wants %s: %v", kind, !wanted)
		}
		stream.Write(&Record{Kind: kind})
	}
	for kind, each := range map[Kind]*taker{StepEnd: steps, CaseEnd: ends} {
		if len(each.taken) != 1 || each.taken[0].Kind != kind {
			t.Errorf("%s: %+v", kind, each.taken)
		}
	}
	if NewStream().Wants(RunEnd) {
		t.Error("a stream without outputs wants records")
	}
}

// TestFailedOutput: an output that fails has no more records and wants none, and the others go on.
func TestFailedOutput(t *testing.T) {
	for name, make := range streams {
		t.Run(name, func(t *testing.T) {
			full := &taker{after: 3}
			other := &taker{wants: func(k Kind) bool { return k == Output }}
			stream := make(full, other)
			for range 10 {
				stream.Write(&Record{Kind: StepEnd})
				stream.Write(&Record{Kind: Output})
			}
			stream.Close()
			if len(full.taken) != 3 || len(other.taken) != 10 {
				t.Errorf("%d and %d records", len(full.taken), len(other.taken))
			}
			if err := stream.Err(); err == nil || err.Error() != "no space after 3 records" {
				t.Error(err)
			}
			if stream.Wants(StepEnd) || !stream.Wants(Output) {
				t.Error("what the output that failed wanted is still made")
			}
		})
	}
	one, two := &taker{after: 1}, &taker{after: 1}
	stream := NewStream(one, two)
	stream.Write(&Record{})
	if err := stream.Err(); err == nil || err.Error() != "no space after 1 records\nno space after 1 records" {
		t.Error(err)
	}
}

// TestBranch: an attempt's records reach the run's outputs when they are forwarded, with the times they had.
func TestBranch(t *testing.T) {
	out, attempt := &taker{}, &taker{}
	stream := NewStream(out)
	branch := stream.Branch(attempt)
	branch.Write(&Record{Kind: StepEnd, Case: "one"})
	branch.Write(&Record{Kind: StepEnd, Case: "two"})
	time.Sleep(time.Millisecond)
	stream.Write(&Record{Kind: Output, Case: "between"})
	if len(out.taken) != 1 || len(attempt.taken) != 2 {
		t.Fatalf("%d and %d records", len(out.taken), len(attempt.taken))
	}
	stream.Forward(&attempt.taken[1], &attempt.taken[0])
	var cases []string
	for _, r := range out.taken {
		cases = append(cases, r.Case)
	}
	if !slices.Equal(cases, []string{"between", "two", "one"}) {
		t.Errorf("%q", cases)
	}
	if !out.taken[2].Time.Equal(attempt.taken[0].Time) || out.taken[2].Elapsed != attempt.taken[0].Elapsed ||
		out.taken[2].Elapsed >= out.taken[0].Elapsed {
		t.Errorf("forwarded at %s, written at %s", out.taken[2].Elapsed, attempt.taken[0].Elapsed)
	}
}

// TestQueueKeepsSteps: a case writes over its step and its record when Write has returned.
func TestQueueKeepsSteps(t *testing.T) {
	out := &taker{}
	stream := NewQueuedStream(out)
	r := &Record{Kind: StepEnd, Step: &Step{}}
	for i := range 50 {
		r.Case, r.Step.Line = fmt.Sprint(i), i
		stream.Write(r)
	}
	stream.Close()
	for i := range out.taken {
		if out.taken[i].Case != fmt.Sprint(i) || out.taken[i].Step.Line != i {
			t.Fatalf("record %d has case %s and line %d", i, out.taken[i].Case, out.taken[i].Step.Line)
		}
	}
}
