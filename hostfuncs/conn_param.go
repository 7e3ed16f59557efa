package hostfuncs

import (
	"structs"
	"unsafe"

	"rdmarun/rdmacore"
)

// ConnParam is rdma_conn_param in guest memory.
type ConnParam struct {
	_                  structs.HostLayout
	StructSize         uint32     `abi:"struct_size" doc:"size of this struct as the guest knows it"`
	ResponderResources uint8      `abi:"responder_resources" doc:"RDMA READs and atomics from the peer to serve at once; 255 for the device's maximum"`
	InitiatorDepth     uint8      `abi:"initiator_depth" doc:"RDMA READs and atomics to have outstanding at once; 255 for the device's maximum"`
	FlowControl        uint8      `abi:"flow_control" doc:"1 if hardware flow control is available"`
	RetryCount         uint8      `abi:"retry_count" doc:"0 to 7: how often to send again what is not acknowledged; not used by accept"`
	RNRRetryCount      uint8      `abi:"rnr_retry_count" doc:"0 to 6: how often the peer may send again what found no receive posted; 7 means forever"`
	SRQ                uint8      `abi:"srq" doc:"1 if the QP has a shared receive queue; only without a QP of the endpoint's own"`
	PrivateDataLen     uint8      `abi:"private_data_len" doc:"bytes of private_data; in an event the length of the message's field, zero padded"`
	Reserved           uint8      `abi:"reserved" doc:"0"`
	QPNum              uint32     `abi:"qp_num" doc:"number of a QP of this guest's; only without a QP of the endpoint's own"`
	PrivateData        [256]uint8 `abi:"private_data" doc:"handed to the peer with the message"`
}

func (p *ConnParam) core() *rdmacore.ConnParam {
	return &rdmacore.ConnParam{
		ResponderResources: p.ResponderResources, InitiatorDepth: p.InitiatorDepth,
		FlowControl: p.FlowControl, RetryCount: p.RetryCount, RNRRetryCount: p.RNRRetryCount,
		SRQ: p.SRQ != 0, QPNum: p.QPNum, PrivateData: p.PrivateData[:p.PrivateDataLen],
	}
}

func connParamOf(from *rdmacore.ConnParam, private []byte) ConnParam {
	p := ConnParam{
		StructSize:         uint32(unsafe.Sizeof(ConnParam{})),
		ResponderResources: from.ResponderResources, InitiatorDepth: from.InitiatorDepth,
		FlowControl: from.FlowControl, RetryCount: from.RetryCount, RNRRetryCount: from.RNRRetryCount,
		QPNum: from.QPNum,
	}
	if from.SRQ {
		p.SRQ = 1
	}
	p.PrivateDataLen = uint8(copy(p.PrivateData[:255], private))
	return p
}

// connParam reads an optional ConnParam; nil for a null pointer.
func (i *Instance) connParam(at Pointer) (*rdmacore.ConnParam, int32) {
	if at == 0 {
		return nil, 0
	}
	param, wrong := readSized[ConnParam](i, at)
	if wrong != 0 {
		return nil, i.badPointer("param", wrong)
	}
	return param.core(), 0
}
