#include "soft/objects/mw.h"

#include <errno.h>
#include <stdlib.h>

#include "soft/objects/device.h"
#include "soft/objects/mr_table.h"
#include "soft/objects/pd.h"
#include "soft/objects/qp.h"
#include "soft/objects/request.h"

#define WINDOW_ACCESS                                                                              \
	(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |             \
	 IBV_ACCESS_ZERO_BASED)

static struct soft_mr_table *table_of(const struct soft_qp *qp)
{
	return &soft_qp_device(qp)->memory;
}

struct ibv_mw *soft_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	struct soft_mr_table *table = &soft_device(pd->context->device)->memory;
	struct soft_mr_slot *slot;
	struct soft_mw *mw;

	if (soft_context_is_removed(pd->context)) {
		errno = EIO;
		return NULL;
	}
	if (type != IBV_MW_TYPE_1 && type != IBV_MW_TYPE_2) {
		errno = EINVAL;
		return NULL;
	}
	mw = calloc(1, sizeof(*mw));
	if (!mw)
		return NULL;
	soft_mutex_lock(&table->lock);
	mw->ibv.rkey = soft_mr_table_take(table);
	if (mw->ibv.rkey) {
		mw->key = mw->ibv.rkey;
		slot = soft_mr_table_slot(table, mw->key);
		slot->region = 0;
		slot->window = mw->key;
		atomic_store_explicit(&slot->access, 0, memory_order_release);
		atomic_store_explicit(&slot->pd, soft_pd_domain(pd), memory_order_release);
	}
	soft_mutex_unlock(&table->lock);
	if (!mw->ibv.rkey) {
		free(mw);
		errno = ENOMEM;
		return NULL;
	}
	mw->ibv.context = pd->context;
	mw->ibv.pd = pd;
	mw->ibv.handle = mw->key >> SOFT_KEY_TAG_BITS;
	mw->ibv.type = type;
	atomic_fetch_add(&soft_pd(pd)->users, 1);
	return &mw->ibv;
}

/* End the window's key, and release its region. */
static void disable(struct soft_mr_table *table, struct soft_mr_slot *slot)
{
	soft_mutex_expect(&table->lock);
	atomic_store_explicit(&slot->key, 0, memory_order_relaxed);
	if (slot->region)
		soft_mr_table_slot(table, slot->region)->windows--;
	slot->region = 0;
}

int soft_dealloc_mw(struct ibv_mw *ibv_mw)
{
	struct soft_mr_table *table = &soft_device(ibv_mw->context->device)->memory;
	struct soft_mw *mw = (struct soft_mw *)ibv_mw;

	struct soft_mr_slot *slot;

	soft_mutex_lock(&table->lock);
	slot = soft_mr_table_slot(table, mw->key);
	disable(table, slot);
	/* The second half of a bind that is under way is rejected from here on (is_window). */
	atomic_store_explicit(&slot->pd, NULL, memory_order_relaxed);
	soft_mutex_unlock(&table->lock);
	soft_quiesce(soft_pd(ibv_mw->pd));
	soft_mutex_lock(&table->lock);
	soft_mr_table_free(table, mw->key);
	soft_mutex_unlock(&table->lock);
	atomic_fetch_sub(&soft_pd(ibv_mw->pd)->users, 1);
	free(mw);
	return 0;
}

bool soft_mw_post(struct soft_qp *qp, const struct ibv_send_wr *wr, struct soft_send_wqe *wqe)
{
	const struct ibv_mw_bind_info *info = &wr->bind_mw.bind_info;
	const struct ibv_mw *mw = wr->bind_mw.mw;
	/* A window is for the peer, so local write has no meaning. */
	unsigned int access = info->mw_access_flags & ~(unsigned int)IBV_ACCESS_LOCAL_WRITE;

	if (!mw || mw->pd != qp->ibv.pd || (info->mr && info->mr->pd != mw->pd) ||
	    (info->length && !info->mr) || access & ~(unsigned int)WINDOW_ACCESS)
		return false;
	*soft_request_binding(wqe) = (struct soft_binding){
		.length = info->length, .access = access, .region = info->length ? info->mr->lkey : 0};
	wqe->remote_address = info->addr;
	wqe->rkey = wr->bind_mw.rkey;
	wqe->window.key = ((const struct soft_mw *)mw)->key;
	wqe->window.type = mw->type;
	return true;
}

/* Whether it is a type 2 window that qp has bound to key. */
static bool is_own_window(const struct soft_qp *qp, const struct soft_mr_slot *slot, uint32_t key)
{
	return key && atomic_load_explicit(&slot->key, memory_order_relaxed) == key &&
	       atomic_load_explicit(&slot->qp_num, memory_order_relaxed) == qp->ibv.qp_num;
}

bool soft_mw_invalidate(struct soft_qp *qp, uint32_t key)
{
	struct soft_mr_table *table = table_of(qp);
	struct soft_mr_slot *slot;
	bool own;

	soft_mutex_lock(&table->lock);
	slot = soft_mr_table_slot(table, key);
	own = is_own_window(qp, slot, key);
	if (own)
		disable(table, slot);
	soft_mutex_unlock(&table->lock);
	return own;
}

