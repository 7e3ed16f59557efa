package rdmacore

// #include <infiniband/verbs.h>
// #include <rdma/rdma_cma.h>
import "C"

// The constants of every enum.  Their names, as scenarios have them, are those of verbs.h and rdma_cma.h without the
// prefix; names.gen.go has them, String and Parse.  Values that the headers of rdma-core 44 (the oldest supported)
// lack are numbers, with the name in a comment.

//go:generate go run ../internal/enums names.go names_completion.go
//go:generate go run ../internal/qpattr

// The kinds of object that are counted, in the order of enum core_object.
const (
	KindEventChannel Kind = iota
	KindID
	KindPD
	KindMR
	KindCompChannel
	KindCQ
	KindQP
	KindSRQ
	KindAH
	KindMW
	kinds
)

var kindNames = names[Kind]{"object kind", []named[Kind]{
	{KindEventChannel, "event channel"}, {KindID, "ID"}, {KindPD, "PD"}, {KindMR, "MR"},
	{KindCompChannel, "completion channel"}, {KindCQ, "CQ"}, {KindQP, "QP"},
	{KindSRQ, "SRQ"}, {KindAH, "AH"}, {KindMW, "MW"},
}}

func (k Kind) String() string { return kindNames.name(k) }

// Port spaces (enum rdma_port_space).
//
//enum:names "port space" RDMA_PS_
const (
	PortSpaceTCP   PortSpace = C.RDMA_PS_TCP
	PortSpaceUDP   PortSpace = C.RDMA_PS_UDP
	PortSpaceIB    PortSpace = C.RDMA_PS_IB
	PortSpaceIPOIB PortSpace = C.RDMA_PS_IPOIB
)

// Connection manager events (enum rdma_cm_event_type).
//
//enum:names "CM event" RDMA_CM_EVENT_
const (
	EventAddrResolved    EventType = C.RDMA_CM_EVENT_ADDR_RESOLVED
	EventAddrError       EventType = C.RDMA_CM_EVENT_ADDR_ERROR
	EventRouteResolved   EventType = C.RDMA_CM_EVENT_ROUTE_RESOLVED
	EventRouteError      EventType = C.RDMA_CM_EVENT_ROUTE_ERROR
	EventConnectRequest  EventType = C.RDMA_CM_EVENT_CONNECT_REQUEST
	EventConnectResponse EventType = C.RDMA_CM_EVENT_CONNECT_RESPONSE
	EventConnectError    EventType = C.RDMA_CM_EVENT_CONNECT_ERROR
	EventUnreachable     EventType = C.RDMA_CM_EVENT_UNREACHABLE
	EventRejected        EventType = C.RDMA_CM_EVENT_REJECTED
	EventEstablished     EventType = C.RDMA_CM_EVENT_ESTABLISHED
	EventDisconnected    EventType = C.RDMA_CM_EVENT_DISCONNECTED
	EventDeviceRemoval   EventType = C.RDMA_CM_EVENT_DEVICE_REMOVAL
	EventMulticastJoin   EventType = C.RDMA_CM_EVENT_MULTICAST_JOIN
	EventMulticastError  EventType = C.RDMA_CM_EVENT_MULTICAST_ERROR
	EventAddrChange      EventType = C.RDMA_CM_EVENT_ADDR_CHANGE
	EventTimewaitExit    EventType = C.RDMA_CM_EVENT_TIMEWAIT_EXIT
	EventAddrInfo        EventType = 16 // ADDRINFO_RESOLVED
	EventAddrInfoError   EventType = 17 // ADDRINFO_ERROR
	EventUser            EventType = 18 // USER
)

const eventTypes = EventUser + 1

