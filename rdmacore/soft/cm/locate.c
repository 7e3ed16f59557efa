/* Which process of this machine has the peer of an id (soft/ipc). */
#include "soft/cm/calls.h"

#include <errno.h>

#include "soft/base/fabric.h"
#include "soft/ipc/ipc.h"

static void set_peer_process(struct soft_id *id, struct soft_ipc_peer *peer_process)
{
	if (peer_process == id->peer_process)
		return;
	soft_ipc_use(peer_process);
	soft_ipc_leave(id->peer_process);
	id->peer_process = peer_process;
}

/*
 * Who listens on this machine may be about to: programs that tell each other by other means when to connect (perftest -R)
 * count on a queue pair and an address taking an adapter and its kernel milliseconds, and here they take none.  So often a
 * request that nobody listens for looks again, after a millisecond, two, four and so on, before it is refused.
 */
#define UNLISTENED_RETRIES 8

/* With a virtual clock nothing happens while it waits. */
static bool retry_unlistened(struct soft_id *id)
{
	if (id->unlistened_retries == UNLISTENED_RETRIES || soft_clock_is_virtual(&id->cm->fabric->clock))
		return false;
	id->request_timeout = SOFT_MILLISECOND << id->unlistened_retries++;
	id->retries_left++; /* it was not sent */
	set_peer_process(id, NULL);
	return true;
}

/* False: it cannot be found out now. */
static bool locate(struct soft_id *id, bool anew)
{
	struct soft_cm *cm = id->cm;
	const struct sockaddr *destination = &id->addr.dst_addr;
	struct soft_ipc_port port = soft_ipc_port(id->rdma.ps, destination, false);
	struct soft_ipc_peer *peer_process = NULL;
	bool made = false, here;
	int error = ECONNREFUSED;

	if (!cm->ipc || !soft_address_is_ip(destination))
		return true;
	if (id->between_hosts) {
		set_peer_process(id, NULL);
		return true;
	}
	here = soft_port_find_listener(cm, id->rdma.ps, destination);
	if (!here)
		error = soft_ipc_connect(cm->ipc, &port, &id->addr.dst_storage, anew, NULL, &peer_process, &made);
	if (error && (error != ECONNREFUSED || (!here && retry_unlistened(id))))
		return false;
	if (id->unlistened_retries)
		id->request_timeout = id->response_timeout;
	/* Where nobody listens this process answers, as the one kernel of the machine would. */
	set_peer_process(id, error ? NULL : peer_process);
	id->peer_process_fresh |= made;
	return true;
}

bool soft_cm_locate(struct soft_id *id)
{
	soft_mutex_expect(&id->cm->lock);
	return locate(id, false);
}

bool soft_cm_locate_anew(struct soft_id *id)
{
	soft_mutex_expect(&id->cm->lock);
	return locate(id, true);
}
