package replay

import (
	"fmt"
	"strings"

	"rdmarun/host/trace"
)

// attributes are those of a queue pair.
func (p *process) attributes(call *trace.Call, e *endpoint) string {
	shared := ""
	if queue := p.shared[trace.WordOf(call.Arguments, "srq")]; queue != nil {
		e.shared, shared = queue, ", srq: "+queue.name
	}
	kind := trace.WordOf(call.Arguments, "qp_type")
	e.datagram = kind == "UD"
	if !strings.HasPrefix(kind, "U") {
		kind = "RC" // rdma_create_ep(3) takes it from the address if it is 0
	}
	return fmt.Sprintf(
		"{type: %s, max_send_wr: %d, max_recv_wr: %d, max_send_sge: %d, max_recv_sge: %d, max_inline_data: %d, "+
			"sig_all: %t%s}",
		kind, max(1, trace.NumberOf(call.Arguments, "max_send_wr")), trace.NumberOf(call.Arguments, "max_recv_wr"),
		max(1, trace.NumberOf(call.Arguments, "max_send_sge")), max(1, trace.NumberOf(call.Arguments, "max_recv_sge")),
		trace.NumberOf(call.Arguments, "max_inline_data"), trace.IsTrue(call.Arguments, "sq_sig_all"),
		shared,
	)
}

// isReplayed reports whether a scenario can have such a queue pair.
func (p *process) isReplayed(call *trace.Call) bool {
	srq := trace.WordOf(call.Arguments, "srq")
	switch kind := trace.WordOf(call.Arguments, "qp_type"); {
	case srq != "" && p.shared[srq] == nil:
		p.lacks("a queue pair with a shared receive queue that was not recorded")
	case strings.HasPrefix(kind, "XRC"), kind == "RAW_PACKET", kind == "DRIVER":
		p.lacks("queue pairs of type " + kind)
	default:
		return true
	}
	return false
}

func (p *process) createQueuePair(call *trace.Call) {
	e := p.endpoint(call, "id")
	if e == nil || !p.isReplayed(call) {
		return
	}
	if !call.Failed() {
		p.endpoints[trace.ObjectOf(call.Results, "qp")] = e
		p.hasNumber(e, trace.NumberOf(call.Results, "qp_num"))
	}
	qp := p.attributes(call, e)
	p.do(call, func() string { return fmt.Sprintf("create_qp: {ep: %s, qp: %s}", e.name, qp) })
	if e.datagram && !call.Failed() {
		p.namesNumber(call, e)
	}
}

// createRaw is ibv_create_qp(3).  In a scenario, queue pairs belong to ids.  So this one gets an id, which only chooses
// its device.
func (p *process) createRaw(call *trace.Call) {
	if !p.isReplayed(call) {
		return
	}
	if call.Failed() {
		p.lacks(call.Name + " that failed")
		return
	}
	e := p.newEndpoint(trace.ObjectOf([]trace.Field{{Value: call.Result}}, "qp"))
	e.raw = true
	p.hasNumber(e, trace.NumberOf(call.Results, "qp_num"))
	qp := p.attributes(call, e)
	space := ""
	if e.datagram {
		space = "port_space: UDP"
	}
	texts := []string{
		fmt.Sprintf("create_id: {%s}, as: %s", space, e.name),
		fmt.Sprintf("bind_addr: {ep: %s, port: 0}", e.name),
		fmt.Sprintf("create_qp: {ep: %s, qp: %s}", e.name, qp),
	}
	if e.datagram { // rdma_create_qp(3) has made it ready to send
		texts = append(texts, fmt.Sprintf("modify_qp: {ep: %s, state: RESET}", e.name))
	}
	for _, text := range texts {
		p.do(call, func() string { return text })
	}
	p.namesNumber(call, e)
}

// namesNumber has steps of others name a queue pair by its number.
func (p *process) namesNumber(call *trace.Call, e *endpoint) {
	p.numbers[e.number] = append(p.numbers[e.number], e)
	p.do(call, func() string { return fmt.Sprintf("query_qp: {ep: %s}, as: %s_qp", e.name, e.name) })
}

// modified are the attributes of a modify_qp step which have the same names in a trace.
var modified = []struct{ name, mask string }{
	{"pkey_index", "PKEY_INDEX"},
	{"port_num", "PORT"},
	{"qkey", "QKEY"},
	{"path_mtu", "PATH_MTU"},
	{"rq_psn", "RQ_PSN"},
	{"sq_psn", "SQ_PSN"},
	{"min_rnr_timer", "MIN_RNR_TIMER"},
	{"timeout", "TIMEOUT"},
	{"retry_cnt", "RETRY_CNT"},
	{"rnr_retry", "RNR_RETRY"},
	{"max_rd_atomic", "MAX_QP_RD_ATOMIC"},
	{"max_dest_rd_atomic", "MAX_DEST_RD_ATOMIC"},
}

func (p *process) modify(call *trace.Call) {
	e := p.endpoint(call, "qp")
	if e == nil {
		return
	}
	mask := trace.WordOf(call.Arguments, "attr_mask")
	var b strings.Builder
	if trace.HasFlag(mask, "STATE") {
		fmt.Fprintf(&b, ", state: %s", trace.WordOf(call.Arguments, "qp_state"))
	}
	if trace.HasFlag(mask, "ACCESS_FLAGS") {
		fmt.Fprintf(&b, ", access: [%s]", rights(trace.WordOf(call.Arguments, "qp_access_flags")))
	}
	for _, each := range modified {
		if !trace.HasFlag(mask, each.mask) {
			continue
		}
		value := trace.ValueOf(call.Arguments, each.name)
		if number, is := trace.Number(value); is {
			fmt.Fprintf(&b, ", %s: %d", each.name, number)
		} else {
			fmt.Fprintf(&b, ", %s: %s", each.name, trace.Name(value))
		}
	}
	others := b.String()
	peer := func() string { return "" }
	if trace.HasFlag(mask, "DEST_QPN") {
		peer = p.connectedTo(e, trace.NumberOf(call.Arguments, "dest_qp_num"))
	}
	p.do(call, func() string {
		return fmt.Sprintf("modify_qp: {ep: %s%s%s}", e.name, others, peer())
	})
}

// connectedTo are the attributes that name the queue pair of a peer.
func (r *Recorder) connectedTo(e *endpoint, number uint64) func() string {
	peer := r.numbered(e, number)
	return func() string {
		if peer == nil {
			return fmt.Sprintf(", dest_qp_num: %d", number)
		}
		role := peer.process.name
		return fmt.Sprintf(", dest_qp_num: $(%s.%s_qp.qp_num), gid: $(%s.address)", role, peer.name, role)
	}
}

// rights are access flags as a list.
func rights(flags string) string {
	if flags == "0" {
		return ""
	}
	return strings.ReplaceAll(flags, "|", ", ")
}

func (p *process) destroyQueuePair(call *trace.Call) {
	kind := "qp"
	if call.Name == "rdma_destroy_qp" {
		kind = "id"
	}
	e := p.endpoint(call, kind)
	if e == nil || e.destroyed || call.Failed() {
		return
	}
	if e.raw {
		p.destroyEndpoint(call, e)
		return
	}
	e.hasQueues = false
	p.destroys(call, e, completions, func() string {
		return fmt.Sprintf("destroy_qp: {ep: %s}, leftovers: ignore", e.name)
	})
}
