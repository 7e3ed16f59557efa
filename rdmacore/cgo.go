package rdmacore

// The calls of the data path, and the flags of what stands before `import "C"` in this package.
//
// The hot calls take C objects as uintptr_t, which spares cgo's check of what a pointer points to, and
// return everything in one number, so that no result goes through memory.  noescape and nocallback say
// what is true of them: C keeps no pointer it is given and never calls Go; with that, slices may
// live on the goroutine's stack and a call allocates nothing.

// #cgo CFLAGS: -I${SRCDIR} -std=c11 -D_GNU_SOURCE -O2 -g -Wall -Wextra -Werror
// #cgo LDFLAGS: -ldl -lpthread
// #cgo noescape hot_post_send
// #cgo nocallback hot_post_send
// #cgo noescape hot_build_send
// #cgo nocallback hot_build_send
// #cgo noescape hot_post_recv
// #cgo nocallback hot_post_recv
// #cgo noescape hot_post_srq_recv
// #cgo nocallback hot_post_srq_recv
// #cgo noescape hot_poll_cq
// #cgo nocallback hot_poll_cq
// #cgo noescape hot_poll_cq_ex
// #cgo nocallback hot_poll_cq_ex
// #include "core/core.h"
//
// /* A negative errno in the upper half when a request was refused, the number posted in the lower. */
// static inline int64_t hot_result(int result, uint32_t posted)
// {
// 	return (int64_t)((uint64_t)(int64_t)result << 32 | posted);
// }
//
// static inline int64_t hot_post_send(uintptr_t provider, uintptr_t qp, const struct core_send_wr *wrs,
// 				    uint32_t count, const struct core_sge *sges, uint32_t num_sges,
// 				    uintptr_t base, uint64_t limit)
// {
// 	uint32_t posted = 0;
// 	int result = core_post_send((struct core_provider *)provider, (struct ibv_qp *)qp, wrs, count,
// 				    sges, num_sges, (void *)base, limit, &posted);
//
// 	return hot_result(result, posted);
// }
//
// static inline int64_t hot_build_send(uintptr_t provider, uintptr_t builder, uint64_t operations,
// 				     const struct core_send_wr *wrs, uint32_t count,
// 				     const struct core_sge *sges, uint32_t num_sges, uintptr_t base,
// 				     uint64_t limit)
// {
// 	uint32_t posted = 0;
// 	int result = core_build_send((struct core_provider *)provider, (struct ibv_qp_ex *)builder,
// 				     operations, wrs, count, sges, num_sges, (void *)base, limit, &posted);
//
// 	return hot_result(result, posted);
// }
//
// static inline int64_t hot_post_recv(uintptr_t qp, const struct core_recv_wr *wrs, uint32_t count,
// 				    const struct core_sge *sges, uint32_t num_sges, uintptr_t base,
// 				    uint64_t limit)
// {
// 	uint32_t posted = 0;
// 	int result = core_post_recv((struct ibv_qp *)qp, wrs, count, sges, num_sges, (void *)base,
// 				    limit, &posted);
//
// 	return hot_result(result, posted);
// }
//
// static inline int64_t hot_post_srq_recv(uintptr_t srq, const struct core_recv_wr *wrs, uint32_t count,
// 					const struct core_sge *sges, uint32_t num_sges, uintptr_t base,
// 					uint64_t limit)
// {
// 	uint32_t posted = 0;
// 	int result = core_post_srq_recv((struct ibv_srq *)srq, wrs, count, sges, num_sges, (void *)base,
// 					limit, &posted);
//
// 	return hot_result(result, posted);
// }
//
// static inline int hot_poll_cq(uintptr_t cq, int max, struct ibv_wc *wc, uint32_t attempts)
// {
// 	return core_poll_cq((struct ibv_cq *)cq, max, wc, attempts);
// }
//
// static inline int hot_poll_cq_ex(uintptr_t cq, uint64_t wc_flags, int max, struct ibv_wc *wc,
// 				 struct core_wc_time *times, uint32_t attempts)
// {
// 	return core_poll_cq_ex((struct ibv_cq *)cq, wc_flags, max, wc, times, attempts);
// }
import "C"

import (
	"syscall"
	"unsafe"

	// The rooms of the C core whose headers are included here; what stands below they import themselves.
	_ "rdmarun/rdmacore/core"
	_ "rdmarun/rdmacore/measure"
	_ "rdmarun/rdmacore/provider"
)

