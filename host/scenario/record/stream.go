package record

import (
	"errors"
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

// Stream passes records to consumers, in order, one at a time.  Guests write output from goroutines of
// their own.
type Stream struct {
	begin     time.Time
	mu        sync.Mutex
	consumers []Consumer
	failures  []error
}

// NewStream starts the clock of a run.
func NewStream(consumers ...Consumer) *Stream {
	return &Stream{begin: time.Now(), consumers: consumers}
}

// Wants tells whether some consumer wants records of that kind.
func (s *Stream) Wants(kind Kind) bool {
	for _, consumer := range s.consumers {
		if consumer.Wants(kind) {
			return true
		}
	}
	return false
}

// Write completes a record with version and time and passes it on.
func (s *Stream) Write(r *Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.Version, r.Time = Version, time.Now()
	r.Elapsed = r.Time.Sub(s.begin)
	for _, consumer := range s.consumers {
		if !consumer.Wants(r.Kind) {
			continue
		}
		if err := consumer.Record(r); err != nil {
			s.failures = append(s.failures, err)
		}
	}
}

// Err is what consumers could not do, for example write to a full disk.
func (s *Stream) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(s.failures...)
}