// rejectNames are the reasons of a REJ message (IBTA volume 1, table 109 "REJ message reason codes").
var rejectNames = names[int]{"reject reason", []named[int]{
	{1, "NO_QP"}, {2, "NO_EEC"}, {3, "NO_RESOURCES"}, {4, "TIMEOUT"}, {5, "UNSUPPORTED"},
	{6, "INVALID_COMM_ID"}, {7, "INVALID_COMM_INSTANCE"}, {8, "INVALID_SERVICE_ID"},
	{9, "INVALID_TRANSPORT_TYPE"}, {10, "STALE_CONN"}, {11, "RDC_NOT_EXIST"}, {12, "INVALID_GID"},
	{13, "INVALID_LID"}, {14, "INVALID_SL"}, {15, "INVALID_TRAFFIC_CLASS"},
	{16, "INVALID_HOP_LIMIT"}, {17, "INVALID_PACKET_RATE"}, {18, "INVALID_ALT_GID"},
	{19, "INVALID_ALT_LID"}, {20, "INVALID_ALT_SL"}, {21, "INVALID_ALT_TRAFFIC_CLASS"},
	{22, "INVALID_ALT_HOP_LIMIT"}, {23, "INVALID_ALT_PACKET_RATE"}, {24, "PORT_CM_REDIRECT"},
	{25, "PORT_REDIRECT"}, {26, "INVALID_MTU"}, {27, "INSUFFICIENT_RESP_RESOURCES"},
	{28, "CONSUMER_DEFINED"}, {29, "INVALID_RNR_RETRY"}, {30, "DUPLICATE_LOCAL_COMM_ID"},
	{31, "INVALID_CLASS_VERSION"}, {32, "INVALID_FLOW_LABEL"}, {33, "INVALID_ALT_FLOW_LABEL"},
	{35, "VENDOR_OPTION_NOT_SUPPORTED"},
}}

// sidrNames are the statuses of a SIDR REP message, which answers a datagram (UD) request.
var sidrNames = names[int]{"SIDR status", []named[int]{
	{1, "UNSUPPORTED"}, {2, "REJECT"}, {3, "NO_QP"}, {4, "REDIRECT"}, {5, "UNSUPPORTED_VERSION"},
}}

// Queue pair types (enum ibv_qp_type).
//
//enum:names "QP type" IBV_QPT_
const (
	QPTypeRC        QPType = C.IBV_QPT_RC
	QPTypeUC        QPType = C.IBV_QPT_UC
	QPTypeUD        QPType = C.IBV_QPT_UD
	QPTypeRawPacket QPType = C.IBV_QPT_RAW_PACKET
	QPTypeXRCSend   QPType = C.IBV_QPT_XRC_SEND
	QPTypeXRCRecv   QPType = C.IBV_QPT_XRC_RECV
	QPTypeDriver    QPType = C.IBV_QPT_DRIVER
)

// Queue pair states (enum ibv_qp_state).
//
//enum:names "QP state" IBV_QPS_
const (
	QPStateReset QPState = C.IBV_QPS_RESET
	QPStateInit  QPState = C.IBV_QPS_INIT
	QPStateRTR   QPState = C.IBV_QPS_RTR
	QPStateRTS   QPState = C.IBV_QPS_RTS
	QPStateSQD   QPState = C.IBV_QPS_SQD
	QPStateSQE   QPState = C.IBV_QPS_SQE
	QPStateErr   QPState = C.IBV_QPS_ERR
)

// Path migration states (enum ibv_mig_state).
//
//enum:names "path migration state" IBV_MIG_ string-only
const (
	MigMigrated MigState = C.IBV_MIG_MIGRATED
	MigRearm    MigState = C.IBV_MIG_REARM
	MigArmed    MigState = C.IBV_MIG_ARMED
)

