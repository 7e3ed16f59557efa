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
	if mask&QPAttrPathMTU != 0 && mtuEnum(attr.PathMTU) == 0 {
		return fail(op, syscall.EINVAL, "path MTU %d; there are 256, 512, 1024, 2048 and 4096", attr.PathMTU)
	}
	c := attr.toC()
	if err := check(op, int(C.core_modify_qp(q.provider.c, q.c, &c, C.int(mask)))); err != nil {
		failure := err.(*Error)
		if failure.Errno == syscall.EINVAL {
			failure.Why = "the transition does not exist, or takes other attributes than " + mask.String()
		}
		return failure
	}
	return nil
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
