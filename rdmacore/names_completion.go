package rdmacore

// #include <infiniband/verbs.h>
import "C"

// Names of completions, asynchronous events and ports; the rules of names.go.

// Work completion statuses (enum ibv_wc_status).
const (
	WCSuccess          WCStatus = C.IBV_WC_SUCCESS
	WCLocLenErr        WCStatus = C.IBV_WC_LOC_LEN_ERR
	WCLocQPOpErr       WCStatus = C.IBV_WC_LOC_QP_OP_ERR
	WCLocEECOpErr      WCStatus = C.IBV_WC_LOC_EEC_OP_ERR
	WCLocProtErr       WCStatus = C.IBV_WC_LOC_PROT_ERR
	WCWRFlushErr       WCStatus = C.IBV_WC_WR_FLUSH_ERR
	WCMWBindErr        WCStatus = C.IBV_WC_MW_BIND_ERR
	WCBadRespErr       WCStatus = C.IBV_WC_BAD_RESP_ERR
	WCLocAccessErr     WCStatus = C.IBV_WC_LOC_ACCESS_ERR
	WCRemInvReqErr     WCStatus = C.IBV_WC_REM_INV_REQ_ERR
	WCRemAccessErr     WCStatus = C.IBV_WC_REM_ACCESS_ERR
	WCRemOpErr         WCStatus = C.IBV_WC_REM_OP_ERR
	WCRetryExcErr      WCStatus = C.IBV_WC_RETRY_EXC_ERR
	WCRNRRetryExcErr   WCStatus = C.IBV_WC_RNR_RETRY_EXC_ERR
	WCLocRDDViolErr    WCStatus = C.IBV_WC_LOC_RDD_VIOL_ERR
	WCRemInvRDReqErr   WCStatus = C.IBV_WC_REM_INV_RD_REQ_ERR
	WCRemAbortErr      WCStatus = C.IBV_WC_REM_ABORT_ERR
	WCInvEECNErr       WCStatus = C.IBV_WC_INV_EECN_ERR
	WCInvEECStateErr   WCStatus = C.IBV_WC_INV_EEC_STATE_ERR
	WCFatalErr         WCStatus = C.IBV_WC_FATAL_ERR
	WCRespTimeoutErr   WCStatus = C.IBV_WC_RESP_TIMEOUT_ERR
	WCGeneralErr       WCStatus = C.IBV_WC_GENERAL_ERR
	WCTMErr            WCStatus = C.IBV_WC_TM_ERR
	WCTMRndvIncomplete WCStatus = C.IBV_WC_TM_RNDV_INCOMPLETE
)

var wcStatusNames = names[WCStatus]{"work completion status", []named[WCStatus]{
	{WCSuccess, "SUCCESS"}, {WCLocLenErr, "LOC_LEN_ERR"}, {WCLocQPOpErr, "LOC_QP_OP_ERR"},
	{WCLocEECOpErr, "LOC_EEC_OP_ERR"}, {WCLocProtErr, "LOC_PROT_ERR"},
	{WCWRFlushErr, "WR_FLUSH_ERR"}, {WCMWBindErr, "MW_BIND_ERR"}, {WCBadRespErr, "BAD_RESP_ERR"},
	{WCLocAccessErr, "LOC_ACCESS_ERR"}, {WCRemInvReqErr, "REM_INV_REQ_ERR"},
	{WCRemAccessErr, "REM_ACCESS_ERR"}, {WCRemOpErr, "REM_OP_ERR"},
	{WCRetryExcErr, "RETRY_EXC_ERR"}, {WCRNRRetryExcErr, "RNR_RETRY_EXC_ERR"},
	{WCLocRDDViolErr, "LOC_RDD_VIOL_ERR"}, {WCRemInvRDReqErr, "REM_INV_RD_REQ_ERR"},
	{WCRemAbortErr, "REM_ABORT_ERR"}, {WCInvEECNErr, "INV_EECN_ERR"},
	{WCInvEECStateErr, "INV_EEC_STATE_ERR"}, {WCFatalErr, "FATAL_ERR"},
	{WCRespTimeoutErr, "RESP_TIMEOUT_ERR"}, {WCGeneralErr, "GENERAL_ERR"}, {WCTMErr, "TM_ERR"},
	{WCTMRndvIncomplete, "TM_RNDV_INCOMPLETE"},
}}

func (s WCStatus) String() string { return wcStatusNames.name(s) }

// ParseWCStatus is the reverse of String.
func ParseWCStatus(name string) (WCStatus, error) { return wcStatusNames.parse(name) }

