package check

import (
	"slices"

	"rdmarun/host/check/finding"
	"rdmarun/host/trace"
)

// singleThreadedCQ is IBV_CREATE_CQ_ATTR_SINGLE_THREADED.
const singleThreadedCQ = 1

func (c *Checker) createCQ(p *process, call *trace.Call) {
	name := trace.Name(call.Result)
	if call.Failed() || trace.KindOf(name) != "cq" {
		return
	}
	p.queues[name] = &completionQueue{
		name: name, channel: trace.ObjectOf(call.Arguments, "comp"),
		entries: int(trace.NumberOf(call.Results, "entries")),
		pairs:   map[*queuePair]bool{}, site: call.Site,
	}
	if trace.NumberOf(call.Arguments, "flags")&singleThreadedCQ != 0 {
		p.threads[name] = &singleThreaded{what: "it was created with IBV_CREATE_CQ_ATTR_SINGLE_THREADED", source: call}
	}
}

// resizeCQ follows ibv_resize_cq, which may make the queue larger than asked.
func (c *Checker) resizeCQ(p *process, call *trace.Call) {
	if cq := p.queues[trace.ObjectOf(call.Arguments, "cq")]; cq != nil && !call.Failed() {
		cq.entries = max(cq.entries, int(trace.NumberOf(call.Arguments, "cqe")))
	}
}

// created is the object of a kind that a call has made: verbs return it, and librdmacm sets it in an identifier.
func created(call *trace.Call, kind string) string {
	if call.Failed() {
		return ""
	}
	if name := trace.Name(call.Result); trace.KindOf(name) == kind {
		return name
	}
	return trace.ObjectOf(call.Results, kind)
}

func (c *Checker) createSRQ(p *process, call *trace.Call) {
	name := created(call, "srq")
	if name == "" {
		return
	}
	p.receives[name] = newQueue(nil)
	p.domains[name] = trace.ObjectOf(call.Arguments, "pd")
	if cq := p.queues[trace.WordOf(call.Arguments, "cq")]; cq != nil {
		cq.shared = append(cq.shared, p.receives[name])
	}
	if id := trace.ObjectOf(call.Arguments, "id"); id != "" {
		p.endpointOf(id).srq = name
	}
}

func (c *Checker) destroySRQ(p *process, call *trace.Call) {
	if !call.Failed() && !call.Unfinished {
		p.endSRQ(trace.ObjectOf(call.Arguments, "srq"))
	}
}

// endSRQ forgets a shared receive queue. Its requests are not outstanding any more.
func (p *process) endSRQ(name string) {
	q := p.receives[name]
	if q == nil {
		return
	}
	p.end(name, q)
	delete(p.receives, name)
	delete(p.domains, name)
	for _, cq := range p.queues {
		cq.shared = slices.DeleteFunc(cq.shared, func(each *queue) bool { return each == q })
	}
}

// createQP follows ibv_create_qp, rdma_create_qp, their variants, and rdma_create_ep.
func (c *Checker) createQP(p *process, call *trace.Call) {
	name := created(call, "qp")
	if name == "" {
		return
	}
	qp := &queuePair{
		name: name, pd: trace.ObjectOf(call.Arguments, "pd"), site: call.Site,
		sendCQ: trace.WordOf(call.Arguments, "send_cq"), recvCQ: trace.WordOf(call.Arguments, "recv_cq"),
		signalAll: trace.IsTrue(call.Arguments, "sq_sig_all"),
		maxInline: trace.NumberOf(call.Arguments, "max_inline_data"),
		isTarget:  trace.WordOf(call.Arguments, "qp_type") == "XRC_RECV",
	}
	qp.send = newQueue(p.queues[qp.sendCQ])
	if shared := p.receives[trace.WordOf(call.Arguments, "srq")]; shared != nil {
		qp.receive, qp.shared = shared, true
	} else {
		qp.receive = newQueue(p.queues[qp.recvCQ])
		p.receives[name] = qp.receive
		p.domains[name] = qp.pd
	}
	p.queuePairs[name] = qp
	for _, cq := range qp.completionQueues(p) {
		cq.pairs[qp] = true
	}
	p.numbers[uint32(trace.NumberOf(call.Results, "qp_num"))] = qp
	if id := trace.ObjectOf(call.Arguments, "id"); id != "" {
		p.endpointOf(id).queuePair = name
	} else if id := trace.ObjectOf(call.Results, "id"); id != "" { // rdma_create_ep
		p.endpointOf(id).queuePair = name
	}
}

