package verb

import (
	"context"
	"net/netip"

	"rdmarun/rdmacore"
)

func addressResults() []Result {
	return []Result{
		{Name: "port", Type: Integer, Varies: true, Doc: "the own port"},
		{Name: "address", Type: Text, Varies: true, Doc: "the own address"},
	}
}

// asks is a verb that asks an id for one thing, which it has without a call that could fail.
func asks(name, manual, doc string, result Result, get func(id *rdmacore.ID) any) Verb {
	return Verb{
		Name: name, Manual: manual, Doc: doc, Yields: Value, Arguments: []Argument{theEndpoint()}, Results: []Result{result},
		Run: func(_ context.Context, call *Call) (Outcome, error) {
			endpoint, err := call.Endpoint("ep")
			if err != nil {
				return Outcome{}, err
			}
			return Outcome{Fields: []any{get(endpoint.ID())}}, nil
		},
	}
}

// inquiryVerbs ask an id for what it knows.
func inquiryVerbs() []Verb {
	port := Result{Name: "port", Type: Integer, Varies: true, Doc: "the port; 0 while there is none"}
	address := Result{Name: "address", Type: Text, Varies: true, Doc: "the IP address; \"\" while there is none"}
	return []Verb{
		asks("get_src_port", "rdma_get_src_port(3)", "Ask an id for its own port.", port,
			func(id *rdmacore.ID) any { return int(id.SrcPort()) }),
		asks("get_dst_port", "rdma_get_dst_port(3)", "Ask an id for the port of its peer.", port,
			func(id *rdmacore.ID) any { return int(id.DstPort()) }),
		asks("get_local_addr", "rdma_get_local_addr(3)", "Ask an id for its own address.", address,
			func(id *rdmacore.ID) any { return ipText(id.LocalAddr()) }),
		asks("get_peer_addr", "rdma_get_peer_addr(3)", "Ask an id for the address of its peer.", address,
			func(id *rdmacore.ID) any { return ipText(id.PeerAddr()) }),
		queryIDVerb(),
	}
}

func ipText(address netip.AddrPort) string {
	if !address.IsValid() {
		return ""
	}
	return address.Addr().String()
}

func queryIDVerb() Verb {
	return Verb{
		Name: "query_id", Manual: "rdma_create_id(3)", Yields: Value, Arguments: []Argument{theEndpoint()},
		Doc: "Ask an id for what struct rdma_cm_id says of it.",
		Results: []Result{
			{Name: "port_space", Type: Word, Words: portSpaceNames(), Doc: "as create_id gave it"},
			{Name: "device", Type: Text, Varies: true, Doc: "the device it is bound to; \"\" while there is none"},
			{Name: "has_pd", Type: Boolean, Doc: "whether it has a protection domain"},
			{Name: "has_qp", Type: Boolean, Doc: "whether it has a queue pair"},
			{Name: "listening", Type: Boolean, Doc: "whether listen made it a listener"},
			{Name: "synchronous", Type: Boolean, Doc: "whether it has no event channel"},
		},
		Run: func(_ context.Context, call *Call) (Outcome, error) {
			endpoint, err := call.Endpoint("ep")
			if err != nil {
				return Outcome{}, err
			}
			id, device := endpoint.ID(), ""
			if bound := id.Device(); bound != nil {
				device = bound.Name()
			}
			return Outcome{Fields: []any{id.PortSpace().String(), device, id.PD() != nil, id.QP() != nil, id.Listening(), id.Synchronous()}}, nil
		},
	}
}
