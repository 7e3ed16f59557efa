package hostfuncs

import (
	"structs"
	"syscall"

	"rdmarun/rdmacore"
)

// The structs of the data path are those of the core, which reads and writes them in guest memory as
// they lie. The types here only describe them; the table's test compares every offset.

// SendWR describes rdmacore.SendWR.
type SendWR struct {
	_             structs.HostLayout
	WRID          uint64 `abi:"wr_id" doc:"comes back in the completion"`
	Opcode        uint32 `abi:"opcode" enum:"wr_opcode" doc:""`
	Flags         uint32 `abi:"send_flags" enum:"send_flags" doc:""`
	FirstSGE      uint32 `abi:"first_sge" doc:"index of its first buffer in the array of SGEs posted with it"`
	NumSGE        uint32 `abi:"num_sge" doc:"number of its buffers"`
	ImmData       uint32 `abi:"imm_data" doc:"network byte order, for the WITH_IMM opcodes; or the rkey to invalidate"`
	RKey          uint32 `abi:"rkey" doc:"of the peer's memory region: RDMA, atomics, FLUSH"`
	RemoteAddress uint64 `abi:"remote_addr" doc:"in the peer's memory region: RDMA, atomics, FLUSH of a range"`
	CompareAdd    uint64 `abi:"compare_add" doc:"atomics: what to compare with, or to add"`
	Swap          uint64 `abi:"swap" doc:"compare and swap: the new value"`
	AH            uint32 `abi:"ah" doc:"datagrams: the number of an address handle of the QP's PD"`
	RemoteQPN     uint32 `abi:"remote_qpn" doc:"datagrams: to which QP"`
	RemoteQKey    uint32 `abi:"remote_qkey" doc:"datagrams: the peer's queue key; with the highest bit set, the QP's own"`
	// Since 1.4.
	Placement   uint8  `abi:"placement" enum:"placement_type" doc:"FLUSH: for whom; a FLUSH of a range is as long as its buffers, of which nothing else counts"`
	Selectivity uint8  `abi:"selectivity" enum:"selectivity_level" doc:"FLUSH: of what"`
	Reserved    uint16 `abi:"reserved" doc:""`
}

// RecvWR describes rdmacore.RecvWR.
type RecvWR struct {
	_        structs.HostLayout
	WRID     uint64 `abi:"wr_id" doc:"comes back in the completion"`
	FirstSGE uint32 `abi:"first_sge" doc:"index of its first buffer in the array of SGEs posted with it"`
	NumSGE   uint32 `abi:"num_sge" doc:"number of its buffers"`
}

// SGE describes rdmacore.SGE.
type SGE struct {
	_       structs.HostLayout
	Address uint64 `abi:"addr" doc:"the buffer, as a pointer of the guest's"`
	Length  uint32 `abi:"length" doc:"in bytes"`
	LKey    uint32 `abi:"lkey" doc:"of the memory region it lies in; not used with SEND_INLINE"`
}

// WC describes rdmacore.WC.
type WC struct {
	_            structs.HostLayout
	WRID         uint64 `abi:"wr_id" doc:"that of the work request"`
	Status       uint32 `abi:"status" enum:"wc_status" doc:"unless SUCCESS only wr_id, status, qp_num and vendor_err mean anything"`
	Opcode       uint32 `abi:"opcode" enum:"wc_opcode" doc:""`
	VendorErr    uint32 `abi:"vendor_err" doc:"the provider's own code"`
	ByteLen      uint32 `abi:"byte_len" doc:"bytes received, or transferred by a READ"`
	ImmData      uint32 `abi:"imm_data" doc:"network byte order, with WC_WITH_IMM; the invalidated rkey, with WC_WITH_INV"`
	QPNum        uint32 `abi:"qp_num" doc:"of this side's QP"`
	SrcQP        uint32 `abi:"src_qp" doc:"UD: the sender's QP"`
	WCFlags      uint32 `abi:"wc_flags" enum:"wc_flags" doc:""`
	PkeyIndex    uint16 `abi:"pkey_index" doc:""`
	SLID         uint16 `abi:"slid" doc:"UD: the sender's LID"`
	SL           uint8  `abi:"sl" doc:"UD: service level"`
	DLIDPathBits uint8  `abi:"dlid_path_bits" doc:"UD: of this side's LID"`
	Reserved     uint16 `abi:"reserved" doc:""`
}

// requests are the parameters of the functions that post.
func requests(of string) []Param {
	return []Param{{"qp", HandleOf, "qp", ""},
		{"wrs", In, of, "an array"}, {"count", U32, "", "elements of wrs"},
		{"sges", In, "sge", "an array"}, {"num_sges", U32, "", "elements of sges"},
		{"posted", Out, "u64", "on failure the number of requests accepted before the one that was refused; may be 0"}}
}

// spinning are requests and the queue to poll after them.
func spinning(of string) []Param {
	return append(requests(of), Param{"cq", HandleOf, "cq", "which to poll then"}, Param{
		"wc", Out, "wc", "an array; filled from its start",
	},
		Param{"max", U32, "", "elements of wc"},
		Param{"attempts", U32, "", "some 50 ns each; more than 65536 are taken as 65536"})
}

