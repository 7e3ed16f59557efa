// Package replay makes a scenario of the calls that programs made.  It has the same connections, queue pairs, regions,
// work requests and events, in an order that their causes allow.  `rdmarun run` repeats it on any device.
//
// Of the data of messages it has the beginning, and all of it where it repeats. Pauses are steps if they are asked for.
package replay

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"rdmarun/host/trace"
)

// maxSteps bounds a scenario, and what is kept of programs with it.
const maxSteps = 20_000

// Recorder takes the calls of one or several programs, and writes a scenario that repeats them.
type Recorder struct {
	// Pauses is from which duration on a time without a call becomes a step; 0: never.
	Pauses time.Duration

	processes []*process
	byPID     map[int]*process
	// numbers are the queue pairs that steps name by their numbers, which two devices may give out both.
	numbers   map[uint64][]*endpoint
	steps     []step
	queued    []queued
	listeners []*endpoint
	// connects and requests are ids that connect, and those of the requests that came, in their order.
	connects, requests []*endpoint
	// missing counts what the scenario does not have, by its reason.
	missing map[string]int
	dropped int // calls after maxSteps
}

// step is a step of the scenario.
type step struct {
	at time.Duration
	// begin and end are those of its call.
	begin, end time.Duration
	role       *process
	// takes is what it waits for, of an endpoint; ends is what nothing can take after it.
	takes, ends taking
	of          *endpoint
	text        func() string // the step without its role, when all processes are known; "" if there is none
}

// taking is what a program takes of an endpoint, as a set.
type taking uint8

const (
	completions taking = 1 << iota
	events
)

// queued is what a post or a completion does to the queues of requests.  A completion may be taken before the post has
// returned, so this waits until all calls are known.
type queued struct {
	at time.Duration
	do func()
}

// process is a process, which becomes a role.
type process struct {
	*Recorder
	pid     int
	program string
	name    string // of the role, when all processes are known
	regions []*region
	// inline is the size of the buffer for data that no region has.
	inline uint64
	// endpoints are those by the names that a trace has for ids and queue pairs; several may be the same one.
	endpoints map[string]*endpoint
	// queuePairs are the last endpoints with a queue pair of a number.
	queuePairs map[uint64]*endpoint
	// shared are receive queues by the names that a trace has for them.
	shared map[string]*sharedQueue
	// handles are address handles by the names that a trace has for them.
	handles map[string]*handle
	made    int
	// contents are those of the next posts, and readings what READs have not brought yet.
	contents []content
	readings []reading
}

// endpoint is an id with its queue pair.
type endpoint struct {
	process     *process
	name        string
	synchronous bool
	hasQueues   bool
	destroyed   bool
	number      uint64 // of its queue pair; hasNumber sets it
	port        uint16 // that it connects to, or is bound to
	// peerNumber is the number of the queue pair that a request came from; 0: it is not known.
	peerNumber uint64
	// connect, established and rejected are the steps with these. completed and flushed are those with the first
	// completion that was successful or flushed.
	connect, established, rejected, completed, flushed int
	// listened and ended are the times of a listener.
	listened, ended time.Duration
	// destroys are the steps that destroy its queue pair or itself.
	destroys []int
	// raw is set for a queue pair that was made without an id, and datagram for one of type UD.
	raw, datagram bool
	sends         []*request
	receives      []*request
	shared        *sharedQueue // for its receives; nil: it has none
}

// request is a work request.
type request struct {
	id   uint64
	over bool // the program has taken its completion, or a later one
}

// NewRecorder returns a recorder without calls.
func NewRecorder() *Recorder {
	return &Recorder{byPID: map[int]*process{}, numbers: map[uint64][]*endpoint{}, missing: map[string]int{}}
}

