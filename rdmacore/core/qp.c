/*
 * Queue pairs of ids, with the completion queues that are created and destroyed with them, and queue pairs of a
 * domain.
 */
#include <string.h>

#include "core/call.h"

/* The completion queues and channels that an id owns; those of the caller are not stored in it. */
struct owned {
	long cqs;
	long channels;
};

static struct owned count_owned(const struct rdma_cm_id *id)
{
	struct owned owned = {0};

	owned.cqs = !!id->recv_cq + (id->send_cq && id->send_cq != id->recv_cq);
	owned.channels = !!id->recv_cq_channel +
			 (id->send_cq_channel && id->send_cq_channel != id->recv_cq_channel);
	return owned;
}

static void count_change(struct core_provider *provider, const struct rdma_cm_id *id,
			 struct owned before)
{
	struct owned after = count_owned(id);

	core_count(provider, CORE_CQ, after.cqs - before.cqs);
	core_count(provider, CORE_COMP_CHANNEL, after.channels - before.channels);
}

/*
 * rdma_destroy_qp looks for the id's queues from recv_cq on. So it does not destroy a send_cq without a recv_cq (if
 * the caller gave only a receive queue).
 */
static void destroy_lone_send_cq(struct core_provider *provider, struct rdma_cm_id *id)
{
	if (id->send_cq && !id->recv_cq && provider->ibv_destroy_cq(id->send_cq) == 0)
		id->send_cq = NULL;
	if (id->send_cq_channel && !id->recv_cq_channel &&
	    provider->ibv_destroy_comp_channel(id->send_cq_channel) == 0)
		id->send_cq_channel = NULL;
}

/* The queues that rdma_create_qp leaves to the id when it fails. */
static void destroy_queues(struct core_provider *provider, struct rdma_cm_id *id)
{
	if (id->recv_cq && provider->ibv_destroy_cq(id->recv_cq) == 0)
		id->recv_cq = NULL;
	if (id->recv_cq_channel && !id->recv_cq &&
	    provider->ibv_destroy_comp_channel(id->recv_cq_channel) == 0)
		id->recv_cq_channel = NULL;
	destroy_lone_send_cq(provider, id);
}

static int make_channels_nonblocking(const struct rdma_cm_id *id)
{
	int result = 0;

	if (id->send_cq_channel)
		result = core_set_nonblocking(id->send_cq_channel->fd);
	if (!result && id->recv_cq_channel)
		result = core_set_nonblocking(id->recv_cq_channel->fd);
	return result;
}

static int check_create(const struct core_provider *provider, const struct rdma_cm_id *id,
			const struct ibv_pd *pd)
{
	CORE_NEEDS(provider->rdma_destroy_qp && provider->ibv_destroy_cq && provider->ibv_destroy_comp_channel);
	if (!id->verbs || id->qp || (pd && pd->context != id->verbs))
		return -EINVAL;
	return 0;
}

static void fill_in(const struct rdma_cm_id *id, struct ibv_qp_init_attr *attr)
{
	if (!attr->qp_type)
		attr->qp_type = id->qp_type;
	/* librdmacm creates no queue of 0 entries, and providers dereference the pointer that it leaves NULL. */
	if (!attr->send_cq && !attr->cap.max_send_wr)
		attr->cap.max_send_wr = 1;
	if (!attr->recv_cq && !attr->cap.max_recv_wr)
		attr->cap.max_recv_wr = 1;
}

/* After rdma_create_qp or rdma_create_qp_ex. */
static int finish_create(struct core_provider *provider, struct rdma_cm_id *id,
			 struct ibv_pd *default_pd, struct owned before, int result)
{
	/* librdmacm leaves the caller's PD in the id. The next rdma_create_qp would use it, even if it was freed. */
	id->pd = default_pd;
	if (result) {
		destroy_queues(provider, id);
		count_change(provider, id, before);
		return result;
	}
	core_count(provider, CORE_QP, 1);
	count_change(provider, id, before);
	result = make_channels_nonblocking(id);
	if (result)
		core_destroy_qp(provider, id, false, false);
	return result;
}

int core_create_qp(struct core_provider *provider, struct rdma_cm_id *id, struct ibv_pd *pd,
		   struct ibv_qp_init_attr *attr)
{
	struct owned before = count_owned(id);
	struct ibv_pd *default_pd = id->pd;
	int result = provider->rdma_create_qp ? check_create(provider, id, pd) : -ENOSYS;

	if (result)
		return result;
	fill_in(id, attr);
	result = core_rdma_result(provider->rdma_create_qp(id, pd, attr));
	return finish_create(provider, id, default_pd, before, result);
}

/* The extended struct begins with the fields of the plain one (ibv_create_qp_ex(3)). */
static struct ibv_qp_init_attr_ex extend(const struct ibv_qp_init_attr *attr, const struct core_qp_extra *extra, struct ibv_pd *pd)
{
	struct ibv_qp_init_attr_ex extended = {0};

