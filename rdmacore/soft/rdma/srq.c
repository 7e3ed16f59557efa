#include "soft/rdma/rdma.h"

#include <errno.h>
#include <string.h>

#include "soft/base/refusal.h"
#include "soft/cm/cm.h"
#include "soft/cm/id.h"
#include "soft/objects/srq.h"

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
	srq = soft_create_srq_ex(id->verbs, attr);
	if (!srq)
		return -1;
	if (!id->pd)
		id->pd = attr->pd;
	id->srq = srq; /* one that was there is lost, as in librdmacm */
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
	extended.srq_type = IBV_SRQT_BASIC;
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
