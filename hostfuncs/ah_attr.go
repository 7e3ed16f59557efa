package hostfuncs

import (
	"structs"

	"rdmarun/rdmacore"
)

// AHAttr is ibv_ah_attr in guest memory: the way to a datagram peer or a group.
type AHAttr struct {
	_            structs.HostLayout
	DGID         [16]byte `abi:"dgid" doc:"of the peer or the group"`
	FlowLabel    uint32   `abi:"flow_label" doc:""`
	DLID         uint16   `abi:"dlid" doc:"InfiniBand only"`
	SGIDIndex    uint8    `abi:"sgid_index" doc:"of the own GID"`
	HopLimit     uint8    `abi:"hop_limit" doc:""`
	TrafficClass uint8    `abi:"traffic_class" doc:""`
	SL           uint8    `abi:"sl" doc:"service level"`
	SrcPathBits  uint8    `abi:"src_path_bits" doc:"InfiniBand only"`
	StaticRate   uint8    `abi:"static_rate" doc:"enum ibv_rate"`
	IsGlobal     uint8    `abi:"is_global" doc:"1 if the fields of the GRH count"`
	PortNum      uint8    `abi:"port_num" doc:"of the own device"`
	Reserved     uint16   `abi:"reserved" doc:"0"`
}

func ahAttrOf(from *rdmacore.AHAttr) AHAttr {
	attr := AHAttr{FlowLabel: from.FlowLabel, DLID: from.DLID, SGIDIndex: from.SGIDIndex, HopLimit: from.HopLimit,
		TrafficClass: from.TrafficClass, SL: from.SL, SrcPathBits: from.SrcPathBits,
		StaticRate: from.StaticRate, PortNum: from.PortNum}
	if from.DGID.IsValid() {
		attr.DGID = from.DGID.As16()
	}
	if from.IsGlobal {
		attr.IsGlobal = 1
	}
	return attr
}
