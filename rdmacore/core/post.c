/* Work requests from the flat form to the linked one of verbs.h, on the stack, a batch at a time. */
#include "core/post.h"

#include "provider/newer.h"

/* A batch: at most this many requests, with at most this many entries together. */
#define BATCH_REQUESTS 16
#define BATCH_ENTRIES CORE_WORK_ENTRIES

/* A datagram's address. */
static inline int fill_datagram(const struct core_work *work, const struct core_send_wr *from,
				uint32_t opcode, struct ibv_send_wr *to)
{
	if (opcode != IBV_WR_SEND && opcode != IBV_WR_SEND_WITH_IMM)
		return -EINVAL;
	to->wr.ud.ah = core_work_ah(work, from);
	to->wr.ud.remote_qpn = from->remote_qpn;
	to->wr.ud.remote_qkey = from->remote_qkey;
	return to->wr.ud.ah ? 0 : -EINVAL;
}

/* Fill in what the opcode needs; -EINVAL for one that the flat form cannot express. */
static inline int fill_send(const struct core_work *work, const struct core_send_wr *from,
			    uint32_t opcode, uint32_t flags, struct ibv_send_wr *to)
{
	to->wr_id = from->wr_id;
	to->opcode = (enum ibv_wr_opcode)opcode;
	to->send_flags = flags;
	to->imm_data = from->imm_data; /* a union with invalidate_rkey */
	if (work->handles)
		return fill_datagram(work, from, opcode, to);
	switch (opcode) {
	case IBV_WR_SEND:
	case IBV_WR_SEND_WITH_IMM:
	case IBV_WR_SEND_WITH_INV:
	case IBV_WR_LOCAL_INV:
		return 0;
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
	case IBV_WR_RDMA_READ:
	case IBV_WR_ATOMIC_WRITE:
		to->wr.rdma.remote_addr = from->remote_address;
		to->wr.rdma.rkey = from->rkey;
		return 0;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		to->wr.atomic.remote_addr = from->remote_address;
		to->wr.atomic.compare_add = from->compare_add;
		to->wr.atomic.swap = from->swap;
		to->wr.atomic.rkey = from->rkey;
		return 0;
	case CORE_WR_FLUSH: /* struct ibv_send_wr has no place for what it is about: core/build.c */
		return -EOPNOTSUPP;
	}
	return -EINVAL;
}

/*
 * Convert requests from wrs until the batch is full.  Returns how many there are in it, or the negative
 * errno of the first.  A later request that is wrong ends the batch before it, and is the first of
 * the next.
 */
static inline int convert_send(const struct core_send_wr *wrs, uint32_t count,
			       const struct core_work *work, struct ibv_send_wr *batch,
			       struct ibv_sge *entries)
{
	uint32_t used = 0;
	uint32_t n;

	for (n = 0; n < count && n < BATCH_REQUESTS; n++) {
		uint32_t first = CORE_READ_ONCE(wrs[n].first_sge);
		uint32_t num_sge = CORE_READ_ONCE(wrs[n].num_sge);
		uint32_t flags = CORE_READ_ONCE(wrs[n].flags);
		int result;

		if (num_sge > BATCH_ENTRIES - used) {
			if (n)
				break;
			return -EINVAL;
		}
		result = core_work_entries(work, first, num_sge, flags & IBV_SEND_INLINE, entries + used);
		if (!result)
			result = fill_send(work, &wrs[n], CORE_READ_ONCE(wrs[n].opcode), flags, &batch[n]);
		if (result) {
			if (n)
				break;
			return result;
		}
		batch[n].sg_list = entries + used;
		batch[n].num_sge = (int)num_sge;
		batch[n].next = &batch[n + 1];
		used += num_sge;
	}
	batch[n - 1].next = NULL;
	return (int)n;
}

static inline int convert_recv(const struct core_recv_wr *wrs, uint32_t count,
			       const struct core_work *work, struct ibv_recv_wr *batch,
			       struct ibv_sge *entries)
{
	uint32_t used = 0;
	uint32_t n;

	for (n = 0; n < count && n < BATCH_REQUESTS; n++) {
		uint32_t first = CORE_READ_ONCE(wrs[n].first_sge);
		uint32_t num_sge = CORE_READ_ONCE(wrs[n].num_sge);
		int result;

		if (num_sge > BATCH_ENTRIES - used) {
			if (n)
				break;
			return -EINVAL;
		}
		result = core_work_entries(work, first, num_sge, false, entries + used);
		if (result) {
			if (n)
				break;
			return result;
		}
		batch[n].wr_id = wrs[n].wr_id;
		batch[n].sg_list = entries + used;
		batch[n].num_sge = (int)num_sge;
		batch[n].next = &batch[n + 1];
		used += num_sge;
	}
	batch[n - 1].next = NULL;
	return (int)n;
}

/*
 * With more than one batch, requests have to be checked all before the first is posted.  The memory may
 * change afterwards, so conversion checks again.
 */
