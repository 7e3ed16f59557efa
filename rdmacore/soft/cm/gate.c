/*
 * Which hosts have proven that they receive at their address.
 *
 * A host can send requests with any number of forged source addresses. A few of them are accepted (SOFT_UNPROVEN_MAX).
 * While these are half-open, a request of another unproven host is kept here, outside of cm.lock. Its host gets a DREQ
 * for an unknown connection. Every communication manager answers that by a DREP of the same transaction (IBTA
 * 12.9.8.3.1; cm.c of Linux, cm_issue_drep). The transaction is a keyed hash of the address: no state is stored, and
 * only a host that receives the DREQ can answer. From then on, requests of that host are accepted, the kept ones
 * first.
 */
#include "soft/cm/calls.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "soft/base/fabric.h"
#include "soft/base/lock.h"
#include "soft/base/random.h"
#include "soft/objects/device.h"

#define SET_WAYS 4 /* entries with the same hash: a new one replaces the oldest */
#define PROVEN_SETS 1024
#define KEPT_SETS 2048
#define KEPT (KEPT_SETS * SET_WAYS)
/*
 * A request is kept for the time that Linux waits before it repeats one (SOFT_CM_RESPONSE_CODE): then the sender has
 * repeated it or given up.
 */
#define KEPT_TIME (4 * SOFT_SECOND)
/*
 * A host is asked again only after ASKED_TIME, several round trips on any network, unless another host has taken its
 * slot.
 */
#define ASKED 4096
#define ASKED_TIME (100 * SOFT_MILLISECOND)
/*
 * Answers to one host within a second. The limit keeps forged requests from causing more answers than a host may need.
 * A host where a process ends sends that many DREQs at once. There is no limit for all hosts together. An answer is no
 * longer than the request. Under a common limit, a flood with forged addresses would use up the answers of other
 * hosts.
 */
static const struct soft_budget_limits answer_limits = {SOFT_SECOND, UINT32_MAX, 1024};
/*
 * Hosts that have answered, with kept requests that are not accepted yet. Requests of further hosts are repeated by
 * their senders.
 */
#define RELEASED 64

struct soft_gate {
	struct soft_lock asking; /* held while a DREQ is sent, so that the device is not removed */
	struct soft_lock lock; /* guards the fields below */
	uint64_t key; /* of the hash that is the transaction */
	bool required;
	uint32_t local; /* the id in DREQs: of this process, so that the DREP comes here (soft/udp/share.c) */
	/* Hosts by soft_address_source; 0: none. */
	uint64_t proven[PROVEN_SETS][SET_WAYS]; /* newest first */
	struct {
		uint64_t source, time;
	} asked[ASKED];
	struct soft_budget answers;
	uint64_t released[RELEASED];
	/* slot: where the search for requests of the first released host continues */
	uint32_t released_first, released_count, slot;
	struct {
		uint64_t source, time;
	} kept[KEPT];
	struct soft_cm_message requests[KEPT];
};

static uint64_t source_of(struct soft_cm *cm, const struct soft_cm_message *message)
{
	union ibv_gid gid;

	soft_address_to_gid((const struct sockaddr *)&message->source, &gid);
	return soft_address_source(cm, &gid);
}

static bool is_proven(const struct soft_gate *gate, uint64_t source)
{
	const uint64_t *set = gate->proven[source % PROVEN_SETS];
	bool found = false;

	soft_lock_expect(&gate->lock);
	for (int way = 0; way < SET_WAYS; way++)
		found |= set[way] == source;
	return found;
}

bool soft_gate_is_proven(struct soft_cm *cm, uint64_t source)
{
	bool proven;

	soft_lock_take(&cm->gate->lock);
	proven = is_proven(cm->gate, source);
	soft_lock_release(&cm->gate->lock);
	return proven;
}

void soft_gate_set_required(struct soft_cm *cm, bool required, uint32_t local)
{
	if (!cm->gate) /* the provider is being closed */
		return;
	soft_lock_take(&cm->gate->lock);
	cm->gate->required = required;
	cm->gate->local = local;
	soft_lock_release(&cm->gate->lock);
}

/* The host has answered. */
static void prove(struct soft_gate *gate, uint64_t source)
{
	uint64_t *set = gate->proven[source % PROVEN_SETS];

	soft_lock_expect(&gate->lock);
	if (is_proven(gate, source))
		return;
	for (int way = SET_WAYS - 1; way; way--)
		set[way] = set[way - 1];
	set[0] = source;
	/* If there is no room, the host's next request is accepted instead. */
	if (gate->released_count < RELEASED)
		gate->released[(gate->released_first + gate->released_count++) % RELEASED] = source;
}

/* Keep a request. It replaces its earlier copy, or takes a free slot, or replaces the oldest one. */
static void keep(struct soft_gate *gate, const struct soft_cm_message *request, uint64_t source, uint64_t now)
{
	uint32_t first = (uint32_t)((source + request->guid + request->local) % KEPT_SETS) * SET_WAYS, chosen = first;

	soft_lock_expect(&gate->lock);
	for (uint32_t slot = first; slot < first + SET_WAYS; slot++) {
		const struct soft_cm_message *other = &gate->requests[slot];

		if (gate->kept[slot].source == source && other->local == request->local &&
		    other->guid == request->guid) {
			chosen = slot;
			break;
		}
		if (gate->kept[slot].time < gate->kept[chosen].time)
			chosen = slot;
	}
	gate->kept[chosen].source = source;
	gate->kept[chosen].time = now;
	gate->requests[chosen] = *request;
}