	memcpy(&extended, attr, offsetof(struct ibv_qp_init_attr_ex, comp_mask));
	extended.comp_mask = extra->comp_mask & ~(uint32_t)IBV_QP_INIT_ATTR_PD;
	if (pd) {
		extended.comp_mask |= IBV_QP_INIT_ATTR_PD;
		extended.pd = pd;
	}
	extended.create_flags = extra->create_flags;
	extended.send_ops_flags = extra->send_ops_flags;
	extended.source_qpn = extra->source_qpn;
	extended.max_tso_header = extra->max_tso_header;
	return extended;
}

int core_create_qp_ex(struct core_provider *provider, struct rdma_cm_id *id, struct ibv_pd *pd,
		      struct ibv_qp_init_attr *attr, const struct core_qp_extra *extra)
{
	struct owned before = count_owned(id);
	struct ibv_pd *default_pd = id->pd;
	struct ibv_qp_init_attr_ex extended;
	int result = provider->rdma_create_qp_ex ? check_create(provider, id, pd) : -ENOSYS;

	if (result)
		return result;
	fill_in(id, attr);
	extended = extend(attr, extra, pd);
	result = core_rdma_result(provider->rdma_create_qp_ex(id, &extended));
	if (!result)
		memcpy(attr, &extended, offsetof(struct ibv_qp_init_attr_ex, comp_mask));
	return finish_create(provider, id, default_pd, before, result);
}

int core_init_qp_attr(struct core_provider *provider, struct rdma_cm_id *id,
		      struct ibv_qp_attr *attr, int *mask)
{
	CORE_NEEDS(provider->rdma_init_qp_attr);
	if (!id->verbs)
		return -EINVAL;
	return core_rdma_result(provider->rdma_init_qp_attr(id, attr, mask));
}

int core_destroy_qp(struct core_provider *provider, struct rdma_cm_id *id, bool keep_send_cq,
		    bool keep_recv_cq)
{
	struct ibv_cq *send_cq = id->send_cq, *recv_cq = id->recv_cq;
	struct ibv_comp_channel *send_channel = id->send_cq_channel, *recv_channel = id->recv_cq_channel;
	struct owned before;

	if (!id->qp)
		return -EINVAL;
	/* rdma_destroy_qp tries to destroy the queues that it finds here, and forgets them even if that fails. */
	if (keep_send_cq) {
		id->send_cq = NULL;
		id->send_cq_channel = NULL;
	}
	if (keep_recv_cq) {
		id->recv_cq = NULL;
		id->recv_cq_channel = NULL;
	}
	before = count_owned(id);
	errno = EBUSY;
	provider->rdma_destroy_qp(id);
	if (id->qp) {
		id->send_cq = send_cq;
		id->send_cq_channel = send_channel;
		id->recv_cq = recv_cq;
		id->recv_cq_channel = recv_channel;
		return core_errno();
	}
	destroy_lone_send_cq(provider, id);
	core_count(provider, CORE_QP, -1);
	count_change(provider, id, before);
	return 0;
}

int core_pd_create_qp(struct core_provider *provider, struct ibv_pd *pd, struct ibv_qp_init_attr *attr,
		      const struct core_qp_extra *extra, struct ibv_qp **qp)
{
	CORE_NEEDS(provider->ibv_create_qp && provider->ibv_destroy_qp);
	if (extra && extra->comp_mask) {
		struct verbs_context *context = verbs_get_ctx_op(pd->context, create_qp_ex);
		struct ibv_qp_init_attr_ex extended = extend(attr, extra, pd);

		if (!context)
			return -EOPNOTSUPP;
		*qp = context->create_qp_ex(pd->context, &extended);
		if (*qp)
			memcpy(attr, &extended, offsetof(struct ibv_qp_init_attr_ex, comp_mask));
	} else {
		*qp = provider->ibv_create_qp(pd, attr);
	}
	if (!*qp)
		return core_errno();
	core_count(provider, CORE_QP, 1);
	return 0;
}

int core_pd_destroy_qp(struct core_provider *provider, struct ibv_qp *qp)
{
	int result = core_verbs_result(provider->ibv_destroy_qp(qp));

	if (!result)
		core_count(provider, CORE_QP, -1);
	return result;
}

int core_modify_qp(struct core_provider *provider, struct ibv_qp *qp, struct ibv_qp_attr *attr,
		   int mask)
{
	CORE_NEEDS(provider->ibv_modify_qp);
	return core_verbs_result(provider->ibv_modify_qp(qp, attr, mask));
}

int core_query_qp(struct core_provider *provider, struct ibv_qp *qp, struct ibv_qp_attr *attr,
		  int mask, struct ibv_qp_init_attr *init_attr)
{
	CORE_NEEDS(provider->ibv_query_qp);
	return core_verbs_result(provider->ibv_query_qp(qp, attr, mask, init_attr));
}

int core_set_ece(struct core_provider *provider, struct ibv_qp *qp, const struct ibv_ece *ece)
{
	struct ibv_ece copy = *ece;

	CORE_NEEDS(provider->ibv_set_ece);
	return core_verbs_result(provider->ibv_set_ece(qp, &copy));
}

int core_query_ece(struct core_provider *provider, struct ibv_qp *qp, struct ibv_ece *ece)
{
	*ece = (struct ibv_ece){0};
	CORE_NEEDS(provider->ibv_query_ece);
	return core_verbs_result(provider->ibv_query_ece(qp, ece));
}
