/*
 * Which hosts have shown that they receive what is sent to them.
 *
 * A host can send requests under any number of forged addresses.  A few of them are taken as they come (SOFT_UNPROVEN_MAX).  While
 * those wait, a request of another host is kept here, outside of cm.lock, and its host is asked: it is sent a DREQ for a
 * connection that it does not have, which every communication manager answers with a DREP of the same transaction (IBTA
 * 12.9.8.3.1; cm.c of Linux, cm_issue_drep).  The transaction is a keyed hash of the address, so nothing is kept of a question, and
 * only who receives it can answer.  From then on the host's requests are taken, those that were kept first.
 */
#include "soft/cm/calls.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "soft/base/fabric.h"
#include "soft/base/lock.h"
#include "soft/base/random.h"
#include "soft/objects/device.h"

#define SET_WAYS 4 /* of one hash: the oldest makes room */
#define PROVEN_SETS 1024
#define KEPT_SETS 2048
#define KEPT (KEPT_SETS * SET_WAYS)
/* Nobody waits longer for an answer, and who sent the request has repeated it then, or given it up. */
#define KEPT_TIME (4 * SOFT_SECOND)
/* One host is not asked again so soon, while its slot is not another's. */
#define ASKED 4096
#define ASKED_TIME (100 * SOFT_MILLISECOND)
/*
 * Answers to one host that asks the same, or ends connections which there are not, so that nobody can have more of them sent to a host
 * than that may need: it ends as many connections at once with a process that has died.  They have no bound of all hosts together:
 * they are no longer than what they answer, and with one a flood under any address would take the answers of good hosts.
 */
#define ANSWERS 1024
#define ANSWERS_TIME SOFT_SECOND
/* Hosts whose requests are about to be taken. */
#define RELEASED 64

struct soft_gate {
	struct soft_lock asking; /* held while a question is sent, so that the device does not go */
	struct soft_lock lock; /* guards the rest */
	uint64_t key; /* of transactions */
	bool required;
	uint32_t local; /* the id that a question is from: of this process, so that the answer comes here (soft/udp/share.c) */
	/* Hosts by soft_address_source; 0: there is none. */
	uint64_t proven[PROVEN_SETS][SET_WAYS]; /* the newest first */
	struct {
		uint64_t source, time;
	} asked[ASKED];
	uint64_t answered_until; /* what was answered counts no more then */
	uint16_t answered[SOFT_HALF_OPEN_SOURCES];
	uint64_t released[RELEASED];
	uint32_t released_first, released_count, slot; /* of the next request of the first of them */
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
	/* With no room here its requests come again. */
	if (gate->released_count < RELEASED)
		gate->released[(gate->released_first + gate->released_count++) % RELEASED] = source;
}

/* Keep a request, in place of its copy, of none, or of the oldest. */
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
	struct soft_gate *gate = cm->gate;
	uint64_t source = source_of(cm, dreq), now = soft_fabric_wall_now(cm->fabric);
	union ibv_gid from;
	uint16_t *answered;
	bool may;

	if (!gate) /* the provider is being closed */
		return false;
	answered = &gate->answered[source % SOFT_HALF_OPEN_SOURCES];
	soft_lock_take(&gate->lock);
	if (now >= gate->answered_until) {
		memset(gate->answered, 0, sizeof(gate->answered));
		gate->answered_until = now + ANSWERS_TIME;
	}
	may = *answered < ANSWERS;
	*answered += may;
	soft_lock_release(&gate->lock);
	if (!may) {
		soft_address_to_gid((const struct sockaddr *)&dreq->source, &from);
		soft_notice(&cm->fabric->notices, SOFT_NOTICE_FLOOD, &from, 1);
	}
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
