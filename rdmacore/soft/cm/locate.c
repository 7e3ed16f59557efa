/* Which process of this machine has the peer of an id (soft/ipc). */
#include "soft/cm/calls.h"

#include <errno.h>

#include "soft/ipc/ipc.h"

static void set_via(struct soft_id *id, struct soft_ipc_peer *via)
{
	if (via == id->via)
		return;
	soft_ipc_use(via);
	soft_ipc_leave(id->via);
	id->via = via;
}

/* False: it cannot be found out now. */
static bool locate(struct soft_id *id, bool anew)
{
	struct soft_cm *cm = id->cm;
	const struct sockaddr *destination = &id->addr.dst_addr;
	struct soft_ipc_peer *via = NULL;
	bool made = false;
	int error = ECONNREFUSED;

	if (!cm->ipc || !soft_address_is_ip(destination))
		return true;
	if (id->between_hosts) {
		set_via(id, NULL);
		return true;
	}
	if (!soft_port_find_listener(cm, id->rdma.ps, destination))
		error = soft_ipc_connect(cm->ipc, id->rdma.ps, &id->addr.dst_storage, anew, &via, &made);
	if (error && error != ECONNREFUSED)
		return false;
	/* Where nobody listens this process answers, as the one kernel of the machine would. */
	set_via(id, error ? NULL : via);
	id->located |= made;
	return true;
}

bool soft_cm_locate(struct soft_id *id)
{
	soft_mutex_expect(&id->cm->lock);
	return locate(id, false);
}

bool soft_cm_relocate(struct soft_id *id)
{
	soft_mutex_expect(&id->cm->lock);
	if (!id->via || id->located || !locate(id, true))
		return false;
	id->located = true;
	return true;
}
