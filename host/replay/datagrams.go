package replay

import (
	"fmt"

	"rdmarun/host/trace"
)

// handle is an address handle. A scenario makes it of the address of the role that the first datagram goes to.
type handle struct {
	name string
	gid  string    // its address when it was recorded; "" for the sender of a datagram
	used bool      // by a datagram
	to   *endpoint // nil: it is not of these programs
}

// createHandle is ibv_create_ah(3) and ibv_create_ah_from_wc(3).
func (p *process) createHandle(call *trace.Call) {
	if call.Failed() {
		p.lacks(call.Name + " that failed")
		return
	}
	h := &handle{name: fmt.Sprintf("ah%d", len(p.handles)+1), gid: trace.WordOf(call.Arguments, "dgid")}
	p.handles[trace.Name(call.Result)] = h
	p.do(call, func() string {
		if address := h.address(); address != "" {
			return fmt.Sprintf("create_ah: {gid: %q}, as: %s", address, h.name)
		}
		return ""
	})
}

// address is where its datagrams go; "" if there are none, or if that is not known.
func (h *handle) address() string {
	switch {
	case !h.used:
		return ""
	case h.to == nil:
		return h.gid
	}
	return fmt.Sprintf("$(%s.address)", h.to.process.name)
}

func (p *process) destroyHandle(call *trace.Call) {
	h := p.handles[trace.ObjectOf(call.Arguments, "ah")]
	if h == nil || call.Failed() {
		return
	}
	p.do(call, func() string {
		if h.address() == "" {
			return ""
		}
		return fmt.Sprintf("destroy_ah: {ah: %s}", h.name)
	})
}

// destination is where a datagram goes, as a step has it; not known if its handle was not recorded.
func (p *process) destination(e *endpoint, posted trace.Struct) (text func() string, known bool) {
	number, qkey := trace.NumberOf(posted, "remote_qpn"), trace.NumberOf(posted, "remote_qkey")
	h := p.handles[trace.WordOf(posted, "ah")]
	if h == nil {
		return nil, false
	}
	peer := p.numbered(e, number)
	if peer == nil && h.gid == "" {
		return nil, false
	}
	if !h.used {
		h.used, h.to = true, peer
	}
	return func() string {
		qpn := fmt.Sprint(number)
		if peer != nil {
			qpn = fmt.Sprintf("$(%s.%s_qp.qp_num)", peer.process.name, peer.name)
		}
		return fmt.Sprintf(", ah: %s, remote_qpn: %s, remote_qkey: %#x", h.name, qpn, qkey)
	}, true
}
