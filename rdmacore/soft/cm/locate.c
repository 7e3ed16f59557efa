/* Find the process of this machine that has the peer of an id (soft/ipc). */
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
 * A listener may be about to start. Some programs agree by other means when to connect (perftest -R). They rely on the
 * milliseconds that an adapter and its kernel need for a queue pair and an address, and soft needs none. So a request
 * without a listener is looked up again after 1 ms, 2 ms, 4 ms and so on. It is rejected after eight lookups (0.3 s in
 * all).
 */
#define UNLISTENED_RETRIES 8

/* With a virtual clock nothing changes while it waits. */
static bool retry_unlistened(struct soft_id *id)
{
	if (id->unlistened_retries == UNLISTENED_RETRIES || soft_clock_is_virtual(&id->cm->fabric->clock))
		return false;
	id->request_timeout = SOFT_MILLISECOND << id->unlistened_retries++;
	id->retries_left++; /* the request was not sent */
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
	/* Without a listener, this process answers, as the machine's only kernel would. */
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