// handlers are the calls that become steps.
var handlers = map[string]func(*process, *trace.Call){
	"rdma_create_id":        (*process).createID,
	"rdma_create_ep":        (*process).createEndpoint,
	"rdma_bind_addr":        (*process).bind,
	"rdma_listen":           (*process).listen,
	"rdma_resolve_addr":     (*process).resolveAddress,
	"rdma_resolve_route":    (*process).resolveRoute,
	"rdma_create_qp":        (*process).createQueuePair,
	"rdma_create_qp_ex":     (*process).createQueuePair,
	"ibv_create_qp":         (*process).createRaw,
	"ibv_create_qp_ex":      (*process).createRaw,
	"ibv_modify_qp":         (*process).modify,
	"ibv_create_ah":         (*process).createHandle,
	"ibv_create_ah_from_wc": (*process).createHandle,
	"ibv_destroy_ah":        (*process).destroyHandle,
	"rdma_connect":          (*process).connect,
	"rdma_accept":           (*process).accept,
	"rdma_reject":           (*process).reject,
	"rdma_establish":        (*process).establish,
	"rdma_get_request":      (*process).getRequest,
	"rdma_get_cm_event":     (*process).event,
	"rdma_disconnect":       (*process).disconnect,
	"rdma_destroy_qp":       (*process).destroyQueuePair,
	"ibv_destroy_qp":        (*process).destroyQueuePair,
	"rdma_destroy_id":       (*process).destroy,
	"rdma_destroy_ep":       (*process).destroy,
	"ibv_reg_mr":            (*process).register,
	"ibv_reg_mr_iova":       (*process).register,
	"ibv_reg_mr_iova2":      (*process).register,
	"ibv_post_send":         (*process).send,
	"ibv_wr_complete":       (*process).send,
	"ibv_post_recv":         (*process).receive,
	"ibv_create_srq":        (*process).createShared,
	"ibv_create_srq_ex":     (*process).createShared,
	"rdma_create_srq":       (*process).createShared,
	"rdma_create_srq_ex":    (*process).createShared,
	"ibv_post_srq_recv":     (*process).receiveShared,
	"ibv_destroy_srq":       (*process).destroyShared,
	"rdma_destroy_srq":      (*process).destroyShared,
	"memory_sent":           (*process).sent,
	"memory_read":           (*process).read,
	"ibv_poll_cq":           (*process).poll,
	"ibv_start_poll":        (*process).poll,
	"exit":                  (*process).exit,
}

// isUnneeded reports whether a call is left out: a scenario has no need of it, or does it by itself.
func isUnneeded(call *trace.Call) bool {
	switch call.Group {
	case "device", "process", "buffer":
		return true
	}
	for _, word := range []string{
		"channel", "addrinfo", "_pd", "create_cq", "destroy_cq", "cq_event", "req_notify", "ack_",
		"dereg_mr", "query_", "resize_cq", "qp_to_qp_ex", "get_src_port", "get_dst_port", "set_option", "migrate_id",
	} {
		if strings.Contains(call.Name, word) {
			return true
		}
	}
	return false
}

// Take takes a call, in the order of their ends.
func (r *Recorder) Take(call *trace.Call) {
	if call.Lost > 0 {
		r.missing["calls that the program made faster than they are read"] += int(call.Lost)
	}
	if call.Note != "" || call.Nested || call.Unfinished {
		return
	}
	handler := handlers[call.Name]
	switch {
	case handler == nil && isUnneeded(call):
	case handler == nil:
		r.missing[call.Name]++
	case len(r.steps) >= maxSteps:
		r.dropped++
	default:
		handler(r.process(call), call)
	}
}

// process is the process that has made a call.
func (r *Recorder) process(call *trace.Call) *process {
	if p := r.byPID[call.Process]; p != nil {
		return p
	}
	p := &process{
		Recorder: r, pid: call.Process, program: call.Program,
		endpoints: map[string]*endpoint{}, queuePairs: map[uint64]*endpoint{},
		shared: map[string]*sharedQueue{}, handles: map[string]*handle{},
	}
	r.byPID[call.Process] = p
	r.processes = append(r.processes, p)
	return p
}

// do adds a step that begins something: it comes in the order of the begins of calls.
func (p *process) do(call *trace.Call, text func() string) { p.add(call.Start, call, text) }

// wait adds a step that takes something of an endpoint: it comes in the order of the ends.
func (p *process) wait(call *trace.Call, e *endpoint, takes taking, text func() string) {
	p.add(call.End, call, text)
	last := &p.steps[len(p.steps)-1]
	last.of, last.takes = e, takes
}

// destroys adds a step after which nothing of that kind is taken of an endpoint.
func (p *process) destroys(call *trace.Call, e *endpoint, ends taking, text func() string) {
	e.destroys = append(e.destroys, len(p.steps))
	p.do(call, text)
	p.steps[len(p.steps)-1].ends = ends
}

func (p *process) add(at time.Duration, call *trace.Call, text func() string) {
	if call.Failed() {
		whole := text
		text = func() string { return whole() + ", expect: {errno: " + trace.ErrnoName(int(call.Errno)) + "}" }
	}
	p.steps = append(p.steps, step{at: at, begin: call.Start, end: call.End, role: p, text: text})
}

// queue has something done to the queues of requests, in the order of those times.
func (r *Recorder) queue(at time.Duration, do func()) { r.queued = append(r.queued, queued{at, do}) }

// match finds the request of each completion.
func (r *Recorder) match() {
	slices.SortStableFunc(r.queued, func(a, b queued) int { return cmp.Compare(a.at, b.at) })
	for _, each := range r.queued {
		each.do()
	}
	r.queued = nil
}

