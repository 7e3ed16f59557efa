#include "soft/qp/verbs.h"

#include <errno.h>

#include "soft/link/calls.h"
#include "soft/objects/context.h"
#include "soft/objects/device.h"
#include "soft/objects/multicast.h"
#include "soft/objects/qp.h"
#include "soft/wire/datagram.h"

int soft_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	struct soft_device *device = soft_qp_device(soft_qp(qp));

	(void)lid;
	if (soft_context_is_removed(qp->context))
		return EIO;
	if (qp->qp_type != IBV_QPT_UD || !soft_gid_is_multicast(gid))
		return EINVAL;
	if (device->link && device->link->join) {
		int error = device->link->join(device->link, gid);

		if (error)
			return error;
	}
	return soft_multicast_attach(&device->multicast, gid, soft_qp(qp));
}

int soft_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	(void)lid;
	return soft_multicast_detach(&soft_qp_device(soft_qp(qp))->multicast, gid, soft_qp(qp));
}