// Queue pair attributes (enum ibv_qp_attr_mask).
//
//enum:names "QP attribute" IBV_QP_ flags
const (
	QPAttrState            QPAttrMask = C.IBV_QP_STATE
	QPAttrCurState         QPAttrMask = C.IBV_QP_CUR_STATE
	QPAttrEnSQDAsyncNotify QPAttrMask = C.IBV_QP_EN_SQD_ASYNC_NOTIFY
	QPAttrAccessFlags      QPAttrMask = C.IBV_QP_ACCESS_FLAGS
	QPAttrPkeyIndex        QPAttrMask = C.IBV_QP_PKEY_INDEX
	QPAttrPort             QPAttrMask = C.IBV_QP_PORT
	QPAttrQKey             QPAttrMask = C.IBV_QP_QKEY
	QPAttrAV               QPAttrMask = C.IBV_QP_AV
	QPAttrPathMTU          QPAttrMask = C.IBV_QP_PATH_MTU
	QPAttrTimeout          QPAttrMask = C.IBV_QP_TIMEOUT
	QPAttrRetryCnt         QPAttrMask = C.IBV_QP_RETRY_CNT
	QPAttrRNRRetry         QPAttrMask = C.IBV_QP_RNR_RETRY
	QPAttrRQPSN            QPAttrMask = C.IBV_QP_RQ_PSN
	QPAttrMaxQPRdAtomic    QPAttrMask = C.IBV_QP_MAX_QP_RD_ATOMIC
	QPAttrAltPath          QPAttrMask = C.IBV_QP_ALT_PATH
	QPAttrMinRNRTimer      QPAttrMask = C.IBV_QP_MIN_RNR_TIMER
	QPAttrSQPSN            QPAttrMask = C.IBV_QP_SQ_PSN
	QPAttrMaxDestRdAtomic  QPAttrMask = C.IBV_QP_MAX_DEST_RD_ATOMIC
	QPAttrPathMigState     QPAttrMask = C.IBV_QP_PATH_MIG_STATE
	QPAttrCap              QPAttrMask = C.IBV_QP_CAP
	QPAttrDestQPN          QPAttrMask = C.IBV_QP_DEST_QPN
	QPAttrRateLimit        QPAttrMask = C.IBV_QP_RATE_LIMIT
)

// Memory access rights (enum ibv_access_flags).
//
//enum:names "access flag" IBV_ACCESS_ flags
const (
	AccessLocalWrite      Access = C.IBV_ACCESS_LOCAL_WRITE
	AccessRemoteWrite     Access = C.IBV_ACCESS_REMOTE_WRITE
	AccessRemoteRead      Access = C.IBV_ACCESS_REMOTE_READ
	AccessRemoteAtomic    Access = C.IBV_ACCESS_REMOTE_ATOMIC
	AccessMWBind          Access = C.IBV_ACCESS_MW_BIND
	AccessZeroBased       Access = C.IBV_ACCESS_ZERO_BASED
	AccessOnDemand        Access = C.IBV_ACCESS_ON_DEMAND
	AccessHugeTLB         Access = C.IBV_ACCESS_HUGETLB
	AccessFlushGlobal     Access = 1 << 8 // FLUSH_GLOBAL
	AccessFlushPersistent Access = 1 << 9 // FLUSH_PERSISTENT
	AccessRelaxedOrdering Access = C.IBV_ACCESS_RELAXED_ORDERING
)

// Send operations (enum ibv_wr_opcode).
//
//enum:names "opcode" IBV_WR_
const (
	OpRDMAWrite         Opcode = C.IBV_WR_RDMA_WRITE
	OpRDMAWriteWithImm  Opcode = C.IBV_WR_RDMA_WRITE_WITH_IMM
	OpSend              Opcode = C.IBV_WR_SEND
	OpSendWithImm       Opcode = C.IBV_WR_SEND_WITH_IMM
	OpRDMARead          Opcode = C.IBV_WR_RDMA_READ
	OpAtomicCmpAndSwp   Opcode = C.IBV_WR_ATOMIC_CMP_AND_SWP
	OpAtomicFetchAndAdd Opcode = C.IBV_WR_ATOMIC_FETCH_AND_ADD
	OpLocalInv          Opcode = C.IBV_WR_LOCAL_INV
	OpBindMW            Opcode = C.IBV_WR_BIND_MW
	OpSendWithInv       Opcode = C.IBV_WR_SEND_WITH_INV
	OpTSO               Opcode = C.IBV_WR_TSO
	OpDriver1           Opcode = C.IBV_WR_DRIVER1
	OpFlush             Opcode = 14 // FLUSH
	OpAtomicWrite       Opcode = C.IBV_WR_ATOMIC_WRITE
)

