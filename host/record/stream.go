package record

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"rdmarun/host/bounded"
)

// Consumer is an output.
type Consumer interface {
	// Record takes one record; it must not keep it.  Calls never overlap.
	Record(r *Record) error
	// Wants reports whether the consumer needs records of a kind: records of steps cost time.  Any goroutine may call
	// it, also while Record runs.
	Wants(kind Kind) bool
}

// announced is a consumer that gets the start of each case at once, even if the records are held until the case ends.
type announced interface {
	// Announce takes the start of a case; the same record comes again with the others.
	Announce(start *Record)
}

// Stream passes records to consumers, in order, one at a time.  Guests write output from their own goroutines.
type Stream struct {
	begin time.Time
	sinks []*sink
	mu    sync.Mutex           // held while a record gets its time and its place in the order
	queue *bounded.Queue[item] // nil: a writer waits for the consumers
}

// sink is a consumer, until it fails.
type sink struct {
	Consumer
	failure atomic.Pointer[error]
}

// NewStream starts the clock of a run.
func NewStream(consumers ...Consumer) *Stream {
	s := &Stream{begin: time.Now()}
	for _, consumer := range consumers {
		if consumer == nil {
			continue
		}
		s.sinks = append(s.sinks, &sink{Consumer: consumer})
	}
	return s
}

// Wants reports whether some consumer needs records of that kind.
func (s *Stream) Wants(kind Kind) bool {
	return slices.ContainsFunc(s.sinks, func(c *sink) bool { return c.failure.Load() == nil && c.Wants(kind) })
}

// Write completes a record with version and time and passes it on.
func (s *Stream) Write(r *Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.Version, r.Time = Version, time.Now()
	r.Elapsed = r.Time.Sub(s.begin)
	s.pass(item{record: r})
}

// item is a record on its way to consumers, or the announcement of one.
type item struct {
	record   *Record
	announce bool
}

// deliver passes a record to the consumers.  Only one goroutine at a time calls it.
func (s *Stream) deliver(each item) {
	for _, sink := range s.sinks {
		if sink.failure.Load() != nil {
			continue
		}
		if each.announce {
			if announced, ok := sink.Consumer.(announced); ok {
				announced.Announce(each.record)
			}
		} else if sink.Wants(each.record.Kind) {
			if err := sink.Record(each.record); err != nil {
				sink.failure.Store(&err) // a truncated output is better than one with a gap
			}
		}
	}
}

// Announce announces a case before its end.  Its records are held until then.
func (s *Stream) Announce(start *Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pass(item{record: start, announce: true})
}

// Err is the errors of consumers, for example of a full disk.
func (s *Stream) Err() error {
	var failures []error
	for _, sink := range s.sinks {
		if failure := sink.failure.Load(); failure != nil {
			failures = append(failures, *failure)
		}
	}
	return errors.Join(failures...)
}

// Branch is a stream with another consumer and the same start time, for one attempt of one case.  Only the records that
// Forward gets reach s.
func (s *Stream) Branch(consumer Consumer) *Stream {
	return &Stream{begin: s.begin, sinks: []*sink{{Consumer: consumer}}}
}

// Forward passes on records that a branch has completed, with their times.
func (s *Stream) Forward(records ...*Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range records {
		s.pass(item{record: r})
	}
}
