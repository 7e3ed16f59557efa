package replay

import (
	"fmt"
	"slices"
	"strings"

	"rdmarun/host/trace"
)

// region is a memory region, which becomes a buffer.
type region struct {
	process         *process
	name            string
	address, length uint64
	local, remote   uint64 // its keys
	access          string
	// filled is the last step that has filled the buffer, and filledBy its index.
	filled   string
	filledBy int
	// written is set when something else may write to the buffer: a receive, a READ, or a peer.
	written bool
}

func (p *process) register(call *trace.Call) {
	if call.Failed() {
		p.lacks("ibv_reg_mr that failed")
		return
	}
	if len(p.regions) >= maxSteps {
		p.dropped++
		return
	}
	p.regions = append(p.regions, &region{
		process: p, name: fmt.Sprintf("mr%d", len(p.regions)+1),
		address: trace.NumberOf(call.Arguments, "addr"), length: trace.NumberOf(call.Arguments, "length"),
		local: trace.NumberOf(call.Results, "lkey"), remote: trace.NumberOf(call.Results, "rkey"),
		access: trace.WordOf(call.Arguments, "access"),
	})
}

// has reports whether a range is in the region.
func (r *region) has(address, length uint64) bool {
	return address >= r.address && length <= r.length && address-r.address <= r.length-length
}

// inLocal is the last region with a local key.
func (p *process) inLocal(key, address, length uint64) *region {
	for i := len(p.regions) - 1; i >= 0; i-- {
		if each := p.regions[i]; each.local == key && each.has(address, length) {
			return each
		}
	}
	return nil
}

// inRemote is the last region of all processes with a remote key.
func (r *Recorder) inRemote(key, address uint64) *region {
	var found *region
	for _, p := range r.processes {
		for _, each := range p.regions {
			if each.remote == key && each.has(address, 0) {
				found = each
			}
		}
	}
	return found
}

// part is memory of a request.
type part struct {
	region          *region // nil: the buffer for data that no region has
	address, length uint64
	offset          uint64 // in its buffer
}

// name is that of its buffer.
func (s *part) name() string {
	if s.region == nil {
		return "inline"
	}
	return s.region.name
}

// segments are the parts of a request, and how a step writes them.  inline data need no region.
func (p *process) segments(request trace.Struct, inline bool) (list []part, text string, isWhole bool) {
	var parts []string
	end := uint64(0) // of the inline data
	for _, segment := range trace.Structs(trace.ValueOf(request, "sge")) {
		address, length := trace.NumberOf(segment, "addr"), trace.NumberOf(segment, "length")
		if length == 0 {
			continue
		}
		each := part{address: address, length: length}
		if in := p.inLocal(trace.NumberOf(segment, "lkey"), address, length); in != nil {
			each.region, each.offset = in, address-in.address
		} else if inline {
			each.offset = end
			end += length
			p.inline = max(p.inline, end)
		} else {
			return nil, "", false
		}
		list = append(list, each)
		parts = append(parts, fmt.Sprintf("buffer: %s, offset: %d, length: %d", each.name(), each.offset, length))
	}
	switch len(parts) {
	case 0:
		return nil, "sges: []", true
	case 1:
		return list, parts[0], true
	}
	return list, "sges: [{" + strings.Join(parts, "}, {") + "}]", true
}

// write notes that something arrives in parts of a request.
func write(parts []part) {
	for _, each := range parts {
		if each.region != nil {
			each.region.written = true
		}
	}
}

func (p *process) send(call *trace.Call) {
	e := p.endpoint(call, "qp")
	if e == nil {
		return
	}
	contents := p.takeContents(call)
	for _, request := range call.Requests() {
		p.sendOne(call, e, request, contents)
	}
}

// operations are the verbs of opcodes.
var operations = map[string]string{
	"SEND": "post_send", "SEND_WITH_IMM": "post_send", "RDMA_WRITE": "post_write",
	"RDMA_WRITE_WITH_IMM": "post_write", "RDMA_READ": "post_read", "ATOMIC_CMP_AND_SWP": "post_atomic",
	"ATOMIC_FETCH_AND_ADD": "post_atomic",
}

