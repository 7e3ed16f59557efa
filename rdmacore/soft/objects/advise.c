/* ibv_advise_mr(3): make on-demand memory present before it is used. The errors are those of mlx5_ib. */
#include <errno.h>
#include <stdbool.h>

#include "soft/objects/context.h"
#include "soft/objects/device.h"
#include "soft/objects/mr_table.h"
#include "soft/objects/on_demand.h"
#include "soft/objects/pd.h"
#include "soft/objects/verbs.h"

/* The address of an entry in this process: 0 or an errno value. */
static int find(struct ibv_pd *pd, const struct ibv_sge *sge, bool write, uint64_t *memory)
{
	struct soft_mr_table *table = &soft_device(pd->context->device)->memory;
	struct soft_mr_slot *slot = soft_mr_table_slot(table, sge->lkey);
	uint64_t first, size;
	uint32_t rights;
	int error;

	soft_mutex_lock(&table->lock);
	rights = atomic_load_explicit(&slot->access, memory_order_relaxed);
	first = atomic_load_explicit(&slot->address, memory_order_relaxed);
	size = atomic_load_explicit(&slot->length, memory_order_relaxed);
	if (!sge->lkey || atomic_load_explicit(&slot->key, memory_order_relaxed) != sge->lkey)
		error = ENOENT;
	else if (atomic_load_explicit(&slot->pd, memory_order_relaxed) != soft_pd_domain(pd))
		error = EPERM;
	else if (!(rights & SOFT_ACCESS_LOCAL) || !(rights & IBV_ACCESS_ON_DEMAND))
		error = EINVAL;
	else if (write && !(rights & IBV_ACCESS_LOCAL_WRITE))
		error = EPERM;
	else
		error = sge->addr < first || sge->length > size || sge->addr - first > size - sge->length ? EFAULT : 0;
	*memory = atomic_load_explicit(&slot->memory, memory_order_relaxed) + (sge->addr - first);
	soft_mutex_unlock(&table->lock);
	return error;
}

static int advise(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, bool wait, const struct ibv_sge *sge)
{
	bool write = advice == IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE;
	uint64_t memory;
	int error = find(pd, sge, write, &memory);

	/* PREFETCH_NO_FAULT is about pages that are present, which soft can always access. */
	if (error || !sge->length || advice == IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT)
		return error;
	if (wait)
		return soft_on_demand_populate(memory, sge->length, write) ? 0 : EFAULT;
	soft_on_demand_expect(memory, sge->length);
	return 0;
}

int soft_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags, struct ibv_sge *list,
		   uint32_t count)
{
	int error = 0;

	if (soft_context_is_removed(pd->context))
		return EIO;
	if (advice > IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT)
		return EOPNOTSUPP;
	if (flags & ~(uint32_t)IBV_ADVISE_MR_FLAG_FLUSH || !count)
		return EINVAL;
	for (uint32_t entry = 0; entry < count && !error; entry++)
		error = advise(pd, advice, flags & IBV_ADVISE_MR_FLAG_FLUSH, &list[entry]);
	return error;
}
