package verb

import (
	"context"

	"rdmarun/host/scenario/lab"
	"rdmarun/rdmacore"
)

// eceVerbs are the enhanced connection establishment of vendors.
func eceVerbs() []Verb {
	most := int64(1<<32 - 1)
	options := []Argument{
		{Name: "vendor_id", Type: Integer, Required: true, Max: most, Doc: "PCI vendor"},
		{Name: "options", Type: Integer, Default: 0, Max: most, Doc: "the vendor's options"},
		{Name: "comp_mask", Type: Integer, Default: 0, Max: most, Doc: "0"},
	}
	results := []Result{
		{Name: "vendor_id", Type: Integer, Doc: "PCI vendor; 0 for none"},
		{Name: "options", Type: Integer, Doc: "the vendor's options"},
		{Name: "comp_mask", Type: Integer, Doc: "0"},
	}
	return []Verb{
		onID("set_local_ece", "rdma_set_local_ece(3)", "Set the ECE options to offer or to answer with.", options,
			func(call *Call, endpoint *lab.Endpoint) error { return endpoint.ID().SetLocalECE(eceOf(call)) }),
		onID("reject_ece", "rdma_reject_ece(3)", "Refuse a connection request for its ECE options.",
			[]Argument{{Name: "private_data", Type: Data, Doc: "bytes that travel with the message"}},
			func(call *Call, endpoint *lab.Endpoint) error {
				endpoint.Answered = true
				return endpoint.ID().RejectECE(call.Bytes("private_data"))
			}),
		{
			Name: "get_remote_ece", Manual: "rdma_get_remote_ece(3)", Yields: Value, Run: remoteECE,
			Doc:       "Ask for the ECE options that the peer offered or answered.",
			Arguments: []Argument{theEndpoint()}, Results: results,
		},
		onID("set_ece", "ibv_set_ece(3)", "Set the ECE options of a queue pair itself, before it is in RTR.", options,
			func(call *Call, endpoint *lab.Endpoint) error {
				qp, err := endpoint.QP()
				if err != nil {
					return err
				}
				return qp.SetECE(eceOf(call))
			}),
		{
			Name: "query_ece", Manual: "ibv_query_ece(3)", Yields: Value, Run: queryECE,
			Doc:       "Ask a queue pair for its ECE options.",
			Arguments: []Argument{theEndpoint()}, Results: results,
		},
	}
}

func eceOf(call *Call) rdmacore.ECE {
	return rdmacore.ECE{
		VendorID: uint32(call.Integer("vendor_id")), Options: uint32(call.Integer("options")), CompMask: uint32(call.Integer("comp_mask")),
	}
}

func queryECE(_ context.Context, call *Call) (Outcome, error) {
	qp, _, err := queuePair(call)
	if err != nil {
		return Outcome{}, err
	}
	ece, err := qp.QueryECE()
	return Outcome{Fields: []any{int(ece.VendorID), int(ece.Options), int(ece.CompMask)}}, err
}

func remoteECE(_ context.Context, call *Call) (Outcome, error) {
	endpoint, err := call.Endpoint("ep")
	if err != nil {
		return Outcome{}, err
	}
	ece, err := endpoint.ID().GetRemoteECE()
	return Outcome{Fields: []any{int(ece.VendorID), int(ece.Options), int(ece.CompMask)}}, err
}
