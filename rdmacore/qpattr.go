package rdmacore

// #include "core/core.h"
import "C"

import (
	"net/netip"
	"syscall"
)

// QPAttrMask selects the fields of a QPAttr that count (enum ibv_qp_attr_mask).
type QPAttrMask uint32

// MigState is the path migration state of a queue pair (enum ibv_mig_state).
type MigState int

// QPAttr are the attributes of a queue pair (struct ibv_qp_attr).
type QPAttr struct {
	State            QPState
	CurState         QPState
	PathMTU          int // bytes
	PathMigState     MigState
	QKey             uint32
	RQPSN            uint32
	SQPSN            uint32
	DestQPNum        uint32
	AccessFlags      Access
	MaxSendWR        uint32
	MaxRecvWR        uint32
	MaxSendSGE       uint32
	MaxRecvSGE       uint32
	MaxInlineData    uint32 // bytes
	AH               AHAttr
	AltAH            AHAttr
	PkeyIndex        uint16
	AltPkeyIndex     uint16
	EnSQDAsyncNotify bool
	SQDraining       bool
	MaxRdAtomic      uint8 // as initiator
	MaxDestRdAtomic  uint8 // as target
	MinRNRTimer      uint8 // code of IBTA volume 1, table 45; 0 is 655.36 ms
	PortNum          uint8
	Timeout          uint8 // 4.096 us * 2^n; 0 is forever
	RetryCnt         uint8
	RNRRetry         uint8 // 7 is forever
	AltPortNum       uint8
	AltTimeout       uint8
	RateLimit        uint32 // kbit/s
}

// AHAttr is the address of a peer (struct ibv_ah_attr).
type AHAttr struct {
	IsGlobal     bool
	DGID         netip.Addr
	FlowLabel    uint32
	SGIDIndex    uint8
	HopLimit     uint8
	TrafficClass uint8
	DLID         uint16
	SL           uint8
	SrcPathBits  uint8
	StaticRate   uint8
	PortNum      uint8
}

// queryMask asks for the attributes of the InfiniBand specification, which every provider answers.
const queryMask = QPAttrDestQPN<<1 - 1

// Query asks for all attributes (ibv_query_qp(3)).
func (q *QP) Query() (QPAttr, error) {
	const op = "ibv_query_qp"
	if !q.open() {
		return QPAttr{}, closed(op, "QP")
	}
	var c C.struct_ibv_qp_attr
	var init C.struct_ibv_qp_init_attr
	result := C.core_query_qp(q.provider.c, q.c, &c, C.int(queryMask), &init)
	if err := check(op, int(result)); err != nil {
		return QPAttr{}, err
	}
	return fromCQPAttr(&c), nil
}

// Modify changes the attributes that mask names (ibv_modify_qp(3)).  EINVAL for a transition that does not
// exist, or that lacks a required attribute or has one too many.
func (q *QP) Modify(attr QPAttr, mask QPAttrMask) error {
	const op = "ibv_modify_qp"
	if !q.open() {
		return closed(op, "QP")
	}
	c, err := attr.toC(mask)
	if err != nil {
		return err
	}
	if err := check(op, int(C.core_modify_qp(q.provider.c, q.c, &c, C.int(mask)))); err != nil {
		failure := err.(*Error)
		if failure.Errno == syscall.EINVAL {
			failure.Why = "the transition does not exist, or takes other attributes than " + mask.String()
		}
		return failure
	}
	return nil
}

func (attr *QPAttr) toC(mask QPAttrMask) (C.struct_ibv_qp_attr, error) {
	var c C.struct_ibv_qp_attr
	if mask&QPAttrPathMTU != 0 && mtuEnum(attr.PathMTU) == 0 {
		return c, fail("ibv_modify_qp", syscall.EINVAL,
			"path MTU %d; there are 256, 512, 1024, 2048 and 4096", attr.PathMTU)
	}
	c.qp_state = uint32(attr.State)
	c.cur_qp_state = uint32(attr.CurState)
	c.path_mtu = mtuEnum(attr.PathMTU)
	c.path_mig_state = uint32(attr.PathMigState)
	c.qkey = C.uint32_t(attr.QKey)
	c.rq_psn = C.uint32_t(attr.RQPSN)
	c.sq_psn = C.uint32_t(attr.SQPSN)
	c.dest_qp_num = C.uint32_t(attr.DestQPNum)
	c.qp_access_flags = C.uint(attr.AccessFlags)
	c.cap.max_send_wr = C.uint32_t(attr.MaxSendWR)
	c.cap.max_recv_wr = C.uint32_t(attr.MaxRecvWR)
	c.cap.max_send_sge = C.uint32_t(attr.MaxSendSGE)
	c.cap.max_recv_sge = C.uint32_t(attr.MaxRecvSGE)
	c.cap.max_inline_data = C.uint32_t(attr.MaxInlineData)
	attr.AH.toC(&c.ah_attr)
	attr.AltAH.toC(&c.alt_ah_attr)
	c.pkey_index = C.uint16_t(attr.PkeyIndex)
	c.alt_pkey_index = C.uint16_t(attr.AltPkeyIndex)
	c.en_sqd_async_notify = flag(attr.EnSQDAsyncNotify)
	c.sq_draining = flag(attr.SQDraining)
	c.max_rd_atomic = C.uint8_t(attr.MaxRdAtomic)
	c.max_dest_rd_atomic = C.uint8_t(attr.MaxDestRdAtomic)
	c.min_rnr_timer = C.uint8_t(attr.MinRNRTimer)
	c.port_num = C.uint8_t(attr.PortNum)
	c.timeout = C.uint8_t(attr.Timeout)
	c.retry_cnt = C.uint8_t(attr.RetryCnt)
	c.rnr_retry = C.uint8_t(attr.RNRRetry)
	c.alt_port_num = C.uint8_t(attr.AltPortNum)
	c.alt_timeout = C.uint8_t(attr.AltTimeout)
	c.rate_limit = C.uint32_t(attr.RateLimit)
	return c, nil
}

