/* Shared receive queues of ids (rdma_create_srq(3)). */
#include "core/count.h"

int core_id_create_srq(struct core_provider *provider, struct rdma_cm_id *id, struct ibv_pd *pd,
		       struct ibv_srq_init_attr *attr)
{
	struct ibv_pd *default_pd = id->pd;
	int result;

	if (!provider->rdma_create_srq || !provider->ibv_destroy_srq)
		return -ENOSYS;
	/* librdmacm forgets a queue that the id has already. */
	if (!id->verbs || id->srq || (pd && pd->context != id->verbs))
		return -EINVAL;
	result = core_rdma_result(provider->rdma_create_srq(id, pd, attr));
	id->pd = default_pd;
	if (!result)
		core_count(provider, CORE_SRQ, 1);
	return result;
}

/* rdma_destroy_srq(3) says nothing of a queue that is in use, and forgets it; so the queue is asked itself. */
int core_id_destroy_srq(struct core_provider *provider, struct rdma_cm_id *id)
{
	int result;

	if (!id->srq)
		return -EINVAL;
	if (id->qp)
		return -EBUSY;
	result = core_verbs_result(provider->ibv_destroy_srq(id->srq));
	if (result)
		return result;
	id->srq = NULL;
	core_count(provider, CORE_SRQ, -1);
	return 0;
}