// Work completion opcodes (enum ibv_wc_opcode).
const (
	WCSend            WCOpcode = C.IBV_WC_SEND
	WCRDMAWrite       WCOpcode = C.IBV_WC_RDMA_WRITE
	WCRDMARead        WCOpcode = C.IBV_WC_RDMA_READ
	WCCompSwap        WCOpcode = C.IBV_WC_COMP_SWAP
	WCFetchAdd        WCOpcode = C.IBV_WC_FETCH_ADD
	WCBindMW          WCOpcode = C.IBV_WC_BIND_MW
	WCLocalInv        WCOpcode = C.IBV_WC_LOCAL_INV
	WCTSO             WCOpcode = C.IBV_WC_TSO
	WCFlush           WCOpcode = 8
	WCAtomicWrite     WCOpcode = C.IBV_WC_ATOMIC_WRITE
	WCRecv            WCOpcode = C.IBV_WC_RECV
	WCRecvRDMAWithImm WCOpcode = C.IBV_WC_RECV_RDMA_WITH_IMM
)

var wcOpcodeNames = names[WCOpcode]{"completion opcode", []named[WCOpcode]{
	{WCSend, "SEND"}, {WCRDMAWrite, "RDMA_WRITE"}, {WCRDMARead, "RDMA_READ"},
	{WCCompSwap, "COMP_SWAP"}, {WCFetchAdd, "FETCH_ADD"}, {WCBindMW, "BIND_MW"},
	{WCLocalInv, "LOCAL_INV"}, {WCTSO, "TSO"}, {WCFlush, "FLUSH"},
	{WCAtomicWrite, "ATOMIC_WRITE"}, {WCRecv, "RECV"}, {WCRecvRDMAWithImm, "RECV_RDMA_WITH_IMM"},
}}

func (o WCOpcode) String() string { return wcOpcodeNames.name(o) }

// ParseWCOpcode is the reverse of String.
func ParseWCOpcode(name string) (WCOpcode, error) { return wcOpcodeNames.parse(name) }

// Completion flags (enum ibv_wc_flags).
const (
	WCGRH      WCFlags = C.IBV_WC_GRH
	WCWithImm  WCFlags = C.IBV_WC_WITH_IMM
	WCIPCsumOK WCFlags = C.IBV_WC_IP_CSUM_OK
	WCWithInv  WCFlags = C.IBV_WC_WITH_INV
)

var wcFlagsNames = names[WCFlags]{"completion flag", []named[WCFlags]{
	{WCGRH, "GRH"}, {WCWithImm, "WITH_IMM"}, {WCIPCsumOK, "IP_CSUM_OK"}, {WCWithInv, "WITH_INV"},
}}

func (f WCFlags) String() string { return wcFlagsNames.flags(f) }

// ParseWCFlags reads one name, or several joined by "|".
func ParseWCFlags(text string) (WCFlags, error) { return wcFlagsNames.parseFlags(text) }

// Asynchronous events (enum ibv_event_type).
const (
	AsyncCQErr            AsyncEventType = C.IBV_EVENT_CQ_ERR
	AsyncQPFatal          AsyncEventType = C.IBV_EVENT_QP_FATAL
	AsyncQPReqErr         AsyncEventType = C.IBV_EVENT_QP_REQ_ERR
	AsyncQPAccessErr      AsyncEventType = C.IBV_EVENT_QP_ACCESS_ERR
	AsyncCommEst          AsyncEventType = C.IBV_EVENT_COMM_EST
	AsyncSQDrained        AsyncEventType = C.IBV_EVENT_SQ_DRAINED
	AsyncPathMig          AsyncEventType = C.IBV_EVENT_PATH_MIG
	AsyncPathMigErr       AsyncEventType = C.IBV_EVENT_PATH_MIG_ERR
	AsyncDeviceFatal      AsyncEventType = C.IBV_EVENT_DEVICE_FATAL
	AsyncPortActive       AsyncEventType = C.IBV_EVENT_PORT_ACTIVE
	AsyncPortErr          AsyncEventType = C.IBV_EVENT_PORT_ERR
	AsyncLIDChange        AsyncEventType = C.IBV_EVENT_LID_CHANGE
	AsyncPkeyChange       AsyncEventType = C.IBV_EVENT_PKEY_CHANGE
	AsyncSMChange         AsyncEventType = C.IBV_EVENT_SM_CHANGE
	AsyncSRQErr           AsyncEventType = C.IBV_EVENT_SRQ_ERR
	AsyncSRQLimitReached  AsyncEventType = C.IBV_EVENT_SRQ_LIMIT_REACHED
	AsyncQPLastWQEReached AsyncEventType = C.IBV_EVENT_QP_LAST_WQE_REACHED
	AsyncClientReregister AsyncEventType = C.IBV_EVENT_CLIENT_REREGISTER
	AsyncGIDChange        AsyncEventType = C.IBV_EVENT_GID_CHANGE
	AsyncWQFatal          AsyncEventType = C.IBV_EVENT_WQ_FATAL
	AsyncDeviceSpeed      AsyncEventType = 20
)

