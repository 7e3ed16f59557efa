package rdmacore

// #include "core/core.h"
import "C"

import "unsafe"

// The Go twins of C structs cross the language border as they are.  Where a size or an offset differs,
// the constant below is a negative number of an unsigned type, which does not compile.

const (
	_ = -(unsafe.Sizeof(SendWR{}) ^ C.sizeof_struct_core_send_wr)
	_ = -(unsafe.Offsetof(SendWR{}.Opcode) ^ unsafe.Offsetof(C.struct_core_send_wr{}.opcode))
	_ = -(unsafe.Offsetof(SendWR{}.Flags) ^ unsafe.Offsetof(C.struct_core_send_wr{}.flags))
	_ = -(unsafe.Offsetof(SendWR{}.FirstSGE) ^ unsafe.Offsetof(C.struct_core_send_wr{}.first_sge))
	_ = -(unsafe.Offsetof(SendWR{}.NumSGE) ^ unsafe.Offsetof(C.struct_core_send_wr{}.num_sge))
	_ = -(unsafe.Offsetof(SendWR{}.ImmData) ^ unsafe.Offsetof(C.struct_core_send_wr{}.imm_data))
	_ = -(unsafe.Offsetof(SendWR{}.RKey) ^ unsafe.Offsetof(C.struct_core_send_wr{}.rkey))
	_ = -(unsafe.Offsetof(SendWR{}.RemoteAddress) ^ unsafe.Offsetof(C.struct_core_send_wr{}.remote_address))
	_ = -(unsafe.Offsetof(SendWR{}.CompareAdd) ^ unsafe.Offsetof(C.struct_core_send_wr{}.compare_add))
	_ = -(unsafe.Offsetof(SendWR{}.Swap) ^ unsafe.Offsetof(C.struct_core_send_wr{}.swap))
	_ = -(unsafe.Offsetof(SendWR{}.AH) ^ unsafe.Offsetof(C.struct_core_send_wr{}.ah))
	_ = -(unsafe.Offsetof(SendWR{}.RemoteQPN) ^ unsafe.Offsetof(C.struct_core_send_wr{}.remote_qpn))
	_ = -(unsafe.Offsetof(SendWR{}.RemoteQKey) ^ unsafe.Offsetof(C.struct_core_send_wr{}.remote_qkey))
	_ = -(unsafe.Offsetof(SendWR{}.Placement) ^ unsafe.Offsetof(C.struct_core_send_wr{}.placement))
	_ = -(unsafe.Offsetof(SendWR{}.Selectivity) ^ unsafe.Offsetof(C.struct_core_send_wr{}.selectivity))

	_ = -(unsafe.Sizeof(RecvWR{}) ^ C.sizeof_struct_core_recv_wr)
	_ = -(unsafe.Offsetof(RecvWR{}.FirstSGE) ^ unsafe.Offsetof(C.struct_core_recv_wr{}.first_sge))
	_ = -(unsafe.Offsetof(RecvWR{}.NumSGE) ^ unsafe.Offsetof(C.struct_core_recv_wr{}.num_sge))

	_ = -(unsafe.Sizeof(SGE{}) ^ C.sizeof_struct_core_sge)
	_ = -(unsafe.Offsetof(SGE{}.Length) ^ unsafe.Offsetof(C.struct_core_sge{}.length))
	_ = -(unsafe.Offsetof(SGE{}.LKey) ^ unsafe.Offsetof(C.struct_core_sge{}.lkey))

	_ = -(unsafe.Sizeof(WC{}) ^ C.sizeof_struct_ibv_wc)
	_ = -(unsafe.Offsetof(WC{}.Status) ^ unsafe.Offsetof(C.struct_ibv_wc{}.status))
	_ = -(unsafe.Offsetof(WC{}.Opcode) ^ unsafe.Offsetof(C.struct_ibv_wc{}.opcode))
	_ = -(unsafe.Offsetof(WC{}.VendorErr) ^ unsafe.Offsetof(C.struct_ibv_wc{}.vendor_err))
	_ = -(unsafe.Offsetof(WC{}.ByteLen) ^ unsafe.Offsetof(C.struct_ibv_wc{}.byte_len))
	_ = -(unsafe.Offsetof(WC{}.QPNum) ^ unsafe.Offsetof(C.struct_ibv_wc{}.qp_num))
	_ = -(unsafe.Offsetof(WC{}.SrcQP) ^ unsafe.Offsetof(C.struct_ibv_wc{}.src_qp))
	_ = -(unsafe.Offsetof(WC{}.WCFlags) ^ unsafe.Offsetof(C.struct_ibv_wc{}.wc_flags))
	_ = -(unsafe.Offsetof(WC{}.PkeyIndex) ^ unsafe.Offsetof(C.struct_ibv_wc{}.pkey_index))
	_ = -(unsafe.Offsetof(WC{}.SLID) ^ unsafe.Offsetof(C.struct_ibv_wc{}.slid))
	_ = -(unsafe.Offsetof(WC{}.SL) ^ unsafe.Offsetof(C.struct_ibv_wc{}.sl))
	_ = -(unsafe.Offsetof(WC{}.DLIDPathBits) ^ unsafe.Offsetof(C.struct_ibv_wc{}.dlid_path_bits))

	_ = -(unsafe.Sizeof(Timestamp{}) ^ C.sizeof_struct_core_wc_time)
	_ = -(unsafe.Offsetof(Timestamp{}.Wallclock) ^ unsafe.Offsetof(C.struct_core_wc_time{}.wallclock))
)
