package trace

import (
	"fmt"

	"rdmarun/host/scenario/explain"
	"rdmarun/rdmacore"
)

// byHand decodes the calls that rdmacore/trace writes by hand (data.c, queue.c, builder.c, events.c).
var byHand = map[string]func(*reader, *Call){
	"ibv_post_send":       decodeSend,
	"ibv_wr_complete":     decodeSend,
	"ibv_wr_abort":        decodeSend,
	"ibv_post_recv":       func(r *reader, c *Call) { decodeReceive(r, c, "qp") },
	"ibv_post_srq_recv":   func(r *reader, c *Call) { decodeReceive(r, c, "srq") },
	"ibv_poll_cq":         decodePoll,
	"ibv_start_poll":      decodePoll,
	"ibv_req_notify_cq":   decodeNotify,
	"rdma_get_cm_event":   decodeEvent,
	"rdma_ack_cm_event":   decodeAck,
	"ibv_get_async_event": decodeAsync,
	"ibv_ack_async_event": decodeAsyncAck,
}

const datagram = 1 << 63

// segments reads what is recorded of a list, and counts the bytes of all of it that is.
func (r *reader) segments(counts uint64, call *Call) any {
	all, recorded := uint32(counts>>32), uint32(counts)
	list := List{}
	for range min(recorded, uint32(len(r.words)/2)) {
		address, rest := r.word(), r.word()
		call.Bytes += rest & 0xffffffff
		list = append(list, Struct{
			{"addr", hex(address)}, {"length", rest & 0xffffffff}, {"lkey", hex(rest >> 32)},
		})
	}
	if all > recorded {
		list = append(list, more(all-recorded))
	}
	return list
}

// request reads a send request.
func (r *reader) request(isDatagram bool, call *Call) any {
	id, operation, counts, keys, remote := r.word(), r.word(), r.word(), r.word(), r.word()
	opcode, flags := rdmacore.Opcode(uint32(operation)), rdmacore.SendFlags(operation>>32)
	fields := Struct{{"wr_id", hex(id)}, {"opcode", Word(opcode.String())}}
	if flags != 0 {
		fields = append(fields, Field{"flags", Word(flags.String())})
	}
	isAtomic := opcode == rdmacore.OpAtomicCmpAndSwp || opcode == rdmacore.OpAtomicFetchAndAdd
	var operands [2]uint64
	if isAtomic {
		operands = [2]uint64{r.word(), r.word()}
	}
	immediate, key := uint32(keys>>32), uint32(keys)
	switch opcode {
	case rdmacore.OpSendWithImm, rdmacore.OpRDMAWriteWithImm:
		fields = append(fields, Field{"imm_data", hex(bigEndian32(immediate))})
	case rdmacore.OpSendWithInv, rdmacore.OpLocalInv:
		fields = append(fields, Field{"invalidate_rkey", hex(immediate)})
	}
	switch opcode {
	case rdmacore.OpRDMAWrite, rdmacore.OpRDMAWriteWithImm, rdmacore.OpRDMARead, rdmacore.OpAtomicCmpAndSwp,
		rdmacore.OpAtomicFetchAndAdd, rdmacore.OpAtomicWrite:
		fields = append(fields, Field{"remote_addr", hex(remote)}, Field{"rkey", hex(key)})
	case rdmacore.OpSend, rdmacore.OpSendWithImm:
		if isDatagram {
			fields = append(fields, Field{"ah", r.name("ah", remote)}, Field{"remote_qpn", uint64(key)})
		}
	}
	switch opcode {
	case rdmacore.OpAtomicCmpAndSwp:
		fields = append(fields, Field{"compare", hex(operands[0])}, Field{"swap", hex(operands[1])})
	case rdmacore.OpAtomicFetchAndAdd:
		fields = append(fields, Field{"add", hex(operands[0])})
	}
	return append(fields, Field{"sge", r.segments(counts, call)})
}

