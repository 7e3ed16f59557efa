/*
 * The way between two ids while faults are in force: messages that arrive late, twice, after their
 * successors, or never.  One timer serves all that are held back.
 */
#include "soft_cm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "soft_fabric.h"

/* How long a message waits to be overtaken when the rule says nothing. */
#define REORDER_LIMIT (100 * SOFT_MILLISECOND)

struct held {
	struct held *next;
	struct soft_cm_message message;
	uint64_t due;
	bool overtakable; /* goes behind the next message of its way, if that comes before due */
};

struct soft_cm_wire {
	struct soft_cm *cm;
	struct soft_timer timer;
	struct held *first; /* by due */
};

static uint64_t now(struct soft_cm *cm)
{
	return cm->fabric->clock.now(&cm->fabric->clock);
}

static void arm(struct soft_cm_wire *wire)
{
	uint64_t time = now(wire->cm);

	if (wire->first)
		soft_timer_arm(&wire->cm->fabric->timers, &wire->timer,
			       wire->first->due > time ? wire->first->due - time : 0);
}

static void release(struct soft_cm_wire *wire, struct held **link)
{
	struct held *held = *link;

	*link = held->next;
	soft_cm_deliver(wire->cm, &held->message);
	free(held);
}

static void expire(struct soft_timer *timer)
{
	struct soft_cm_wire *wire = soft_container_of(timer, struct soft_cm_wire, timer);
	struct soft_cm *cm = wire->cm;
	uint64_t time = now(cm);

	pthread_mutex_lock(&cm->lock);
	while (wire->first && wire->first->due <= time)
		release(wire, &wire->first);
	arm(wire);
	soft_cm_unlock(cm);
}

int soft_cm_wire_create(struct soft_cm *cm, struct soft_cm_wire **out)
{
	struct soft_cm_wire *wire = calloc(1, sizeof(*wire));

	if (!wire)
		return -ENOMEM;
	wire->cm = cm;
	if (soft_timer_register(&cm->fabric->timers, &wire->timer, expire)) {
		free(wire);
		return -ENOMEM;
	}
	*out = wire;
	return 0;
}

void soft_cm_wire_destroy(struct soft_cm_wire *wire)
{
	struct held *held;

	soft_timer_unregister(&wire->cm->fabric->timers, &wire->timer);
	while ((held = wire->first)) {
		wire->first = held->next;
		free(held);
	}
	free(wire);
}

/* A message that cannot be held for want of memory is lost, as on a wire. */
static void hold(struct soft_cm_wire *wire, const struct soft_cm_message *message, uint64_t delay,
		 bool overtakable)
{
	struct held *held = malloc(sizeof(*held));
	struct held **link = &wire->first;

	if (!held)
		return;
	*held = (struct held){.message = *message, .due = now(wire->cm) + delay,
			      .overtakable = overtakable};
	while (*link && (*link)->due <= held->due)
		link = &(*link)->next;
	held->next = *link;
	*link = held;
	arm(wire);
}

static bool same_way(const struct soft_cm_message *a, const struct soft_cm_message *b)
{
	return soft_address_is_same((const struct sockaddr *)&a->source,
				    (const struct sockaddr *)&b->source) &&
	       soft_address_is_same((const struct sockaddr *)&a->destination,
				    (const struct sockaddr *)&b->destination);
}

/* Let go what waited to be overtaken by message. */
static void overtake(struct soft_cm_wire *wire, const struct soft_cm_message *message)
{
	struct held **link = &wire->first;

	while (*link) {
		if ((*link)->overtakable && same_way(&(*link)->message, message))
			release(wire, link);
		else
			link = &(*link)->next;
	}
}

void soft_cm_wire_carry(struct soft_cm *cm, const struct soft_cm_message *message)
{
	struct soft_fault_verdict verdict;
	union ibv_gid from, to;

	soft_address_to_gid((const struct sockaddr *)&message->source, &from);
	soft_address_to_gid((const struct sockaddr *)&message->destination, &to);
	verdict = soft_fault_judge(&cm->fabric->faults, &from, &to, SOFT_FAULT_CM,
				   message->attribute);
	if (verdict.lose)
		return;
	if (verdict.reorder) {
		hold(cm->wire, message,
		     verdict.reorder_limit ? verdict.reorder_limit : REORDER_LIMIT, true);
	} else if (verdict.delay) {
		hold(cm->wire, message, verdict.delay, false);
	} else {
		soft_cm_deliver(cm, message);
		overtake(cm->wire, message);
	}
	if (verdict.duplicate) {
		if (verdict.delay + verdict.duplicate_delay)
			hold(cm->wire, message, verdict.delay + verdict.duplicate_delay, false);
		else
			soft_cm_deliver(cm, message);
	}
}
