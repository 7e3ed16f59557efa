/*
 * Posts work requests in flat form with the builders of ibv_wr_post(3), for queue pairs that were created with send
 * operations. The requests of one call are between one wr_start and one wr_complete, so either all of them are
 * posted or none.
 */
#include <string.h>

#include "core/post.h"
#include "provider/newer.h"

/* The offset in struct ibv_qp_ex of an operation's builder (enum ibv_qp_create_send_ops_flags). */
static const struct {
	uint64_t operation;
	size_t index;
} places[] = {
	{IBV_QP_EX_WITH_RDMA_WRITE, offsetof(struct ibv_qp_ex, wr_rdma_write)},
	{IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM, offsetof(struct ibv_qp_ex, wr_rdma_write_imm)},
	{IBV_QP_EX_WITH_SEND, offsetof(struct ibv_qp_ex, wr_send)},
	{IBV_QP_EX_WITH_SEND_WITH_IMM, offsetof(struct ibv_qp_ex, wr_send_imm)},
	{IBV_QP_EX_WITH_RDMA_READ, offsetof(struct ibv_qp_ex, wr_rdma_read)},
	{IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP, offsetof(struct ibv_qp_ex, wr_atomic_cmp_swp)},
	{IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD, offsetof(struct ibv_qp_ex, wr_atomic_fetch_add)},
	{IBV_QP_EX_WITH_LOCAL_INV, offsetof(struct ibv_qp_ex, wr_local_inv)},
	{IBV_QP_EX_WITH_BIND_MW, offsetof(struct ibv_qp_ex, wr_bind_mw)},
	{IBV_QP_EX_WITH_SEND_WITH_INV, offsetof(struct ibv_qp_ex, wr_send_inv)},
	{IBV_QP_EX_WITH_ATOMIC_WRITE, offsetof(struct ibv_qp_ex, wr_atomic_write)},
	{CORE_QP_EX_WITH_FLUSH, offsetof(struct core_newer_qp_ex, wr_flush)},
};

/*
 * A library that accepts an operation's flag has its builder in the struct. An older one rejects the flag, and its
 * struct is shorter. So only builders that were requested are read.
 */
static uint64_t built_operations(const struct ibv_qp_ex *qp, uint64_t asked)
{
	uint64_t operations = 0;

	for (size_t row = 0; row < sizeof(places) / sizeof(places[0]); row++) {
		void (*builder)(void);

		if (!(asked & places[row].operation))
			continue;
		memcpy(&builder, (const char *)qp + places[row].index, sizeof(builder));
		if (builder)
			operations |= places[row].operation;
	}
	return operations;
}

struct ibv_qp_ex *core_qp_builder(const struct core_provider *provider, struct ibv_qp *qp, uint64_t asked,
				  uint64_t *operations)
{
	struct ibv_qp_ex *builder = provider->ibv_qp_to_qp_ex ? provider->ibv_qp_to_qp_ex(qp) : NULL;

	*operations = 0;
	if (!builder || !builder->wr_start || !builder->wr_complete || !builder->wr_abort ||
	    !builder->wr_set_sge || !builder->wr_set_sge_list ||
	    (qp->qp_type == IBV_QPT_UD && !builder->wr_set_ud_addr))
		return NULL;
	*operations = built_operations(builder, asked);
	return builder;
}

uint64_t core_build_operation(uint32_t opcode)
{
	switch (opcode) {
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
	case IBV_WR_SEND:
	case IBV_WR_SEND_WITH_IMM:
	case IBV_WR_RDMA_READ:
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
	case IBV_WR_LOCAL_INV:
	case IBV_WR_SEND_WITH_INV:
		return UINT64_C(1) << opcode; /* the numbers are the same */
	case IBV_WR_ATOMIC_WRITE:
		return IBV_QP_EX_WITH_ATOMIC_WRITE;
	case CORE_WR_FLUSH:
		return CORE_QP_EX_WITH_FLUSH;
	}
	return 0;
}

_Static_assert(IBV_QP_EX_WITH_RDMA_WRITE == 1 << IBV_WR_RDMA_WRITE &&
		       IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM == 1 << IBV_WR_RDMA_WRITE_WITH_IMM &&
		       IBV_QP_EX_WITH_SEND == 1 << IBV_WR_SEND &&
		       IBV_QP_EX_WITH_SEND_WITH_IMM == 1 << IBV_WR_SEND_WITH_IMM &&
		       IBV_QP_EX_WITH_RDMA_READ == 1 << IBV_WR_RDMA_READ &&
		       IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP == 1 << IBV_WR_ATOMIC_CMP_AND_SWP &&
		       IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD == 1 << IBV_WR_ATOMIC_FETCH_AND_ADD &&
		       IBV_QP_EX_WITH_LOCAL_INV == 1 << IBV_WR_LOCAL_INV &&
		       IBV_QP_EX_WITH_SEND_WITH_INV == 1 << IBV_WR_SEND_WITH_INV,
	       "operations are numbered like opcodes");

