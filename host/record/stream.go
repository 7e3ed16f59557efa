package record

import (
	"errors"
	"slices"
	"sync"
	"time"
)

// Consumer is an output.
type Consumer interface {
	// Record takes one record; it must not keep it.  Calls never overlap.
	Record(r *Record) error
	// Wants tells whether records of a kind are worth making: those of steps cost time.
	Wants(kind Kind) bool
}

// Announced is a consumer that wants to know which cases run, even if their records are held until they end.
type Announced interface {
	// Announce takes the beginning of a case; the same record comes again with the others.
	Announce(start *Record)
}

// Stream passes records to consumers, in order, one at a time.  Guests write output from their own goroutines.
type Stream struct {
	begin     time.Time
	mu        sync.Mutex
	consumers []Consumer
	failures  []error
}

// NewStream starts the clock of a run.
func NewStream(consumers ...Consumer) *Stream {
	return &Stream{begin: time.Now(), consumers: slices.Clone(consumers)}
}

// Wants tells whether some consumer wants records of that kind.
func (s *Stream) Wants(kind Kind) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.consumers, func(c Consumer) bool { return c != nil && c.Wants(kind) })
}

// Write completes a record with version and time and passes it on.
func (s *Stream) Write(r *Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.Version, r.Time = Version, time.Now()
	r.Elapsed = r.Time.Sub(s.begin)
	s.deliver(r)
}

// deliver passes a record on; s.mu is held.
func (s *Stream) deliver(r *Record) {
	for i, consumer := range s.consumers {
		if consumer == nil || !consumer.Wants(r.Kind) {
			continue
		}
		if err := consumer.Record(r); err != nil {
			s.failures = append(s.failures, err)
			s.consumers[i] = nil // an output with a hole is worse than one with an end
		}
	}
}

// Announce announces a case that runs, while its records are held until it ends.
func (s *Stream) Announce(start *Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, consumer := range s.consumers {
		if announced, ok := consumer.(Announced); ok {
			announced.Announce(start)
		}
	}
}

// Err is what consumers could not do, for example write to a full disk.
func (s *Stream) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(s.failures...)
}

// Branch is a stream with another consumer and the same beginning, for one attempt of one case.
// Only what is passed to Forward reaches s.
func (s *Stream) Branch(consumer Consumer) *Stream {
	return &Stream{begin: s.begin, consumers: []Consumer{consumer}}
}

// Forward passes on records that a branch has completed, with their times.
func (s *Stream) Forward(records ...*Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range records {
		s.deliver(r)
	}
}
