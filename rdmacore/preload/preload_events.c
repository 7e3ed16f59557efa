/* rdma_ack_cm_event of a program, while rdmarun holds its events (preload_control.c). */
#include "preload.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

/* An event that the program has acknowledged while events are held. */
struct held_event {
	struct rdma_cm_event *event;
	struct held_event *next;
};

static struct {
	_Atomic bool hold; /* set and read again under lock */
	pthread_mutex_t lock;
	struct held_event *first;
} events = {.lock = PTHREAD_MUTEX_INITIALIZER};

uint32_t preload_events_hold(struct core_provider *provider, bool hold)
{
	struct held_event *held, *next;
	uint32_t count = 0;

	pthread_mutex_lock(&events.lock);
	events.hold = hold;
	held = events.first;
	if (!hold)
		events.first = NULL;
	pthread_mutex_unlock(&events.lock);
	for (; !hold && held; held = next, count++) {
		next = held->next;
		provider->rdma_ack_cm_event(held->event);
		free(held);
	}
	return count;
}

void preload_events_forget(void)
{
	events.hold = false;
	events.first = NULL;
	pthread_mutex_init(&events.lock, NULL);
}

bool preload_event_hold(struct rdma_cm_event *event)
{
	struct held_event *held;

	if (!events.hold)
		return false;
	held = malloc(sizeof(*held));
	pthread_mutex_lock(&events.lock);
	if (held && events.hold) {
		*held = (struct held_event){event, events.first};
		events.first = held;
		held = NULL;
		event = NULL;
	}
	pthread_mutex_unlock(&events.lock);
	free(held);
	return !event;
}