var asyncNames = names[AsyncEventType]{"asynchronous event", []named[AsyncEventType]{
	{AsyncCQErr, "CQ_ERR"}, {AsyncQPFatal, "QP_FATAL"}, {AsyncQPReqErr, "QP_REQ_ERR"},
	{AsyncQPAccessErr, "QP_ACCESS_ERR"}, {AsyncCommEst, "COMM_EST"},
	{AsyncSQDrained, "SQ_DRAINED"}, {AsyncPathMig, "PATH_MIG"},
	{AsyncPathMigErr, "PATH_MIG_ERR"}, {AsyncDeviceFatal, "DEVICE_FATAL"},
	{AsyncPortActive, "PORT_ACTIVE"}, {AsyncPortErr, "PORT_ERR"},
	{AsyncLIDChange, "LID_CHANGE"}, {AsyncPkeyChange, "PKEY_CHANGE"},
	{AsyncSMChange, "SM_CHANGE"}, {AsyncSRQErr, "SRQ_ERR"},
	{AsyncSRQLimitReached, "SRQ_LIMIT_REACHED"}, {AsyncQPLastWQEReached, "QP_LAST_WQE_REACHED"},
	{AsyncClientReregister, "CLIENT_REREGISTER"}, {AsyncGIDChange, "GID_CHANGE"},
	{AsyncWQFatal, "WQ_FATAL"}, {AsyncDeviceSpeed, "DEVICE_SPEED_CHANGE"},
}}

func (t AsyncEventType) String() string { return asyncNames.name(t) }

// ParseAsyncEventType is the reverse of String.
func ParseAsyncEventType(name string) (AsyncEventType, error) { return asyncNames.parse(name) }

// Fields of completions (enum ibv_create_cq_wc_flags); status, opcode, flags and vendor error are always there.
const (
	WCFieldByteLen      WCFields = C.IBV_WC_EX_WITH_BYTE_LEN
	WCFieldImm          WCFields = C.IBV_WC_EX_WITH_IMM // and the invalidated key
	WCFieldQPNum        WCFields = C.IBV_WC_EX_WITH_QP_NUM
	WCFieldSrcQP        WCFields = C.IBV_WC_EX_WITH_SRC_QP
	WCFieldSLID         WCFields = C.IBV_WC_EX_WITH_SLID
	WCFieldSL           WCFields = C.IBV_WC_EX_WITH_SL
	WCFieldDLIDPathBits WCFields = C.IBV_WC_EX_WITH_DLID_PATH_BITS
	WCFieldTimestamp    WCFields = C.IBV_WC_EX_WITH_COMPLETION_TIMESTAMP
	WCFieldCVLAN        WCFields = C.IBV_WC_EX_WITH_CVLAN
	WCFieldFlowTag      WCFields = C.IBV_WC_EX_WITH_FLOW_TAG
	WCFieldTMInfo       WCFields = C.IBV_WC_EX_WITH_TM_INFO
	WCFieldWallclock    WCFields = C.IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK

	// WCFieldsStandard are those of WC.
	WCFieldsStandard WCFields = C.IBV_WC_STANDARD_FLAGS
)

var wcFieldsNames = names[WCFields]{"completion field", []named[WCFields]{
	{WCFieldByteLen, "BYTE_LEN"}, {WCFieldImm, "IMM"}, {WCFieldQPNum, "QP_NUM"}, {WCFieldSrcQP, "SRC_QP"},
	{WCFieldSLID, "SLID"}, {WCFieldSL, "SL"}, {WCFieldDLIDPathBits, "DLID_PATH_BITS"},
	{WCFieldTimestamp, "COMPLETION_TIMESTAMP"}, {WCFieldCVLAN, "CVLAN"}, {WCFieldFlowTag, "FLOW_TAG"},
	{WCFieldTMInfo, "TM_INFO"}, {WCFieldWallclock, "COMPLETION_TIMESTAMP_WALLCLOCK"},
}}

func (f WCFields) String() string { return wcFieldsNames.flags(f) }

// ParseWCFields reads one name, or several joined by "|".
func ParseWCFields(text string) (WCFields, error) { return wcFieldsNames.parseFlags(text) }

