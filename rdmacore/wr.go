package rdmacore

import "structs"

// Opcode says what a send work request does (enum ibv_wr_opcode).
type Opcode uint32

// SendFlags modify a send work request (enum ibv_send_flags).
type SendFlags uint32

// SendOps are operations of a send queue that has builders for them (enum ibv_qp_create_send_ops_flags,
// ibv_wr_post(3)).
type SendOps uint64

// Placement says for whom a FLUSH makes data visible (enum ibv_placement_type; IBTA annex A19).
type Placement uint8

// Selectivity says what a FLUSH is about (enum ibv_selectivity_level; IBTA annex A19).
type Selectivity uint8

// SendWR is one request for a send queue, ibv_send_wr in flat form: its scatter/gather entries are
// sges[FirstSGE : FirstSGE+NumSGE] of the slice posted with it.
//
// A FLUSH (ibv_wr_post(3), IBTA annex A19) has no data.  Of a range, it is of the remote memory that a WRITE with the same
// RemoteAddress, RKey and entries would have written: as many bytes as they are long, and nothing else of them is looked
// at.  Of a region, it is of all that the key covers.
type SendWR struct {
	_             structs.HostLayout // struct core_send_wr
	WRID          uint64             // comes back in the completion
	Opcode        Opcode
	Flags         SendFlags
	FirstSGE      uint32
	NumSGE        uint32
	ImmData       uint32      // network byte order, as on the wire; or the rkey to invalidate
	RKey          uint32      // RDMA and atomic operations, FLUSH
	RemoteAddress uint64      // RDMA and atomic operations, FLUSH of a range
	CompareAdd    uint64      // atomic operations
	Swap          uint64      // compare and swap
	AH            uint32      // datagrams: AH.Number of a handle of the QP's PD
	RemoteQPN     uint32      // datagrams
	RemoteQKey    uint32      // datagrams; with the highest bit set, the QP's own
	Placement     Placement   // FLUSH
	Selectivity   Selectivity // FLUSH
	_             uint16
}

// RecvWR is one request for a receive queue, ibv_recv_wr in flat form.
type RecvWR struct {
	_        structs.HostLayout // struct core_recv_wr
	WRID     uint64
	FirstSGE uint32
	NumSGE   uint32
}

// SGE is one local buffer of a work request (struct ibv_sge).
type SGE struct {
	_       structs.HostLayout // struct core_sge
	Address uint64             // absolute, or relative to the base given to PostSendAt and PostRecvAt, as of RegMRAt
	Length  uint32             // bytes
	LKey    uint32             // of the memory region that holds it
}