func hotPostSend(provider, qp unsafe.Pointer, wrs []SendWR, sges []SGE, base uintptr, limit uint64) int64 {
	return int64(C.hot_post_send(C.uintptr_t(uintptr(provider)), C.uintptr_t(uintptr(qp)),
		(*C.struct_core_send_wr)(unsafe.Pointer(unsafe.SliceData(wrs))), C.uint32_t(len(wrs)),
		(*C.struct_core_sge)(unsafe.Pointer(unsafe.SliceData(sges))), C.uint32_t(len(sges)),
		C.uintptr_t(base), C.uint64_t(limit)))
}

func hotBuildSend(provider, builder unsafe.Pointer, operations SendOps, wrs []SendWR, sges []SGE, base uintptr,
	limit uint64) int64 {
	return int64(C.hot_build_send(C.uintptr_t(uintptr(provider)), C.uintptr_t(uintptr(builder)), C.uint64_t(operations),
		(*C.struct_core_send_wr)(unsafe.Pointer(unsafe.SliceData(wrs))), C.uint32_t(len(wrs)),
		(*C.struct_core_sge)(unsafe.Pointer(unsafe.SliceData(sges))), C.uint32_t(len(sges)),
		C.uintptr_t(base), C.uint64_t(limit)))
}

func hotPostRecv(qp unsafe.Pointer, wrs []RecvWR, sges []SGE, base uintptr, limit uint64) int64 {
	return int64(C.hot_post_recv(C.uintptr_t(uintptr(qp)),
		(*C.struct_core_recv_wr)(unsafe.Pointer(unsafe.SliceData(wrs))), C.uint32_t(len(wrs)),
		(*C.struct_core_sge)(unsafe.Pointer(unsafe.SliceData(sges))), C.uint32_t(len(sges)),
		C.uintptr_t(base), C.uint64_t(limit)))
}

func hotPostSRQRecv(srq unsafe.Pointer, wrs []RecvWR, sges []SGE, base uintptr, limit uint64) int64 {
	return int64(C.hot_post_srq_recv(C.uintptr_t(uintptr(srq)),
		(*C.struct_core_recv_wr)(unsafe.Pointer(unsafe.SliceData(wrs))), C.uint32_t(len(wrs)),
		(*C.struct_core_sge)(unsafe.Pointer(unsafe.SliceData(sges))), C.uint32_t(len(sges)),
		C.uintptr_t(base), C.uint64_t(limit)))
}

func hotPollCQ(cq unsafe.Pointer, wcs []WC, attempts uint32) int {
	return int(C.hot_poll_cq(C.uintptr_t(uintptr(cq)), C.int(len(wcs)),
		(*C.struct_ibv_wc)(unsafe.Pointer(unsafe.SliceData(wcs))), C.uint32_t(attempts)))
}

func hotPollCQEx(cq unsafe.Pointer, fields WCFields, wcs []WC, stamps []Timestamp, attempts uint32) int {
	return int(C.hot_poll_cq_ex(C.uintptr_t(uintptr(cq)), C.uint64_t(fields), C.int(len(wcs)),
		(*C.struct_ibv_wc)(unsafe.Pointer(unsafe.SliceData(wcs))),
		(*C.struct_core_wc_time)(unsafe.Pointer(unsafe.SliceData(stamps))), C.uint32_t(attempts)))
}

// posted takes a hot_result apart.
func posted(op string, result int64) (int, error) {
	count := int(uint32(result))
	if result >= 0 {
		return count, nil
	}
	errno := syscall.Errno(-(result >> 32))
	return count, &Error{Op: op, Errno: errno, Why: postReason(errno)}
}

// postReason words the errors that ibv_post_send(3), ibv_wr_post(3) and the core give.
func postReason(errno syscall.Errno) string {
	switch errno {
	case syscall.EOPNOTSUPP:
		return "the queue pair was not created for this operation; name it among its send operations (send_ops, SEND_OPS_FLAGS of " +
			"rdma_create_qp_ex), without which there is no FLUSH"
	case syscall.ENOSPC: // as rdma_rxe's builders have it
		return "the work queue is full, or a scatter/gather list or inline data longer than it takes"
	case syscall.ENOMEM:
		return "the work queue is full; poll completions first, or create the QP with more work requests"
	case syscall.EFAULT:
		return "a scatter/gather entry lies outside the memory it may name"
	case syscall.EINVAL:
		return "the state of the queue pair, an opcode, a flag, a scatter/gather entry, a datagram's " +
			"address handle or the placement of a FLUSH does not allow it"
	}
	return ""
}
