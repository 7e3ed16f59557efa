#include "soft/engine/segmentation.h"

#include <stdlib.h>

#include "soft/engine/assembly.h"
#include "soft/engine/receive.h"
#include "soft/engine/segment.h"
#include "soft/objects/device.h"
#include "soft/wire/ip.h"

struct soft_segmentation *soft_segmentation_create(struct soft_link *link)
{
	struct soft_segmentation *segmentation = calloc(1, sizeof(*segmentation));

	if (!segmentation)
		return NULL;
	segmentation->link = link;
	segmentation->mtu = SOFT_MTU;
	segmentation->window = SOFT_WINDOW_MAX;
	segmentation->assembly.kind = SOFT_NO_MESSAGE;
	return segmentation;
}

void soft_segmentation_start(struct soft_qp *qp)
{
	const struct ibv_global_route *route = &qp->attr.ah_attr.grh;

	if (qp->service == SOFT_UNRELIABLE_DATAGRAM)
		return;
	qp->segmentation->mtu = 128u << qp->attr.path_mtu; /* enum ibv_mtu */
	soft_ip_make(qp->segmentation->header, route,
		     &soft_qp_device(qp)->gids[route->sgid_index]);
}

void soft_segmentation_stop(struct soft_qp *qp)
{
	struct soft_segmentation *segmentation = qp->segmentation;

	soft_assembly_abandon(qp);
	if (segmentation->assembly.holds && soft_qp_state(qp) == IBV_QPS_ERR)
		soft_receive_complete(qp, &segmentation->assembly.receive, IBV_WC_WR_FLUSH_ERR, NULL);
	segmentation->assembly.holds = false;
	segmentation->stream.active = false;
	segmentation->owes = false;
	segmentation->cursor = 0;
	segmentation->answered = 0;
	segmentation->window = SOFT_WINDOW_MAX;
	segmentation->retrying = false;
}