static inline bool is_send(uint32_t opcode)
{
	return opcode == IBV_WR_SEND || opcode == IBV_WR_SEND_WITH_IMM;
}

/* Whether the data may be inline (ibv_wr_post(3)). */
static inline bool brings_data(uint32_t opcode)
{
	return is_send(opcode) || opcode == IBV_WR_SEND_WITH_INV || opcode == IBV_WR_RDMA_WRITE ||
	       opcode == IBV_WR_RDMA_WRITE_WITH_IMM || opcode == IBV_WR_ATOMIC_WRITE;
}

static int set_data(struct ibv_qp_ex *qp, const struct ibv_sge *list, uint32_t count, bool in_line)
{
	struct ibv_data_buf buffers[CORE_WORK_ENTRIES];

	if (!in_line || !count) {
		/* Even an empty list: devices complete the request when its data is set. */
		if (count == 1)
			ibv_wr_set_sge(qp, list->lkey, list->addr, list->length);
		else
			ibv_wr_set_sge_list(qp, count, list);
		return 0;
	}
	if (!qp->wr_set_inline_data || !qp->wr_set_inline_data_list)
		return -EOPNOTSUPP;
	if (count == 1) {
		ibv_wr_set_inline_data(qp, (void *)(uintptr_t)list->addr, list->length);
		return 0;
	}
	for (uint32_t entry = 0; entry < count; entry++) {
		buffers[entry].addr = (void *)(uintptr_t)list[entry].addr;
		buffers[entry].length = list[entry].length;
	}
	ibv_wr_set_inline_data_list(qp, count, buffers);
	return 0;
}

/* The eight bytes are read from the entries at once. */
static int build_atomic_write(struct ibv_qp_ex *qp, const struct core_send_wr *from,
			      const struct ibv_sge *list, uint32_t count)
{
	char value[sizeof(uint64_t)];
	size_t filled = 0;

	for (uint32_t entry = 0; entry < count; entry++) {
		if (list[entry].length > sizeof(value) - filled)
			return -EINVAL;
		if (!list[entry].addr)
			return -EFAULT;
		memcpy(value + filled, (const void *)(uintptr_t)list[entry].addr, list[entry].length);
		filled += list[entry].length;
	}
	if (filled != sizeof(value))
		return -EINVAL;
	ibv_wr_atomic_write(qp, from->rkey, from->remote_address, value);
	return 0;
}

/* Flushes as many bytes as the entries have; nothing else in them is used. */
static void build_flush(struct ibv_qp_ex *qp, const struct core_send_wr *from, const struct ibv_sge *list,
			uint32_t count)
{
	size_t length = 0;

	for (uint32_t entry = 0; entry < count; entry++)
		length += list[entry].length;
	core_wr_flush(qp, from->rkey, from->remote_address, length, from->placement, from->selectivity);
}

/* Begin a request with data, which is set afterwards. */
static void begin(struct ibv_qp_ex *qp, const struct core_send_wr *from, uint32_t opcode)
{
	switch (opcode) {
	case IBV_WR_SEND:
		ibv_wr_send(qp);
		return;
	case IBV_WR_SEND_WITH_IMM:
		ibv_wr_send_imm(qp, from->imm_data);
		return;
	case IBV_WR_SEND_WITH_INV:
		ibv_wr_send_inv(qp, from->imm_data);
		return;
	case IBV_WR_RDMA_WRITE:
		ibv_wr_rdma_write(qp, from->rkey, from->remote_address);
		return;
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		ibv_wr_rdma_write_imm(qp, from->rkey, from->remote_address, from->imm_data);
		return;
	case IBV_WR_RDMA_READ:
		ibv_wr_rdma_read(qp, from->rkey, from->remote_address);
		return;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		ibv_wr_atomic_cmp_swp(qp, from->rkey, from->remote_address, from->compare_add,
				      from->swap);
		return;
	default: /* IBV_WR_ATOMIC_FETCH_AND_ADD */
		ibv_wr_atomic_fetch_add(qp, from->rkey, from->remote_address, from->compare_add);
		return;
	}
}