func workFunctions() []Function {
	return []Function{
		{
			Name: "post_send", Since: v1, Capability: CapabilityWork,
			Doc: "Posts send requests (ibv_post_send(3)). The buffers belong to the provider until the " +
				"request has completed. To a QP with send operations (create_qp_ex) it posts by their builders " +
				"(ibv_wr_post(3)), since 1.4: FLUSH is possible, and all requests are posted or none.",
			Params: requests("send_wr"),
			Result: "the number posted, which is count",
			Errors: "ENOMEM: the queue is full. EINVAL: the QP's state or an opcode does not allow it, or " +
				"an SGE index is out of range. EFAULT: an SGE lies outside the guest's memory. EOPNOTSUPP: the " +
				"operation is not among the send operations of the QP; without any there is no FLUSH.",
			binding: bind6((*Instance).postSend),
		},
		{
			Name: "post_recv", Since: v1, Capability: CapabilityWork,
			Doc:     "Posts receives (ibv_post_recv(3)), otherwise as post_send.",
			Params:  requests("recv_wr"),
			Result:  "the number posted, which is count",
			Errors:  "As post_send.",
			binding: bind6((*Instance).postRecv),
		},
		{
			Name: "post_send_spin", Since: v1_5, Capability: CapabilityWork,
			Doc: "Does post_send and then spin_cq in one call, for the lowest latency: a message and the wait for " +
				"its answer. The CQ " +
				"may be any of the guest's.",
			Params:  spinning("send_wr"),
			Result:  "the number of completions, 0 if there were none; all requests are posted then",
			Errors:  "As post_send, with its result in posted; nothing is polled then.",
			binding: bind10((*Instance).postSendSpin),
		},
		{
			Name: "post_recv_spin", Since: v1_5, Capability: CapabilityWork,
			Doc:     "Does post_recv and then spin_cq in one call, as post_send_spin.",
			Params:  spinning("recv_wr"),
			Result:  "the number of completions, 0 if there were none; all receives are posted then",
			Errors:  "As post_send_spin.",
			binding: bind10((*Instance).postRecvSpin),
		},
	}
}

func (i *Instance) postSend(handle Handle, wrs Pointer, count uint32, sges Pointer, numSGEs uint32, out Pointer) int32 {
	qp, ok := i.qps.get(handle)
	if !ok {
		return i.badHandle(kindQP)
	}
	var whole func([]rdmacore.SendWR, []rdmacore.SGE) bool
	if qp.InitAttr().SendOps != 0 {
		whole = fitsOneCall
	}
	return post(i, qp, wrs, count, sges, numSGEs, out, whole, sendAt)
}

func (i *Instance) postRecv(handle Handle, wrs Pointer, count uint32, sges Pointer, numSGEs uint32, out Pointer) int32 {
	qp, ok := i.qps.get(handle)
	if !ok {
		return i.badHandle(kindQP)
	}
	return post(i, qp, wrs, count, sges, numSGEs, out, nil, recvAt)
}

// postAt posts requests of the guest's memory to a queue.
type postAt[Q, WR any] func(i *Instance, queue Q, wrs []WR, sges []rdmacore.SGE) (int, error)

func sendAt(i *Instance, qp *rdmacore.QP, wrs []rdmacore.SendWR, sges []rdmacore.SGE) (int, error) {
	n, _, err := i.work.SendSpin(qp, i.base, uint64(len(i.memory)), wrs, sges, nil, nil, 0)
	return n, err
}

func recvAt(i *Instance, qp *rdmacore.QP, wrs []rdmacore.RecvWR, sges []rdmacore.SGE) (int, error) {
	n, _, err := i.work.RecvSpin(qp, i.base, uint64(len(i.memory)), wrs, sges, nil, nil, 0)
	return n, err
}

// posting is what a call posts, where it lies in the guest's memory.
type posting[WR any] struct {
	wrs    []WR
	sges   []rdmacore.SGE
	posted []uint64 // where the guest gets the number; nil: nowhere
}

func postingOf[WR any](
	i *Instance, wrsAt Pointer, count uint32, sgesAt Pointer, numSGEs uint32, out Pointer,
) (p posting[WR], failed int32) {
	var wrong fault
	if p.wrs, wrong = view[WR](i, wrsAt, count); wrong != 0 {
		return p, i.badPointer("wrs", wrong)
	}
	if p.sges, wrong = view[rdmacore.SGE](i, sgesAt, numSGEs); wrong != 0 {
		return p, i.badPointer("sges", wrong)
	}
	if out != 0 {
		if p.posted, wrong = view[uint64](i, out, 1); wrong != 0 {
			return p, i.badPointer("posted", wrong)
		}
	}
	if count > maxRequests {
		return p, i.refuse(syscall.EINVAL, "count is more than any queue holds")
	}
	return p, 0
}

// store writes the number that was posted.
func (p *posting[WR]) store(n int) {
	if p.posted != nil {
		p.posted[0] = uint64(n)
	}
}

