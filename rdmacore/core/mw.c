/* Memory windows: one way to bind both types. */
#include "core/count.h"

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

/* The user of a type 2 window chooses the last 8 bits of its key: the next, as ibv_inc_rkey does. */
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
