#include "soft/objects/mr.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "provider/newer.h"
#include "soft/objects/context.h"
#include "soft/objects/device.h"
#include "soft/objects/late_writes.h"
#include "soft/objects/mr_table.h"
#include "soft/objects/pd.h"
#include "soft/objects/qp.h"

/*
 * Huge pages and relaxed ordering are hints to a device that translates and orders. Soft does neither, so it ignores
 * them.
 */
#define SOFT_MR_ACCESS                                                                             \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |               \
	 IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED |                   \
	 IBV_ACCESS_ON_DEMAND | IBV_ACCESS_HUGETLB | CORE_ACCESS_FLUSH_GLOBAL |                    \
	 IBV_ACCESS_RELAXED_ORDERING)

/* 0, or an errno value if it cannot be registered. */
static int check(const struct soft_device *device, const void *address, size_t length, uint64_t iova, int access)
{
	/* A device translates whole pages (ib_uverbs_reg_mr of Linux). */
	if (((uintptr_t)address ^ iova) & ((uintptr_t)sysconf(_SC_PAGESIZE) - 1))
		return EINVAL;
	if (access & ~SOFT_MR_ACCESS)
		return EOPNOTSUPP;
	/* A flush of a whole region needs memory that is present (it is in none of the ODP capabilities). */
	if (access & IBV_ACCESS_ON_DEMAND && (!device->on_demand || access & CORE_ACCESS_FLUSH_GLOBAL))
		return EOPNOTSUPP;
	/* ibv_reg_mr(3): remote write and atomic rights need the local one. */
	if (access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC) &&
	    !(access & IBV_ACCESS_LOCAL_WRITE))
		return EINVAL;
	if ((uintptr_t)address + length < (uintptr_t)address || iova + length < iova)
		return EINVAL;
	return 0;
}

/*
 * Whether a kernel could pin the memory: 0 or EFAULT. A region that a peer or the device may write must be writable
 * (ib_access_writable of Linux).
 */
static int look(const struct soft_device *device, const void *address, size_t length, int access)
{
	const int writable = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND;

	if (access & IBV_ACCESS_ON_DEMAND || !device->on_demand)
		return 0;
	return soft_memory_is_there((uintptr_t)address, length, access & writable) ? 0 : EFAULT;
}

/* Set all fields of the slot but its key, which is 0. table->lock is held. */
static void fill(struct soft_mr_slot *slot, struct soft_pd *pd, const void *address, size_t length,
		 uint64_t iova, uint32_t access)
{
	atomic_store_explicit(&slot->access, access | SOFT_ACCESS_LOCAL, memory_order_release);
	atomic_store_explicit(&slot->address, iova, memory_order_release);
	atomic_store_explicit(&slot->memory, (uintptr_t)address, memory_order_release);
	atomic_store_explicit(&slot->length, length, memory_order_release);
	atomic_store_explicit(&slot->qp_num, 0, memory_order_release);
	atomic_store_explicit(&slot->pd, pd, memory_order_release);
}

struct soft_mr *soft_mr_create(struct ibv_pd *ibv_pd, void *address, size_t length, uint64_t iova, uint32_t access)
{
	struct soft_pd *pd = soft_pd(ibv_pd);
	struct soft_mr_table *table = &soft_device(ibv_pd->context->device)->memory;
	struct soft_mr *mr = calloc(1, sizeof(*mr));

	if (!mr)
		return NULL;

	soft_mutex_lock(&table->lock);
	mr->key = soft_mr_table_take(table);
	if (mr->key) {
		mr->slot = soft_mr_table_slot(table, mr->key);
		mr->slot->windows = 0;
		fill(mr->slot, pd->domain, address, length, access & IBV_ACCESS_ZERO_BASED ? 0 : iova, access);
		atomic_store_explicit(&mr->slot->key, mr->key, memory_order_release);
		mr->ibv.lkey = mr->key;
		mr->ibv.rkey = mr->key;
	}
	soft_mutex_unlock(&table->lock);
	if (!mr->key) {
		free(mr);
		errno = ENOMEM;
		return NULL;
	}
	atomic_fetch_add(&pd->users, 1);
	mr->access = (int)access;
	mr->ibv.context = ibv_pd->context;
	mr->ibv.pd = ibv_pd;
	mr->ibv.addr = address;
	mr->ibv.length = length;
	mr->ibv.handle = mr->key >> SOFT_KEY_TAG_BITS;
	return mr;
}

struct ibv_mr *soft_reg_mr_iova(struct ibv_pd *pd, void *address, size_t length, uint64_t iova, int access)
{
	const struct soft_device *device = soft_device(pd->context->device);
	int error = soft_context_is_removed(pd->context) ? EIO : check(device, address, length, iova, access);
	struct soft_mr *mr;

	if (!error)
		error = look(device, address, length, access);
	if (error) {
		errno = error;
		return NULL;
	}
	mr = soft_mr_create(pd, address, length, iova, (uint32_t)access);
	return mr ? &mr->ibv : NULL;
}

struct ibv_mr *soft_reg_mr(struct ibv_pd *pd, void *address, size_t length, int access)
{
	return soft_reg_mr_iova(pd, address, length, (uintptr_t)address, access);
}

