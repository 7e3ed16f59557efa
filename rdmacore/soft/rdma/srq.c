#include "soft/rdma/rdma.h"

#include <errno.h>
#include <string.h>

#include "soft/base/refusal.h"
#include "soft/cm/calls.h"
#include "soft/objects/srq.h"

/* Set what rdma_create_srq(3) leaves out for XRC: the device's default domain, and a completion queue of the id. */
static int provide_xrc(struct rdma_cm_id *id, struct soft_id *locked, struct ibv_srq_init_attr_ex *attr)
{
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_XRCD) || !attr->xrcd) {
		soft_mutex_lock(&locked->cm->lock);
		attr->xrcd = soft_id_default_xrcd(locked);
		soft_mutex_unlock(&locked->cm->lock);
		if (!attr->xrcd)
			return -1;
	}
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_CQ) || !attr->cq) {
		/* The completion queue of its queue pair, which librdmacm loses here. */
		if (!id->recv_cq && soft_id_create_cqs(id, 0, attr->attr.max_wr))
			return -1;
		attr->cq = id->recv_cq;
	}
	attr->comp_mask |= IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
	return 0;
}

int soft_id_create_srq_ex(struct rdma_cm_id *id, struct ibv_srq_init_attr_ex *attr)
{
	struct soft_id *locked = soft_id_lock_any(id);
	struct ibv_srq *srq;

	if (!locked)
		return -1;
	soft_mutex_unlock(&locked->cm->lock);
	if (!attr || !(attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE)) {
		errno = soft_refuse(EINVAL, "rdma_create_srq_ex needs IBV_SRQ_INIT_ATTR_TYPE");
		return -1;
	}
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_PD) || !attr->pd) {
		attr->pd = id->pd;
		attr->comp_mask |= IBV_SRQ_INIT_ATTR_PD;
	}
	if (!id->verbs || !attr->pd || attr->pd->context != id->verbs) {
		errno = soft_refuse(EINVAL, "the id is bound to no device, or to another than the "
				    "protection domain; librdmacm would crash here");
		return -1;
	}
	if (attr->srq_type == IBV_SRQT_XRC && provide_xrc(id, locked, attr))
		return -1;
	srq = soft_create_srq_ex(id->verbs, attr);
	if (!srq)
		return -1;
	if (!id->pd)
		id->pd = attr->pd;
	id->srq = srq; /* an earlier one is lost, as in librdmacm */
	return 0;
}

int soft_id_create_srq(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	struct ibv_srq_init_attr_ex extended = {0};
	int result;

	if (!attr)
		return soft_id_create_srq_ex(id, NULL);
	memcpy(&extended, attr, sizeof(*attr));
	extended.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD;
	extended.srq_type = id && id->qp_type == IBV_QPT_XRC_RECV ? IBV_SRQT_XRC : IBV_SRQT_BASIC;
	extended.pd = pd;
	result = soft_id_create_srq_ex(id, &extended);
	if (!result)
		memcpy(attr, &extended, sizeof(*attr));
	return result;
}

void soft_id_destroy_srq(struct rdma_cm_id *id)
{
	if (!id || !id->srq)
		return;
	if (soft_destroy_srq(id->srq))
		return; /* a queue pair still uses it */
	id->srq = NULL;
	if (!id->qp)
		soft_id_destroy_cqs(id);
}
