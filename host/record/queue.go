package record

import "rdmarun/host/bounded"

const (
	// maxQueued bounds the bytes of records that wait for the consumers of a queued stream, according to weight.
	maxQueued = 64 << 20
	// recordBytes is the approximate size of a record without its texts.
	recordBytes = 1 << 10
)

// NewQueuedStream is NewStream with a goroutine of its own for the consumers, until Close.  A writer does not wait for
// a pipe without a reader, or a slow disk, while the waiting records have no more than maxQueued bytes.
func NewQueuedStream(consumers ...Consumer) *Stream {
	s := NewStream(consumers...)
	s.queue = bounded.NewQueue(maxQueued, s.deliver)
	return s
}

// Close waits until the consumers have all records of a queued stream, and ends its goroutine.  Nothing may be written
// after it.
func (s *Stream) Close() {
	if s.queue != nil {
		s.queue.Close()
	}
}

// pass delivers a record, or queues it: then it copies the fields of a step, which the case reuses for the next step.
// The caller holds s.mu.
func (s *Stream) pass(each item) {
	if s.queue == nil {
		s.deliver(each)
		return
	}
	kept := *each.record
	if kept.Step != nil {
		step := *kept.Step
		kept.Step = &step
	}
	each.record = &kept
	s.queue.Put("", weight(&kept), each)
}

// weight is the approximate number of bytes of a record.
func weight(r *Record) int {
	bytes := recordBytes
	if r.Line != nil {
		bytes += len(r.Line.Text)
	}
	if r.Step != nil {
		bytes += len(r.Step.Text)
		for _, field := range r.Step.Fields {
			bytes += len(field.Value)
		}
	}
	if r.Measure != nil {
		for _, each := range r.Measure.Latency {
			bytes += len(each.HDR)
		}
	}
	return bytes
}
