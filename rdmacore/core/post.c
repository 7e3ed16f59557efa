/* Converts work requests from the flat form to the linked one of verbs.h, on the stack, in batches. */
#include "core/post.h"

#include "provider/newer.h"

/* Limits of a batch: requests, and entries of all of them. */
#define BATCH_REQUESTS 16
#define BATCH_ENTRIES CORE_WORK_ENTRIES

/* Compiled once for sends and once for receives, so that struct requests is not tested at run time. */
#define FOR_EACH_KIND static inline __attribute__((always_inline))

/* What a call posts: sends to qp; or receives to srq, or to qp if srq is NULL. */
struct requests {
	bool receive;
	uint32_t count;
	union {
		const struct core_send_wr *sends;
		const struct core_recv_wr *receives;
	};
	struct ibv_qp *qp;
	struct ibv_srq *srq;
};

struct batch {
	uint32_t used; /* entries */
	union {
		struct ibv_send_wr sends[BATCH_REQUESTS];
		struct ibv_recv_wr receives[BATCH_REQUESTS];
	};
	struct ibv_sge entries[BATCH_ENTRIES];
};

/* The destination of a datagram. */
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

/* Set the fields that the opcode needs; -EINVAL for one that the flat form cannot express. */
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
	case CORE_WR_FLUSH: /* struct ibv_send_wr has no fields for it (core/build.c) */
		return -EOPNOTSUPP;
	}
	return -EINVAL;
}

/* Set *list to the entries of the next request. -EINVAL if the batch has no room for them; -EINVAL, -EFAULT. */
static inline int add_entries(struct batch *batch, const struct core_work *work, uint32_t first, uint32_t count,
			      bool in_line, struct ibv_sge **list)
{
	int result;

	if (count > BATCH_ENTRIES - batch->used)
		return -EINVAL;
	*list = batch->entries + batch->used;
	result = core_work_entries(work, first, count, in_line, *list);
	if (!result)
		batch->used += count;
	return result;
}

static inline int add_send(struct batch *batch, uint32_t n, const struct core_work *work, const struct core_send_wr *from)
{
	uint32_t num_sge = CORE_READ_ONCE(from->num_sge), flags = CORE_READ_ONCE(from->flags);
	struct ibv_send_wr *to = &batch->sends[n];
	int result = add_entries(batch, work, CORE_READ_ONCE(from->first_sge), num_sge, flags & IBV_SEND_INLINE,
				 &to->sg_list);

	to->num_sge = (int)num_sge;
	to->next = to + 1;
	return result ? result : fill_send(work, from, CORE_READ_ONCE(from->opcode), flags, to);
}

static inline int add_receive(struct batch *batch, uint32_t n, const struct core_work *work,
			      const struct core_recv_wr *from)
{
	uint32_t num_sge = CORE_READ_ONCE(from->num_sge);
	struct ibv_recv_wr *to = &batch->receives[n];

	to->wr_id = from->wr_id;
	to->num_sge = (int)num_sge;
	to->next = to + 1;
	return add_entries(batch, work, CORE_READ_ONCE(from->first_sge), num_sge, false, &to->sg_list);
}

/*
 * Convert requests from done on until the batch is full. Returns their number, or the negative errno of the first
 * one. A later wrong request ends the batch, and is the first of the next one.
 */
FOR_EACH_KIND int convert(const struct requests *from, uint32_t done, const struct core_work *work, struct batch *batch)
{
	uint32_t n;

	batch->used = 0;
	for (n = 0; n < from->count - done && n < BATCH_REQUESTS; n++) {
		int result = from->receive ? add_receive(batch, n, work, &from->receives[done + n]) :
					     add_send(batch, n, work, &from->sends[done + n]);

		if (result && n)
			break;
		if (result)
			return result;
	}
	if (from->receive)
		batch->receives[n - 1].next = NULL;
	else
		batch->sends[n - 1].next = NULL;
	return (int)n;
}

/*
 * If there is more than one batch, all requests are checked before the first is posted. A guest may change its
 * memory afterwards, so each conversion checks again.
 */
