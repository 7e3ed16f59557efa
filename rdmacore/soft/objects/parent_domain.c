#include "soft/objects/pd.h"

#include <errno.h>
#include <stdlib.h>

#include "provider/newer.h"
#include "soft/objects/context.h"

/* ALLOW_UNPROTECTED (memory that a confidential guest shares) has no effect here. */
#define ATTRIBUTES                                                                                 \
	(uint32_t)(IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT | \
		   CORE_PARENT_DOMAIN_ALLOW_UNPROTECTED)

struct ibv_td *soft_alloc_td(struct ibv_context *context, struct ibv_td_init_attr *attr)
{
	struct soft_td *td;

	if (soft_context_is_removed(context) || attr->comp_mask) {
		errno = attr->comp_mask ? EINVAL : EIO;
		return NULL;
	}
	td = calloc(1, sizeof(*td));
	if (!td)
		return NULL;
	td->ibv.context = context;
	return &td->ibv;
}

int soft_dealloc_td(struct ibv_td *ibv_td)
{
	struct soft_td *td = (struct soft_td *)ibv_td;

	if (atomic_load(&td->users))
		return EBUSY;
	free(td);
	return 0;
}

static int check(struct ibv_context *context, const struct ibv_parent_domain_init_attr *attr)
{
	if (!attr->pd || attr->pd->context != context || (attr->td && attr->td->context != context) ||
	    attr->comp_mask & ~ATTRIBUTES)
		return EINVAL;
	if (attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS && (!attr->alloc || !attr->free))
		return EINVAL;
	return 0;
}

struct ibv_pd *soft_alloc_parent_domain(struct ibv_context *context,
					struct ibv_parent_domain_init_attr *attr)
{
	struct ibv_pd *made;
	struct soft_pd *pd;
	int error = check(context, attr);

	if (error) {
		errno = error;
		return NULL;
	}
	made = soft_alloc_pd(context);
	if (!made)
		return NULL;
	pd = soft_pd(made);
	pd->domain = soft_pd_domain(attr->pd);
	pd->parent = (struct ibv_parent_domain_init_attr){
		.pd = attr->pd, .td = attr->td, .comp_mask = attr->comp_mask};
	if (attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS) {
		pd->parent.alloc = attr->alloc;
		pd->parent.free = attr->free;
	}
	if (attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT)
		pd->parent.pd_context = attr->pd_context;
	atomic_fetch_add(&soft_pd(attr->pd)->users, 1);
	if (attr->td)
		atomic_fetch_add(&((struct soft_td *)attr->td)->users, 1);
	return made;
}

void *soft_parent_domain_allocate(struct soft_pd *pd, size_t size, enum soft_resource resource,
				  struct soft_pd **source)
{
	void *memory = IBV_ALLOCATOR_USE_DEFAULT;

	size = (size + SOFT_CACHE_LINE - 1) & ~(size_t)(SOFT_CACHE_LINE - 1);
	if (pd && pd->parent.alloc)
		memory = pd->parent.alloc(&pd->ibv, pd->parent.pd_context, size, SOFT_CACHE_LINE, resource);
	if (memory == IBV_ALLOCATOR_USE_DEFAULT) {
		*source = NULL;
		return aligned_alloc(SOFT_CACHE_LINE, size);
	}
	*source = memory ? pd : NULL;
	return memory;
}

void soft_parent_domain_free(struct soft_pd *source, void *memory, enum soft_resource resource)
{
	if (source)
		source->parent.free(&source->ibv, source->parent.pd_context, memory, resource);
	else
		free(memory);
}
