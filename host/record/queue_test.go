package record

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
)

// stuck is an output that blocks until it may continue.
type stuck struct {
	goOn  chan bool
	mu    sync.Mutex
	texts []string
	fails bool
}

func (s *stuck) Wants(kind Kind) bool { return kind != DeviceUsed }

func (s *stuck) Announce(start *Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.texts = append(s.texts, "announced "+start.Case)
}

func (s *stuck) Record(r *Record) error {
	<-s.goOn
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fails {
		return errors.New("the disk is full")
	}
	text := string(r.Kind) + " " + r.Case
	if r.Step != nil {
		text += " " + r.Step.Text
	}
	s.texts = append(s.texts, text)
	return nil
}

// TestQueue: a writer does not wait for an output, which gets the records in order and as they were when they were
// written.
func TestQueue(t *testing.T) {
	out := &stuck{goOn: make(chan bool)}
	stream := NewQueuedStream(out, nil)
	stream.Announce(&Record{Case: "0"})
	want := []string{"announced 0"}
	step := &Step{}
	for i := range 100 {
		step.Text = fmt.Sprint("text ", i)
		stream.Write(&Record{Kind: StepEnd, Case: "1", Step: step})
		want = append(want, fmt.Sprintf("%s 1 text %d", StepEnd, i))
	}
	step.Text = "written over"
	branch := stream.Branch(out)
	if !stream.Wants(StepEnd) || stream.Wants(DeviceUsed) || !branch.Wants(StepEnd) || stream.Err() != nil {
		t.Error("what an output wants is not known while it is stuck")
	}
	stream.Forward(&Record{Kind: CaseEnd, Case: "2"})
	close(out.goOn)
	stream.Close()
	if want = append(want, string(CaseEnd)+" 2"); !slices.Equal(out.texts, want) {
		t.Errorf("%q", out.texts)
	}
}

// TestQueueIsBounded: a writer waits for the output when too many bytes wait.  An output that fails gets no more
// records, and its error is returned.
func TestQueueIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out, full := &stuck{goOn: make(chan bool), fails: true}, &stuck{goOn: make(chan bool)}
		close(full.goOn)
		stream := NewQueuedStream(full, out)
		line := &Line{Text: strings.Repeat("x", 1<<20)}
		const fit, records = maxQueued / (1<<20 + recordBytes), maxQueued>>20 + 2
		written := 0
		go func() {
			for range records {
				stream.Write(&Record{Kind: Output, Line: line})
				written++
			}
		}()
		synctest.Wait()
		if written != fit {
			t.Errorf("%d records are written while the output is stuck, want %d", written, fit)
		}
		close(out.goOn)
		synctest.Wait()
		stream.Close()
		if err := stream.Err(); err == nil || err.Error() != "the disk is full" || len(out.texts) != 0 {
			t.Errorf("%v, %d", err, len(out.texts))
		}
		if len(full.texts) != records {
			t.Errorf("the other output has %d records", len(full.texts))
		}
	})
}

func TestWeight(t *testing.T) {
	for _, test := range []struct {
		record Record
		want   int
	}{
		{Record{}, recordBytes},
		{Record{Line: &Line{Text: "abc"}}, recordBytes + 3},
		{Record{Step: &Step{Text: "ab", Fields: []Field{{Value: "cde"}, {Value: "f"}}}}, recordBytes + 6},
		{Record{Measure: &Measure{}}, recordBytes},
	} {
		if got := weight(&test.record); got != test.want {
			t.Errorf("%+v: %d, want %d", test.record, got, test.want)
		}
	}
}
