package verb

import (
	"context"

	"rdmarun/host/scenario/lab"
	"rdmarun/rdmacore"
)

// queuePairParts are the arguments of what makes a queue pair.
func queuePairParts() []Argument {
	return []Argument{
		theEndpoint(),
		{Name: "qp", Type: QueuePair, Doc: "attributes of the queue pair, over those of `defaults`"},
		theDomain(),
		{Name: "default_pd", Type: Boolean, Doc: "true: rdma_cm's own protection domain of the device"},
		{Name: "send_cq", Type: Queue, Doc: "a completion queue of create_cq; without it one of its own"},
		{Name: "recv_cq", Type: Queue, Doc: "likewise"},
	}
}

func createQPVerb() Verb {
	return Verb{
		Name: "create_qp", Manual: "rdma_create_qp(3)", Doc: "Make the queue pair of an endpoint that has none.", Arguments: queuePairParts(),
		Run: func(_ context.Context, call *Call) (Outcome, error) {
			endpoint, pd, attr, err := queuePairOf(call)
			if err != nil {
				return Outcome{}, err
			}
			endpoint.FreeFirst()
			return Outcome{}, endpoint.ID().CreateQP(pd, attr)
		},
	}
}

func createQPExVerb() Verb {
	most := int64(1<<32 - 1)
	return Verb{
		Name: "create_qp_ex", Manual: "rdma_create_qp_ex(3)", Doc: "Make the queue pair of an endpoint with extended attributes: those that are given.",
		Arguments: append(queuePairParts(),
			Argument{Name: "create_flags", Type: Integer, Max: most, Doc: "enum ibv_qp_create_flags"},
			Argument{Name: "send_ops_flags", Type: Integer, Max: 1<<63 - 1, Doc: "enum ibv_qp_create_send_ops_flags as a number, over send_ops of qp; 0: builders for nothing"},
			Argument{Name: "max_tso_header", Type: Integer, Max: 65535, Doc: "bytes"},
			Argument{Name: "comp_mask", Type: Integer, Default: 0, Max: most, Doc: "more bits of the mask than those of the attributes given"},
		),
		Run: func(_ context.Context, call *Call) (Outcome, error) {
			endpoint, pd, attr, err := queuePairOf(call)
			if err != nil {
				return Outcome{}, err
			}
			extended := rdmacore.QPInitAttrEx{
				QPInitAttr: attr, CompMask: rdmacore.QPInitMask(call.Integer("comp_mask")), CreateFlags: uint32(call.Integer("create_flags")),
				MaxTSOHeader: uint16(call.Integer("max_tso_header")),
			}
			if call.Has("send_ops_flags") {
				extended.SendOps = rdmacore.SendOps(call.Integer("send_ops_flags"))
			}
			for name, bit := range map[string]rdmacore.QPInitMask{
				"create_flags": rdmacore.QPInitCreateFlags, "send_ops_flags": rdmacore.QPInitSendOpsFlags, "max_tso_header": rdmacore.QPInitMaxTSOHeader,
			} {
				if call.Has(name) {
					extended.CompMask |= bit
				}
			}
			endpoint.FreeFirst()
			return Outcome{}, endpoint.ID().CreateQPEx(pd, extended)
		},
	}
}

func queuePairOf(call *Call) (endpoint *lab.Endpoint, pd *rdmacore.PD, attr rdmacore.QPInitAttr, err error) {
	if endpoint, err = call.Endpoint("ep"); err != nil {
		return nil, nil, attr, err
	}
	attributes, _ := call.argument("qp").(QueuePairAttributes)
	wanted, err := attributes.native(call.Role)
	if err != nil {
		return nil, nil, attr, err
	}
	attr = *wanted
	if pd, err = domainOf(call); err != nil {
		return nil, nil, attr, err
	}
	if call.Boolean("default_pd") && !call.Has("pd") {
		pd = nil
	}
	if attr.SRQ == nil {
		attr.SRQ = endpoint.ID().SRQ()
	}
	for name, place := range map[string]**rdmacore.CQ{"send_cq": &attr.SendCQ, "recv_cq": &attr.RecvCQ} {
		if !call.Has(name) {
			continue
		}
		queue, err := call.Role.Queue(call.Text(name))
		if err != nil {
			return nil, nil, attr, err
		}
		*place = queue.Native()
	}
	return endpoint, pd, attr, nil
}

func initQPAttrVerb() Verb {
	return Verb{
		Name: "init_qp_attr", Manual: "rdma_init_qp_attr(3)", Yields: Value, Run: initQPAttr,
		Doc: "Ask what the connection manager would set to bring a queue pair of the connection to a state.",
		Arguments: []Argument{theEndpoint(),
			{Name: "state", Type: Word, Words: qpStateNames(), Required: true, Doc: "the state"}},
		Results: append([]Result{{Name: "mask", Type: Text, Doc: "the attributes that count, STATE|ACCESS_FLAGS.."}}, attributeResults()...),
	}
}

func initQPAttr(_ context.Context, call *Call) (Outcome, error) {
	endpoint, err := call.Endpoint("ep")
	if err != nil {
		return Outcome{}, err
	}
	state, err := rdmacore.ParseQPState(call.Text("state"))
	if err != nil {
		return Outcome{}, err
	}
	attr, mask, err := endpoint.ID().InitQPAttr(state)
	if err != nil {
		return Outcome{}, err
	}
	return Outcome{
		Fields:  append([]any{mask.String()}, attributeFields(&attr)...),
		Summary: func() string { return attr.State.String() },
	}, nil
}
