package trace

import (
	"fmt"

	"rdmarun/host/scenario/explain"
	"rdmarun/rdmacore"
)

// byHand decodes the calls that rdmacore/trace writes by hand (data.c, queue.c, builder.c, events.c), but for posts and
// polls.
var byHand = map[string]func(*reader, *Call){
	"ibv_req_notify_cq":   decodeNotify,
	"rdma_get_cm_event":   decodeEvent,
	"rdma_ack_cm_event":   decodeAck,
	"ibv_get_async_event": decodeAsync,
	"ibv_ack_async_event": decodeAsyncAck,
}

// inNumbers are posts and polls: the kind of the queue, and how a request is read; nil for a poll.
var inNumbers = map[string]work{
	"ibv_post_send":     {"qp", (*reader).send},
	"ibv_wr_complete":   {"qp", (*reader).send},
	"ibv_wr_abort":      {"qp", (*reader).send},
	"ibv_post_recv":     {"qp", (*reader).receive},
	"ibv_post_srq_recv": {"srq", (*reader).receive},
	"ibv_poll_cq":       {"cq", nil},
	"ibv_start_poll":    {"cq", nil},
}

// work is how a post or a poll is decoded.
type work struct {
	queue   string
	request func(*reader, *posted) Request
}

const datagram = 1 << 63

// decode reads a post or a poll, and shows it unless its numbers are all that is asked for.
func (w work) decode(r *reader, call *Call, in *posted, numbers bool) {
	queue := r.name(w.queue, r.word())
	call.Queue = Name(queue)
	var counts uint64
	if w.request != nil {
		counts = r.posts(call, in, w.request)
	} else {
		counts = r.polls(call, in)
	}
	if numbers {
		return
	}
	call.Arguments = []Field{{"", queue}}
	if w.request != nil {
		r.showPosts(call, w.queue == "qp" && isSend(call.Name), counts)
	} else {
		showPolls(call, counts)
	}
	call.Posted, call.Polled = nil, nil // the next record has their memory
}

func isSend(name string) bool { return name != "ibv_post_recv" && name != "ibv_post_srq_recv" }

// showPosts shows the list of a post: one request, or several in brackets.
func (r *reader) showPosts(call *Call, send bool, counts uint64) {
	list := make(List, 0, len(call.Posted))
	for i := range call.Posted {
		request := &call.Posted[i]
		fields := Struct{{"wr_id", hex(request.ID)}}
		if send {
			fields = append(fields, r.showSend(request, counts&datagram != 0)...)
		}
		list = append(list, append(fields, Field{"sge", showSegments(request)}))
	}
	all, recorded := counts&^datagram>>32, counts&0xffffffff
	if all > recorded {
		list = append(list, more(all-recorded))
	}
	var shown any = list
	if len(list) == 1 {
		shown = list[0]
	}
	call.Arguments = append(call.Arguments, Field{"", shown})
	if call.Failed() && all > 1 && uint64(call.Taken) < all {
		call.Results = append(call.Results, Field{"bad_wr", uint64(call.Taken)})
	}
}

func showSegments(request *Request) List {
	list := make(List, 0, len(request.Segments))
	for _, each := range request.Segments {
		list = append(list, Struct{
			{"addr", hex(each.Address)}, {"length", uint64(each.Length)}, {"lkey", hex(each.Key)},
		})
	}
	if recorded := uint32(len(request.Segments)); request.all > recorded {
		list = append(list, more(request.all-recorded))
	}
	return list
}

// showSend shows what a request to send has between wr_id and its segments.
func (r *reader) showSend(request *Request, isDatagram bool) (fields Struct) {
	opcode := request.Opcode
	fields = Struct{{"opcode", Word(opcode.String())}}
	if request.Flags != 0 {
		fields = append(fields, Field{"flags", Word(request.Flags.String())})
	}
	switch opcode {
	case rdmacore.OpSendWithImm, rdmacore.OpRDMAWriteWithImm:
		fields = append(fields, Field{"imm_data", hex(bigEndian32(request.immediate))})
	case rdmacore.OpSendWithInv, rdmacore.OpLocalInv:
		fields = append(fields, Field{"invalidate_rkey", hex(request.immediate)})
	}
	switch opcode {
	case rdmacore.OpRDMAWrite, rdmacore.OpRDMAWriteWithImm, rdmacore.OpRDMARead, rdmacore.OpAtomicCmpAndSwp,
		rdmacore.OpAtomicFetchAndAdd, rdmacore.OpAtomicWrite:
		fields = append(fields, Field{"remote_addr", hex(request.remote)}, Field{"rkey", hex(request.key)})
	case rdmacore.OpSend, rdmacore.OpSendWithImm:
		if isDatagram {
			fields = append(
				fields, Field{"ah", r.name("ah", request.remote)}, Field{"remote_qpn", uint64(request.key)},
				Field{"remote_qkey", hex(request.qkey)},
			)
		}
	}
	switch opcode {
	case rdmacore.OpAtomicCmpAndSwp:
		fields = append(
			fields, Field{"compare", hex(request.operands[0])}, Field{"swap", hex(request.operands[1])},
		)
	case rdmacore.OpAtomicFetchAndAdd:
		fields = append(fields, Field{"add", hex(request.operands[0])})
	}
	return fields
}