// Send flags (enum ibv_send_flags).
//
//enum:names "send flag" IBV_SEND_ flags
const (
	SendFence     SendFlags = C.IBV_SEND_FENCE
	SendSignaled  SendFlags = C.IBV_SEND_SIGNALED
	SendSolicited SendFlags = C.IBV_SEND_SOLICITED
	SendInline    SendFlags = C.IBV_SEND_INLINE
	SendIPCsum    SendFlags = C.IBV_SEND_IP_CSUM
)

// CMMessage is a message of the connection manager, by its attribute id (IBTA 12.6).
type CMMessage uint32

// The messages of a reliable connection and of a datagram service, and the queries before either. A fault can name
// these as well: of an address (by its EtherType) and of a path (IBTA 15.2.5).
//
//enum:names "connection manager message"
const (
	MessageREQ  CMMessage = 0x10 // REQ
	MessageMRA  CMMessage = 0x11 // MRA
	MessageREJ  CMMessage = 0x12 // REJ
	MessageREP  CMMessage = 0x13 // REP
	MessageRTU  CMMessage = 0x14 // RTU
	MessageDREQ CMMessage = 0x15 // DREQ
	MessageDREP CMMessage = 0x16 // DREP

	MessageSIDRREQ    CMMessage = 0x17  // SIDR_REQ
	MessageSIDRREP    CMMessage = 0x18  // SIDR_REP
	MessagePathRecord CMMessage = 0x35  // PATH_RECORD
	MessageARP        CMMessage = 0x806 // ARP
)

// PacketOps is a set of operations of packets, a bit for each by the lower five of the BTH's opcode (IBTA 9.2.1).
type PacketOps uint32

var packetOpsNames = names[PacketOps]{"packet operation", []named[PacketOps]{
	{1 << 0x00, "SEND_FIRST"}, {1 << 0x01, "SEND_MIDDLE"}, {1 << 0x02, "SEND_LAST"}, {1 << 0x03, "SEND_LAST_IMMEDIATE"},
	{1 << 0x04, "SEND_ONLY"}, {1 << 0x05, "SEND_ONLY_IMMEDIATE"}, {1 << 0x06, "RDMA_WRITE_FIRST"},
	{1 << 0x07, "RDMA_WRITE_MIDDLE"},
	{1 << 0x08, "RDMA_WRITE_LAST"}, {1 << 0x09, "RDMA_WRITE_LAST_IMMEDIATE"}, {1 << 0x0a, "RDMA_WRITE_ONLY"},
	{1 << 0x0b, "RDMA_WRITE_ONLY_IMMEDIATE"}, {1 << 0x0c, "RDMA_READ_REQUEST"}, {1 << 0x0d, "RDMA_READ_RESPONSE_FIRST"},
	{1 << 0x0e, "RDMA_READ_RESPONSE_MIDDLE"}, {1 << 0x0f, "RDMA_READ_RESPONSE_LAST"},
	{1 << 0x10, "RDMA_READ_RESPONSE_ONLY"},
	{1 << 0x11, "ACKNOWLEDGE"}, {1 << 0x12, "ATOMIC_ACKNOWLEDGE"}, {1 << 0x13, "COMPARE_SWAP"},
	{1 << 0x14, "FETCH_ADD"},
	{1 << 0x16, "SEND_LAST_INVALIDATE"}, {1 << 0x17, "SEND_ONLY_INVALIDATE"}, {1 << 0x1c, "FLUSH"},
	{1 << 0x1d, "ATOMIC_WRITE"},
}}

// String returns the names of the operations with "|" between them.
func (o PacketOps) String() string { return packetOpsNames.flags(o) }

// ParsePacketOps is the inverse of String.  An unknown name gives a *NameError.
func ParsePacketOps(text string) (PacketOps, error) { return packetOpsNames.parseFlags(text) }

// FaultAction is what happens to a message that a fault concerns.
type FaultAction uint32

