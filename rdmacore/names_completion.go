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
