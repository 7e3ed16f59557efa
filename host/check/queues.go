package check

import (
	"slices"
	"strings"
	"syscall"

	"rdmarun/host/check/finding"
	"rdmarun/host/trace"
	"rdmarun/rdmacore"
)

// Bounds of what is kept of one queue.
const (
	maxPosted  = 1 << 17
	maxEarly   = 1 << 12
	maxRefused = 1 << 12
)

// request is a posted request without a polled completion.
type request struct {
	id       uint64
	call     string // by which it was posted
	receive  bool
	opcode   rdmacore.Opcode // of a request to send
	signaled bool
	writes   bool // to its segments: a receive, a READ, an atomic
	segments []segment
	site     trace.Site
}

type segment struct {
	span
	key    uint32
	region *region // of that key, when the request was posted; nil: not known
}

// queue is a send queue or a receive queue.
type queue struct {
	cq     *completionQueue // nil: not known, or of a shared receive queue
	posted []*request
	// early are completions of which the post is not known yet: another thread has polled them before the call that
	// posts has returned.
	early []uint64
	// refused are requests of failed posts, by wr_id.
	refused map[uint64]refused
}

type refused struct {
	request *request
	errno   syscall.Errno
}

func newQueue(cq *completionQueue) *queue { return &queue{cq: cq, refused: map[uint64]refused{}} }

// kind is what the request is: "RDMA_READ".
func (r *request) kind() string {
	if r.receive {
		return "receive"
	}
	return r.opcode.String()
}

// name is the request with its article: "an RDMA_READ".
func (r *request) name() string {
	kind := r.kind()
	if strings.HasPrefix(kind, "RDMA_") || strings.HasPrefix(kind, "ATOMIC_") {
		return "an " + kind
	}
	return "a " + kind
}

// newRequest is a request of a post.
func (p *process) newRequest(call *trace.Call, posted *trace.Request, receive bool) *request {
	r := &request{}
	if last := len(p.spare) - 1; last >= 0 {
		r, p.spare = p.spare[last], p.spare[:last]
	}
	segments := r.segments[:0]
	for _, s := range posted.Segments {
		segments = append(
			segments, segment{span: span{s.Address, uint64(s.Length)}, key: s.Key, region: p.keys[s.Key]},
		)
	}
	*r = request{
		id: posted.ID, call: call.Name, site: call.Site, receive: receive, signaled: receive, writes: receive,
		segments: segments,
	}
	if !receive {
		r.opcode = posted.Opcode
		r.signaled = posted.Flags&rdmacore.SendSignaled != 0
		switch r.opcode {
		case rdmacore.OpRDMARead, rdmacore.OpAtomicCmpAndSwp, rdmacore.OpAtomicFetchAndAdd:
			r.writes = true
		}
	}
	return r
}

// postSend checks ibv_post_send, and what is posted between ibv_wr_start and ibv_wr_complete.
func (c *Checker) postSend(p *process, call *trace.Call) {
	qp := p.queuePairs[call.Queue]
	if qp == nil || call.Unfinished {
		return
	}
	c.failureIgnored(qp, call)
	c.connectionOver(qp, call)
	c.use(p.threads[qp.pd], qp.name, call)
	for i := range call.Posted {
		r := p.newRequest(call, &call.Posted[i], false)
		r.signaled = r.signaled || qp.signalAll
		inline := call.Posted[i].Flags&rdmacore.SendInline != 0
		c.checkMemory(p, call, r, qp.pd, inline)
		if i >= call.Taken {
			if i == call.Taken {
				c.refuse(qp, qp.send, call, r, inline)
			}
			continue
		}
		if inline {
			r.segments = r.segments[:0] // the data is copied by the post
		}
		c.checkOverlap(p, call, r)
		p.post(qp.send, r)
	}
	c.queueOverrun(qp.send.cq, call)
}

