package rdmacore

// The calls of the data path, and the flags for the declarations above `import "C"` in this package.
//
// The hot calls take C objects as uintptr_t, which avoids cgo's check of what a pointer points to.  They return
// everything in one number, so that no result goes through memory.  noescape and nocallback hold for them: C keeps no
// pointer that it is given, and never calls Go.  So slices may live on the goroutine's stack, and a call allocates
// nothing.

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
// #cgo noescape hot_work_send
// #cgo nocallback hot_work_send
// #cgo noescape hot_work_recv
// #cgo nocallback hot_work_recv
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
// static inline int hot_poll_cq_ex(uintptr_t cq, uint64_t wc_flags, bool next_poll, int max, struct ibv_wc *wc,
// 				 struct core_wc_time *times, uint32_t attempts)
// {
// 	return core_poll_cq_ex((struct ibv_cq *)cq, wc_flags, next_poll, max, wc, times, attempts);
// }
//
// /* What a guest asks for in one call: posting, when there are requests, and then looking for completions. */
// struct hot_work {
// 	uintptr_t provider, qp, wrs, sges, base, cq, wcs;
// 	uint64_t limit;
// 	uint32_t count, num_sges, max, attempts;
// 	int64_t posted; /* hot_result */
// 	int64_t polled; /* completions, or a negative errno */
// };
//
// static void hot_work_poll(struct hot_work *work)
// {
// 	if (work->max && work->posted >= 0)
// 		work->polled = hot_poll_cq(work->cq, (int)work->max, (struct ibv_wc *)work->wcs, work->attempts);
// }
//
// static void hot_work_send(struct hot_work *work)
// {
// 	if (work->count)
// 		work->posted = hot_post_send(work->provider, work->qp, (const struct core_send_wr *)work->wrs, work->count,
// 					     (const struct core_sge *)work->sges, work->num_sges, work->base, work->limit);
// 	hot_work_poll(work);
// }
//
// static void hot_work_recv(struct hot_work *work)
// {
// 	if (work->count)
// 		work->posted = hot_post_recv(work->qp, (const struct core_recv_wr *)work->wrs, work->count,
// 					     (const struct core_sge *)work->sges, work->num_sges, work->base, work->limit);
// 	hot_work_poll(work);
// }
//
// static uintptr_t hot_send_address(void) { return (uintptr_t)hot_work_send; }
// static uintptr_t hot_recv_address(void) { return (uintptr_t)hot_work_recv; }
import "C"

