package trace

import "rdmarun/rdmacore"

// Request is a posted request, as its record has it.
type Request struct {
	ID uint64
	// Opcode and Flags are of requests to send alone.
	Opcode rdmacore.Opcode
	Flags  rdmacore.SendFlags
	// Segments are those that are recorded.
	Segments []Segment

	all            uint32 // segments
	immediate, key uint32
	remote         uint64    // the address, or the address handle
	operands       [2]uint64 // of an atomic
	qkey           uint32    // of a datagram
}

// Segment is memory of a request.
type Segment struct {
	Address     uint64
	Length, Key uint32
}

// Completion is a work completion. A failed one has no valid fields but ID, Status and QueuePair (ibv_poll_cq(3)).
type Completion struct {
	ID     uint64
	Status rdmacore.WCStatus
	Opcode rdmacore.WCOpcode
	// QueuePair is its number; 0: the program cannot know it, or it is QP 0.
	QueuePair uint32

	length, immediate, vendor, source uint32
	flags                             rdmacore.WCFlags
}

// posted is what a record of posts or polls has. A decoder uses it again for the next record.
type posted struct {
	call        Call
	requests    []Request
	segments    []Segment // of all requests
	completions []Completion
}

// segment reads what is recorded of a list.
func (r *reader) segments(counts uint64, in *posted) (list []Segment, all uint32) {
	begin := len(in.segments)
	for range min(uint32(counts), uint32(len(r.words)/2)) {
		address, rest := r.word(), r.word()
		in.segments = append(in.segments, Segment{address, uint32(rest), uint32(rest >> 32)})
	}
	return in.segments[begin:len(in.segments):len(in.segments)], uint32(counts >> 32)
}

// send reads a request of ibv_post_send.
func (r *reader) send(in *posted) Request {
	id, operation, counts, keys, remote := r.word(), r.word(), r.word(), r.word(), r.word()
	request := Request{
		ID: id, Opcode: rdmacore.Opcode(uint32(operation)), Flags: rdmacore.SendFlags(operation >> 32),
		immediate: uint32(keys >> 32), key: uint32(keys), remote: remote,
	}
	switch {
	case r.datagram:
		request.qkey = uint32(r.word())
	case request.isAtomic():
		request.operands = [2]uint64{r.word(), r.word()}
	}
	request.Segments, request.all = r.segments(counts, in)
	return request
}

func (r *Request) isAtomic() bool {
	return r.Opcode == rdmacore.OpAtomicCmpAndSwp || r.Opcode == rdmacore.OpAtomicFetchAndAdd
}

// receive reads a request of ibv_post_recv.
func (r *reader) receive(in *posted) Request {
	id, counts := r.word(), r.word()
	request := Request{ID: id}
	request.Segments, request.all = r.segments(counts, in)
	return request
}

// posts reads the requests of a post: their list follows its counts, and the index of the one that was refused.
func (r *reader) posts(call *Call, in *posted, read func(*reader, *posted) Request) uint64 {
	counts, refused := r.word(), r.word()
	r.datagram = counts&datagram != 0
	in.requests, in.segments = in.requests[:0], in.segments[:0]
	for range uint32(counts) {
		if len(r.words) == 0 {
			break
		}
		in.requests = append(in.requests, read(r, in))
	}
	call.Posted = in.requests
	call.Messages = counts &^ datagram >> 32
	if call.Failed() {
		if refused >= call.Messages { // no request of the list
			refused = 0
		}
		call.Messages, call.Taken = refused, int(min(refused, uint64(len(call.Posted))))
		return counts
	}
	call.Taken = len(call.Posted)
	for i := range in.segments {
		call.Bytes += uint64(in.segments[i].Length)
	}
	return counts
}

// polls reads the completions of a poll.
func (r *reader) polls(call *Call, in *posted) (counts uint64) {
	counts = r.word()
	r.word() // completions of earlier records, which are in this one now
	in.completions = in.completions[:0]
	for range uint32(counts) {
		if len(r.words) == 0 {
			break
		}
		in.completions = append(in.completions, r.completion())
	}
	call.Polled = in.completions
	call.Messages = uint64(len(call.Polled))
	if all, is := call.Result.(int64); is && all > int64(len(call.Polled)) {
		call.Messages = uint64(all)
	}
	for i := range call.Polled {
		switch each := &call.Polled[i]; {
		case each.Status != rdmacore.WCSuccess:
			call.Failures++
		case each.IsReceive():
			call.Bytes += uint64(each.length)
		}
	}
	return counts
}

func (r *reader) completion() Completion {
	id, status, lengths, immediates, vendor := r.word(), r.word(), r.word(), r.word(), r.word()
	return Completion{
		ID: id, Status: rdmacore.WCStatus(status >> 32), Opcode: rdmacore.WCOpcode(uint32(status)),
		QueuePair: uint32(lengths), length: uint32(lengths >> 32), immediate: uint32(immediates >> 32),
		flags: rdmacore.WCFlags(uint32(immediates)), vendor: uint32(vendor >> 32), source: uint32(vendor),
	}
}

// IsReceive reports whether the completion, which has not failed, is of a receive.
func (c *Completion) IsReceive() bool {
	return c.Opcode == rdmacore.WCRecv || c.Opcode == rdmacore.WCRecvRDMAWithImm
}