// What can happen; anything but a loss only to messages of the connection manager, and to packets of the link
// "packets".
const (
	FaultLose FaultAction = iota
	FaultDelay
	FaultDuplicate // the copy follows after the delay
	FaultReorder   // held until another message has gone the same way, or the delay (100 ms; packets: 20 us) has passed
	FaultCorrupt   // one bit is another; of packets only
)

// Faults of the device, with nothing else in Fault; each at most once at a time (EBUSY).
const (
	// FaultRemoveDevice removes the device. Its ids get DEVICE_REMOVAL and can only be destroyed (ENXIO). Its
	// contexts get DEVICE_FATAL and return EIO, and its queue pairs complete nothing any more. With Heal there is
	// a new Device of its name. A Device, like all that was created with it, belongs to the old one until its end.
	FaultRemoveDevice FaultAction = iota + 0x100
	// FaultChangeAddress gives the network interface another hardware address, as the failover of a bond does. Ids
	// that resolved or bound their address before get ADDR_CHANGE, which is only a hint.
	FaultChangeAddress
)

// PortState is the state of a port (enum ibv_port_state).
type PortState uint32

// LinkLayer is what a port's link is (IBV_LINK_LAYER_*).
type LinkLayer uint32

// States of a port.
const (
	PortNop         PortState = C.IBV_PORT_NOP
	PortDown        PortState = C.IBV_PORT_DOWN
	PortInit        PortState = C.IBV_PORT_INIT
	PortArmed       PortState = C.IBV_PORT_ARMED
	PortActive      PortState = C.IBV_PORT_ACTIVE
	PortActiveDefer PortState = C.IBV_PORT_ACTIVE_DEFER
)

// Link layers.
const (
	LinkLayerUnspecified LinkLayer = C.IBV_LINK_LAYER_UNSPECIFIED
	LinkLayerInfiniBand  LinkLayer = C.IBV_LINK_LAYER_INFINIBAND
	LinkLayerEthernet    LinkLayer = C.IBV_LINK_LAYER_ETHERNET
)

// What ports and GIDs are called in listings; ibstat(8) and the kernel's sysfs use the same words.
var (
	portStateNames = names[PortState]{"port state", []named[PortState]{
		{PortNop, "nop"}, {PortDown, "down"}, {PortInit, "init"}, {PortArmed, "armed"}, {PortActive, "active"},
		{PortActiveDefer, "active deferred"},
	}}
	linkLayerNames = names[LinkLayer]{"link layer", []named[LinkLayer]{
		{LinkLayerUnspecified, "unspecified"}, {LinkLayerInfiniBand, "InfiniBand"}, {LinkLayerEthernet, "Ethernet"},
	}}
	gidTypeNames = names[uint32]{"GID type", []named[uint32]{
		{C.IBV_GID_TYPE_IB, "IB"}, {C.IBV_GID_TYPE_ROCE_V1, "RoCE v1"},
		{C.IBV_GID_TYPE_ROCE_V2, "RoCE v2"},
	}}
)

func (s PortState) String() string { return portStateNames.name(s) }

func (l LinkLayer) String() string { return linkLayerNames.name(l) }

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
)

// Ways of being in a multicast group (enum rdma_cm_mc_join_flags).
//
//enum:names "way of joining" RDMA_MC_JOIN_FLAG_
const (
	JoinFullMember         JoinFlags = C.RDMA_MC_JOIN_FLAG_FULLMEMBER
	JoinSendOnlyFullMember JoinFlags = C.RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER
)

// Members of QPInitAttrEx that count (enum ibv_qp_init_attr_mask).
const (
	QPInitCreateFlags  QPInitMask = C.IBV_QP_INIT_ATTR_CREATE_FLAGS
	QPInitMaxTSOHeader QPInitMask = C.IBV_QP_INIT_ATTR_MAX_TSO_HEADER
	QPInitSendOpsFlags QPInitMask = C.IBV_QP_INIT_ATTR_SEND_OPS_FLAGS
)

// UDPQKey is the qkey of every datagram QP and group of rdma_cm (RDMA_UDP_QKEY).
const UDPQKey uint32 = C.RDMA_UDP_QKEY
