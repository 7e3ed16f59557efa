/*
 * Half-open requests: those that are not connections yet. Requests of other hosts are limited until they are
 * connections, because a host can send requests with any number of forged addresses. Requests of this host are
 * limited until they are read.
 */
#include "soft/cm/calls.h"

#include "soft/base/fabric.h"
#include "soft/base/random.h"
#include "soft/ipc/ipc.h"

_Static_assert((sizeof(struct soft_id) + sizeof(struct soft_cm_event)) * SOFT_HALF_OPEN_MAX <= 32u << 20,
	       "half-open requests take 32 MiB at most");

#define BACKLOG_MAX (SOFT_BACKLOG_BYTES / (sizeof(struct soft_id) + sizeof(struct soft_cm_event)))

_Static_assert(BACKLOG_MAX / 2 <= UINT16_MAX, "one source is counted in 16 bits");

/* Requests that are checked when one of them must end, so that a full queue does not hold cm.lock for long. */
#define LOOKED_AT 256

static uint16_t *backlog_of(struct soft_cm *cm, const struct soft_ipc_peer *peer_process)
{
	uint64_t source = 0; /* this process */

	if (peer_process && peer_process->user == cm->ipc->user)
		source = (uint64_t)peer_process->process << 32 | 1;
	else if (peer_process)
		source = (uint64_t)peer_process->user << 32 | 2;
	return &cm->backlog.by_source[soft_secret_hash(cm->source_key, source) % SOFT_BACKLOG_SOURCES];
}

bool soft_backlog_has_room(struct soft_cm *cm, const struct soft_cm_message *request)
{
	soft_mutex_expect(&cm->lock);
	return request->between_hosts || *backlog_of(cm, request->peer_process) < BACKLOG_MAX - cm->backlog.total;
}

void soft_backlog_count(struct soft_id *child, int more)
{
	struct soft_cm *cm = child->cm;

	soft_mutex_expect(&cm->lock);
	if (child->between_hosts)
		return;
	*backlog_of(cm, child->peer_process) += (uint16_t)more;
	cm->backlog.total += (uint32_t)more;
}

static uint64_t source_hash(const struct soft_cm *cm, const struct sockaddr *address)
{
	union ibv_gid gid;

	soft_address_to_gid(address, &gid);
	return soft_address_source(cm, &gid);
}

static uint16_t source_of(const struct soft_cm *cm, const struct sockaddr *address)
{
	return (uint16_t)(source_hash(cm, address) % SOFT_HALF_OPEN_SOURCES);
}

static void count_unproven(struct soft_id *id, int more)
{
	struct soft_half_open *all = &id->cm->half_open;

	if (!id->half_open_unproven)
		return;
	all->unproven += (uint32_t)more;
	soft_gate_set_required(id->cm, all->unproven >= SOFT_UNPROVEN_MAX, id->local);
}

static void set_stage(struct soft_id *id, enum soft_half_open_stage stage)
{
	struct soft_half_open_list *lists = id->cm->half_open.lists;

	if (id->half_open_stage) {
		TAILQ_REMOVE(&lists[id->half_open_stage].ids, id, half_open);
		lists[id->half_open_stage].count--;
	}
	id->half_open_stage = stage;
	if (stage) {
		TAILQ_INSERT_TAIL(&lists[stage].ids, id, half_open);
		lists[stage].count++;
	}
}

void soft_half_open_init(struct soft_cm *cm)
{
	for (int stage = 0; stage < SOFT_HALF_OPEN_STAGES; stage++)
		TAILQ_INIT(&cm->half_open.lists[stage].ids);
}

enum soft_half_open_room soft_half_open_room(struct soft_cm *cm, const struct soft_cm_message *request)
{
	struct soft_half_open *all = &cm->half_open;
	uint32_t used;

	soft_mutex_expect(&cm->lock);
	used = all->by_source[source_of(cm, (const struct sockaddr *)&request->source)];
	if (used < SOFT_HALF_OPEN_MAX - all->total)
		return SOFT_HALF_OPEN_FREE;
	return used < SOFT_HALF_OPEN_SHARE ? SOFT_HALF_OPEN_REPLACE : SOFT_HALF_OPEN_FULL;
}

static bool is_for(const struct soft_id *id, const struct soft_cm_message *request)
{
	return (int)id->rdma.ps == request->port_space &&
	       soft_address_port(&id->addr.src_addr) == soft_address_port((const struct sockaddr *)&request->destination);
}

struct soft_id *soft_half_open_unanswered(struct soft_cm *cm, const struct soft_cm_message *request)
{
	const struct soft_half_open *all = &cm->half_open;
	const uint16_t *own = &all->by_source[source_of(cm, (const struct sockaddr *)&request->source)];
	struct soft_id *id = TAILQ_FIRST(&all->lists[SOFT_HALF_OPEN_ACCEPTED].ids);
	uint64_t now = soft_fabric_wall_now(cm->fabric);

