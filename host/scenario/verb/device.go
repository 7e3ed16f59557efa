package verb

import (
	"context"
)

func queryDeviceVerb() Verb {
	return Verb{
		Name: "query_device", Manual: "ibv_query_device(3)", Yields: Value, Run: queryDevice,
		Doc: "Ask the role's device for its limits.",
		Results: []Result{
			{Name: "name", Type: Text, Varies: true, Doc: "of the device"},
			{Name: "fw_ver", Type: Text, Varies: true, Doc: "firmware"},
			{Name: "max_qp", Type: Integer, Varies: true, Doc: "queue pairs"},
			{Name: "max_qp_wr", Type: Integer, Varies: true, Doc: "work requests in a queue"},
			{Name: "max_sge", Type: Integer, Varies: true, Doc: "buffers of a request"},
			{Name: "max_cq", Type: Integer, Varies: true, Doc: "completion queues"},
			{Name: "max_cqe", Type: Integer, Varies: true, Doc: "entries of a completion queue"},
			{Name: "max_mr", Type: Integer, Varies: true, Doc: "memory regions"},
			{Name: "max_mr_size", Type: Size, Varies: true, Doc: "bytes of a memory region"},
			{Name: "max_pd", Type: Integer, Varies: true, Doc: "protection domains"},
			{Name: "max_qp_rd_atom", Type: Integer, Varies: true, Doc: "READs and atomics served at once"},
			{Name: "max_qp_init_rd_atom", Type: Integer, Varies: true, Doc: "READs and atomics outstanding at once"},
			{Name: "max_srq", Type: Integer, Varies: true, Doc: "shared receive queues"},
			{Name: "atomic", Type: Boolean, Varies: true, Doc: "whether it has atomics"},
		},
	}
}

func queryDevice(_ context.Context, call *Call) (Outcome, error) {
	attr, err := call.Role.Device().Attr()
	if err != nil {
		return Outcome{}, err
	}
	name := call.Role.Device().Name()
	return Outcome{
		Fields: []any{
			name, attr.FirmwareVersion, attr.MaxQP, attr.MaxQPWR, attr.MaxSGE, attr.MaxCQ, attr.MaxCQE, attr.MaxMR,
			int(attr.MaxMRSize), attr.MaxPD, attr.MaxQPRdAtom, attr.MaxQPInitRdAtom, attr.MaxSRQ, attr.Atomic,
		},
		Summary: func() string { return name },
	}, nil
}