// What Rereg changes (enum ibv_rereg_mr_flags).
const (
	ReregTranslation ReregFlags = C.IBV_REREG_MR_CHANGE_TRANSLATION // where the region is, and how long
	ReregPD          ReregFlags = C.IBV_REREG_MR_CHANGE_PD
	ReregAccess      ReregFlags = C.IBV_REREG_MR_CHANGE_ACCESS
)

var reregFlagsNames = names[ReregFlags]{"change of a memory region", []named[ReregFlags]{
	{ReregTranslation, "TRANSLATION"}, {ReregPD, "PD"}, {ReregAccess, "ACCESS"},
}}

func (f ReregFlags) String() string { return reregFlagsNames.flags(f) }

// ParseReregFlags reads one name, or several joined by "|".
func ParseReregFlags(text string) (ReregFlags, error) { return reregFlagsNames.parseFlags(text) }

// Names of what only the builders of a queue pair know; the rules of names.go.

// Send operations (enum ibv_qp_create_send_ops_flags).
const (
	SendOpRDMAWrite         SendOps = C.IBV_QP_EX_WITH_RDMA_WRITE
	SendOpRDMAWriteWithImm  SendOps = C.IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM
	SendOpSend              SendOps = C.IBV_QP_EX_WITH_SEND
	SendOpSendWithImm       SendOps = C.IBV_QP_EX_WITH_SEND_WITH_IMM
	SendOpRDMARead          SendOps = C.IBV_QP_EX_WITH_RDMA_READ
	SendOpAtomicCmpAndSwp   SendOps = C.IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP
	SendOpAtomicFetchAndAdd SendOps = C.IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD
	SendOpLocalInv          SendOps = C.IBV_QP_EX_WITH_LOCAL_INV
	SendOpBindMW            SendOps = C.IBV_QP_EX_WITH_BIND_MW
	SendOpSendWithInv       SendOps = C.IBV_QP_EX_WITH_SEND_WITH_INV
	SendOpTSO               SendOps = C.IBV_QP_EX_WITH_TSO
	SendOpFlush             SendOps = 1 << 11
	SendOpAtomicWrite       SendOps = C.IBV_QP_EX_WITH_ATOMIC_WRITE
)

var sendOpsNames = names[SendOps]{"send operation", []named[SendOps]{
	{SendOpRDMAWrite, "RDMA_WRITE"}, {SendOpRDMAWriteWithImm, "RDMA_WRITE_WITH_IMM"}, {SendOpSend, "SEND"},
	{SendOpSendWithImm, "SEND_WITH_IMM"}, {SendOpRDMARead, "RDMA_READ"},
	{SendOpAtomicCmpAndSwp, "ATOMIC_CMP_AND_SWP"}, {SendOpAtomicFetchAndAdd, "ATOMIC_FETCH_AND_ADD"},
	{SendOpLocalInv, "LOCAL_INV"}, {SendOpBindMW, "BIND_MW"}, {SendOpSendWithInv, "SEND_WITH_INV"},
	{SendOpTSO, "TSO"}, {SendOpFlush, "FLUSH"}, {SendOpAtomicWrite, "ATOMIC_WRITE"},
}}

func (o SendOps) String() string { return sendOpsNames.flags(o) }

// ParseSendOps reads one name, or several joined by "|".
func ParseSendOps(text string) (SendOps, error) { return sendOpsNames.parseFlags(text) }

// Placements of a FLUSH (enum ibv_placement_type, newer than version 44 of rdma-core).
const (
	FlushGlobal     Placement = 1 << 0 // all who look see the data
	FlushPersistent Placement = 1 << 1 // it outlives the power
)

var placementNames = names[Placement]{"placement", []named[Placement]{
	{FlushGlobal, "GLOBAL"}, {FlushPersistent, "PERSISTENT"},
}}

func (p Placement) String() string { return placementNames.flags(p) }

// ParsePlacement reads one name, or several joined by "|".
func ParsePlacement(text string) (Placement, error) { return placementNames.parseFlags(text) }

// What a FLUSH is about (enum ibv_selectivity_level, likewise).
const (
	FlushRange Selectivity = 0 // a range of memory
	FlushMR    Selectivity = 1 // the whole memory of the key
)

var selectivityNames = names[Selectivity]{"selectivity level", []named[Selectivity]{
	{FlushRange, "RANGE"}, {FlushMR, "MR"},
}}

func (s Selectivity) String() string { return selectivityNames.name(s) }

// ParseSelectivity is the reverse of String.
func ParseSelectivity(name string) (Selectivity, error) { return selectivityNames.parse(name) }