	soft_mutex_expect(&cm->lock);
	if (*own >= SOFT_UNANSWERED_SHARE)
		return NULL;
	for (int looked = 0; id && looked < LOOKED_AT; looked++, id = TAILQ_NEXT(id, half_open)) {
		if (now - id->accepted_at < SOFT_UNANSWERED_TIME)
			return NULL;
		if (!id->rep_answered && id->state == SOFT_ID_REP_SENT && is_for(id, request) &&
		    all->by_source[id->half_open_source] >= SOFT_UNANSWERED_SHARE)
			return id;
	}
	return NULL;
}

struct soft_id *soft_half_open_crowding(struct soft_cm *cm, const struct soft_id *listener, const struct soft_cm_message *request)
{
	const struct soft_half_open *all = &cm->half_open;
	uint32_t own = all->by_source[source_of(cm, (const struct sockaddr *)&request->source)];
	struct soft_id *id = TAILQ_LAST(&all->lists[SOFT_HALF_OPEN_UNREAD].ids, soft_id_queue);

	soft_mutex_expect(&cm->lock);
	for (int looked = 0; id && looked < LOOKED_AT; looked++, id = TAILQ_PREV(id, soft_id_queue, half_open))
		if (id->half_open_event->owner == listener && !id->mra_sent && all->by_source[id->half_open_source] > own + 1)
			return id;
	return NULL;
}

bool soft_half_open_may_wait(const struct soft_id *id)
{
	const struct soft_id *listener = id->half_open_event ? id->half_open_event->owner : NULL;

	soft_mutex_expect(&id->cm->lock);
	if (!id->between_hosts)
		return true;
	return id->cm->half_open.total < SOFT_HALF_OPEN_MAX / 4 && !(listener && listener->requests > (listener->backlog + 1) / 2);
}

void soft_half_open_enter(struct soft_id *id)
{
	struct soft_half_open *all = &id->cm->half_open;

	soft_mutex_expect(&id->cm->lock);
	if (!id->between_hosts)
		return;
	id->half_open_source = source_of(id->cm, &id->addr.dst_addr);
	all->by_source[id->half_open_source]++;
	all->total++;
	id->half_open_unproven = !soft_gate_is_proven(id->cm, source_hash(id->cm, &id->addr.dst_addr));
	count_unproven(id, 1);
	set_stage(id, SOFT_HALF_OPEN_READ);
}

void soft_half_open_reported(struct soft_id *id, struct soft_cm_event *event)
{
	soft_mutex_expect(&id->cm->lock);
	if (!id->half_open_stage)
		return;
	id->half_open_event = event;
	set_stage(id, SOFT_HALF_OPEN_UNREAD);
}

void soft_half_open_read(struct soft_id *id)
{
	soft_mutex_expect(&id->cm->lock);
	if (id->half_open_stage != SOFT_HALF_OPEN_UNREAD)
		return;
	id->half_open_event = NULL;
	set_stage(id, SOFT_HALF_OPEN_READ);
	if (id->state == SOFT_ID_CLOSED)
		soft_half_open_leave(id);
}

void soft_half_open_accepted(struct soft_id *id)
{
	soft_mutex_expect(&id->cm->lock);
	if (!id->half_open_stage)
		return;
	id->accepted_at = soft_fabric_wall_now(id->cm->fabric);
	set_stage(id, SOFT_HALF_OPEN_ACCEPTED);
}

void soft_half_open_leave(struct soft_id *id)
{
	struct soft_half_open *all = &id->cm->half_open;

	soft_mutex_expect(&id->cm->lock);
	/* It takes memory until its event is read, in any state. */
	if (!id->half_open_stage || id->half_open_stage == SOFT_HALF_OPEN_UNREAD)
		return;
	set_stage(id, SOFT_HALF_OPEN_NOT);
	all->by_source[id->half_open_source]--;
	all->total--;
	count_unproven(id, -1);
}

struct soft_id *soft_half_open_oldest(struct soft_cm *cm)
{
	struct soft_half_open_list *lists = cm->half_open.lists;
	bool unread = lists[SOFT_HALF_OPEN_UNREAD].count > SOFT_HALF_OPEN_MAX / 2 || !lists[SOFT_HALF_OPEN_ACCEPTED].count;

	soft_mutex_expect(&cm->lock);
	return TAILQ_FIRST(&lists[unread ? SOFT_HALF_OPEN_UNREAD : SOFT_HALF_OPEN_ACCEPTED].ids);
}