// modifyQP follows the states of a queue pair.
func (c *Checker) modifyQP(p *process, call *trace.Call) {
	qp := p.queuePairs[trace.ObjectOf(call.Arguments, "qp")]
	if qp == nil || call.Failed() || !trace.HasFlag(trace.WordOf(call.Arguments, "attr_mask"), "STATE") {
		return
	}
	switch trace.WordOf(call.Arguments, "qp_state") {
	case "RESET":
		c.timewaitIgnored(qp, call)
		p.clear(qp.send)
		if !qp.shared {
			p.clear(qp.receive)
		}
		qp.connected, qp.failed, qp.over = false, nil, nil
	case "INIT", "ERR":
		qp.connected = false
	default:
		qp.connected = true
	}
}

// destroyQP checks ibv_destroy_qp and rdma_destroy_qp.
func (c *Checker) destroyQP(p *process, call *trace.Call) {
	name := trace.ObjectOf(call.Arguments, "qp")
	qp := p.queuePairs[name]
	if qp == nil || call.Failed() || call.Unfinished {
		return
	}
	if r := qp.send.firstSignaled(); r != nil && qp.connected && qp.failed == nil {
		c.report(
			call, finding.CompletionUnseen, []Place{{r.call, r.site}},
			"%s is destroyed, and the completion of its %s with wr_id %#x was never polled", name, r.opcode, r.id,
		)
	}
	c.endQP(p, name)
}

// endQP forgets a queue pair.
func (c *Checker) endQP(p *process, name string) {
	qp := p.queuePairs[name]
	if qp == nil {
		return
	}
	p.end(name, qp.send)
	if !qp.shared {
		p.end(name, qp.receive)
		delete(p.receives, name)
	}
	delete(p.queuePairs, name)
	for _, cq := range qp.completionQueues(p) {
		delete(cq.pairs, qp)
	}
	for number, each := range p.numbers {
		if each == qp {
			delete(p.numbers, number)
		}
	}
}

// completionQueues are the known queues that a queue pair completes its requests to: none, one or two.
func (qp *queuePair) completionQueues(p *process) (known []*completionQueue) {
	for _, name := range []string{qp.sendCQ, qp.recvCQ} {
		if cq := p.queues[name]; cq != nil {
			known = append(known, cq)
		}
	}
	return known
}

func (c *Checker) destroyCQ(p *process, call *trace.Call) {
	name := trace.ObjectOf(call.Arguments, "cq")
	if cq := p.queues[name]; cq != nil {
		c.unacked(p, call, name, cq.unacked)
		if !call.Failed() && !call.Unfinished {
			delete(p.queues, name)
		}
	}
}

// arm follows ibv_req_notify_cq. A completion that came before raises no event, so it matters whether any could have
// come.
func (c *Checker) arm(p *process, call *trace.Call) {
	name := trace.ObjectOf(call.Arguments, "cq")
	cq := p.queues[name]
	if cq == nil || call.Failed() {
		return
	}
	cq.armed = nil
	for qp := range cq.pairs {
		if !qp.connected && qp.failed == nil {
			continue
		}
		if qp.sendCQ == name && qp.send.firstSignaled() != nil || qp.recvCQ == name && len(qp.receive.posted) > 0 {
			cq.armed = call
			return
		}
	}
}

// cqEvent checks ibv_get_cq_event: each queue that it waits for was polled after it was armed. Only a wait by the
// thread that has armed the queue counts. Another thread may poll at any time.
func (c *Checker) cqEvent(p *process, call *trace.Call) {
	channel := trace.ObjectOf(call.Arguments, "comp")
	for _, cq := range p.queues {
		if cq.channel == channel && cq.armed != nil && cq.armed.Thread == call.Thread && cq.armed.End <= call.Start {
			c.report(
				call, finding.WakeupLost, []Place{{cq.armed.Name, cq.armed.Site}},
				"%s was armed with requests outstanding, and is waited for without a poll", cq.name,
			)
			cq.armed = nil
		}
	}
	if cq := p.queues[trace.ObjectOf(call.Results, "cq")]; cq != nil && !call.Failed() && !call.Unfinished {
		cq.unacked++
		cq.armed = nil
	}
}

func (c *Checker) ackCQEvents(p *process, call *trace.Call) {
	if cq := p.queues[trace.ObjectOf(call.Arguments, "cq")]; cq != nil {
		cq.unacked = max(cq.unacked-int(trace.NumberOf(call.Arguments, "nevents")), 0)
	}
}
