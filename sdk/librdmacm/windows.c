/* Memory windows of type 1, which ibv_bind_mw binds. */
#include <errno.h>
#include <stdlib.h>
#include "internal.h"

struct ibv_mw *alloc_window(struct ibv_pd *pd, enum ibv_mw_type type)
{
	struct ibv_mw *mw = calloc(1, sizeof(*mw));
	int32_t handle;

	if (!mw)
		return NULL;
	/* A program posts a request to bind a window of type 2, and chooses its key. Here the host chooses it. */
	handle = type == IBV_MW_TYPE_1 ? rdmarun_alloc_mw(pd->handle, type) : -RDMARUN_EOPNOTSUPP;
	if (cm_result(handle)) {
		free(mw);
		return NULL;
	}
	mw->context = pd->context;
	mw->pd = pd;
	mw->handle = (uint32_t)handle;
	mw->type = type;
	return mw;
}

int bind_window(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *wish)
{
	struct ibv_mr *mr = wish->bind_info.mr;
	struct rdmarun_mw_bind bind = {
		.wr_id = wish->wr_id,
		.addr = wish->bind_info.addr,
		.length = wish->bind_info.length,
		.mr = mr ? mr->handle : 0,
		.access = wish->bind_info.mw_access_flags,
		.send_flags = wish->send_flags,
	};
	int error = verbs_result(rdmarun_bind_mw(qp->handle, mw->handle, &bind));

	if (!error)
		mw->rkey = bind.rkey;
	return error;
}

int dealloc_window(struct ibv_mw *mw)
{
	int error = verbs_result(rdmarun_dealloc_mw(mw->handle));

	if (!error)
		free(mw);
	return error;
}
