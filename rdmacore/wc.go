package rdmacore

import "structs"

// WCStatus is how a work request ended (enum ibv_wc_status).
type WCStatus uint32

// WCOpcode is what kind of work request ended (enum ibv_wc_opcode).
type WCOpcode uint32

// WCFlags say which optional fields of a completion are valid (enum ibv_wc_flags).
type WCFlags uint32

// WC is one work completion (struct ibv_wc).  When Status is not WCSuccess only WRID, Status, QPNum and
// VendorErr mean anything (ibv_poll_cq(3)); the others may hold what the slice held before.
type WC struct {
	_            structs.HostLayout
	WRID         uint64
	Status       WCStatus
	Opcode       WCOpcode
	VendorErr    uint32
	ByteLen      uint32
	ImmData      uint32 // network byte order, with WCWithImm; the invalidated rkey, with WCWithInv
	QPNum        uint32
	SrcQP        uint32
	WCFlags      WCFlags
	PkeyIndex    uint16
	SLID         uint16
	SL           uint8
	DLIDPathBits uint8
}
