package rdmacore

// #include <infiniband/verbs.h>
// #include <rdma/rdma_cma.h>
import "C"

// Levels and options of ids (rdma_set_option(3)).
const (
	OptionID OptionLevel = C.RDMA_OPTION_ID
	OptionIB OptionLevel = C.RDMA_OPTION_IB

	OptionTOS        IDOption = C.RDMA_OPTION_ID_TOS
	OptionReuseAddr  IDOption = C.RDMA_OPTION_ID_REUSEADDR
	OptionAFOnly     IDOption = C.RDMA_OPTION_ID_AFONLY
	OptionAckTimeout IDOption = C.RDMA_OPTION_ID_ACK_TIMEOUT
	OptionIBPath     IDOption = C.RDMA_OPTION_IB_PATH // of OptionIB
)

// Flags of GetAddrInfo (rdma_getaddrinfo(3)).
const (
	AddrInfoPassive     AddrInfoFlags = C.RAI_PASSIVE
	AddrInfoNumericHost AddrInfoFlags = C.RAI_NUMERICHOST
	AddrInfoNoRoute     AddrInfoFlags = C.RAI_NOROUTE
	AddrInfoFamily      AddrInfoFlags = C.RAI_FAMILY
	AddrInfoSA          AddrInfoFlags = 0x10 // rdma-core 60
	AddrInfoDNS         AddrInfoFlags = 0x20 // rdma-core 60
)

// Ways of being in a multicast group (enum rdma_cm_mc_join_flags).
const (
	JoinFullMember         JoinFlags = C.RDMA_MC_JOIN_FLAG_FULLMEMBER
	JoinSendOnlyFullMember JoinFlags = C.RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER
)

var joinFlagsNames = names[JoinFlags]{"way of joining", []named[JoinFlags]{
	{JoinFullMember, "FULLMEMBER"}, {JoinSendOnlyFullMember, "SENDONLY_FULLMEMBER"},
}}

func (f JoinFlags) String() string { return joinFlagsNames.name(f) }

// ParseJoinFlags is the reverse of String.
func ParseJoinFlags(name string) (JoinFlags, error) { return joinFlagsNames.parse(name) }

// Members of QPInitAttrEx that count (enum ibv_qp_init_attr_mask).
const (
	QPInitCreateFlags  QPInitMask = C.IBV_QP_INIT_ATTR_CREATE_FLAGS
	QPInitMaxTSOHeader QPInitMask = C.IBV_QP_INIT_ATTR_MAX_TSO_HEADER
	QPInitSendOpsFlags QPInitMask = C.IBV_QP_INIT_ATTR_SEND_OPS_FLAGS
)

// UDPQKey is the qkey of every datagram QP and group of rdma_cm (RDMA_UDP_QKEY).
const UDPQKey uint32 = C.RDMA_UDP_QKEY
