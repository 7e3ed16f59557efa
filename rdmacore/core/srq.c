/* Shared receive queues; posting to them is in core/post.c. */
#include "core/call.h"

int core_create_srq(struct core_provider *provider, struct ibv_pd *pd, struct ibv_srq_init_attr *attr,
		    struct ibv_srq **srq)
{
	CORE_NEEDS(provider->ibv_create_srq && provider->ibv_destroy_srq);
	*srq = provider->ibv_create_srq(pd, attr);
	if (!*srq)
		return core_errno();
	core_count(provider, CORE_SRQ, 1);
	return 0;
}

int core_modify_srq(struct core_provider *provider, struct ibv_srq *srq, struct ibv_srq_attr *attr,
		    int mask)
{
	CORE_NEEDS(provider->ibv_modify_srq);
	return core_verbs_result(provider->ibv_modify_srq(srq, attr, mask));
}

int core_query_srq(struct core_provider *provider, struct ibv_srq *srq, struct ibv_srq_attr *attr)
{
	CORE_NEEDS(provider->ibv_query_srq);
	return core_verbs_result(provider->ibv_query_srq(srq, attr));
}

int core_destroy_srq(struct core_provider *provider, struct ibv_srq *srq)
{
	int result = core_verbs_result(provider->ibv_destroy_srq(srq));

	if (!result)
		core_count(provider, CORE_SRQ, -1);
	return result;
}

/* Shared receive queues of ids (rdma_create_srq(3)). */

int core_id_create_srq(struct core_provider *provider, struct rdma_cm_id *id, struct ibv_pd *pd,
		       struct ibv_srq_init_attr *attr)
{
	struct ibv_pd *default_pd = id->pd;
	int result;

	CORE_NEEDS(provider->rdma_create_srq && provider->ibv_destroy_srq);
	/* librdmacm forgets an earlier queue of the id. */
	if (!id->verbs || id->srq || (pd && pd->context != id->verbs))
		return -EINVAL;
	result = core_rdma_result(provider->rdma_create_srq(id, pd, attr));
	id->pd = default_pd;
	if (!result)
		core_count(provider, CORE_SRQ, 1);
	return result;
}

/*
 * rdma_destroy_srq(3) returns nothing for a queue that is in use, and forgets it. So the queue itself is destroyed
 * first.
 */
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
