#include "soft/cm/calls.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "soft/base/refusal.h"
#include "soft/objects/device.h"
#include "soft/objects/multicast.h"
#include "soft/objects/verbs.h"
#include "soft/qp/verbs.h"
#include "soft/wire/datagram.h"

#define MULTICAST_QP_NUM 0xffffff /* IBTA 10.5.1 */
#define LINUX_ENOTSUPP 524 /* of the kernel, not in errno.h, but programs get it here */

struct soft_join {
	struct soft_join *next;
	struct sockaddr_storage address;
	union ibv_gid gid;
	void *context;
	struct ibv_qp *attached; /* id's queue pair while it is attached to the device's group */
	bool send_only;
};

/* The newest join of that address. Like librdmacm, compares the whole address, port included. */
static struct soft_join **find(struct soft_id *id, const struct sockaddr *address)
{
	struct soft_join **link = &id->joins;

	while (*link && memcmp(&(*link)->address, address, soft_address_length(address)) != 0)
		link = &(*link)->next;
	return link;
}

static int detach(struct soft_join *join)
{
	int error = 0;

	if (join->attached)
		error = soft_detach_mcast(join->attached, &join->gid, 0);
	join->attached = NULL;
	return error;
}

void soft_join_apply(struct soft_id *id, struct rdma_cm_event *event)
{
	struct rdma_ud_param *ud = &event->param.ud;
	/* soft_join_remove drops the event of a join, so the join still exists. */
	struct soft_join *join = (struct soft_join *)(uintptr_t)ud->private_data;
	int error;

	soft_mutex_expect(&id->cm->lock);
	ud->private_data = join->context;
	if (!id->rdma.qp || join->send_only)
		return;
	error = soft_attach_mcast(id->rdma.qp, &join->gid, 0);
	if (error) {
		event->event = RDMA_CM_EVENT_MULTICAST_ERROR;
		event->status = -1; /* like librdmacm's own failure */
		return;
	}
	join->attached = id->rdma.qp;
}

/*
 * The index of the id's source GID. The interface of the GID sends the datagrams. It is an IPv4 GID, because groups
 * are.
 */
static uint8_t source_index(const struct soft_id *id)
{
	union ibv_gid source;

	if (id->addr.src_addr.sa_family != AF_INET)
		return 0;
	soft_address_to_gid(&id->addr.src_addr, &source);
	return soft_gid_add(&id->cm->device->gid_table, &source);
}

/* At once: RoCE has no subnet administrator to ask. */
static bool report_joined(struct soft_id *id, struct soft_join *join)
{
	struct rdma_ud_param param = {
		.private_data = join, /* replaced by the context when the event is read */
		.ah_attr = {.is_global = 1, .port_num = SOFT_PORT,
			    .grh = {.dgid = join->gid, .hop_limit = SOFT_HOP_LIMIT,
				    .traffic_class = id->type_of_service, .sgid_index = source_index(id)}},
		.qp_num = MULTICAST_QP_NUM,
		.qkey = id->qkey,
	};

	return soft_cm_report_multicast(id, 0, &param);
}

int soft_join_add(struct soft_id *id, const struct sockaddr *address, bool send_only, void *context)
{
	struct soft_join *join;

	soft_mutex_expect(&id->cm->lock);
	if (!soft_address_is_known(address))
		return EINVAL;
	if (!id->on_device || !soft_id_is_ud(id) ||
	    (id->state != SOFT_ID_BOUND && id->state != SOFT_ID_ADDR_RESOLVED))
		return soft_refuse(EINVAL, "a group is joined by a datagram id that is bound to a device");
	/* cma_iboe_join_multicast of Linux */
	if (soft_address_is_any(address))
		return soft_refuse(EINVAL, "the group has no address");
	if (address->sa_family != AF_INET)
		return soft_refuse(LINUX_ENOTSUPP, "groups of RoCE v2 have addresses of IPv4");
	join = calloc(1, sizeof(*join));
	if (!join)
		return ENOMEM;
	memcpy(&join->address, address, soft_address_length(address));
	soft_address_to_gid(address, &join->gid);
	join->context = context;
	join->send_only = send_only;
	if (!report_joined(id, join)) {
		free(join);
		return ENOMEM;
	}
	join->next = id->joins;
	id->joins = join;
	return 0;
}

int soft_join_remove(struct soft_id *id, const struct sockaddr *address)
{
	struct soft_join **link, *left;
	int error;

	soft_mutex_expect(&id->cm->lock);
	if (!soft_address_is_ip(address))
		return EINVAL;
	link = find(id, address);
	left = *link;
	if (!left)
		return EADDRNOTAVAIL;
	*link = left->next;
	error = detach(left);
	soft_cm_forget_multicast(id, left);
	free(left);
	return error;
}

void soft_joins_detach(struct soft_id *id)
{
	soft_mutex_expect(&id->cm->lock);
	for (struct soft_join *join = id->joins; join; join = join->next)
		detach(join);
}

void soft_joins_free(struct soft_id *id)
{
	struct soft_join *join;

	soft_mutex_expect(&id->cm->lock);
	while ((join = id->joins)) {
		id->joins = join->next;
		detach(join);
		free(join);
	}
}