// posted shows the list of a post: one request, or several in brackets.
func (r *reader) posted(call *Call, counts uint64, request func() any) any {
	all, recorded := counts&^datagram>>32, counts&0xffffffff
	call.Messages = all
	list := List{}
	for range recorded {
		if len(r.words) == 0 {
			break
		}
		list = append(list, request())
	}
	if all > recorded {
		list = append(list, more(all-recorded))
	}
	if len(list) == 1 {
		return list[0]
	}
	return list
}

// bad adds which request of several was refused.
func bad(call *Call, at uint64) {
	if call.Failed() && call.Messages > 1 && at < call.Messages {
		call.Results = append(call.Results, Field{"bad_wr", at})
	}
	if call.Failed() {
		call.Messages, call.Bytes = at, 0
	}
}

func decodeSend(r *reader, call *Call) {
	queue, counts, at := r.word(), r.word(), r.word()
	call.Arguments = []Field{
		{"", r.name("qp", queue)},
		{"", r.posted(call, counts, func() any { return r.request(counts&datagram != 0, call) })},
	}
	bad(call, at)
}

func decodeReceive(r *reader, call *Call, kind string) {
	queue, counts, at := r.word(), r.word(), r.word()
	call.Arguments = []Field{
		{"", r.name(kind, queue)},
		{"", r.posted(call, counts, func() any {
			id, segments := r.word(), r.word()
			return Struct{{"wr_id", hex(id)}, {"sge", r.segments(segments, call)}}
		})},
	}
	bad(call, at)
}

// completion reads a work completion. A failed one has wr_id, status, queue pair and vendor_err only (ibv_poll_cq(3)).
func (r *reader) completion(call *Call) any {
	id, status, lengths, immediates, vendor := r.word(), r.word(), r.word(), r.word(), r.word()
	call.Messages++
	result := rdmacore.WCStatus(status >> 32)
	fields := Struct{{"wr_id", hex(id)}}
	if result != rdmacore.WCSuccess {
		call.Failures++
		name := result.String()
		return append(fields,
			Field{"status", explained{name, meaning("status", name)}}, Field{"qp_num", lengths & 0xffffffff},
			Field{"vendor_err", hex(vendor >> 32)})
	}
	opcode, flags := rdmacore.WCOpcode(uint32(status)), rdmacore.WCFlags(uint32(immediates))
	fields = append(fields, Field{"status", Word("SUCCESS")}, Field{"opcode", Word(opcode.String())})
	switch opcode {
	case rdmacore.WCRecv, rdmacore.WCRecvRDMAWithImm:
		call.Bytes += lengths >> 32
		fields = append(fields, Field{"byte_len", lengths >> 32})
		if flags&rdmacore.WCWithImm != 0 {
			fields = append(fields, Field{"imm_data", hex(bigEndian32(uint32(immediates >> 32)))})
		}
		if flags&rdmacore.WCWithInv != 0 {
			fields = append(fields, Field{"invalidated_rkey", hex(immediates >> 32)})
		}
	}
	if lengths&0xffffffff != 0 {
		fields = append(fields, Field{"qp_num", lengths & 0xffffffff})
	}
	if flags&rdmacore.WCGRH != 0 && vendor&0xffffffff != 0 {
		fields = append(fields, Field{"src_qp", vendor & 0xffffffff})
	}
	return fields
}

func decodePoll(r *reader, call *Call) {
	queue, counts := r.word(), r.word()
	call.Arguments = []Field{{"", r.name("cq", queue)}}
	if asked := counts >> 32; asked != 0 {
		call.Arguments = append(call.Arguments, Field{"num_entries", asked})
	}
	list := List{}
	for range counts & 0xffffffff {
		if len(r.words) == 0 {
			break
		}
		list = append(list, r.completion(call))
	}
	if all, is := call.Result.(int64); is && all > int64(len(list)) {
		list = append(list, more(all-int64(len(list))))
		call.Messages = uint64(all)
	}
	if len(list) > 0 {
		call.Results = []Field{{"", list}}
	}
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
