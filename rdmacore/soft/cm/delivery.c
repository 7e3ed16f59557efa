#include "soft/cm/calls.h"

#include <stdlib.h>

#include "soft/base/fabric.h"
#include "soft/capture/capture.h"
#include "soft/ipc/ipc.h"
#include "soft/objects/device.h"

void soft_cm_send_to_host(struct soft_device *device, const struct soft_cm_message *message)
{
	union ibv_gid from, to;
	uint8_t mad[SOFT_MAD];

	if (!soft_device_reaches_hosts(device)) /* not any more */
		return;
	soft_address_to_gid((const struct sockaddr *)&message->source, &from);
	soft_address_to_gid((const struct sockaddr *)&message->destination, &to);
	soft_mad_encode(message, mad);
	device->management.send(&device->management, &from, &to, mad, !message->recorded);
}

void soft_cm_deliver(struct soft_cm *cm, const struct soft_cm_message *message)
{
	struct soft_cm_message *copy;

	soft_mutex_expect(&cm->lock);
	if (message->peer_process && !message->arrived) {
		soft_ipc_send(message->peer_process, message);
		return;
	}
	if (message->between_hosts && !message->arrived) {
		soft_cm_send_to_host(cm->device, message);
		return;
	}
	copy = malloc(sizeof(*copy));
	if (!copy)
		return;
	*copy = *message;
	soft_ipc_hold(copy->peer_process);
	copy->next = NULL;
	*cm->last_message = copy;
	cm->last_message = &copy->next;
}

struct soft_cm_message *soft_cm_take_message(struct soft_cm *cm)
{
	struct soft_cm_message *message = cm->first_message;

	soft_mutex_expect(&cm->lock);
	if (!message)
		return NULL;
	cm->first_message = message->next;
	if (!cm->first_message)
		cm->last_message = &cm->first_message;
	return message;
}

void soft_cm_free_message(struct soft_cm_message *message)
{
	soft_ipc_release(message->peer_process);
	free(message);
}

/* With faults in force, messages arrive late, twice, out of order or never.  One timer serves all that are held back. */

/* How long a message waits to be reordered, where the rule does not say. */
#define REORDER_LIMIT (100 * SOFT_MILLISECOND)

struct soft_cm_held {
	struct soft_cm_held *next;
	struct soft_cm_message message;
	uint64_t due;
	bool overtakable; /* delivered behind the next message between the same ends, if that comes before due */
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
		 bool overtakable)
{
	struct soft_cm_held *held = malloc(sizeof(*held));
	struct soft_cm_held **link = &cm->held;

	if (!held)
		return;
	*held = (struct soft_cm_held){.message = *message, .due = now(cm) + delay,
				      .overtakable = overtakable};
	soft_ipc_hold(message->peer_process);
	while (*link && (*link)->due <= held->due)
		link = &(*link)->next;
	held->next = *link;
	*link = held;
	arm(cm);
}

static bool same_flow(const struct soft_cm_message *a, const struct soft_cm_message *b)
{
	return soft_address_is_same((const struct sockaddr *)&a->source,
				    (const struct sockaddr *)&b->source) &&
	       soft_address_is_same((const struct sockaddr *)&a->destination,
				    (const struct sockaddr *)&b->destination);
}

/* Deliver what waited for message to come first. */
static void overtake(struct soft_cm *cm, const struct soft_cm_message *message)
{
	struct soft_cm_held **link = &cm->held;

	while (*link) {
		if ((*link)->overtakable && same_flow(&(*link)->message, message))
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
				   &(struct soft_fault_subject){SOFT_FAULT_CM, .attribute = message->attribute});
	outcome.fault_result = fault_result;
	/* The link records what it sends to other hosts and takes from them; of faults it does not know. */
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
		overtake(cm, message);
	}
	if (fault_result.duplicate) {
		if (fault_result.delay + fault_result.duplicate_delay)
			hold(cm, message, fault_result.delay + fault_result.duplicate_delay, false);
		else
			soft_cm_deliver(cm, message);
	}
}
