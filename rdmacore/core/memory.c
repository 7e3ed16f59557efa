/* Protection domains and memory regions. */
#include "core/call.h"

int core_alloc_pd(struct core_provider *provider, struct ibv_context *context, struct ibv_pd **pd)
{
	CORE_NEEDS(provider->ibv_alloc_pd);
	*pd = provider->ibv_alloc_pd(context);
	if (!*pd)
		return core_errno();
	core_count(provider, CORE_PD, 1);
	return 0;
}

int core_dealloc_pd(struct core_provider *provider, struct ibv_pd *pd)
{
	int result;

	CORE_NEEDS(provider->ibv_dealloc_pd);
	result = core_verbs_result(provider->ibv_dealloc_pd(pd));
	if (!result)
		core_count(provider, CORE_PD, -1);
	return result;
}

/*
 * The optional access flags (relaxed ordering) are hints that a kernel may not know. Only ibv_reg_mr_iova2 accepts
 * them, and ignores unknown ones (ibv_reg_mr(3)).
 */
static struct ibv_mr *register_optional(struct core_provider *provider, struct ibv_pd *pd, void *address,
					size_t length, uint64_t iova, int access)
{
	return provider->ibv_reg_mr_iova2(pd, address, length, iova, (unsigned int)access);
}

int core_reg_mr(struct core_provider *provider, struct ibv_pd *pd, void *address, size_t length,
		int access, struct ibv_mr **mr)
{
	CORE_NEEDS(provider->ibv_reg_mr);
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
	CORE_NEEDS(provider->ibv_rereg_mr);
	errno = 0; /* some drivers without it do not set errno */
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

	CORE_NEEDS(provider->ibv_dereg_mr);
	result = core_verbs_result(provider->ibv_dereg_mr(mr));
	if (!result)
		core_count(provider, CORE_MR, -1);
	return result;
}

/* Memory windows: one function binds both types. */

int core_alloc_mw(struct core_provider *provider, struct ibv_pd *pd, int type, struct ibv_mw **mw)
{
	*mw = ibv_alloc_mw(pd, (enum ibv_mw_type)type);
	if (!*mw)
		return core_errno();
	core_count(provider, CORE_MW, 1);
	return 0;
}

int core_dealloc_mw(struct core_provider *provider, struct ibv_mw *mw)
{
	int result = core_verbs_result(ibv_dealloc_mw(mw));

	if (!result)
		core_count(provider, CORE_MW, -1);
	return result;
}

static int bind_type_1(struct ibv_qp *qp, struct ibv_mw *mw, const struct core_mw_bind *bind,
		       const struct ibv_mw_bind_info *info)
{
	struct ibv_mw_bind request = {
		.wr_id = bind->wr_id,
		.send_flags = bind->flags,
		.bind_info = *info,
	};

	return core_verbs_result(ibv_bind_mw(qp, mw, &request));
}

/* The user of a type 2 window chooses the last 8 bits of its key: the next value, like ibv_inc_rkey. */
static int bind_type_2(struct ibv_qp *qp, struct ibv_qp_ex *builder, uint64_t operations, struct ibv_mw *mw,
		       const struct core_mw_bind *bind, const struct ibv_mw_bind_info *info)
{
	struct ibv_send_wr request = {
		.wr_id = bind->wr_id,
		.opcode = IBV_WR_BIND_MW,
		.send_flags = bind->flags,
		.bind_mw = {.mw = mw, .rkey = ibv_inc_rkey(mw->rkey), .bind_info = *info},
	};
	struct ibv_send_wr *bad;
	int result;

	if (builder)
		result = core_build_mw(builder, operations, mw, bind->flags, bind->wr_id,
				       request.bind_mw.rkey, info);
	else
		result = core_verbs_result(ibv_post_send(qp, &request, &bad));
	if (!result)
		mw->rkey = request.bind_mw.rkey;
	return result;
}

int core_bind_mw(struct ibv_qp *qp, struct ibv_qp_ex *builder, uint64_t operations, struct ibv_mw *mw,
		 struct ibv_mr *mr, const struct core_mw_bind *bind)
{
	const struct ibv_mw_bind_info info = {
		.mr = mr,
		.addr = bind->address,
		.length = bind->length,
		.mw_access_flags = bind->access,
	};

	if (mw->pd != qp->pd || (mr && mr->pd != mw->pd) || (!mr && bind->length))
		return -EINVAL;
	return mw->type == IBV_MW_TYPE_1 ? bind_type_1(qp, mw, bind, &info) :
					   bind_type_2(qp, builder, operations, mw, bind, &info);
}
