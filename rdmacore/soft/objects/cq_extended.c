#include "soft/objects/verbs.h"

#include <errno.h>

#include "soft/base/bounds.h"
#include "soft/base/fabric.h"
#include "soft/objects/cq.h"
#include "soft/objects/device.h"
#include "soft/objects/pd.h"

#define STAMPS (IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)

static struct soft_cq *cq_of(struct ibv_cq_ex *cq)
{
	return (struct soft_cq *)cq;
}

/*
 * Take the oldest completion out of the queue, as current. It is copied because the user may do anything before the
 * next next_poll or end_poll. No lock that other threads need is held until then, and a receive has made room.
 */
static int show(struct soft_cq *cq)
{
	struct soft_cq_ring *ring;
	struct soft_cqe *entry;
	uint32_t index;
	int result = ENOENT;

	soft_lock_take(&cq->consumer_lock);
	index = atomic_load_explicit(&cq->consumed, memory_order_relaxed);
	ring = atomic_load_explicit(&cq->ring, memory_order_relaxed);
	entry = &ring->entries[index & ring->mask];
	if (atomic_load_explicit(&entry->lap, memory_order_acquire) == soft_cq_lap(ring, index)) {
		cq->current = entry->wc;
		if (cq->stamps)
			cq->current_stamp = *soft_cq_stamp(ring, index);
		soft_cqe_polled(entry);
		atomic_store_explicit(&cq->consumed, index + 1, memory_order_release);
		result = 0;
	}
	soft_lock_release(&cq->consumer_lock);
	if (!result) {
		cq->extended.status = cq->current.status;
		cq->extended.wr_id = cq->current.wr_id;
	}
	return result;
}

static int start_poll(struct ibv_cq_ex *extended, struct ibv_poll_cq_attr *attr)
{
	struct soft_cq *cq = cq_of(extended);
	int result;

	if (attr && attr->comp_mask)
		return EINVAL;
	if (soft_cq_looks_empty(cq) && (!cq->progress || !soft_cq_progress(cq)) &&
	    (!cq->legal || !soft_cq_legal_hurry(cq)))
		return ENOENT;
	soft_lock_take(&cq->polling);
	result = show(cq);
	if (result) /* no end_poll follows */
		soft_lock_release(&cq->polling);
	else if (cq->legal)
		soft_cq_legal_polled(cq);
	return result;
}

static int next_poll(struct ibv_cq_ex *extended)
{
	struct soft_cq *cq = cq_of(extended);

	if (cq->legal && soft_legal_choose(&cq->legal->draws, CORE_LEGAL_POLL_SHORT)) {
		soft_cq_legal_left(cq);
		return ENOENT;
	}
	return soft_cq_looks_empty(cq) ? ENOENT : show(cq);
}

static void end_poll(struct ibv_cq_ex *extended)
{
	soft_lock_release(&cq_of(extended)->polling);
}

#define READER(type, name, field)                                                                  \
	static type read_##name(struct ibv_cq_ex *cq)                                              \
	{                                                                                          \
		return cq_of(cq)->current.field;                                                   \
	}

READER(enum ibv_wc_opcode, opcode, opcode)
READER(uint32_t, vendor_err, vendor_err)
READER(uint32_t, byte_len, byte_len)
READER(__be32, imm_data, imm_data)
READER(uint32_t, qp_num, qp_num)
READER(uint32_t, src_qp, src_qp)
READER(unsigned int, wc_flags, wc_flags)
READER(uint32_t, slid, slid)
READER(uint8_t, sl, sl)
READER(uint8_t, dlid_path_bits, dlid_path_bits)

/* In ticks of the device's clock, which are nanoseconds (hca_core_clock of ibv_query_device_ex). */
static uint64_t read_completion_ts(struct ibv_cq_ex *extended)
{
	return cq_of(extended)->current_stamp;
}

static uint64_t read_completion_wallclock_ns(struct ibv_cq_ex *cq)
{
	return read_completion_ts(cq) +
	       soft_clock_epoch(&soft_device(cq->context->device)->fabric->clock);
}

struct ibv_cq_ex *soft_create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr)
{
	struct ibv_cq_ex *extended;
	struct soft_pd *pd = NULL;
	struct ibv_cq *cq;

	if (attr->wc_flags & ~(uint64_t)(IBV_WC_STANDARD_FLAGS | STAMPS) ||
	    attr->comp_mask & ~(uint32_t)(IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD) ||
	    (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS &&
	     attr->flags & ~(uint32_t)IBV_CREATE_CQ_ATTR_SINGLE_THREADED)) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	if (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD)
		pd = soft_pd(attr->parent_domain);
	if (attr->cqe > SOFT_MAX_CQE || (pd && (!pd->parent.pd || pd->ibv.context != context))) {
		errno = EINVAL;
		return NULL;
	}
	cq = soft_create_cq_in(context, pd, (int)attr->cqe, attr->cq_context, attr->channel,
			       (int)attr->comp_vector);
	if (!cq)
		return NULL;
	soft_cq(cq)->stamps = attr->wc_flags & STAMPS;
	extended = &soft_cq(cq)->extended;
	extended->start_poll = start_poll;
	extended->next_poll = next_poll;
	extended->end_poll = end_poll;
	extended->read_opcode = read_opcode;
	extended->read_vendor_err = read_vendor_err;
	extended->read_byte_len = read_byte_len;
	extended->read_imm_data = read_imm_data;
	extended->read_qp_num = read_qp_num;
	extended->read_src_qp = read_src_qp;
	extended->read_wc_flags = read_wc_flags;
	extended->read_slid = read_slid;
	extended->read_sl = read_sl;
	extended->read_dlid_path_bits = read_dlid_path_bits;
	if (attr->wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP)
		extended->read_completion_ts = read_completion_ts;
	if (attr->wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)
		extended->read_completion_wallclock_ns = read_completion_wallclock_ns;
	return extended;
}
