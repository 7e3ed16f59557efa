#include "soft/base/poller.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* Events read from the kernel in one call. */
#define BATCH 16
/* The event of soft_poller.stop, a number that no slot has. */
#define STOP UINT64_MAX

static uint64_t event_of(const struct soft_poller *poller, uint32_t slot)
{
	return (uint64_t)poller->slots[slot - 1].generation << 32 | slot;
}

/* The source of an event; NULL if it was removed meanwhile. */
static struct soft_source *source_of(struct soft_poller *poller, uint64_t event)
{
	const struct soft_poller_slot *slot = &poller->slots[(uint32_t)event - 1];

	soft_mutex_expect(&poller->lock);
	return slot->generation == event >> 32 ? slot->source : NULL;
}

/* poller->lock is held, and released while the source is called. */
static void call(struct soft_poller *poller, const struct epoll_event *event)
{
	struct soft_source *source = source_of(poller, event->data.u64);

	if (!source)
		return;
	poller->running = source;
	soft_mutex_unlock(&poller->lock);
	soft_order_expect_none();
	source->ready(source, event->events);
	soft_mutex_lock(&poller->lock);
	poller->running = NULL;
	pthread_cond_broadcast(&poller->finished);
}

static void *run_poller(void *argument)
{
	struct soft_poller *poller = argument;
	struct epoll_event events[BATCH];

	for (;;) {
		int count = epoll_wait(poller->epoll, events, BATCH, -1);

		soft_mutex_lock(&poller->lock);
		for (int index = 0; index < count; index++) {
			if (events[index].data.u64 == STOP) {
				soft_mutex_unlock(&poller->lock);
				return NULL;
			}
			call(poller, &events[index]);
		}
		soft_mutex_unlock(&poller->lock);
	}
}

static int start(struct soft_poller *poller)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u64 = STOP};
	int result;

	soft_mutex_expect(&poller->lock);
	poller->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (poller->epoll < 0)
		return -errno;
	poller->stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (poller->stop < 0) {
		result = -errno;
		goto close_epoll;
	}
	if (epoll_ctl(poller->epoll, EPOLL_CTL_ADD, poller->stop, &event)) {
		result = -errno;
		goto close_stop;
	}
	result = -soft_thread_create(&poller->thread, run_poller, poller);
	if (!result)
		return 0;
close_stop:
	close(poller->stop);
close_epoll:
	close(poller->epoll);
	poller->epoll = poller->stop = -1;
	return result;
}

void soft_poller_init(struct soft_poller *poller)
{
	*poller = (struct soft_poller){.epoll = -1, .stop = -1};
	soft_mutex_init(&poller->lock, SOFT_ORDER_POLLER);
	pthread_cond_init(&poller->finished, NULL);
}

void soft_poller_destroy(struct soft_poller *poller)
{
	if (poller->epoll >= 0) {
		eventfd_write(poller->stop, 1);
		pthread_join(poller->thread, NULL);
		close(poller->stop);
		close(poller->epoll);
	}
	pthread_cond_destroy(&poller->finished);
	soft_mutex_destroy(&poller->lock);
	free(poller->slots);
}

/* The index of a free slot; 0 without memory. */
static uint32_t find_slot(struct soft_poller *poller)
{
	uint32_t slot = 0, count = poller->slot_count ? 2 * poller->slot_count : 16;
	struct soft_poller_slot *slots;

	soft_mutex_expect(&poller->lock);
	while (slot < poller->slot_count && poller->slots[slot].source)
		slot++;
	if (slot < poller->slot_count)
		return slot + 1;
	slots = realloc(poller->slots, count * sizeof(*slots));
	if (!slots)
		return 0;
	for (uint32_t index = slot; index < count; index++)
		slots[index] = (struct soft_poller_slot){0};
	poller->slots = slots;
	poller->slot_count = count;
	return slot + 1;
}

/* Make the kernel wait for these events of a source, or for none; -errno. */
static int wait_for(struct soft_poller *poller, struct soft_source *source, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.u64 = event_of(poller, source->slot)};
	int operation = !events ? EPOLL_CTL_DEL : source->waited ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;

	soft_mutex_expect(&poller->lock);
	if ((events || source->waited) && epoll_ctl(poller->epoll, operation, source->fd, &event))
		return -errno;
	source->waited = events != 0;
	return 0;
}

int soft_poller_add(struct soft_poller *poller, struct soft_source *source, int fd, uint32_t events,
		    void (*ready)(struct soft_source *source, uint32_t events))
{
	uint32_t slot;
	int result = 0;

	soft_mutex_lock(&poller->lock);
	if (poller->epoll < 0)
		result = start(poller);
	if (result)
		goto unlock;
	slot = find_slot(poller);
	if (!slot) {
		result = -ENOMEM;
		goto unlock;
	}
	*source = (struct soft_source){.ready = ready, .fd = fd, .slot = slot};
	result = wait_for(poller, source, events);
	if (result)
		source->slot = 0;
	else
		poller->slots[slot - 1].source = source;
unlock:
	soft_mutex_unlock(&poller->lock);
	return result;
}

int soft_poller_change(struct soft_poller *poller, struct soft_source *source, uint32_t events)
{
	int result = 0;

	soft_mutex_lock(&poller->lock);
	if (source->slot)
		result = wait_for(poller, source, events);
	soft_mutex_unlock(&poller->lock);
	return result;
}

void soft_poller_remove(struct soft_poller *poller, struct soft_source *source)
{
	soft_mutex_lock(&poller->lock);
	if (source->slot) {
		struct soft_poller_slot *slot = &poller->slots[source->slot - 1];

		(void)wait_for(poller, source, 0);
		slot->source = NULL;
		slot->generation++;
		source->slot = 0;
		while (poller->running == source && !pthread_equal(poller->thread, pthread_self()))
			pthread_cond_wait(&poller->finished, &poller->lock.native);
	}
	soft_mutex_unlock(&poller->lock);
}
