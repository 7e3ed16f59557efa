package check

import (
	"maps"
	"slices"
	"syscall"

	"rdmarun/host/check/finding"
	"rdmarun/host/trace"
)

// The room for private data in messages of connection management (IBTA 12.6.5, 12.6.7, 12.6.8, 12.11). rdma_cm takes 36
// bytes of a REQ for its own header.
const (
	maxRequestData  = 56
	maxReplyData    = 196
	maxRejectData   = 148
	maxSIDRRequest  = 180
	maxSIDRReply    = 136
	infiniteRetries = 7 // IBTA 9.7.5.2.8
)

func (c *Checker) createID(p *process, call *trace.Call) {
	if name := trace.ObjectOf(call.Results, "id"); name != "" && !call.Failed() {
		space := trace.WordOf(call.Arguments, "ps")
		p.endpoints[name] = &endpoint{datagram: space == "UDP" || space == "IPOIB"}
	}
}

// getRequest follows rdma_get_request, which may make a queue pair with the attributes of the listener. They are not
// known here, so its requests are not followed.
func (c *Checker) getRequest(p *process, call *trace.Call) {
	if name := trace.ObjectOf(call.Results, "id"); name != "" && !call.Failed() {
		p.endpointOf(name).queuePair = trace.ObjectOf(call.Results, "qp")
	}
}

// endpointOf is the endpoint of a call, which may be one that came with an event.
func (p *process) endpointOf(name string) *endpoint {
	if p.endpoints[name] == nil {
		p.endpoints[name] = &endpoint{}
	}
	return p.endpoints[name]
}

// event follows rdma_get_cm_event.
func (c *Checker) event(p *process, call *trace.Call) {
	name := trace.ObjectOf(call.Results, "id")
	if call.Failed() || call.Unfinished || name == "" {
		return
	}
	e := p.endpointOf(name)
	e.unacked++
	qp := p.queuePairs[e.queuePair]
	if listener := trace.WordOf(call.Results, "listen_id"); listener != "" {
		e.datagram = p.endpointOf(listener).datagram
		p.endpointOf(listener).unacked++
	}
	what := trace.WordOf(call.Results, "event")
	if what == "DEVICE_REMOVAL" {
		e.removed = call
	}
	if qp == nil {
		return
	}
	switch what {
	case "ESTABLISHED", "CONNECT_RESPONSE":
		qp.connected, qp.over = true, nil
	case "TIMEWAIT_EXIT":
		qp.connected, qp.timewait = false, nil
	case "DISCONNECTED":
		qp.connected, qp.timewait = false, call
		if !e.disconnected {
			qp.over = call
		}
	case "DEVICE_REMOVAL", "REJECTED", "CONNECT_ERROR", "UNREACHABLE":
		qp.connected, qp.over = false, call
	}
}

// connectionOver checks that nothing is sent by a connection of which the program has read the end. After
// rdma_disconnect a request is flushed, and programs post one to learn when all others are.
func (c *Checker) connectionOver(qp *queuePair, call *trace.Call) {
	if qp.over == nil || qp.over.End > call.Start {
		return
	}
	c.report(
		call, finding.ConnectionOver, []Place{{"rdma_get_cm_event", qp.over.Site}},
		"a request is posted to %s after the %s of its connection", qp.name, trace.WordOf(qp.over.Results, "event"),
	)
	qp.over = nil
}

// timewaitIgnored checks that a queue pair is used again no earlier than the event TIMEWAIT_EXIT says.
func (c *Checker) timewaitIgnored(qp *queuePair, call *trace.Call) {
	if qp.timewait == nil {
		return
	}
	c.report(
		call, finding.TimewaitIgnored, []Place{{qp.timewait.Name, qp.timewait.Site}},
		"%s is used again, and TIMEWAIT_EXIT of its last connection was not read", qp.name,
	)
	qp.timewait = nil
}

// removalsIgnored reports endpoints of removed devices that were not destroyed.
func (c *Checker) removalsIgnored(p *process) {
	for _, name := range slices.Sorted(maps.Keys(p.endpoints)) {
		if call := p.endpoints[name].removed; call != nil {
			c.report(
				call, finding.RemovalIgnored, p.madeAt(name),
				"%s got DEVICE_REMOVAL, and was not destroyed", name,
			)
		}
	}
}