func fromCQPAttr(c *C.struct_ibv_qp_attr) QPAttr {
	return QPAttr{
		State:            QPState(c.qp_state),
		CurState:         QPState(c.cur_qp_state),
		PathMTU:          mtuBytes(uint32(c.path_mtu)),
		PathMigState:     MigState(c.path_mig_state),
		QKey:             uint32(c.qkey),
		RQPSN:            uint32(c.rq_psn),
		SQPSN:            uint32(c.sq_psn),
		DestQPNum:        uint32(c.dest_qp_num),
		AccessFlags:      Access(c.qp_access_flags),
		MaxSendWR:        uint32(c.cap.max_send_wr),
		MaxRecvWR:        uint32(c.cap.max_recv_wr),
		MaxSendSGE:       uint32(c.cap.max_send_sge),
		MaxRecvSGE:       uint32(c.cap.max_recv_sge),
		MaxInlineData:    uint32(c.cap.max_inline_data),
		AH:               fromCAHAttr(&c.ah_attr),
		AltAH:            fromCAHAttr(&c.alt_ah_attr),
		PkeyIndex:        uint16(c.pkey_index),
		AltPkeyIndex:     uint16(c.alt_pkey_index),
		EnSQDAsyncNotify: c.en_sqd_async_notify != 0,
		SQDraining:       c.sq_draining != 0,
		MaxRdAtomic:      uint8(c.max_rd_atomic),
		MaxDestRdAtomic:  uint8(c.max_dest_rd_atomic),
		MinRNRTimer:      uint8(c.min_rnr_timer),
		PortNum:          uint8(c.port_num),
		Timeout:          uint8(c.timeout),
		RetryCnt:         uint8(c.retry_cnt),
		RNRRetry:         uint8(c.rnr_retry),
		AltPortNum:       uint8(c.alt_port_num),
		AltTimeout:       uint8(c.alt_timeout),
		RateLimit:        uint32(c.rate_limit),
	}
}

func (a *AHAttr) toC(c *C.struct_ibv_ah_attr) {
	if a.DGID.IsValid() {
		copy(c.grh.dgid[:], gidBytes(a.DGID))
	}
	c.grh.flow_label = C.uint32_t(a.FlowLabel)
	c.grh.sgid_index = C.uint8_t(a.SGIDIndex)
	c.grh.hop_limit = C.uint8_t(a.HopLimit)
	c.grh.traffic_class = C.uint8_t(a.TrafficClass)
	c.dlid = C.uint16_t(a.DLID)
	c.sl = C.uint8_t(a.SL)
	c.src_path_bits = C.uint8_t(a.SrcPathBits)
	c.static_rate = C.uint8_t(a.StaticRate)
	c.is_global = flag(a.IsGlobal)
	c.port_num = C.uint8_t(a.PortNum)
}

func fromCAHAttr(c *C.struct_ibv_ah_attr) AHAttr {
	return AHAttr{
		IsGlobal:     c.is_global != 0,
		DGID:         netip.AddrFrom16([16]byte(c.grh.dgid[:])),
		FlowLabel:    uint32(c.grh.flow_label),
		SGIDIndex:    uint8(c.grh.sgid_index),
		HopLimit:     uint8(c.grh.hop_limit),
		TrafficClass: uint8(c.grh.traffic_class),
		DLID:         uint16(c.dlid),
		SL:           uint8(c.sl),
		SrcPathBits:  uint8(c.src_path_bits),
		StaticRate:   uint8(c.static_rate),
		PortNum:      uint8(c.port_num),
	}
}

// gidBytes is the 16-byte form of an address, IPv4 as IPv4-mapped.
func gidBytes(address netip.Addr) []byte {
	raw := address.As16()
	return raw[:]
}

func flag(set bool) C.uint8_t {
	if set {
		return 1
	}
	return 0
}