struct ibv_mr *soft_reg_mr_iova2(struct ibv_pd *pd, void *address, size_t length, uint64_t iova,
				 unsigned int access)
{
	return soft_reg_mr_iova(pd, address, length, iova, (int)(access & ~IBV_ACCESS_OPTIONAL_RANGE));
}

struct ibv_mr *soft_alloc_null_mr(struct ibv_pd *pd)
{
	struct soft_mr_table *table = &soft_device(pd->context->device)->memory;
	struct soft_mr *mr = NULL;
	bool taken;

	if (soft_context_is_removed(pd->context)) {
		errno = EIO;
		return NULL;
	}
	soft_mutex_lock(&table->lock);
	taken = soft_null_memory_take(&table->null);
	soft_mutex_unlock(&table->lock);
	if (taken)
		mr = soft_mr_create(pd, NULL, SIZE_MAX, 0, IBV_ACCESS_LOCAL_WRITE | SOFT_ACCESS_NULL);
	if (mr) {
		mr->kind = SOFT_MR_NULL;
		mr->ibv.rkey = 0; /* a null region has no remote access */
		return &mr->ibv;
	}
	if (taken) {
		soft_mutex_lock(&table->lock);
		soft_null_memory_drop(&table->null);
		soft_mutex_unlock(&table->lock);
	}
	errno = ENOMEM;
	return NULL;
}

/* Clear the key, and wait until no transfer uses it; -EBUSY while windows are bound. */
static int disable(struct soft_mr_table *table, struct soft_mr_slot *slot, struct soft_pd *pd)
{
	int result = 0;

	soft_mutex_lock(&table->lock);
	if (slot->windows)
		result = -EBUSY;
	else
		atomic_store_explicit(&slot->key, 0, memory_order_release);
	soft_mutex_unlock(&table->lock);
	if (result)
		return result;
	soft_quiesce(pd);
	soft_late_writes_flush(soft_device(pd->ibv.context->device)->late_writes);
	return 0;
}

int soft_rereg_mr(struct ibv_mr *ibv_mr, int flags, struct ibv_pd *ibv_pd, void *address,
		  size_t length, int access)
{
	struct soft_mr *mr = (struct soft_mr *)ibv_mr;
	struct soft_mr_table *table = &soft_device(ibv_mr->context->device)->memory;
	struct soft_mr_slot *slot = mr->slot;
	bool moves = flags & IBV_REREG_MR_CHANGE_TRANSLATION;
	bool stray = access && !(flags & IBV_REREG_MR_CHANGE_ACCESS); /* libibverbs rejects that, too */

	if (!(flags & IBV_REREG_MR_CHANGE_PD))
		ibv_pd = ibv_mr->pd;
	if (!(flags & IBV_REREG_MR_CHANGE_ACCESS))
		access = mr->access;
	if (!moves) {
		address = ibv_mr->addr;
		length = ibv_mr->length;
	}
	errno = !flags || flags & ~IBV_REREG_MR_FLAGS_SUPPORTED || stray || mr->kind != SOFT_MR_USER ? EINVAL :
		ibv_pd->context != ibv_mr->context || (moves && !length) ? EINVAL :
		check(soft_device(ibv_mr->context->device), address, length, (uintptr_t)address, access);
	if (errno)
		return IBV_REREG_MR_ERR_INPUT;
	errno = soft_context_is_removed(ibv_mr->context) ? EIO : 0;
	if (!errno && (moves || flags & IBV_REREG_MR_CHANGE_ACCESS))
		errno = look(soft_device(ibv_mr->context->device), address, length, access);
	if (!errno)
		errno = -disable(table, slot, soft_pd(ibv_mr->pd));
	if (errno)
		return IBV_REREG_MR_ERR_CMD;
	soft_mutex_lock(&table->lock);
	/* A region that is not moved keeps the address that work requests use. */
	fill(slot, soft_pd_domain(ibv_pd), address, length,
	     access & IBV_ACCESS_ZERO_BASED ? 0 :
	     moves ? (uintptr_t)address : atomic_load_explicit(&slot->address, memory_order_relaxed),
	     (uint32_t)access);
	atomic_store_explicit(&slot->key, mr->key, memory_order_release);
	soft_mutex_unlock(&table->lock);
	atomic_fetch_add(&soft_pd(ibv_pd)->users, 1);
	atomic_fetch_sub(&soft_pd(ibv_mr->pd)->users, 1);
	mr->access = access;
	ibv_mr->pd = ibv_pd;
	ibv_mr->addr = address;
	ibv_mr->length = length;
	return 0;
}

int soft_dereg_mr(struct ibv_mr *ibv_mr)
{
	struct soft_mr *mr = (struct soft_mr *)ibv_mr;
	struct soft_pd *pd = soft_pd(ibv_mr->pd);
	struct soft_mr_table *table = &soft_device(ibv_mr->context->device)->memory;
	int result = disable(table, mr->slot, pd);

	if (result)
		return -result;
	soft_mutex_lock(&table->lock);
	soft_mr_table_free(table, mr->key);
	if (mr->kind == SOFT_MR_NULL)
		soft_null_memory_drop(&table->null);
	soft_mutex_unlock(&table->lock);
	if (mr->kind == SOFT_MR_DEVICE_MEMORY)
		atomic_fetch_sub(mr->users_of_memory, 1);
	atomic_fetch_sub(&pd->users, 1);
	free(mr);
	return 0;
}
