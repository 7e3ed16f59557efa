/*
 * Functions that libibverbs exports since rdma-core 44, up to version 65. The headers of version 44 are enough to build
 * this. The symbol names are the library's and the C names are not, so that newer headers may declare the functions and
 * their structs as well. What a soft device supports is done. All else is rejected like for a driver without it:
 * EOPNOTSUPP.
 */
#include "preload.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

/* The functions and objects of memory: ibv_alloc_buf(3), ibv_reg_mr_ex(3). */

/* An ibv_buf: memory for regions, of a domain. */
struct memory {
	struct ibv_pd *pd;
	void *address;
	size_t size;
};

/* struct ibv_mr_init_attr, and the bits of the fields that are set */
struct region {
	size_t length;
	int access;
	uint64_t given;
	uint64_t iova;
	void *address;
	int descriptor;
	uint64_t descriptor_offset;
	void *dma_handle;
	struct memory *memory;
};

enum {
	GIVEN_IOVA = 1 << 0,
	GIVEN_ADDRESS = 1 << 1,
	GIVEN_DESCRIPTOR = 1 << 2,
	GIVEN_DESCRIPTOR_OFFSET = 1 << 3,
	GIVEN_MEMORY = 1 << 5,
};

void *preload_alloc_buf(struct ibv_pd *pd, size_t size, struct memory **out) SYMBOL(ibv_alloc_buf);
void preload_free_buf(struct memory *memory) SYMBOL(ibv_free_buf);
int preload_export_buf(struct memory *memory) SYMBOL(ibv_export_buf_dmabuf_fd);
struct ibv_mr *preload_reg_mr_ex(struct ibv_pd *pd, const struct region *region) SYMBOL(ibv_reg_mr_ex);
struct ibv_mr *preload_reg_buf_mr(struct ibv_pd *pd, struct memory *memory, void *address, size_t length,
				  int access) SYMBOL(ibv_reg_buf_mr);

void *preload_alloc_buf(struct ibv_pd *pd, size_t size, struct memory **out)
{
	struct memory *memory;
	int error;

	if (!preload_provider_of(OWNER(pd)))
		return NULL;
	memory = malloc(sizeof(*memory));
	if (!memory)
		return NULL;
	*memory = (struct memory){.pd = pd, .size = size};
	error = posix_memalign(&memory->address, (size_t)sysconf(_SC_PAGESIZE), size);
	if (error) {
		free(memory);
		errno = error;
		return NULL;
	}
	*out = memory;
	return memory->address;
}

void preload_free_buf(struct memory *memory)
{
	free(memory->address);
	free(memory);
}

/* It is memory of the process, which has no descriptor. */
int preload_export_buf(struct memory *memory)
{
	(void)memory;
	errno = ENODATA;
	return -1;
}

static bool within(const struct memory *memory, const void *address, size_t length)
{
	uintptr_t first = (uintptr_t)memory->address, from = (uintptr_t)address;

	return from >= first && from - first <= memory->size && length <= memory->size - (from - first);
}

struct ibv_mr *preload_reg_mr_ex(struct ibv_pd *pd, const struct region *region)
{
	struct core_provider *provider = preload_provider_of(OWNER(pd));
	uint64_t known = GIVEN_IOVA | GIVEN_ADDRESS | GIVEN_MEMORY;

	if (!provider)
		return NULL;
	errno = EINVAL;
	if (region->given & GIVEN_MEMORY &&
	    (pd != region->memory->pd || !(region->given & GIVEN_ADDRESS) ||
	     region->given & (GIVEN_DESCRIPTOR | GIVEN_DESCRIPTOR_OFFSET) ||
	     !within(region->memory, region->address, region->length)))
		return NULL;
	/* Neither memory of another device by a descriptor, nor steering by a handle is supported. */
	if (region->given & ~known) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	if (!(region->given & GIVEN_ADDRESS))
		return NULL;
	return provider->ibv_reg_mr_iova2(
		pd, region->address, region->length,
		region->given & GIVEN_IOVA ? region->iova : (uint64_t)(uintptr_t)region->address,
		(unsigned int)region->access);
}

struct ibv_mr *preload_reg_buf_mr(struct ibv_pd *pd, struct memory *memory, void *address, size_t length, int access)
{
	struct region region = {.length = length, .access = access, .given = GIVEN_MEMORY | GIVEN_ADDRESS,
				.address = address, .memory = memory};

	return preload_reg_mr_ex(pd, &region);
}

/* A port: ibv_query_port_speed(3). */

/* In units of 100 Mbit/s: a lane of 10 Gbit/s, as ibv_query_port says. */
#define SPEED 100

int preload_query_port_speed(struct ibv_context *context, uint32_t port, uint64_t *speed)
	SYMBOL(ibv_query_port_speed);

int preload_query_port_speed(struct ibv_context *context, uint32_t port, uint64_t *speed)
{
	struct core_provider *provider = preload_provider_of(OWNER(context));
	struct ibv_port_attr attr;
	int result;

	if (!provider)
		return errno;
	result = port > UINT8_MAX ? EINVAL :
				    provider->ibv_query_port(context, (uint8_t)port,
							     (struct _compat_ibv_port_attr *)&attr);
	if (!result)
		*speed = SPEED;
	return result;
}

/*
 * Objects that a soft device does not have: its own memory shared with others, steering handles, completion counters.
 * No such object can exist, so a pointer to one is invalid.
 */
#define NO_OBJECT(symbol, parameters)                                                              \
	void *preload_##symbol parameters SYMBOL(symbol);                                          \
	void *preload_##symbol parameters                                                          \
	{                                                                                          \
		errno = EOPNOTSUPP;                                                                \
		return NULL;                                                                       \
	}

#define NO_ANSWER(symbol, parameters)                                                              \
	int preload_##symbol parameters SYMBOL(symbol);                                            \
	int preload_##symbol parameters                                                            \
	{                                                                                          \
		return EOPNOTSUPP;                                                                 \
	}

#pragma GCC diagnostic ignored "-Wunused-parameter"

NO_OBJECT(ibv_alloc_dmah, (struct ibv_context * context, void *attr))
NO_ANSWER(ibv_dealloc_dmah, (void *handle))

NO_ANSWER(_ibv_query_comp_cntr_caps, (struct ibv_context * context, void *caps, size_t size))
NO_OBJECT(ibv_create_comp_cntr, (struct ibv_context * context, void *attr))
NO_ANSWER(ibv_destroy_comp_cntr, (void *counter))
NO_ANSWER(ibv_set_comp_cntr, (void *counter, uint64_t value))
NO_ANSWER(ibv_set_err_comp_cntr, (void *counter, uint64_t value))
NO_ANSWER(ibv_inc_comp_cntr, (void *counter, uint64_t amount))
NO_ANSWER(ibv_inc_err_comp_cntr, (void *counter, uint64_t amount))
NO_ANSWER(ibv_read_comp_cntr, (void *counter, uint64_t *value))
NO_ANSWER(ibv_read_err_comp_cntr, (void *counter, uint64_t *value))
NO_ANSWER(ibv_qp_attach_comp_cntr, (struct ibv_qp * qp, void *counter, void *attr))

/* Returns a descriptor, so -1. */
int preload_dm_export(void *memory) SYMBOL(ibv_dm_export_dmabuf_fd);

int preload_dm_export(void *memory)
{
	(void)memory;
	errno = EOPNOTSUPP;
	return -1;
}
