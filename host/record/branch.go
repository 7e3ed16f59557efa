package record

// Branch is a stream with a consumer of its own and the same beginning, for one attempt of one case.
// Nothing reaches s but what is passed to Forward.
func (s *Stream) Branch(consumer Consumer) *Stream {
	return &Stream{begin: s.begin, consumers: []Consumer{consumer}}
}

// Forward passes a record on that a branch has completed, with the time it has.
func (s *Stream) Forward(records ...*Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range records {
		s.deliver(r)
	}
}
