package rdmacore

// #include <infiniband/verbs.h>
import "C"

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