// ackEvent follows rdma_ack_cm_event. A request to connect counts for its listener as well, which is not known here.
func (c *Checker) ackEvent(p *process, call *trace.Call) {
	e := p.endpointOf(trace.ObjectOf(call.Arguments, "id"))
	e.unacked = max(e.unacked-1, 0)
}

// unacked checks a call that destroys an object and has never returned.
func (c *Checker) unacked(p *process, call *trace.Call, name string, events int) {
	if call.Unfinished && events > 0 {
		c.report(
			call, finding.EventUnacked, p.madeAt(name),
			"%s of %s waits forever: %d of its events were not acknowledged", call.Name, name, events,
		)
	}
}

func (c *Checker) destroyID(p *process, call *trace.Call) {
	name := trace.ObjectOf(call.Arguments, "id")
	e := p.endpoints[name]
	if e == nil {
		return
	}
	c.unacked(p, call, name, e.unacked)
	if call.Failed() || call.Unfinished {
		return
	}
	if call.Name == "rdma_destroy_ep" {
		c.endQP(p, e.queuePair)
		delete(p.objects, e.queuePair)
		p.endSRQ(e.srq)
		delete(p.objects, e.srq)
	}
	delete(p.endpoints, name)
}

// connect checks rdma_connect.
func (c *Checker) connect(p *process, call *trace.Call) {
	e := p.endpointOf(trace.ObjectOf(call.Arguments, "id"))
	c.parameters(call, e, maxRequestData, maxSIDRRequest)
	if qp := p.queuePairs[e.queuePair]; qp != nil && !call.Failed() {
		qp.connected = true // messages may come before the event was read
	}
}

// accept checks rdma_accept.
func (c *Checker) accept(p *process, call *trace.Call) {
	e := p.endpointOf(trace.ObjectOf(call.Arguments, "id"))
	c.parameters(call, e, maxReplyData, maxSIDRReply)
	if qp := p.queuePairs[e.queuePair]; qp != nil && !call.Failed() {
		qp.connected = true
		if !qp.hasReceived && !qp.shared {
			qp.accepted = call
		}
	}
}

func (c *Checker) reject(p *process, call *trace.Call) {
	c.privateData(call, p.endpointOf(trace.ObjectOf(call.Arguments, "id")), maxRejectData, maxSIDRReply)
}

func (c *Checker) disconnect(p *process, call *trace.Call) {
	e := p.endpointOf(trace.ObjectOf(call.Arguments, "id"))
	e.disconnected = e.disconnected || !call.Failed()
	if qp := p.queuePairs[e.queuePair]; qp != nil && !call.Failed() {
		qp.connected, qp.over = false, nil
	}
}

// parameters checks those of a connection.
func (c *Checker) parameters(call *trace.Call, e *endpoint, room, datagram uint64) {
	c.privateData(call, e, room, datagram)
	if trace.NumberOf(call.Arguments, "rnr_retry_count") == infiniteRetries && !e.datagram {
		c.report(
			call, finding.RetryForever, nil,
			"%s has rnr_retry_count 7, which is without an end", call.Name,
		)
	}
}

func (c *Checker) privateData(call *trace.Call, e *endpoint, room, datagram uint64) {
	if e.datagram {
		room = datagram
	}
	data, _ := trace.ValueOf(call.Arguments, "private_data").(trace.Bytes)
	if call.Errno == syscall.EINVAL && data.Length > room {
		c.report(
			call, finding.PrivateDataLong, nil,
			"%s has %d bytes of private data, and there is room for %d", call.Name, data.Length, room,
		)
	}
}

// receiveLate checks that the first receive of a connection is posted before it is accepted.
func (c *Checker) receiveLate(qp *queuePair, call *trace.Call) {
	if qp.accepted != nil && !call.Failed() {
		c.report(
			call, finding.ReceiveLate, []Place{{qp.accepted.Name, qp.accepted.Site}},
			"the first receive of %s is posted after its connection was accepted", qp.name,
		)
		qp.accepted = nil
	}
	qp.hasReceived = true
}