static int check_all_send(const struct core_send_wr *wrs, uint32_t count,
			  const struct core_work *work)
{
	struct ibv_send_wr batch[BATCH_REQUESTS];
	struct ibv_sge entries[BATCH_ENTRIES];

	while (count) {
		int converted = convert_send(wrs, count, work, batch, entries);

		if (converted < 0)
			return converted;
		wrs += converted;
		count -= (uint32_t)converted;
	}
	return 0;
}

static int check_all_recv(const struct core_recv_wr *wrs, uint32_t count,
			  const struct core_work *work)
{
	struct ibv_recv_wr batch[BATCH_REQUESTS];
	struct ibv_sge entries[BATCH_ENTRIES];

	while (count) {
		int converted = convert_recv(wrs, count, work, batch, entries);

		if (converted < 0)
			return converted;
		wrs += converted;
		count -= (uint32_t)converted;
	}
	return 0;
}

static int post_send(struct ibv_qp *qp, const struct core_send_wr *wrs, uint32_t count,
		     const struct core_work *work, uint32_t *posted)
{
	struct ibv_send_wr batch[BATCH_REQUESTS];
	struct ibv_sge entries[BATCH_ENTRIES];
	struct ibv_send_wr *bad = NULL;
	uint32_t done = 0;
	bool checked = false;
	int result = 0;

	*posted = 0;
	while (done < count) {
		int converted = convert_send(wrs + done, count - done, work, batch, entries);

		if (converted < 0) {
			result = converted;
			break;
		}
		if (!checked && done + (uint32_t)converted < count) {
			result = check_all_send(wrs + converted, count - (uint32_t)converted, work);
			if (result)
				break;
		}
		checked = true;
		result = core_verbs_result(ibv_post_send(qp, batch, &bad));
		if (result) {
			done += (uint32_t)(bad - batch);
			break;
		}
		done += (uint32_t)converted;
	}
	*posted = done;
	return result;
}

int core_post_send(struct core_provider *provider, struct ibv_qp *qp, const struct core_send_wr *wrs,
		   uint32_t count, const struct core_sge *sges, uint32_t num_sges, void *base,
		   uint64_t limit, uint32_t *posted)
{
	struct core_work work = {.sges = sges, .num_sges = num_sges, .base = (uintptr_t)base,
				 .named = core_work_named(qp->context, base), .limit = limit};
	int result;

	if (qp->qp_type != IBV_QPT_UD)
		return post_send(qp, wrs, count, &work, posted);
	work.handles = &provider->address_handles;
	work.pd = qp->pd;
	/* Nobody destroys a handle between its look-up and its use. */
	pthread_rwlock_rdlock(&provider->address_handles.lock);
	result = post_send(qp, wrs, count, &work, posted);
	pthread_rwlock_unlock(&provider->address_handles.lock);
	return result;
}

/* To srq, or where that is NULL to qp. */
static inline int post_recv(struct ibv_qp *qp, struct ibv_srq *srq, const struct core_recv_wr *wrs,
			    uint32_t count, const struct core_work work, uint32_t *posted)
{
	struct ibv_recv_wr batch[BATCH_REQUESTS];
	struct ibv_sge entries[BATCH_ENTRIES];
	struct ibv_recv_wr *bad = NULL;
	uint32_t done = 0;
	bool checked = false;
	int result = 0;

	*posted = 0;
	while (done < count) {
		int converted = convert_recv(wrs + done, count - done, &work, batch, entries);

		if (converted < 0) {
			result = converted;
			break;
		}
		if (!checked && done + (uint32_t)converted < count) {
			result = check_all_recv(wrs + converted, count - (uint32_t)converted, &work);
			if (result)
				break;
		}
		checked = true;
		result = core_verbs_result(srq ? ibv_post_srq_recv(srq, batch, &bad) :
						 ibv_post_recv(qp, batch, &bad));
		if (result) {
			done += (uint32_t)(bad - batch);
			break;
		}
		done += (uint32_t)converted;
	}
	*posted = done;
	return result;
}

int core_post_recv(struct ibv_qp *qp, const struct core_recv_wr *wrs, uint32_t count,
		   const struct core_sge *sges, uint32_t num_sges, void *base, uint64_t limit,
		   uint32_t *posted)
{
	const struct core_work work = {
		.sges = sges, .num_sges = num_sges, .named = core_work_named(qp->context, base), .limit = limit};

	return post_recv(qp, NULL, wrs, count, work, posted);
}

int core_post_srq_recv(struct ibv_srq *srq, const struct core_recv_wr *wrs, uint32_t count,
		       const struct core_sge *sges, uint32_t num_sges, void *base, uint64_t limit,
		       uint32_t *posted)
{
	const struct core_work work = {
		.sges = sges, .num_sges = num_sges, .named = core_work_named(srq->context, base), .limit = limit};

	return post_recv(NULL, srq, wrs, count, work, posted);
}
