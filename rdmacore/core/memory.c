/* Protection domains and memory regions. */
#include "core/count.h"

int core_alloc_pd(struct core_provider *provider, struct ibv_context *context, struct ibv_pd **pd)
{
	if (!provider->ibv_alloc_pd)
		return -ENOSYS;
	*pd = provider->ibv_alloc_pd(context);
	if (!*pd)
		return core_errno();
	core_count(provider, CORE_PD, 1);
	return 0;
}

int core_dealloc_pd(struct core_provider *provider, struct ibv_pd *pd)
{
	int result;

	if (!provider->ibv_dealloc_pd)
		return -ENOSYS;
	result = core_verbs_result(provider->ibv_dealloc_pd(pd));
	if (!result)
		core_count(provider, CORE_PD, -1);
	return result;
}

/*
 * The optional access flags (relaxed ordering) are hints that a kernel may not know: only
 * ibv_reg_mr_iova2 takes them, and drops them where they are unknown (ibv_reg_mr(3)).
 */
static struct ibv_mr *register_optional(struct core_provider *provider, struct ibv_pd *pd, void *address,
					size_t length, uint64_t iova, int access)
{
	return provider->ibv_reg_mr_iova2(pd, address, length, iova, (unsigned int)access);
}

int core_reg_mr(struct core_provider *provider, struct ibv_pd *pd, void *address, size_t length,
		int access, struct ibv_mr **mr)
{
	if (!provider->ibv_reg_mr)
		return -ENOSYS;
	if ((access & IBV_ACCESS_OPTIONAL_RANGE) && provider->ibv_reg_mr_iova2)
		*mr = register_optional(provider, pd, address, length, (uintptr_t)address, access);
	else
		*mr = provider->ibv_reg_mr(pd, address, length,
					   access & ~IBV_ACCESS_OPTIONAL_RANGE);
	if (!*mr)
		return core_errno();
	core_count(provider, CORE_MR, 1);
	return 0;
}

int core_reg_mr_iova(struct core_provider *provider, struct ibv_pd *pd, void *address, size_t length,
		     uint64_t iova, int access, struct ibv_mr **mr)
{
	if ((access & IBV_ACCESS_OPTIONAL_RANGE) && provider->ibv_reg_mr_iova2)
		*mr = register_optional(provider, pd, address, length, iova, access);
	else if (provider->ibv_reg_mr_iova)
		*mr = provider->ibv_reg_mr_iova(pd, address, length, iova,
						access & ~IBV_ACCESS_OPTIONAL_RANGE);
	else
		return -ENOSYS;
	if (!*mr)
		return core_errno();
	core_count(provider, CORE_MR, 1);
	return 0;
}

int core_rereg_mr(struct core_provider *provider, struct ibv_mr *mr, int flags, struct ibv_pd *pd,
		  void *address, size_t length, int access, enum core_rereg *outcome)
{
	int result, error;

	*outcome = CORE_REREG_OLD;
	if (!provider->ibv_rereg_mr)
		return -ENOSYS;
	errno = 0; /* some drivers without it leave errno as it was */
	result = provider->ibv_rereg_mr(mr, flags, pd, address, length, access);
	error = core_errno();
	if (!result || result == IBV_REREG_MR_ERR_DO_FORK_OLD)
		*outcome = CORE_REREG_NEW;
	else if (result != IBV_REREG_MR_ERR_INPUT && result != IBV_REREG_MR_ERR_DONT_FORK_NEW)
		*outcome = CORE_REREG_UNKNOWN;
	return result ? error : 0;
}

int core_dereg_mr(struct core_provider *provider, struct ibv_mr *mr)
{
	int result;

	if (!provider->ibv_dereg_mr)
		return -ENOSYS;
	result = core_verbs_result(provider->ibv_dereg_mr(mr));
	if (!result)
		core_count(provider, CORE_MR, -1);
	return result;
}