FOR_EACH_KIND int check(const struct requests *from, uint32_t done, const struct core_work *work)
{
	struct batch batch;

	while (done < from->count) {
		int converted = convert(from, done, work, &batch);

		if (converted < 0)
			return converted;
		done += (uint32_t)converted;
	}
	return 0;
}

/* Post a batch. *before: how many requests were accepted before one was rejected. */
FOR_EACH_KIND int post_batch(const struct requests *from, struct batch *batch, uint32_t *before)
{
	int result;

	if (from->receive) {
		struct ibv_recv_wr *bad = batch->receives;

		result = core_verbs_result(from->srq ? ibv_post_srq_recv(from->srq, batch->receives, &bad) :
						       ibv_post_recv(from->qp, batch->receives, &bad));
		*before = (uint32_t)(bad - batch->receives);
	} else {
		struct ibv_send_wr *bad = batch->sends;

		result = core_verbs_result(ibv_post_send(from->qp, batch->sends, &bad));
		*before = (uint32_t)(bad - batch->sends);
	}
	return result;
}

FOR_EACH_KIND int post(const struct requests *from, const struct core_work *work, uint32_t *posted)
{
	struct batch batch;
	uint32_t done = 0;
	bool checked = false;
	int result = 0;

	while (done < from->count) {
		int converted = convert(from, done, work, &batch);
		uint32_t before;

		if (converted < 0) {
			result = converted;
			break;
		}
		if (!checked && done + (uint32_t)converted < from->count) {
			result = check(from, done + (uint32_t)converted, work);
			if (result)
				break;
		}
		checked = true;
		result = post_batch(from, &batch, &before);
		if (result) {
			done += before;
			break;
		}
		done += (uint32_t)converted;
	}
	*posted = done;
	return result;
}

static int post_sends(struct ibv_qp *qp, const struct core_send_wr *wrs, uint32_t count, const struct core_work *work,
		      uint32_t *posted)
{
	const struct requests from = {.count = count, .sends = wrs, .qp = qp};

	return post(&from, work, posted);
}

int core_post_send(struct core_provider *provider, struct ibv_qp *qp, const struct core_send_wr *wrs,
		   uint32_t count, const struct core_sge *sges, uint32_t num_sges, void *base,
		   uint64_t limit, uint32_t *posted)
{
	struct core_work work = {.sges = sges, .num_sges = num_sges, .base = (uintptr_t)base,
				 .named = core_work_named(qp->context, base), .limit = limit};
	int result;

	if (qp->qp_type != IBV_QPT_UD)
		return post_sends(qp, wrs, count, &work, posted);
	work.handles = &provider->address_handles;
	work.pd = qp->pd;
	/* Prevents that a handle is destroyed between look-up and use. */
	pthread_rwlock_rdlock(&provider->address_handles.lock);
	result = post_sends(qp, wrs, count, &work, posted);
	pthread_rwlock_unlock(&provider->address_handles.lock);
	return result;
}

int core_post_recv(struct ibv_qp *qp, const struct core_recv_wr *wrs, uint32_t count,
		   const struct core_sge *sges, uint32_t num_sges, void *base, uint64_t limit,
		   uint32_t *posted)
{
	const struct core_work work = {
		.sges = sges, .num_sges = num_sges, .named = core_work_named(qp->context, base), .limit = limit};
	const struct requests from = {.receive = true, .count = count, .receives = wrs, .qp = qp};

	return post(&from, &work, posted);
}

int core_post_srq_recv(struct ibv_srq *srq, const struct core_recv_wr *wrs, uint32_t count,
		       const struct core_sge *sges, uint32_t num_sges, void *base, uint64_t limit,
		       uint32_t *posted)
{
	const struct core_work work = {
		.sges = sges, .num_sges = num_sges, .named = core_work_named(srq->context, base), .limit = limit};
	const struct requests from = {.receive = true, .count = count, .receives = wrs, .srq = srq};

	return post(&from, &work, posted);
}
