package replay

import (
	"encoding/hex"
	"fmt"
	"net/netip"
	"strings"
	"syscall"

	"rdmarun/host/trace"
)

func (p *process) createID(call *trace.Call) {
	if call.Failed() {
		p.lacks("rdma_create_id that failed")
		return
	}
	e := p.newEndpoint(trace.ObjectOf(call.Results, "id"))
	e.synchronous = trace.ObjectOf(call.Arguments, "channel") == ""
	space := trace.WordOf(call.Arguments, "ps")
	p.do(call, func() string { return fmt.Sprintf("create_id: {port_space: %s}, as: %s", space, e.name) })
}

// createEndpoint is rdma_create_ep(3), which resolves the address and the route, and makes a queue pair.
func (p *process) createEndpoint(call *trace.Call) {
	if call.Failed() {
		p.lacks("rdma_create_ep that failed")
		return
	}
	e := p.newEndpoint(trace.ObjectOf(call.Results, "id"), trace.ObjectOf(call.Results, "qp"))
	e.synchronous = true
	p.hasNumber(e, trace.NumberOf(call.Results, "qp_num"))
	qp := p.attributes(call, e)
	if destination := address(call, "dst"); destination.IsValid() {
		e.port = destination.Port()
		p.do(call, func() string {
			to := p.peer(destination)
			return fmt.Sprintf("create_ep: {to: %s, port: %d, qp: %s}, as: %s", to, e.port, qp, e.name)
		})
		return
	}
	source := address(call, "src")
	e.port = source.Port()
	p.do(call, func() string {
		return fmt.Sprintf("create_ep: {passive: true, port: %d, qp: %s}, as: %s", source.Port(), qp, e.name)
	})
}

// address is a socket address of a call; not valid if it has none of IP.
func address(call *trace.Call, name string) netip.AddrPort {
	found, _ := netip.ParseAddrPort(trace.WordOf(call.Arguments, name))
	return found
}

// peer is the role that listens at an address, or the address.
func (r *Recorder) peer(address netip.AddrPort) string {
	for _, listener := range r.listeners {
		if listener.port == address.Port() {
			return listener.process.name
		}
	}
	return address.Addr().String()
}

func (p *process) bind(call *trace.Call) {
	e := p.endpoint(call, "id")
	if e == nil {
		return
	}
	own := address(call, "addr")
	if !call.Failed() {
		e.port = own.Port()
	}
	any := ""
	if own.Addr().IsUnspecified() {
		any = ", address: any"
	}
	p.do(call, func() string { return fmt.Sprintf("bind_addr: {ep: %s, port: %d%s}", e.name, own.Port(), any) })
}

func (p *process) listen(call *trace.Call) {
	e := p.endpoint(call, "id")
	if e == nil {
		return
	}
	e.listened = call.Start
	p.listeners = append(p.listeners, e)
	backlog := trace.NumberOf(call.Arguments, "backlog")
	p.do(call, func() string { return fmt.Sprintf("listen: {ep: %s, backlog: %d}", e.name, backlog) })
}

// complete adds a call of an id that an event ends, or failure if it fails.  A synchronous id waits for the event in
// the call, which then returns the status of the event as its errno (rdma_create_id(3)).
func (p *process) complete(call *trace.Call, e *endpoint, text func() string, event, failure string) {
	expected := ""
	switch {
	case !e.synchronous:
		p.do(call, text)
		return
	case !call.Failed():
	case call.Errno == syscall.ECONNREFUSED && event == "ESTABLISHED":
		event, expected = "REJECTED", ", expect: {status: {ne: 0}}"
	case call.Errno == syscall.ETIMEDOUT, call.Errno == syscall.EHOSTUNREACH, call.Errno == syscall.ENETUNREACH:
		event, expected = failure, ", expect: {status: "+trace.ErrnoName(int(call.Errno))+"}"
	default:
		p.do(call, text) // it has begun nothing
		return
	}
	begun := *call
	begun.Errno = 0
	p.do(&begun, text)
	e.takesEvent(event, len(p.steps))
	p.wait(&begun, e, events, func() string {
		return fmt.Sprintf("wait_event: {ep: %s, type: %s}%s", e.name, event, expected)
	})
}

// takesEvent notes the step that takes an event which has effects.
func (e *endpoint) takesEvent(kind string, step int) {
	switch kind {
	case "ESTABLISHED":
		e.established = step
	case "REJECTED":
		e.rejected = step
	}
}

func (p *process) resolveAddress(call *trace.Call) {
	e := p.endpoint(call, "id")
	if e == nil {
		return
	}
	destination := address(call, "dst_addr")
	e.port = destination.Port()
	p.complete(call, e, func() string {
		return fmt.Sprintf("resolve_addr: {ep: %s, to: %s, port: %d}", e.name, p.peer(destination), destination.Port())
	}, "ADDR_RESOLVED", "ADDR_ERROR")
}

func (p *process) resolveRoute(call *trace.Call) {
	e := p.endpoint(call, "id")
	if e == nil {
		return
	}
	text := func() string { return fmt.Sprintf("resolve_route: {ep: %s}", e.name) }
	p.complete(call, e, text, "ROUTE_RESOLVED", "ROUTE_ERROR")
}

// parameters are those of a message of the connection manager.
func parameters(call *trace.Call, names ...string) string {
	if trace.ValueOf(call.Arguments, "retry_count") == nil && trace.ValueOf(call.Arguments, "rnr_retry_count") == nil {
		return ", no_params: true"
	}
	var b strings.Builder
	for _, name := range names {
		if value, is := trace.Number(trace.ValueOf(call.Arguments, name)); is {
			fmt.Fprintf(&b, ", %s: %d", name, value)
		}
	}
	return b.String() + privateData(call)
}