// refuse looks into a post that has failed.
func (c *Checker) refuse(qp *queuePair, q *queue, call *trace.Call, r *request, inline bool) {
	switch {
	case inline && r.length() > qp.maxInline && call.Errno != syscall.ENOMEM:
		c.report(
			call, finding.InlineTooLong, []Place{{"creation of " + qp.name, qp.site}},
			"%s of %d bytes inline fails with %s: %s was created with max_inline_data %d",
			r.name(), r.length(), trace.ErrnoName(int(call.Errno)), qp.name, qp.maxInline,
		)
		return
	case call.Errno == syscall.ENOMEM && len(q.posted) > 0 && q == qp.send && q.firstSignaled() == nil:
		c.report(
			call, finding.AllUnsignaled, []Place{{"creation of " + qp.name, qp.site}},
			"the send queue of %s is full, and none of its %d requests is signaled", qp.name, len(q.posted),
		)
		return
	}
	if len(q.refused) < maxRefused {
		q.refused[r.id] = refused{r, call.Errno}
	}
}

func (r *request) length() (sum uint64) {
	for _, s := range r.segments {
		sum += s.length
	}
	return sum
}

// postReceive checks ibv_post_recv and ibv_post_srq_recv.
func (c *Checker) postReceive(p *process, call *trace.Call) {
	name := call.Queue
	q := p.receives[name]
	if q == nil || call.Unfinished {
		return
	}
	pd, qp := p.domains[name], p.queuePairs[name]
	if qp != nil {
		c.failureIgnored(qp, call)
		c.receiveLate(qp, call)
		c.use(p.threads[qp.pd], qp.name, call)
	}
	for i := range call.Posted {
		r := p.newRequest(call, &call.Posted[i], true)
		c.checkMemory(p, call, r, pd, false)
		if i < call.Taken {
			c.checkOverlap(p, call, r)
			p.post(q, r)
		} else if i == call.Taken && len(q.refused) < maxRefused {
			q.refused[r.id] = refused{r, call.Errno}
		}
	}
	if qp != nil {
		c.queueOverrun(qp.receive.cq, call)
	}
}

// post adds a request, unless its completion was polled already.
func (p *process) post(q *queue, r *request) {
	delete(q.refused, r.id)
	if r.signaled {
		if i := slices.Index(q.early, r.id); i >= 0 {
			q.early = slices.Delete(q.early, i, i+1)
			return
		}
	}
	if len(q.posted) >= maxPosted {
		return
	}
	q.posted = append(q.posted, r)
	for _, s := range r.segments {
		if s.region != nil {
			s.region.outstanding++
		}
	}
	if r.writes {
		p.writing.add(r)
	}
	if q.cq != nil && r.signaled {
		q.cq.outstanding++
	}
}

// forget is the end of a request.
func (p *process) forget(q *queue, r *request) {
	if r.writes {
		p.writing.remove(r)
	}
	for _, s := range r.segments {
		if s.region != nil {
			s.region.outstanding--
		}
	}
	if q.cq != nil && r.signaled {
		q.cq.outstanding--
	}
	p.spare = append(p.spare, r)
}

// complete removes the request of a completion, and those before it that are not signaled.
func (p *process) complete(q *queue, id uint64) {
	if i := q.find(id); i >= 0 {
		p.drop(q, i+1, q.posted[i])
		return
	}
	if len(q.early) < maxEarly {
		q.early = append(q.early, id)
	}
}

// drop removes a signaled request at the end of the first count, and what is not signaled before it. Signaled ones
// before it stay: of a shared receive queue they may be complete in any order. Most requests complete in order, so what
// is behind does not move.
func (p *process) drop(q *queue, count int, last *request) {
	from := count
	for i := count - 1; i >= 0; i-- {
		each := q.posted[i]
		if each == last || !each.signaled {
			p.forget(q, each)
			continue
		}
		from--
		q.posted[from] = each
	}
	clear(q.posted[:from])
	q.posted = q.posted[from:]
}

// clear forgets all requests: the queue pair was reset or destroyed.
func (p *process) clear(q *queue) {
	for _, each := range q.posted {
		p.forget(q, each)
	}
	q.posted, q.early = nil, nil
}