// showPolls shows the completions of a poll.
func showPolls(call *Call, counts uint64) {
	if asked := counts >> 32; asked != 0 {
		call.Arguments = append(call.Arguments, Field{"num_entries", asked})
	}
	list := make(List, 0, len(call.Polled))
	for i := range call.Polled {
		list = append(list, showCompletion(&call.Polled[i]))
	}
	if shown := uint64(len(list)); call.Messages > shown {
		list = append(list, more(call.Messages-shown))
	}
	if len(list) > 0 {
		call.Results = []Field{{"", list}}
	}
}

// showCompletion shows what is valid of a completion.
func showCompletion(c *Completion) Struct {
	fields := Struct{{"wr_id", hex(c.ID)}}
	if c.Status != rdmacore.WCSuccess {
		name := c.Status.String()
		return append(fields,
			Field{"status", explained{name, meaning("status", name)}}, Field{"qp_num", uint64(c.QueuePair)},
			Field{"vendor_err", hex(c.vendor)})
	}
	fields = append(fields, Field{"status", Word("SUCCESS")}, Field{"opcode", Word(c.Opcode.String())})
	if c.IsReceive() {
		fields = append(fields, Field{"byte_len", uint64(c.length)})
		if c.flags&rdmacore.WCWithImm != 0 {
			fields = append(fields, Field{"imm_data", hex(bigEndian32(c.immediate))})
		}
		if c.flags&rdmacore.WCWithInv != 0 {
			fields = append(fields, Field{"invalidated_rkey", hex(c.immediate)})
		}
	}
	if c.QueuePair != 0 {
		fields = append(fields, Field{"qp_num", uint64(c.QueuePair)})
	}
	if c.flags&rdmacore.WCGRH != 0 && c.source != 0 {
		fields = append(fields, Field{"src_qp", uint64(c.source)})
	}
	return fields
}

func decodeNotify(r *reader, call *Call) {
	call.Arguments = []Field{{"", r.name("cq", r.word())}, {"solicited_only", r.word() != 0}}
}

func decodeEvent(r *reader, call *Call) {
	call.Arguments = []Field{{"", r.name("channel", r.word())}}
	if call.Failed() || call.Unfinished {
		return
	}
	r.results = true
	id, listener, kind, status := r.word(), r.word(), rdmacore.EventType(r.word()), int(int64(r.word()))
	call.Results = []Field{{"event", Word(kind.String())}, {"", r.name("id", id)}}
	if listener != 0 {
		call.Results = append(call.Results, Field{"listen_id", r.name("id", listener)})
	}
	if status != 0 {
		call.Failures = 1
		call.Results = append(call.Results, Field{"status", eventStatus(kind.String(), status)})
	}
	isDatagram := r.word() != 0
	if private, length := r.bytes(); length > 0 {
		call.Results = append(call.Results, Field{"private_data", Bytes{private, length}})
	}
	if isDatagram {
		if number, key := r.word(), r.word(); number != 0 {
			call.Results = append(call.Results, Field{"qp_num", number}, Field{"qkey", hex(key)})
		}
		return
	}
	if kind != rdmacore.EventConnectRequest && kind != rdmacore.EventConnectResponse &&
		kind != rdmacore.EventEstablished {
		return
	}
	for _, name := range []string{
		"responder_resources", "initiator_depth", "flow_control", "retry_count", "rnr_retry_count", "qp_num",
	} {
		if value := r.word(); value != 0 {
			call.Results = append(call.Results, Field{name, value})
		}
	}
}

// eventStatus is the status of an event with what it means: an errno, or the reason of a reject.
func eventStatus(event string, status int) any {
	if status > 0 {
		if name := explain.RejectName(status); event == "REJECTED" && name != "" {
			return explained{fmt.Sprintf("%d %s", status, name), meaning("reject", name)}
		}
		return int64(status)
	}
	return explained{fmt.Sprintf("%d %s", status, ErrnoName(-status)), errnoMeaning(-status)}
}

func decodeAck(r *reader, call *Call) {
	id := r.name("id", r.word())
	call.Arguments = []Field{{"event", Word(rdmacore.EventType(r.word()).String())}, {"", id}}
}

func (r *reader) async() []Field {
	kind, what := rdmacore.AsyncEventType(r.word()), r.word()
	fields := []Field{{"event", explained{kind.String(), meaning("async", kind.String())}}}
	switch kind {
	case rdmacore.AsyncCQErr:
		return append(fields, Field{"", r.name("cq", what)})
	case rdmacore.AsyncSRQErr, rdmacore.AsyncSRQLimitReached:
		return append(fields, Field{"", r.name("srq", what)})
	case rdmacore.AsyncQPFatal, rdmacore.AsyncQPReqErr, rdmacore.AsyncQPAccessErr, rdmacore.AsyncCommEst,
		rdmacore.AsyncSQDrained, rdmacore.AsyncPathMig, rdmacore.AsyncPathMigErr, rdmacore.AsyncQPLastWQEReached:
		return append(fields, Field{"", r.name("qp", what)})
	case rdmacore.AsyncWQFatal:
		return fields
	}
	return append(fields, Field{"port_num", what})
}

func decodeAsync(r *reader, call *Call) {
	call.Arguments = []Field{{"", r.name("ctx", r.word())}}
	if !call.Failed() && !call.Unfinished {
		call.Results = r.async()
	}
}

func decodeAsyncAck(r *reader, call *Call) { call.Arguments = r.async() }
