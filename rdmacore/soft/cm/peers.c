/*
 * Connections by remote communication id and by remote queue pair number, each with the device's GUID. The first
 * distinguishes a repeated REQ from a new one, the second finds a stale connection (IBTA 12.4.1, 12.9.8.3.1).
 *
 * The remote process or host is compared, too. Two devices that start with the same seed have the same GUID and draw
 * the same numbers. And another host must not send messages with the GUID and numbers of a peer. Linux compares
 * neither.
 */
#include "soft/cm/calls.h"

#include "soft/base/random.h"
#include "soft/ipc/ipc.h"

/* A keyed hash: other hosts choose both numbers, and could fill one bucket. */
static unsigned int bucket_of(const struct soft_cm *cm, uint64_t guid, uint32_t number)
{
	return (unsigned int)(soft_secret_hash(soft_secret_hash(cm->source_key, guid), number) % SOFT_PEER_BUCKETS);
}

static bool is_with(const struct soft_id *id, const struct soft_ipc_peer *peer_process, bool between_hosts,
		    const struct sockaddr *address)
{
	return id->between_hosts == between_hosts && soft_ipc_is_same(id->peer_process, peer_process) &&
	       (!between_hosts || soft_address_is_same(&id->addr.dst_addr, address));
}

/* Search a bucket of remote_ids. */
static struct soft_id *find_id(const struct soft_id_list *bucket, uint64_t guid, uint32_t remote,
			       const struct soft_ipc_peer *peer_process,
			       bool between_hosts, const struct sockaddr *address)
{
	struct soft_id *id = LIST_FIRST(bucket);

	while (id && (id->remote != remote || id->remote_guid != guid ||
		      !is_with(id, peer_process, between_hosts, address)))
		id = LIST_NEXT(id, of_remote_id);
	return id;
}

struct soft_id *soft_peers_find_id(struct soft_cm *cm, const struct soft_cm_message *message)
{
	soft_mutex_expect(&cm->lock);
	return find_id(&cm->remote_ids[bucket_of(cm, message->guid, message->local)], message->guid, message->local,
		       message->peer_process,
		       message->between_hosts, (const struct sockaddr *)&message->source);
}

struct soft_id *soft_peers_register_id(struct soft_id *id)
{
	struct soft_id_list *bucket = &id->cm->remote_ids[bucket_of(id->cm, id->remote_guid, id->remote)];
	struct soft_id *other = find_id(bucket, id->remote_guid, id->remote, id->peer_process, id->between_hosts,
					&id->addr.dst_addr);

	soft_mutex_expect(&id->cm->lock);
	if (other)
		return other;
	LIST_INSERT_HEAD(bucket, id, of_remote_id);
	return NULL;
}

struct soft_id *soft_peers_register_qp(struct soft_id *id)
{
	struct soft_id_list *bucket = &id->cm->remote_qps[bucket_of(id->cm, id->remote_guid, id->remote_qp_num)];
	struct soft_id *other;

	soft_mutex_expect(&id->cm->lock);
	LIST_FOREACH(other, bucket, of_remote_qp)
		if (other->remote_qp_num == id->remote_qp_num && other->remote_guid == id->remote_guid &&
		    is_with(other, id->peer_process, id->between_hosts, &id->addr.dst_addr))
			return other;
	LIST_INSERT_HEAD(bucket, id, of_remote_qp);
	return NULL;
}

void soft_peers_forget(struct soft_id *id)
{
	soft_mutex_expect(&id->cm->lock);
	if (id->of_remote_id.le_prev)
		LIST_REMOVE(id, of_remote_id);
	if (id->of_remote_qp.le_prev)
		LIST_REMOVE(id, of_remote_qp);
	id->of_remote_id.le_prev = id->of_remote_qp.le_prev = NULL;
}
