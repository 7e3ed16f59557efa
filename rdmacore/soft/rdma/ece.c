/* Enhanced connection establishment: vendor options of queue pairs (rdma_set_local_ece(3)). */
#include "soft/rdma/ece.h"

#include <errno.h>

#include "soft/base/refusal.h"
#include "soft/cm/finish.h"
#include "soft/cm/id.h"

/* Only for queue pairs that the user connects: librdmacm has no say in those of its own. */
static int check(const struct soft_id *id, const struct ibv_ece *ece)
{
	if (id->rdma.qp)
		return soft_refuse(EINVAL, "the id has a queue pair; ECE is for those outside of ids");
	return ece ? 0 : EINVAL;
}

int soft_set_local_ece(struct rdma_cm_id *rdma_id, struct ibv_ece *ece)
{
	struct soft_id *id = soft_id_lock_any(rdma_id);
	int error;

	if (!id)
		return -1;
	error = check(id, ece);
	if (!error && (ece->comp_mask || !ece->vendor_id))
		error = EINVAL;
	if (!error)
		id->local_ece = *ece;
	return soft_cm_finish(id->cm, error);
}

int soft_get_remote_ece(struct rdma_cm_id *rdma_id, struct ibv_ece *ece)
{
	struct soft_id *id = soft_id_lock_any(rdma_id);
	int error;

	if (!id)
		return -1;
	error = check(id, ece);
	if (!error)
		*ece = id->remote_ece;
	return soft_cm_finish(id->cm, error);
}
