package rdmacore

// #include "core/core.h"
import "C"

import (
	"syscall"
	"unsafe"
)

// ConnParam are the parameters of a connection (struct rdma_conn_param).  Its zero value is the famous
// trap: no READs, no retries.
type ConnParam struct {
	ResponderResources uint8 // READs and atomics of the peer served at once; 255 for the device's most
	InitiatorDepth     uint8 // own READs and atomics outstanding at once; 255 likewise
	FlowControl        uint8
	RetryCount         uint8  // 7 at most; connect only
	RNRRetryCount      uint8  // how often the peer retries towards here; 7 is for ever
	SRQ                bool   // ignored when the id has a QP
	QPNum              uint32 // ignored when the id has a QP
	PrivateData        []byte // how much a message carries depends on it, see rdma_connect(3)
}

// toC converts; the result stays valid on its own, private data included.
func (p *ConnParam) toC(op string, c *C.struct_core_conn_param) error {
	if len(p.PrivateData) > 255 {
		return fail(op, syscall.EINVAL, "%d bytes of private data; the length field holds 255 at most",
			len(p.PrivateData))
	}
	c.responder_resources = C.uint8_t(p.ResponderResources)
	c.initiator_depth = C.uint8_t(p.InitiatorDepth)
	c.flow_control = C.uint8_t(p.FlowControl)
	c.retry_count = C.uint8_t(p.RetryCount)
	c.rnr_retry_count = C.uint8_t(p.RNRRetryCount)
	if p.SRQ {
		c.srq = 1
	}
	c.qp_num = C.uint32_t(p.QPNum)
	c.private_data_len = C.uint8_t(copy(privateData(c), p.PrivateData))
	return nil
}

func fromCConnParam(c *C.struct_core_conn_param) ConnParam {
	p := ConnParam{
		ResponderResources: uint8(c.responder_resources),
		InitiatorDepth:     uint8(c.initiator_depth),
		FlowControl:        uint8(c.flow_control),
		RetryCount:         uint8(c.retry_count),
		RNRRetryCount:      uint8(c.rnr_retry_count),
		SRQ:                c.srq != 0,
		QPNum:              uint32(c.qp_num),
	}
	if length := int(c.private_data_len); length != 0 {
		p.PrivateData = append([]byte(nil), privateData(c)[:length]...)
	}
	return p
}

func privateData(c *C.struct_core_conn_param) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(&c.private_data[0])), len(c.private_data))
}