// privateData is that of a message; what was not recorded of it is 0.
func privateData(call *trace.Call) string {
	data, is := trace.ValueOf(call.Arguments, "private_data").(trace.Bytes)
	if !is || data.Length == 0 {
		return ""
	}
	const longest = 255 // its length is a byte (rdma_connect(3))
	whole := make([]byte, min(data.Length, longest))
	copy(whole, data.Data)
	return fmt.Sprintf(", private_data: {hex: %q}", hex.EncodeToString(whole))
}

func (p *process) connect(call *trace.Call) {
	e := p.endpoint(call, "id")
	if e == nil {
		return
	}
	given := parameters(
		call, "responder_resources", "initiator_depth", "flow_control", "retry_count", "rnr_retry_count",
	)
	text := func() string { return fmt.Sprintf("connect: {ep: %s%s}", e.name, given) }
	e.connect = len(p.steps)
	p.connects = append(p.connects, e)
	p.complete(call, e, text, "ESTABLISHED", "UNREACHABLE")
}

func (p *process) accept(call *trace.Call) {
	e := p.endpoint(call, "id")
	if e == nil {
		return
	}
	given := parameters(call, "responder_resources", "initiator_depth", "flow_control", "rnr_retry_count")
	text := func() string { return fmt.Sprintf("accept: {ep: %s%s}", e.name, given) }
	p.complete(call, e, text, "ESTABLISHED", "CONNECT_ERROR")
}

func (p *process) reject(call *trace.Call) {
	if e := p.endpoint(call, "id"); e != nil {
		data := privateData(call)
		p.do(call, func() string { return fmt.Sprintf("reject: {ep: %s%s}", e.name, data) })
	}
}

func (p *process) establish(call *trace.Call) {
	if e := p.endpoint(call, "id"); e != nil {
		p.do(call, func() string { return fmt.Sprintf("establish: {ep: %s}", e.name) })
	}
}

// getRequest is rdma_get_request(3): the next request of a synchronous listener, with a queue pair.
func (p *process) getRequest(call *trace.Call) {
	listener := p.endpoint(call, "id")
	if listener == nil || call.Failed() {
		return
	}
	e := p.newEndpoint(trace.ObjectOf(call.Results, "id"), trace.ObjectOf(call.Results, "qp"))
	e.synchronous, e.port = true, listener.port
	if listener.hasQueues {
		p.hasNumber(e, trace.NumberOf(call.Results, "qp_num"))
	}
	p.requests = append(p.requests, e)
	p.wait(call, listener, events, func() string {
		return fmt.Sprintf("wait_event: {ep: %s, type: CONNECT_REQUEST}, as: %s", listener.name, e.name)
	})
}

func (p *process) event(call *trace.Call) {
	if call.Failed() {
		return // none was there
	}
	kind := trace.WordOf(call.Results, "event")
	if kind == "CONNECT_REQUEST" {
		listener := p.endpoints[trace.WordOf(call.Results, "listen_id")]
		if listener == nil {
			p.lacks("a request to a listener that was not recorded")
			return
		}
		e := p.newEndpoint(trace.ObjectOf(call.Results, "id"))
		e.port, e.peerNumber = listener.port, trace.NumberOf(call.Results, "qp_num")
		p.requests = append(p.requests, e)
		p.wait(call, listener, events, func() string {
			return fmt.Sprintf("wait_event: {ep: %s, type: CONNECT_REQUEST}, as: %s", listener.name, e.name)
		})
		return
	}
	e := p.endpoints[trace.ObjectOf(call.Results, "id")]
	if e == nil || e.destroyed {
		p.lacks("an event of an id that was not recorded")
		return
	}
	e.takesEvent(kind, len(p.steps))
	expected := ""
	if status := trace.ValueOf(call.Results, "status"); status != nil {
		expected = ", expect: {status: " + statusOf(status) + "}"
	}
	p.wait(call, e, events, func() string {
		return fmt.Sprintf("wait_event: {ep: %s, type: %s}%s", e.name, kind, expected)
	})
}

// statusOf is the status of an event as a scenario has it: an errno by its name, or a number.
func statusOf(value any) string {
	if number, is := value.(int64); is {
		return fmt.Sprint(number)
	}
	number, name, _ := strings.Cut(trace.Name(value), " ")
	if strings.HasPrefix(number, "-") {
		return name
	}
	return number
}

func (p *process) disconnect(call *trace.Call) {
	e := p.endpoint(call, "id")
	if e == nil {
		return
	}
	text := func() string { return fmt.Sprintf("disconnect: {ep: %s}", e.name) }
	p.complete(call, e, text, "DISCONNECTED", "DISCONNECTED")
}

func (p *process) destroy(call *trace.Call) {
	if e := p.endpoint(call, "id"); e != nil && !call.Failed() {
		p.destroyEndpoint(call, e)
	}
}

func (p *process) destroyEndpoint(call *trace.Call, e *endpoint) {
	if e.destroyed {
		return
	}
	e.destroyed, e.ended = true, call.Start
	verb := "destroy_id"
	if e.hasQueues {
		verb = "destroy_ep"
	}
	p.destroys(call, e, completions|events, func() string {
		return fmt.Sprintf("%s: {ep: %s}, leftovers: ignore", verb, e.name)
	})
}

// exit destroys what a process leaves, as the kernel does.
func (p *process) exit(call *trace.Call) {
	left := map[string]*endpoint{}
	for _, e := range p.endpoints {
		left[e.name] = e
	}
	for i := range p.made {
		if e := left[fmt.Sprintf("ep%d", i+1)]; e != nil {
			p.destroyEndpoint(call, e)
		}
	}
}
