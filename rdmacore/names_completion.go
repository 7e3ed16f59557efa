package rdmacore

// #include <infiniband/verbs.h>
import "C"

// Names of completions, asynchronous events and ports; the rules of names.go.

// Work completion statuses (enum ibv_wc_status).
//
//enum:names "work completion status" IBV_WC_
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

// Work completion opcodes (enum ibv_wc_opcode).
//
//enum:names "completion opcode" IBV_WC_
const (
	WCSend            WCOpcode = C.IBV_WC_SEND
	WCRDMAWrite       WCOpcode = C.IBV_WC_RDMA_WRITE
	WCRDMARead        WCOpcode = C.IBV_WC_RDMA_READ
	WCCompSwap        WCOpcode = C.IBV_WC_COMP_SWAP
	WCFetchAdd        WCOpcode = C.IBV_WC_FETCH_ADD
	WCBindMW          WCOpcode = C.IBV_WC_BIND_MW
	WCLocalInv        WCOpcode = C.IBV_WC_LOCAL_INV
	WCTSO             WCOpcode = C.IBV_WC_TSO
	WCFlush           WCOpcode = 8 // FLUSH
	WCAtomicWrite     WCOpcode = C.IBV_WC_ATOMIC_WRITE
	WCRecv            WCOpcode = C.IBV_WC_RECV
	WCRecvRDMAWithImm WCOpcode = C.IBV_WC_RECV_RDMA_WITH_IMM
)

// Completion flags (enum ibv_wc_flags).
//
//enum:names "completion flag" IBV_WC_ flags
const (
	WCGRH      WCFlags = C.IBV_WC_GRH
	WCWithImm  WCFlags = C.IBV_WC_WITH_IMM
	WCIPCsumOK WCFlags = C.IBV_WC_IP_CSUM_OK
	WCWithInv  WCFlags = C.IBV_WC_WITH_INV
)

// Asynchronous events (enum ibv_event_type).
//
//enum:names "asynchronous event" IBV_EVENT_
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
	AsyncDeviceSpeed      AsyncEventType = 20 // DEVICE_SPEED_CHANGE
)

// Fields of completions (enum ibv_create_cq_wc_flags); status, opcode, flags and vendor error are always there.
//
//enum:names "completion field" IBV_WC_EX_WITH_ flags
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
)

// WCFieldsStandard are those of WC.
const WCFieldsStandard WCFields = C.IBV_WC_STANDARD_FLAGS

// What Rereg changes (enum ibv_rereg_mr_flags).
//
//enum:names "change of a memory region" IBV_REREG_MR_CHANGE_ flags
const (
	ReregTranslation ReregFlags = C.IBV_REREG_MR_CHANGE_TRANSLATION // where the region is, and how long
	ReregPD          ReregFlags = C.IBV_REREG_MR_CHANGE_PD
	ReregAccess      ReregFlags = C.IBV_REREG_MR_CHANGE_ACCESS
)

// Names of flags that only the builders of a queue pair take; the rules of names.go.

// Send operations (enum ibv_qp_create_send_ops_flags).
//
//enum:names "send operation" IBV_QP_EX_WITH_ flags
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
	SendOpFlush             SendOps = 1 << 11 // FLUSH
	SendOpAtomicWrite       SendOps = C.IBV_QP_EX_WITH_ATOMIC_WRITE
)

// Placements of a FLUSH (enum ibv_placement_type, newer than version 44 of rdma-core).
//
//enum:names "placement" flags
const (
	// FlushGlobal makes the data visible to every reader.
	FlushGlobal Placement = 1 << 0 // GLOBAL
	// FlushPersistent makes the data survive a loss of power.
	FlushPersistent Placement = 1 << 1 // PERSISTENT
)

// The memory of a FLUSH (enum ibv_selectivity_level, likewise).
//
//enum:names "selectivity level"
const (
	// FlushRange flushes a range of memory.
	FlushRange Selectivity = 0 // RANGE
	// FlushMR flushes the whole memory region of the key.
	FlushMR Selectivity = 1 // MR
)