// poll follows completions.
func (c *Checker) poll(p *process, call *trace.Call) {
	cq := p.queues[call.Queue]
	if cq != nil {
		cq.armed = nil
		c.use(p.threads[cq.name], cq.name, call)
	}
	for i := range call.Polled {
		each := &call.Polled[i]
		qp := p.numbers[each.QueuePair]
		if qp == nil || qp.isTarget {
			// Another process may have made the queue pair.
			if q := cq.receiveOfXRC(each); q != nil {
				p.complete(q, each.ID)
			}
			continue
		}
		q := qp.send
		if each.Status == rdmacore.WCSuccess {
			if each.IsReceive() {
				q = qp.receive
			}
		} else {
			// The opcode of a failed completion is not valid (ibv_poll_cq(3)).
			if q.find(each.ID) < 0 {
				q = qp.receive
			}
			if qp.failed == nil {
				qp.failed = &failure{status: each.Status, end: call.End, site: call.Site}
			}
		}
		p.complete(q, each.ID)
	}
}

// receiveOfXRC is the shared receive queue of a completion; nil if it is not known. The completion names the queue pair
// that got the message. That has no receive queue: the sender chooses a shared one.
func (cq *completionQueue) receiveOfXRC(completion *trace.Completion) *queue {
	if cq == nil || completion.Status == rdmacore.WCSuccess && !completion.IsReceive() {
		return nil
	}
	for _, q := range cq.shared {
		if q.find(completion.ID) >= 0 {
			return q
		}
	}
	if len(cq.shared) == 1 {
		return cq.shared[0] // another thread has polled before the post is known
	}
	return nil
}

// find is the index of the oldest request with that wr_id that has a completion; -1 for none.
func (q *queue) find(id uint64) int {
	return slices.IndexFunc(q.posted, func(r *request) bool { return r.signaled && r.id == id })
}

// failureIgnored checks that nothing is posted to a queue pair of which a failed completion was polled. A post that
// another thread has begun before does not count.
func (c *Checker) failureIgnored(qp *queuePair, call *trace.Call) {
	if qp.failed == nil || call.Start < qp.failed.end || qp.failed.reported {
		return
	}
	qp.failed.reported = true
	c.report(
		call, finding.FailureIgnored,
		[]Place{{"poll of the completion with " + qp.failed.status.String(), qp.failed.site}},
		"a request is posted to %s after its completion with %s", qp.name, qp.failed.status,
	)
}

// queueOverrun compares what is outstanding with the size of a completion queue.
func (c *Checker) queueOverrun(cq *completionQueue, call *trace.Call) {
	if cq != nil && cq.entries > 0 && cq.outstanding > cq.entries {
		c.report(
			call, finding.QueueOverrun, []Place{{"creation of " + cq.name, cq.site}},
			"%d completions may come, and %s has %d entries", cq.outstanding, cq.name, cq.entries,
		)
	}
}

// end is the end of a queue of that name.
func (p *process) end(name string, q *queue) {
	p.clear(q)
	for _, each := range q.refused {
		if len(p.unrepeated) < maxRefused {
			p.unrepeated = append(p.unrepeated, unrepeated{name, each})
		}
	}
	clear(q.refused)
}

// endQueues is the end of all queues.
func (p *process) endQueues() {
	for name, q := range p.receives {
		p.end(name, q)
	}
	for name, qp := range p.queuePairs {
		p.end(name, qp.send)
	}
}

// unrepeated is a request of a failed post that was not posted again.
type unrepeated struct {
	queue string
	refused
}

// postsIgnored reports posts that have failed and were not repeated.
func (c *Checker) postsIgnored(pid int, p *process) {
	p.endQueues()
	for _, each := range p.unrepeated {
		c.reportAt(
			pid, each.request.call, each.request.site, finding.PostIgnored, nil,
			"the post of %s to %s failed with %s, and wr_id %#x was never posted again",
			each.request.name(), each.queue, trace.ErrnoName(int(each.errno)), each.request.id,
		)
	}
}

// firstSignaled is the oldest request that will have a completion; nil for none.
func (q *queue) firstSignaled() *request {
	for _, each := range q.posted {
		if each.signaled {
			return each
		}
	}
	return nil
}