// lacks notes that the scenario does not have something.
func (p *process) lacks(reason string) { p.missing[reason]++ }

// newEndpoint is an endpoint under the names that the trace has for it.
func (p *process) newEndpoint(names ...string) *endpoint {
	p.made++
	e := &endpoint{
		process: p, name: fmt.Sprintf("ep%d", p.made), connect: none, established: none, rejected: none,
		completed: none, flushed: none, ended: math.MaxInt64,
	}
	for _, name := range names {
		if name != "" {
			p.endpoints[name] = e
		}
	}
	return e
}

// hasNumber notes the number of the queue pair of an endpoint.
func (p *process) hasNumber(e *endpoint, number uint64) {
	e.hasQueues, e.number = true, number
	p.queuePairs[number] = e
}

// numbered is the queue pair of a peer with that number: the last one that a device has given it to. It is e itself
// only if no other device has.
func (r *Recorder) numbered(e *endpoint, number uint64) (peer *endpoint) {
	for _, each := range r.numbers[number] {
		if peer == nil || peer == e || each != e {
			peer = each
		}
	}
	return peer
}

// endpoint is that of an id or a queue pair of a call; nil, and noted, if it is not known.
func (p *process) endpoint(call *trace.Call, kind string) *endpoint {
	e := p.endpoints[trace.ObjectOf(call.Arguments, kind)]
	if e == nil {
		p.lacks(call.Name + " of an object that was not recorded")
	}
	return e
}

// name gives each process the name of its role.
func (r *Recorder) name() {
	servers := map[*process]bool{}
	for _, listener := range r.listeners {
		servers[listener.process] = true
	}
	kinds := map[string][]*process{}
	for _, p := range r.processes {
		kind := "client"
		if servers[p] {
			kind = "server"
		}
		kinds[kind] = append(kinds[kind], p)
	}
	for kind, members := range kinds {
		for i, p := range members {
			p.name = kind
			if len(members) > 1 {
				p.name = fmt.Sprintf("%s%d", kind, i+1)
			}
		}
	}
}

// none is a step that there is not.
const none = -1

// ordered are the steps in an order that causes allow: a wait comes after what it waits for.
func (r *Recorder) ordered() []step {
	steps, requests := slices.Clone(r.steps), slices.Clone(r.requests)
	// before moves the event of a connect before a step that it causes. The call that takes the event causes that, and
	// may return later.
	before := func(connect, event, effect int) {
		if event != none && effect != none {
			steps[event].at = max(min(steps[event].at, steps[effect].at-1), steps[connect].at+1)
		}
	}
	for _, id := range r.connects {
		before(id.connect, id.rejected, id.flushed) // the queue pair goes to ERR
		if id.established == none {
			continue
		}
		// A connect that began too early was repeated by the connection manager until it found the listener.
		if since := r.listening(id.port, steps[id.connect].at); since > 0 {
			steps[id.connect].at = since + 1
		}
		at := slices.IndexFunc(requests, id.made)
		if at < 0 {
			continue
		}
		// The queue pair goes to RTS, and the RTU is sent.
		before(id.connect, id.established, requests[at].established)
		before(id.connect, id.established, requests[at].completed)
		requests = slices.Delete(requests, at, at+1)
	}
	destroyLast(steps)
	slices.SortStableFunc(steps, func(a, b step) int { return cmp.Compare(a.at, b.at) })
	return steps
}

// destroyLast moves the end of an endpoint behind what another thread has taken of it during the call. It took that
// before the call was done: rdma_destroy_id(3) waits until all events are acknowledged, and ibv_destroy_qp(3) removes
// completions.
func destroyLast(steps []step) {
	for i := range steps {
		taken := &steps[i]
		if taken.takes == 0 {
			continue
		}
		for _, at := range taken.of.destroys {
			destroy := &steps[at]
			if destroy.ends&taken.takes == 0 || taken.begin >= destroy.end {
				continue
			}
			// The call that took it may return after the other one.
			taken.at = min(taken.at, max(destroy.begin, destroy.end-2))
			destroy.at = max(destroy.at, taken.at+1)
		}
	}
}

// listening is when the first listener of a port began after a time; 0 if there was one at that time.
func (r *Recorder) listening(port uint16, at time.Duration) (since time.Duration) {
	for _, listener := range r.listeners {
		switch {
		case listener.port != port:
		case listener.listened <= at && at <= listener.ended:
			return 0
		case listener.listened > at && (since == 0 || listener.listened < since):
			since = listener.listened
		}
	}
	return since
}

// made reports whether a connect may have made a request: the request names its queue pair, or does not say.
func (e *endpoint) made(request *endpoint) bool {
	return request.port == e.port && (request.peerNumber == e.number || request.peerNumber == 0)
}