// post posts in batches, or with whole, which reports whether that may be, all at once.
func post[Q, WR any](i *Instance, queue Q, wrsAt Pointer, count uint32, sgesAt Pointer, numSGEs uint32,
	out Pointer, whole func([]WR, []rdmacore.SGE) bool, post postAt[Q, WR]) int32 {
	p, failed := postingOf[WR](i, wrsAt, count, sgesAt, numSGEs, out)
	if failed != 0 {
		return failed
	}
	batch := batchOf(p.sges)
	if whole != nil && count > batch {
		if !whole(p.wrs, p.sges) {
			return i.refuse(
				syscall.EMSGSIZE,
				"the requests of one call to a QP with send operations, which are posted all or none, have 4GiB at "+
					"most",
			)
		}
		batch = count
	}
	n := 0
	var err error
	for err == nil && n < len(p.wrs) {
		if n > 0 {
			i.exitIfOver()
		}
		accepted := 0
		accepted, err = post(i, queue, p.wrs[n:min(len(p.wrs), n+int(batch))], p.sges)
		n += accepted
	}
	p.store(n)
	if err != nil {
		return i.fail(err)
	}
	return int32(n)
}

func (i *Instance) postSendSpin(handle Handle, wrs Pointer, count uint32, sges Pointer, numSGEs uint32, out Pointer,
	cq Handle, wc Pointer, max, attempts uint32) int32 {
	return postSpin(
		i, handle, wrs, count, sges, numSGEs, out, cq, wc, max, attempts, (*rdmacore.Work).SendSpin,
		(*Instance).postSend,
	)
}

func (i *Instance) postRecvSpin(handle Handle, wrs Pointer, count uint32, sges Pointer, numSGEs uint32, out Pointer,
	cq Handle, wc Pointer, max, attempts uint32) int32 {
	return postSpin(
		i, handle, wrs, count, sges, numSGEs, out, cq, wc, max, attempts, (*rdmacore.Work).RecvSpin,
		(*Instance).postRecv,
	)
}

// fewRequests is the most that is posted and polled in one call of the core, for a short response time.
const fewRequests = 16

// postSpin posts and polls in one call of the core, or in two.
func postSpin[WR any](
	i *Instance, handle Handle, wrsAt Pointer, count uint32, sgesAt Pointer, numSGEs uint32, out Pointer,
	cqHandle Handle, wcAt Pointer, max, attempts uint32,
	one func(
		*rdmacore.Work, *rdmacore.QP, uintptr, uint64, []WR, []rdmacore.SGE, *rdmacore.CQ, []rdmacore.WC, uint32,
	) (int, int, error),
	many func(*Instance, Handle, Pointer, uint32, Pointer, uint32, Pointer) int32,
) int32 {
	cq, ok := i.cqs.get(cqHandle)
	if !ok {
		return i.badHandle(kindCQ)
	}
	wcs, wrong := view[rdmacore.WC](i, wcAt, max)
	if wrong != 0 {
		return i.badPointer("wc", wrong)
	}
	qp, ok := i.qps.get(handle)
	if !ok {
		return i.badHandle(kindQP)
	}
	p, failed := postingOf[WR](i, wrsAt, count, sgesAt, numSGEs, out)
	if failed != 0 {
		return failed
	}
	attempts = min(attempts, maxAttempts)
	if count > min(fewRequests, batchOf(p.sges)) || qp.InitAttr().SendOps != 0 {
		if n := many(i, handle, wrsAt, count, sgesAt, numSGEs, out); n < 0 {
			return n
		}
		i.exitIfOver()
		return i.spinCQ(cqHandle, wcAt, max, attempts)
	}
	n, completions, err := one(i.work, qp, i.base, uint64(len(i.memory)), p.wrs, p.sges, cq, wcs, attempts)
	p.store(n)
	if err != nil {
		return i.fail(err)
	}
	return int32(completions)
}

// fitsOneCall reports whether the requests are not more work than one call may be.
func fitsOneCall(wrs []rdmacore.SendWR, sges []rdmacore.SGE) bool {
	const most = 4 << 30
	total := uint64(0)
	for at := range wrs {
		first := uint64(wrs[at].FirstSGE) // read once: a peer's RDMA WRITE may change it meanwhile
		end := first + uint64(wrs[at].NumSGE)
		if end > uint64(len(sges)) {
			return true // which the core refuses
		}
		for _, sge := range sges[first:end] {
			if total += uint64(sge.Length); total > most {
				return false
			}
		}
	}
	return true
}

// batchOf is how many requests with these buffers are passed to the core at once. The core may execute them all before
// it returns. An end of the guest that comes meanwhile must not wait for gigabytes of copies.
func batchOf(sges []rdmacore.SGE) uint32 {
	const many, large = 512, 1 << 16
	longest := uint32(0)
	for at := range sges {
		longest = max(longest, sges[at].Length)
	}
	if longest > large {
		return 1
	}
	return many
}

// maxRequests is more than any queue holds: a longer array would only be looked at for longer.
const maxRequests = 1 << 20