import (
	"syscall"
	"unsafe"

	"rdmarun/rdmacore/ccall"

	// The components of the C core with headers that are included here. They import the components below them.
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

func hotPollCQEx(cq unsafe.Pointer, fields WCFields, nextPoll bool, wcs []WC, stamps []Timestamp, attempts uint32) int {
	return int(C.hot_poll_cq_ex(C.uintptr_t(uintptr(cq)), C.uint64_t(fields), C.bool(nextPoll), C.int(len(wcs)),
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
		return "the queue pair was not created for this operation; name it among its send operations (send_ops, " +
			"SEND_OPS_FLAGS of " +
			"rdma_create_qp_ex), without which there is no FLUSH"
	case syscall.ENOSPC: // as rdma_rxe's builders have it
		return "the work queue is full, or a scatter/gather list or inline data longer than it takes"
	case syscall.ENOMEM:
		return "the work queue is full; poll completions first, or create the QP with more work requests"
	case syscall.EFAULT:
		return "a scatter/gather entry lies outside the memory it may name"
	case syscall.EINVAL:
		return "not allowed by the state of the queue pair, an opcode, a flag, a scatter/gather entry, an " +
			"address handle or the placement of a FLUSH"
	}
	return ""
}

// Work makes the calls of the data path for one guest. Its requests and completions are not in Go's memory.  One
// goroutine uses it.  Where the link copies within this process, short calls skip cgo's detour through the scheduler.
type Work struct {
	c     C.struct_hot_work
	stack *ccall.Stack // nil: calls go by cgo
}

// NewWork makes what a guest of this provider posts and polls with.
func (p *Provider) NewWork() *Work {
	w := &Work{}
	if p != nil && p.link == Links()[0] {
		w.stack, _ = ccall.NewStack() // without one there is cgo
	}
	return w
}

// Free frees it.
func (w *Work) Free() {
	w.stack.Free()
	w.stack = nil
}

// A call within these limits is short. They limit the requests, the size of their buffers, and the completions and
// attempts of a poll, at some 50 ns each.
const (
	fewRequests    = 16
	fewReceives    = 64
	smallBuffer    = 4096
	fewCompletions = 256
	fewAttempts    = 1024
)

// SendSpin posts requests of a guest (QP.postSendAt). When all are posted it polls as Poll does; without room for
// completions it only posts.
func (w *Work) SendSpin(q *QP, base uintptr, limit uint64, wrs []SendWR, sges []SGE, cq *CQ, wcs []WC,
	attempts uint32) (accepted, completions int, err error) {
	if !q.open() || q.builder != nil || limit == 0 || len(wrs) == 0 || !plainPoll(cq, wcs) {
		return postThenPoll(func() (int, error) { return q.postSendAt(base, limit, wrs, sges) }, cq, wcs, attempts)
	}
	soon := len(wrs) <= fewRequests
	for at := range sges {
		soon = soon && sges[at].Length <= smallBuffer
	}
	if !soon {
		q.heavy.Store(true) // what waits in its queue may be sent by any later call
	}
	w.c.provider, w.c.wrs = C.uintptr_t(uintptr(unsafe.Pointer(q.provider.c))),
		C.uintptr_t(uintptr(unsafe.Pointer(&wrs[0])))
	w.prepare(q, len(wrs), base, limit, sges, cq, wcs, attempts)
	if w.stack != nil && soon && !q.heavy.Load() {
		w.stack.Call(sendAddress, unsafe.Pointer(&w.c))
	} else {
		C.hot_work_send(&w.c)
	}
	return w.done("ibv_post_send", cq, wcs, attempts)
}

// RecvSpin is QP.postRecvAt, as SendSpin.
func (w *Work) RecvSpin(q *QP, base uintptr, limit uint64, wrs []RecvWR, sges []SGE, cq *CQ, wcs []WC,
	attempts uint32) (accepted, completions int, err error) {
	if !q.open() || limit == 0 || len(wrs) == 0 || !plainPoll(cq, wcs) {
		return postThenPoll(func() (int, error) { return q.postRecvAt(base, limit, wrs, sges) }, cq, wcs, attempts)
	}
	w.c.wrs = C.uintptr_t(uintptr(unsafe.Pointer(&wrs[0])))
	w.prepare(q, len(wrs), base, limit, sges, cq, wcs, attempts)
	if w.stack != nil && len(wrs) <= fewReceives {
		w.stack.Call(recvAddress, unsafe.Pointer(&w.c))
	} else {
		C.hot_work_recv(&w.c)
	}
	return w.done("ibv_post_recv", cq, wcs, attempts)
}

// Poll is CQ.Poll that looks again while the queue is empty, at most attempts times in all, without leaving C. An
// attempt takes roughly 50 ns: keep it to some thousands and use CQ.Wait for more.
func (w *Work) Poll(cq *CQ, wcs []WC, attempts uint32) (int, error) {
	if w.stack == nil || len(wcs) == 0 || len(wcs) > fewCompletions || !cq.open() || !plainPoll(cq, wcs) {
		return cq.poll(wcs, nil, attempts)
	}
	w.c.count, w.c.posted = 0, 0
	w.expect(cq, wcs, attempts)
	w.stack.Call(recvAddress, unsafe.Pointer(&w.c))
	_, n, err := w.done("ibv_poll_cq", cq, wcs, attempts)
	return n, err
}

// plainPoll reports whether hot_poll_cq polls the queue; a nil queue is not polled at all.
func plainPoll(cq *CQ, wcs []WC) bool {
	return len(wcs) == 0 || cq.open() && !cq.extended && len(wcs) <= fewCompletions && cq.seen.first.Load() == nil
}

func postThenPoll(post func() (int, error), cq *CQ, wcs []WC, attempts uint32) (accepted, completions int, err error) {
	accepted, err = post()
	if err == nil && len(wcs) > 0 {
		completions, err = cq.poll(wcs, nil, attempts)
	}
	return accepted, completions, err
}

func (w *Work) prepare(q *QP, count int, base uintptr, limit uint64, sges []SGE, cq *CQ, wcs []WC, attempts uint32) {
	w.c.qp, w.c.count = C.uintptr_t(uintptr(unsafe.Pointer(q.c))), C.uint32_t(count)
	w.c.sges, w.c.num_sges = C.uintptr_t(uintptr(unsafe.Pointer(unsafe.SliceData(sges)))), C.uint32_t(len(sges))
	w.c.base, w.c.limit = C.uintptr_t(base), C.uint64_t(limit)
	w.expect(cq, wcs, attempts)
}

func (w *Work) expect(cq *CQ, wcs []WC, attempts uint32) {
	w.c.max, w.c.polled = C.uint32_t(len(wcs)), 0
	if len(wcs) > 0 {
		w.c.cq, w.c.wcs = C.uintptr_t(uintptr(unsafe.Pointer(cq.c))), C.uintptr_t(uintptr(unsafe.Pointer(&wcs[0])))
		w.c.attempts = C.uint32_t(min(attempts, fewAttempts))
	}
}

// done completes a call.  It splits the attempts that are left over several calls, between which Go's scheduler can
// run other goroutines.
func (w *Work) done(op string, cq *CQ, wcs []WC, attempts uint32) (accepted, completions int, err error) {
	if accepted, err = posted(op, int64(w.c.posted)); err != nil || len(wcs) == 0 {
		return accepted, 0, err
	}
	for w.c.polled == 0 && attempts > fewAttempts {
		attempts -= fewAttempts
		w.c.count = 0
		w.expect(cq, wcs, attempts)
		if w.stack != nil {
			w.stack.Call(recvAddress, unsafe.Pointer(&w.c))
		} else {
			C.hot_work_recv(&w.c)
		}
	}
	if w.c.polled < 0 {
		err = check("ibv_poll_cq", int(w.c.polled))
	}
	return accepted, int(max(w.c.polled, 0)), err
}

// The functions that run on a stack of their own.
var sendAddress, recvAddress = uintptr(C.hot_send_address()), uintptr(C.hot_recv_address())
