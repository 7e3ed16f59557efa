/* Faults delay, duplicate, reorder and lose messages. One timer serves all delayed messages. */
#include "soft/cm/calls.h"

#include <stdlib.h>

#include "soft/base/fabric.h"
#include "soft/capture/capture.h"
#include "soft/ipc/ipc.h"

/* How long a message waits for a later one that arrives before it, unless the rule sets a limit. */
#define REORDER_LIMIT (100 * SOFT_MILLISECOND)

struct soft_cm_held {
	struct soft_cm_held *next;
	struct soft_cm_message message;
	uint64_t due;
	bool reordered; /* delivered after the next message between the same ends, if that comes before due */
};

static uint64_t now(struct soft_cm *cm)
{
	return cm->fabric->clock.now(&cm->fabric->clock);
}

static void arm(struct soft_cm *cm)
{
	uint64_t time = now(cm);

	if (cm->held)
		soft_timer_arm(&cm->fabric->timers, &cm->held_timer,
			       cm->held->due > time ? cm->held->due - time : 0);
}

static void free_held(struct soft_cm_held *held)
{
	soft_ipc_release(held->message.peer_process);
	free(held);
}

static void release(struct soft_cm *cm, struct soft_cm_held **link)
{
	struct soft_cm_held *held = *link;

	*link = held->next;
	soft_cm_deliver(cm, &held->message);
	free_held(held);
}

void soft_cm_release_held(struct soft_cm *cm)
{
	uint64_t time = now(cm);

	soft_mutex_expect(&cm->lock);
	while (cm->held && cm->held->due <= time)
		release(cm, &cm->held);
	arm(cm);
}

void soft_cm_forget_held(struct soft_cm *cm)
{
	struct soft_cm_held *held;

	soft_mutex_expect(&cm->lock);
	while ((held = cm->held)) {
		cm->held = held->next;
		free_held(held);
	}
}

/* Without memory the message is lost, as on a wire. */
static void hold(struct soft_cm *cm, const struct soft_cm_message *message, uint64_t delay,
		 bool reordered)
{
	struct soft_cm_held *held = malloc(sizeof(*held));
	struct soft_cm_held **link = &cm->held;

	if (!held)
		return;
	*held = (struct soft_cm_held){.message = *message, .due = now(cm) + delay,
				      .reordered = reordered};
	soft_ipc_hold(message->peer_process);
	while (*link && (*link)->due <= held->due)
		link = &(*link)->next;
	held->next = *link;
	*link = held;
	arm(cm);
}

void soft_cm_hold(struct soft_cm *cm, const struct soft_cm_message *message, uint64_t delay)
{
	soft_mutex_expect(&cm->lock);
	hold(cm, message, delay, false);
}

static bool same_flow(const struct soft_cm_message *a, const struct soft_cm_message *b)
{
	return soft_address_is_same((const struct sockaddr *)&a->source,
				    (const struct sockaddr *)&b->source) &&
	       soft_address_is_same((const struct sockaddr *)&a->destination,
				    (const struct sockaddr *)&b->destination);
}

/* Deliver the messages that waited for this one to deliver_reordered them. */
static void deliver_reordered(struct soft_cm *cm, const struct soft_cm_message *message)
{
	struct soft_cm_held **link = &cm->held;

	while (*link) {
		if ((*link)->reordered && same_flow(&(*link)->message, message))
			release(cm, link);
		else
			link = &(*link)->next;
	}
}

void soft_cm_carry(struct soft_cm *cm, const struct soft_cm_message *message)
{
	struct soft_capture_outcome outcome = {0};
	struct soft_fault_result fault_result;
	struct soft_cm_message faulty;
	union ibv_gid from, to;

	soft_mutex_expect(&cm->lock);
	soft_address_to_gid((const struct sockaddr *)&message->source, &from);
	soft_address_to_gid((const struct sockaddr *)&message->destination, &to);
	fault_result = soft_faults_apply(&cm->fabric->faults, &from, &to,
				   &(struct soft_fault_subject){SOFT_FAULT_CM, .inbound = message->arrived,
								.unanswered = message->attribute == SOFT_CM_RTU ||
									      message->attribute == SOFT_CM_DREP,
								.attribute = message->attribute});
	outcome.fault_result = fault_result;
	/* The link captures what it sends to and receives from other hosts, but without faults. */
	if (cm->fabric->capture && (!message->between_hosts || fault_result.rules))
		soft_capture_management(cm->fabric->capture, &from, &to, message, message->arrived, &outcome);
	if (fault_result.rules) {
		faulty = *message;
		faulty.recorded = true;
		message = &faulty;
	}
	if (fault_result.lose)
		return;
	if (fault_result.reorder) {
		hold(cm, message, fault_result.reorder_limit ? fault_result.reorder_limit : REORDER_LIMIT, true);
	} else if (fault_result.delay) {
		hold(cm, message, fault_result.delay, false);
	} else {
		soft_cm_deliver(cm, message);
		deliver_reordered(cm, message);
	}
	if (fault_result.duplicate) {
		if (fault_result.delay + fault_result.duplicate_delay)
			hold(cm, message, fault_result.delay + fault_result.duplicate_delay, false);
		else
			soft_cm_deliver(cm, message);
	}
}
