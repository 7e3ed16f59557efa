package record

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Consumer is an output.
type Consumer interface {
	// Record takes one record; it must not keep it.  Calls never overlap.
	Record(r *Record) error
	// Wants tells whether records of a kind are worth making: those of steps cost time.  Any goroutine may ask, also
	// while Record runs.
	Wants(kind Kind) bool
}

// Announced is a consumer that wants to know which cases run, even if their records are held until they end.
type Announced interface {
	// Announce takes the beginning of a case; the same record comes again with the others.
	Announce(start *Record)
}

// Stream passes records to consumers, in order, one at a time.  Guests write output from their own goroutines.
type Stream struct {
	begin time.Time
	sinks []*sink
	mu    sync.Mutex // orders records
	queue *queue     // nil: who writes a record waits for the consumers
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

// NewQueuedStream is NewStream with a goroutine of its own for the consumers, until Close: who writes a record does not
// wait for a pipe that nobody reads, or a slow disk, as long as the records that wait have no more than maxQueued
// bytes.
func NewQueuedStream(consumers ...Consumer) *Stream {
	s := NewStream(consumers...)
	s.queue = newQueue(s.deliver)
	return s
}

// Close waits until the consumers have all records of a queued stream, and ends its goroutine.  Nothing is written
// after it.
func (s *Stream) Close() {
	if s.queue != nil {
		s.queue.close()
	}
}

// Wants tells whether some consumer wants records of that kind.
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

// pass delivers a record, or has it delivered; s.mu is held.
func (s *Stream) pass(each item) {
	if s.queue != nil {
		s.queue.put(each)
	} else {
		s.deliver(each)
	}
}

// deliver passes a record to the consumers.  One goroutine at a time does.
func (s *Stream) deliver(each item) {
	for _, sink := range s.sinks {
		if sink.failure.Load() != nil {
			continue
		}
		if each.announce {
			if announced, ok := sink.Consumer.(Announced); ok {
				announced.Announce(each.record)
			}
		} else if sink.Wants(each.record.Kind) {
			if err := sink.Record(each.record); err != nil {
				sink.failure.Store(&err) // an output with a hole is worse than one with an end
			}
		}
	}
}

// Announce announces a case that runs, while its records are held until it ends.
func (s *Stream) Announce(start *Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pass(item{record: start, announce: true})
}

// Err is what consumers could not do, for example write to a full disk.
func (s *Stream) Err() error {
	var failures []error
	for _, sink := range s.sinks {
		if failure := sink.failure.Load(); failure != nil {
			failures = append(failures, *failure)
		}
	}
	return errors.Join(failures...)
}

// Branch is a stream with another consumer and the same beginning, for one attempt of one case.
// Only what is passed to Forward reaches s.
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
