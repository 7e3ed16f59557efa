/*
 * Device memory (ibv_alloc_dm(3)). An adapter has it next to its processor, which saves transfers on the bus.
 * Soft's is ordinary memory of the process, so that programs that need it run.
 *
 * As with an adapter, a forked child may allocate device memory with the context that its parent opened. So no lock
 * is taken here that the parent may have held.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "soft/base/lock.h"
#include "soft/objects/context.h"
#include "soft/objects/device.h"
#include "soft/objects/mr.h"
#include "soft/objects/verbs.h"

#define COPY_UNIT 4 /* bytes: mlx5 accesses its device memory in such words */

#define ACCESS                                                                                     \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |               \
	 IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_ZERO_BASED | IBV_ACCESS_OPTIONAL_RANGE)

struct soft_dm {
	struct ibv_dm ibv;
	size_t length;
	size_t taken; /* size and alignment together */
	char *memory;
	_Atomic unsigned int users; /* memory regions */
};

static struct soft_dm *soft_dm(struct ibv_dm *dm)
{
	return (struct soft_dm *)dm;
}

static bool lies_within(const struct soft_dm *dm, uint64_t offset, size_t length)
{
	return offset <= dm->length && length <= dm->length - offset;
}

static int check_copy(const struct soft_dm *dm, uint64_t offset, size_t length)
{
	return offset % COPY_UNIT || length % COPY_UNIT || !lies_within(dm, offset, length) ? EFAULT : 0;
}

static int copy_to(struct ibv_dm *ibv_dm, uint64_t offset, const void *from, size_t length)
{
	struct soft_dm *dm = soft_dm(ibv_dm);
	int error = check_copy(dm, offset, length);

	if (!error)
		memcpy(dm->memory + offset, from, length);
	return error;
}

static int copy_from(void *to, struct ibv_dm *ibv_dm, uint64_t offset, size_t length)
{
	struct soft_dm *dm = soft_dm(ibv_dm);
	int error = check_copy(dm, offset, length);

	if (!error)
		memcpy(to, dm->memory + offset, length);
	return error;
}

/* Take from what the device has left. */
static bool take(struct soft_device *device, size_t length)
{
	uint64_t used = atomic_load(&device->own_memory_used);

	do
		if (length > SOFT_DEVICE_MEMORY - used)
			return false;
	while (!atomic_compare_exchange_weak(&device->own_memory_used, &used, used + length));
	return true;
}

struct ibv_dm *soft_alloc_dm(struct ibv_context *context, struct ibv_alloc_dm_attr *attr)
{
	struct soft_device *device = soft_device(context->device);
	size_t alignment, size;
	struct soft_dm *dm;

	errno = soft_context_is_removed(context) ? EIO :
		attr->comp_mask || !attr->length || attr->log_align_req > SOFT_DEVICE_MEMORY_ALIGNMENT ? EINVAL :
		attr->length > SOFT_DEVICE_MEMORY ? ENOMEM : 0;
	if (errno)
		return NULL;
	alignment = (size_t)1 << attr->log_align_req;
	if (alignment < SOFT_CACHE_LINE)
		alignment = SOFT_CACHE_LINE;
	size = (attr->length + alignment - 1) & ~(alignment - 1);
	if (!take(device, size)) {
		errno = ENOMEM;
		return NULL;
	}
	dm = calloc(1, sizeof(*dm));
	if (!dm)
		goto give_back;
	dm->memory = aligned_alloc(alignment, size);
	if (!dm->memory)
		goto free_dm;
	memset(dm->memory, 0, size); /* do not show the data of earlier users */
	dm->length = attr->length;
	dm->taken = size;
	dm->ibv.context = context;
	dm->ibv.memcpy_to_dm = copy_to;
	dm->ibv.memcpy_from_dm = copy_from;
	dm->ibv.handle = atomic_fetch_add(&device->own_memories, 1);
	return &dm->ibv;

free_dm:
	free(dm);
give_back:
	atomic_fetch_sub(&device->own_memory_used, size);
	errno = ENOMEM;
	return NULL;
}

int soft_free_dm(struct ibv_dm *ibv_dm)
{
	struct soft_dm *dm = soft_dm(ibv_dm);

	if (atomic_load(&dm->users))
		return EBUSY;
	atomic_fetch_sub(&soft_device(ibv_dm->context->device)->own_memory_used, dm->taken);
	free(dm->memory);
	free(dm);
	return 0;
}

struct ibv_mr *soft_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *ibv_dm, uint64_t offset, size_t length,
			      unsigned int access)
{
	struct soft_dm *dm = soft_dm(ibv_dm);
	struct soft_mr *mr;

	errno = soft_context_is_removed(pd->context) ? EIO :
		pd->context != ibv_dm->context || !(access & IBV_ACCESS_ZERO_BASED) || !lies_within(dm, offset, length) ||
				(access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC) &&
				 !(access & IBV_ACCESS_LOCAL_WRITE)) ? EINVAL :
		access & ~(unsigned int)ACCESS ? EOPNOTSUPP : 0;
	if (errno)
		return NULL;
	mr = soft_mr_create(pd, dm->memory + offset, length, 0, access & ~(unsigned int)IBV_ACCESS_OPTIONAL_RANGE);
	if (!mr)
		return NULL;
	mr->kind = SOFT_MR_DEVICE_MEMORY;
	mr->users_of_memory = &dm->users;
	atomic_fetch_add(&dm->users, 1);
	mr->ibv.addr = NULL; /* the processor cannot access it by an address */
	return &mr->ibv;
}