/* Build one request. wr_complete returns errors that the device finds. */
static int build(const struct core_work *work, struct ibv_qp_ex *qp, uint64_t operations,
		 const struct core_send_wr *from)
{
	uint32_t opcode = CORE_READ_ONCE(from->opcode), flags = CORE_READ_ONCE(from->flags);
	uint32_t count = CORE_READ_ONCE(from->num_sge);
	uint64_t operation = core_build_operation(opcode);
	struct ibv_sge list[CORE_WORK_ENTRIES];
	struct ibv_ah *ah = NULL;
	int result;

	if (!operation || count > CORE_WORK_ENTRIES ||
	    (flags & IBV_SEND_INLINE && !brings_data(opcode)))
		return -EINVAL;
	if (!(operations & operation)) /* the builder may not exist */
		return -EOPNOTSUPP;
	/* The builder of ATOMIC_WRITE reads its value at once, like inline data. */
	result = core_work_entries(work, CORE_READ_ONCE(from->first_sge), count,
				   flags & IBV_SEND_INLINE || opcode == IBV_WR_ATOMIC_WRITE, list);
	if (result)
		return result;
	if (work->handles) {
		ah = is_send(opcode) ? core_work_ah(work, from) : NULL;
		if (!ah)
			return -EINVAL;
	}
	qp->wr_id = from->wr_id;
	qp->wr_flags = flags & ~(uint32_t)IBV_SEND_INLINE;
	switch (opcode) {
	case IBV_WR_LOCAL_INV:
		ibv_wr_local_inv(qp, from->imm_data);
		return 0;
	case CORE_WR_FLUSH:
		build_flush(qp, from, list, count);
		return 0;
	case IBV_WR_ATOMIC_WRITE:
		return build_atomic_write(qp, from, list, count);
	}
	begin(qp, from, opcode);
	if (ah)
		ibv_wr_set_ud_addr(qp, ah, from->remote_qpn, from->remote_qkey);
	return set_data(qp, list, count, flags & IBV_SEND_INLINE);
}

static int build_all(const struct core_work *work, struct ibv_qp_ex *qp, uint64_t operations,
		     const struct core_send_wr *wrs, uint32_t count)
{
	ibv_wr_start(qp);
	for (uint32_t n = 0; n < count; n++) {
		int result = build(work, qp, operations, &wrs[n]);

		if (result) {
			ibv_wr_abort(qp);
			return result;
		}
	}
	return core_verbs_result(ibv_wr_complete(qp));
}

int core_build_send(struct core_provider *provider, struct ibv_qp_ex *qp, uint64_t operations,
		    const struct core_send_wr *wrs, uint32_t count, const struct core_sge *sges,
		    uint32_t num_sges, void *base, uint64_t limit, uint32_t *posted)
{
	struct core_work work = {
		.sges = sges, .num_sges = num_sges, .base = (uintptr_t)base,
		.named = core_work_named(qp->qp_base.context, base), .limit = limit};
	int result = 0;

	*posted = 0;
	if (!count)
		return 0;
	if (qp->qp_base.qp_type == IBV_QPT_UD) {
		work.handles = &provider->address_handles;
		work.pd = qp->qp_base.pd;
		/* Prevents that a handle is destroyed between look-up and use. */
		pthread_rwlock_rdlock(&provider->address_handles.lock);
		result = build_all(&work, qp, operations, wrs, count);
		pthread_rwlock_unlock(&provider->address_handles.lock);
	} else {
		result = build_all(&work, qp, operations, wrs, count);
	}
	if (!result)
		*posted = count;
	return result;
}

int core_build_linked(struct ibv_qp_ex *qp, const struct ibv_send_wr *wr)
{
	ibv_wr_start(qp);
	for (; wr; wr = wr->next) {
		bool atomic = wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
			      wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
		const struct core_send_wr from = {
			.imm_data = wr->imm_data,
			.rkey = atomic ? wr->wr.atomic.rkey : wr->wr.rdma.rkey,
			.remote_address = wr->wr.rdma.remote_addr, /* same offset in both structs */
			.compare_add = atomic ? wr->wr.atomic.compare_add : 0,
			.swap = atomic ? wr->wr.atomic.swap : 0,
		};
		int result;

		qp->wr_id = wr->wr_id;
		qp->wr_flags = wr->send_flags & ~(unsigned int)IBV_SEND_INLINE;
		begin(qp, &from, wr->opcode);
		result = set_data(qp, wr->sg_list, (uint32_t)wr->num_sge, wr->send_flags & IBV_SEND_INLINE);
		if (result) {
			ibv_wr_abort(qp);
			return result;
		}
	}
	return core_verbs_result(ibv_wr_complete(qp));
}

int core_build_mw(struct ibv_qp_ex *qp, uint64_t operations, struct ibv_mw *mw, uint32_t flags, uint64_t wr_id,
		  uint32_t rkey, const struct ibv_mw_bind_info *info)
{
	if (!(operations & IBV_QP_EX_WITH_BIND_MW))
		return -EOPNOTSUPP;
	if (flags & IBV_SEND_INLINE)
		return -EINVAL;
	ibv_wr_start(qp);
	qp->wr_id = wr_id;
	qp->wr_flags = flags;
	ibv_wr_bind_mw(qp, mw, rkey, info);
	return core_verbs_result(ibv_wr_complete(qp));
}
