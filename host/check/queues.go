package check

import (
	"slices"
	"strings"
	"syscall"

	"rdmarun/host/check/finding"
	"rdmarun/host/trace"
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
	opcode   string
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

// name is the request with its article: "an RDMA_READ".
func (r *request) name() string {
	if strings.HasPrefix(r.opcode, "RDMA_") || strings.HasPrefix(r.opcode, "ATOMIC_") {
		return "an " + r.opcode
	}
	return "a " + r.opcode
}

// decodeRequest reads a request of a post.
func decodeRequest(call *trace.Call, fields trace.Struct, receive bool) *request {
	r := &request{
		id: trace.NumberOf(fields, "wr_id"), call: call.Name, site: call.Site, opcode: "receive", signaled: receive,
		writes: receive,
	}
	if !receive {
		r.opcode = trace.WordOf(fields, "opcode")
		r.signaled = trace.HasFlag(trace.WordOf(fields, "flags"), "SIGNALED")
		switch r.opcode {
		case "RDMA_READ", "ATOMIC_CMP_AND_SWP", "ATOMIC_FETCH_AND_ADD":
			r.writes = true
		}
	}
	for _, each := range trace.Structs(trace.ValueOf(fields, "sge")) {
		r.segments = append(r.segments, segment{
			span: span{trace.NumberOf(each, "addr"), trace.NumberOf(each, "length")},
			key:  uint32(trace.NumberOf(each, "lkey")),
		})
	}
	return r
}

// accepted is how many requests of a post were taken: all, or those before bad_wr.
func accepted(call *trace.Call, all int) int {
	if !call.Failed() {
		return all
	}
	return min(int(trace.NumberOf(call.Results, "bad_wr")), all)
}

// postSend checks ibv_post_send, and what is posted between ibv_wr_start and ibv_wr_complete.
func (c *Checker) postSend(p *process, call *trace.Call) {
	qp := p.queuePairs[trace.ObjectOf(call.Arguments, "qp")]
	if qp == nil || call.Unfinished {
		return
	}
	c.failureIgnored(qp, call)
	c.connectionOver(qp, call)
	c.use(p.threads[qp.pd], qp.name, call)
	list := call.Requests()
	taken := accepted(call, len(list))
	for i, fields := range list {
		r := decodeRequest(call, fields, false)
		r.signaled = r.signaled || qp.signalAll
		inline := trace.HasFlag(trace.WordOf(fields, "flags"), "INLINE")
		c.checkMemory(p, call, r, qp.pd, inline)
		if i >= taken {
			if i == taken {
				c.refuse(qp, qp.send, call, r, inline)
			}
			continue
		}
		if inline {
			r.segments = nil // the data is copied by the post
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
	name := trace.Name(call.Arguments[0].Value)
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
	list := call.Requests()
	taken := accepted(call, len(list))
	for i, fields := range list {
		r := decodeRequest(call, fields, true)
		c.checkMemory(p, call, r, pd, false)
		if i < taken {
			c.checkOverlap(p, call, r)
			p.post(q, r)
		} else if i == taken && len(q.refused) < maxRefused {
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
	for i := range r.segments {
		s := &r.segments[i]
		if s.region = p.keys[s.key]; s.region != nil {
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
// before it stay: of a shared receive queue they may be complete in any order.
func (p *process) drop(q *queue, count int, last *request) {
	kept := q.posted[:0]
	for i, each := range q.posted {
		if i >= count || each != last && each.signaled {
			kept = append(kept, each)
		} else {
			p.forget(q, each)
		}
	}
	clear(q.posted[len(kept):])
	q.posted = kept
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
	cq := p.queues[trace.ObjectOf(call.Arguments, "cq")]
	if cq != nil {
		cq.armed = nil
		c.use(p.threads[cq.name], cq.name, call)
	}
	for _, each := range call.Completions() {
		qp := p.numbers[uint32(trace.NumberOf(each, "qp_num"))]
		if qp == nil {
			continue
		}
		id, status := trace.NumberOf(each, "wr_id"), trace.WordOf(each, "status")
		q := qp.send
		if status == "SUCCESS" {
			if opcode := trace.WordOf(each, "opcode"); opcode == "RECV" || opcode == "RECV_RDMA_WITH_IMM" {
				q = qp.receive
			}
		} else {
			// The opcode of a failed completion is not valid (ibv_poll_cq(3)).
			if q.find(id) < 0 {
				q = qp.receive
			}
			if qp.failed == nil {
				qp.failed = &failure{status: status, call: call}
			}
		}
		p.complete(q, id)
	}
}

// find is the index of the oldest request with that wr_id that has a completion; -1 for none.
func (q *queue) find(id uint64) int {
	return slices.IndexFunc(q.posted, func(r *request) bool { return r.signaled && r.id == id })
}

// failureIgnored checks that nothing is posted to a queue pair of which a failed completion was polled. A post that
// another thread has begun before does not count.
func (c *Checker) failureIgnored(qp *queuePair, call *trace.Call) {
	if qp.failed == nil || call.Start < qp.failed.call.End || qp.failed.reported {
		return
	}
	qp.failed.reported = true
	c.report(
		call, finding.FailureIgnored,
		[]Place{{"poll of the completion with " + qp.failed.status, qp.failed.call.Site}},
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