static bool may_ask(struct soft_gate *gate, uint64_t source, uint64_t now)
{
	uint32_t slot = (uint32_t)(source / PROVEN_SETS % ASKED);

	soft_lock_expect(&gate->lock);
	if (gate->asked[slot].source == source && now - gate->asked[slot].time < ASKED_TIME)
		return false;
	gate->asked[slot].source = source;
	gate->asked[slot].time = now;
	return true;
}

static void ask(struct soft_cm *cm, const struct soft_cm_message *request, uint64_t source, uint32_t local)
{
	struct soft_cm_message dreq = {
		.attribute = SOFT_CM_DREQ,
		.between_hosts = true,
		.transaction = soft_secret_hash(cm->gate->key, source),
		.local = local,
		.source = request->destination,
		.destination = request->source,
		.private_data_len = SOFT_DREQ_PRIVATE_DATA,
	};

	soft_lock_take(&cm->gate->asking);
	soft_cm_send_to_host(cm->device, &dreq);
	soft_lock_release(&cm->gate->asking);
}

static bool keeps_request(struct soft_cm *cm, const struct soft_cm_message *request)
{
	struct soft_gate *gate = cm->gate;
	uint64_t source = source_of(cm, request), now = soft_fabric_wall_now(cm->fabric);
	bool kept, asks = false;
	uint32_t local;

	soft_lock_take(&gate->lock);
	kept = gate->required && !is_proven(gate, source);
	if (kept) {
		keep(gate, request, source, now);
		asks = may_ask(gate, source, now);
	}
	local = gate->local;
	soft_lock_release(&gate->lock);
	if (asks)
		ask(cm, request, source, local);
	return kept;
}

static bool is_answer(struct soft_cm *cm, const struct soft_cm_message *drep)
{
	uint64_t source = source_of(cm, drep);

	if (drep->transaction != soft_secret_hash(cm->gate->key, source))
		return false;
	soft_lock_take(&cm->gate->lock);
	prove(cm->gate, source);
	soft_lock_release(&cm->gate->lock);
	return true;
}

bool soft_gate_may_answer(struct soft_cm *cm, const struct soft_cm_message *dreq)
{
	union ibv_gid from;
	bool may;

	if (!cm->gate) /* the provider is being closed */
		return false;
	soft_address_to_gid((const struct sockaddr *)&dreq->source, &from);
	soft_lock_take(&cm->gate->lock);
	may = soft_budget_take(cm, &cm->gate->answers, &answer_limits, &from);
	soft_lock_release(&cm->gate->lock);
	return may;
}

bool soft_gate_keeps(struct soft_cm *cm, const struct soft_cm_message *message)
{
	switch (message->attribute) {
	case SOFT_CM_REQ:
	case SOFT_CM_SIDR_REQ:
		return keeps_request(cm, message);
	case SOFT_CM_DREP:
		return is_answer(cm, message);
	default:
		return false;
	}
}

bool soft_gate_take(struct soft_cm *cm, struct soft_cm_message *request)
{
	struct soft_gate *gate = cm->gate;
	uint64_t now = soft_fabric_wall_now(cm->fabric);
	bool found = false;

	soft_lock_take(&gate->lock);
	while (gate->released_count && !found) {
		for (; gate->slot < KEPT && !found; gate->slot++) {
			if (gate->kept[gate->slot].source != gate->released[gate->released_first])
				continue;
			found = now - gate->kept[gate->slot].time < KEPT_TIME;
			*request = gate->requests[gate->slot];
			gate->kept[gate->slot].source = gate->kept[gate->slot].time = 0;
		}
		if (found)
			break;
		gate->slot = 0;
		gate->released_first = (gate->released_first + 1) % RELEASED;
		gate->released_count--;
	}
	soft_lock_release(&gate->lock);
	return found;
}

void soft_gate_stop_mad_tx(struct soft_cm *cm)
{
	soft_mutex_expect(&cm->lock);
	if (cm->gate)
		soft_lock_take(&cm->gate->asking);
	cm->device->management.send = NULL;
	if (cm->gate)
		soft_lock_release(&cm->gate->asking);
}

int soft_gate_open(struct soft_cm *cm)
{
	struct soft_gate *gate = calloc(1, sizeof(*gate));

	if (!gate)
		return -ENOMEM;
	soft_lock_init(&gate->asking, SOFT_ORDER_ASKING);
	soft_lock_init(&gate->lock, SOFT_ORDER_GATE);
	gate->key = soft_secret_hash(cm->ids.key, UINT64_MAX - 1);
	cm->gate = gate;
	return 0;
}

void soft_gate_close(struct soft_cm *cm)
{
	free(cm->gate);
	cm->gate = NULL;
}