func (p *process) sendOne(call *trace.Call, e *endpoint, posted trace.Struct, contents []content) {
	opcode, flags := trace.WordOf(posted, "opcode"), trace.WordOf(posted, "flags")
	verb := operations[opcode]
	if verb == "" {
		p.lacks("operation " + opcode)
		return
	}
	parts, buffers, known := p.segments(posted, trace.HasFlag(flags, "INLINE"))
	if !known {
		p.lacks("a request with memory outside of its region")
		return
	}
	id := trace.NumberOf(posted, "wr_id")
	var b strings.Builder
	fmt.Fprintf(&b, ", wr_id: %d", id)
	if value := trace.ValueOf(posted, "imm_data"); value != nil {
		fmt.Fprintf(&b, ", imm: %d", trace.NumberOf(posted, "imm_data"))
	}
	for _, flag := range []string{"FENCE", "INLINE", "SIGNALED", "SOLICITED"} {
		if trace.HasFlag(flags, flag) && (flag != "SOLICITED" || verb == "post_send") {
			fmt.Fprintf(&b, ", %s: true", strings.ToLower(flag))
		}
	}
	switch opcode {
	case "ATOMIC_CMP_AND_SWP":
		fmt.Fprintf(&b, ", op: CMP_AND_SWP, compare: %d, swap: %d", trace.NumberOf(posted, "compare"),
			trace.NumberOf(posted, "swap"))
	case "ATOMIC_FETCH_AND_ADD":
		fmt.Fprintf(&b, ", op: FETCH_AND_ADD, add: %d", trace.NumberOf(posted, "add"))
	}
	remote, key := trace.NumberOf(posted, "remote_addr"), trace.NumberOf(posted, "rkey")
	isRemote := trace.ValueOf(posted, "remote_addr") != nil
	sent := &request{id: id, over: call.Failed()}
	p.queue(call.Start, func() { e.sends = append(e.sends, sent) })
	options, to := b.String(), func() string { return "" }
	if e.datagram {
		if to, known = p.destination(e, posted); !known {
			p.lacks("a datagram to an address that was not recorded")
			return
		}
	}
	switch verb {
	case "post_read":
		write(parts)
		p.reads(call, e, id, parts, remote, key)
	case "post_atomic":
		write(parts)
	default:
		p.fill(call, id, parts, contents)
	}
	if in := p.inRemote(key, remote); isRemote && in != nil && verb != "post_read" {
		in.written = true
	}
	p.do(call, func() string {
		where := ""
		if isRemote {
			direction := "to"
			if verb == "post_read" {
				direction = "from"
			}
			where = fmt.Sprintf(", %s: %s", direction, p.memory(remote, key))
		}
		return fmt.Sprintf("%s: {ep: %s, %s%s%s%s}%s", verb, e.name, buffers, where, to(), options, sent.leftovers())
	})
}

// memory is memory of a peer.
func (r *Recorder) memory(address, key uint64) string {
	in := r.inRemote(key, address)
	if in == nil {
		return fmt.Sprintf("{addr: %d, rkey: %d}", address, key) // it was wrong, or is not of these programs
	}
	of := in.process.name + "." + in.name
	return fmt.Sprintf("{addr: $(%s.addr + %d), rkey: $(%s.rkey)}", of, address-in.address, of)
}

func (p *process) receive(call *trace.Call) {
	e := p.endpoint(call, "qp")
	if e == nil {
		return
	}
	p.receives(call, &e.receives, "post_recv: {ep: "+e.name)
}

// receives adds the requests of a post to a queue. A step begins with begin.
func (p *process) receives(call *trace.Call, queue *[]*request, begin string) {
	for _, posted := range call.Requests() {
		parts, buffers, known := p.segments(posted, false)
		if !known {
			p.lacks("a receive with memory outside of its region")
			continue
		}
		write(parts)
		id := trace.NumberOf(posted, "wr_id")
		receive := &request{id: id, over: call.Failed()}
		p.queue(call.Start, func() { *queue = append(*queue, receive) })
		p.do(call, func() string {
			return fmt.Sprintf("%s, %s, wr_id: %d}%s", begin, buffers, id, receive.leftovers())
		})
	}
}

func (p *process) poll(call *trace.Call) {
	for _, completion := range call.Completions() {
		e := p.queuePairs[trace.NumberOf(completion, "qp_num")]
		if e == nil {
			p.lacks("a completion of a queue pair that was not recorded")
			continue
		}
		p.taken(call, e, completion)
	}
}

// taken is a completion that the program has taken.
func (p *process) taken(call *trace.Call, e *endpoint, completion trace.Struct) {
	status, opcode := trace.WordOf(completion, "status"), trace.WordOf(completion, "opcode")
	id := trace.NumberOf(completion, "wr_id")
	queue, expected := "send", fmt.Sprintf("wr_id: %d, opcode: %s", id, opcode)
	switch {
	case status != "SUCCESS": // which has no opcode (ibv_poll_cq(3))
		expected = fmt.Sprintf("wr_id: %d, status: %s", id, status)
	case strings.HasPrefix(opcode, "RECV"):
		queue = "recv"
		if e.shared != nil { // which of the receives it gets depends on the other queue pairs
			expected = "opcode: " + opcode
		}
		expected += fmt.Sprintf(", byte_len: %d", trace.NumberOf(completion, "byte_len"))
	}
	if trace.ValueOf(completion, "imm_data") != nil {
		expected += fmt.Sprintf(", imm_data: %d", trace.NumberOf(completion, "imm_data"))
	}
	p.queue(call.End, func() {
		if status != "SUCCESS" && first(e.sends, id) < 0 {
			queue = "recv"
		}
		switch {
		case queue == "send":
			e.sends = retire(e.sends, id)
		case e.shared != nil:
			e.shared.receives = retireOne(e.shared.receives, id)
		default:
			e.receives = retire(e.receives, id)
		}
	})
	switch {
	case status == "SUCCESS" && e.completed == none:
		e.completed = len(p.steps)
	case status == "WR_FLUSH_ERR" && e.flushed == none:
		e.flushed = len(p.steps)
	}
	p.wait(call, e, completions, func() string {
		return fmt.Sprintf("poll: {ep: %s, cq: %s}, expect: {%s}", e.name, queue, expected)
	})
}

// leftovers permits a completion that the program did not take.
func (r *request) leftovers() string {
	if r.over {
		return ""
	}
	return ", leftovers: ignore"
}

// first is the index of the first request with that wr_id that has not completed; -1 for none.
func first(requests []*request, id uint64) int {
	return slices.IndexFunc(requests, func(each *request) bool { return each.id == id && !each.over })
}

// retire ends the first request with that wr_id and those before it, which have completed too.  It returns the others.
func retire(requests []*request, id uint64) []*request {
	at := first(requests, id)
	for _, each := range requests[:at+1] {
		each.over = true
	}
	return requests[at+1:]
}
