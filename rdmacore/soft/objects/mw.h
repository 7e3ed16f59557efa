/*
 * Memory windows (IBTA 10.6.7): keys for a part of a region, which work requests bind and invalidate. A type 1
 * window is valid for all queue pairs of its protection domain, a type 2 window for the one that bound it.
 */
#ifndef SOFT_OBJECTS_MW_H
#define SOFT_OBJECTS_MW_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

struct soft_qp;
struct soft_send_wqe;

struct soft_mw {
	struct ibv_mw ibv;
	uint32_t key; /* its first key (soft_mr_slot.window) */
};

/* NULL and errno EINVAL (unknown type), ENOMEM. */
struct ibv_mw *soft_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);
/* A bound window is unbound. */
int soft_dealloc_mw(struct ibv_mw *mw);

/*
 * Fill in the bind request. The values of window and region that it needs are copied, because they may be destroyed
 * before it is executed. False if they belong to another protection domain.
 */
bool soft_mw_post(struct soft_qp *qp, const struct ibv_send_wr *wr, struct soft_send_wqe *wqe);

/*
 * BIND_MW and LOCAL_INV are executed in two halves, with soft_quiesce in between while transfers may still use the
 * old key. requester.lock is held. First half: the old key ends. False if this queue pair must not end it.
 */
bool soft_mw_disable(struct soft_qp *qp, struct soft_send_wqe *wqe);

enum soft_mw_result {
	SOFT_MW_BOUND,
	SOFT_MW_REFUSED, /* the region, its range or its rights do not allow it */
	SOFT_MW_TAKEN, /* another queue pair has bound the window since the first half, which must be repeated */
};

/* Second half of a BIND_MW. */
enum soft_mw_result soft_mw_enable(struct soft_qp *qp, struct soft_send_wqe *wqe);
/* A SEND_WITH_INV ends the key of a type 2 window of qp. False if it has no such window. responder.lock is held. */
bool soft_mw_invalidate(struct soft_qp *qp, uint32_t key);

#endif