/* Whether it still is that window: it may have been freed while the request waited. */
static bool is_window(const struct soft_mr_slot *slot, const struct soft_pd *pd, uint32_t window)
{
	return slot->window == window && atomic_load_explicit(&slot->pd, memory_order_relaxed) == pd &&
	       !(atomic_load_explicit(&slot->access, memory_order_relaxed) & SOFT_ACCESS_LOCAL);
}

bool soft_mw_disable(struct soft_qp *qp, struct soft_send_wqe *wqe)
{
	struct soft_mr_table *table = table_of(qp);
	struct soft_mr_slot *slot;
	bool allowed;

	soft_lock_expect(&qp->requester.lock);
	if (wqe->opcode == IBV_WR_LOCAL_INV)
		return soft_mw_invalidate(qp, wqe->rkey);
	soft_mutex_lock(&table->lock);
	slot = soft_mr_table_slot(table, wqe->window.key);
	/* Only a free type 2 window can be bound (IBTA 10.6.7.2.6), and only to a range that is not empty. */
	allowed = is_window(slot, soft_pd_domain(qp->ibv.pd), wqe->window.key) &&
		  (wqe->window.type == IBV_MW_TYPE_1 || (!slot->region && soft_request_binding(wqe)->length));
	if (allowed)
		disable(table, slot);
	soft_mutex_unlock(&table->lock);
	return allowed;
}

/* Whether the region allows a window with those rights on that range (IBTA 10.6.7.2.1). */
static bool allows(const struct soft_mr_slot *region, struct soft_pd *pd, uint64_t address,
		   const struct soft_binding *binding)
{
	uint32_t rights = atomic_load_explicit(&region->access, memory_order_relaxed);
	uint64_t first = atomic_load_explicit(&region->address, memory_order_relaxed);
	uint64_t size = atomic_load_explicit(&region->length, memory_order_relaxed);

	return atomic_load_explicit(&region->key, memory_order_relaxed) == binding->region &&
	       atomic_load_explicit(&region->pd, memory_order_relaxed) == pd &&
	       rights & IBV_ACCESS_MW_BIND && !(rights & IBV_ACCESS_ZERO_BASED) &&
	       (rights & IBV_ACCESS_LOCAL_WRITE ||
		!(binding->access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC))) &&
	       address >= first && binding->length <= size && address - first <= size - binding->length;
}

static enum soft_mw_result enable(struct soft_qp *qp, struct soft_mr_table *table, struct soft_send_wqe *wqe)
{
	const struct soft_binding *binding = soft_request_binding(wqe);
	struct soft_mr_slot *slot = soft_mr_table_slot(table, wqe->window.key);
	struct soft_mr_slot *region = soft_mr_table_slot(table, binding->region);
	uint64_t address = wqe->remote_address;

	soft_mutex_expect(&table->lock);
	if ((wqe->rkey ^ wqe->window.key) & ~SOFT_KEY_OWNERS ||
	    !is_window(slot, soft_pd_domain(qp->ibv.pd), wqe->window.key))
		return SOFT_MW_REFUSED;
	if (slot->region)
		return SOFT_MW_TAKEN;
	if (!binding->length) /* the window is unbound */
		return SOFT_MW_BOUND;
	if (!allows(region, soft_pd_domain(qp->ibv.pd), address, binding))
		return SOFT_MW_REFUSED;
	slot->region = binding->region;
	region->windows++;
	/* The region determines how its memory is found. */
	atomic_store_explicit(&slot->access,
			      binding->access | (atomic_load_explicit(&region->access, memory_order_relaxed) &
						 SOFT_ACCESS_FOUND),
			      memory_order_release);
	atomic_store_explicit(&slot->address,
			      binding->access & IBV_ACCESS_ZERO_BASED ? 0 : address,
			      memory_order_release);
	atomic_store_explicit(&slot->memory,
			      atomic_load_explicit(&region->memory, memory_order_relaxed) + address -
				      atomic_load_explicit(&region->address, memory_order_relaxed),
			      memory_order_release);
	atomic_store_explicit(&slot->length, binding->length, memory_order_release);
	atomic_store_explicit(&slot->qp_num,
			      wqe->window.type == IBV_MW_TYPE_2 ? qp->ibv.qp_num : 0,
			      memory_order_release);
	atomic_store_explicit(&slot->key, wqe->rkey, memory_order_release);
	return SOFT_MW_BOUND;
}

enum soft_mw_result soft_mw_enable(struct soft_qp *qp, struct soft_send_wqe *wqe)
{
	struct soft_mr_table *table = table_of(qp);
	enum soft_mw_result result;

	soft_lock_expect(&qp->requester.lock);
	soft_mutex_lock(&table->lock);
	result = enable(qp, table, wqe);
	soft_mutex_unlock(&table->lock);
	return result;
}
