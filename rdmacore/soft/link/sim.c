#include "soft/link/sim.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "soft/base/fabric.h"
#include "soft/link/calls.h"
#include "soft/objects/device.h"
#include "soft/objects/qp.h"
#include "soft/wire/datagram.h"
#include "soft/wire/fields.h"

#define DATAGRAM (SOFT_GRH + 8 + SOFT_WIRE_OVERHEAD + SOFT_MTU)
/* How long a datagram waits to be overtaken, where the rule does not say. */
#define REORDER_LIMIT (20 * SOFT_MICROSECOND)

/* A datagram that will arrive, or an acknowledgement that will be due. */
struct event {
	uint64_t due, order; /* of two at the same time, the one with the lower order comes first */
	struct soft_device *device; /* where it arrives */
	struct soft_qp *qp; /* held: it owes an acknowledgement; NULL: a datagram */
	size_t length;
	uint8_t datagram[DATAGRAM];
};

struct soft_sim {
	struct soft_link link;
	struct soft_fabric *fabric;
	struct soft_sim_options options;
	struct soft_timer timer; /* of the earliest event */

	struct soft_lock lock; /* guards the rest */
	struct soft_random random;
	struct soft_device *devices[SOFT_SIM_DEVICES];
	uint64_t latest[SOFT_SIM_DEVICES][SOFT_SIM_DEVICES]; /* arrival on each way, from and to */
	uint32_t device_count;
	struct event *events;
	struct event **unused; /* a stack */
	struct event **heap; /* what is on its way, by due and order */
	uint32_t unused_count, heap_count;
	uint64_t order;
	struct soft_sim_counters counters;
};

static uint64_t now(struct soft_sim *sim)
{
	return sim->fabric->clock.now(&sim->fabric->clock);
}

static bool before(const struct event *a, const struct event *b)
{
	return a->due < b->due || (a->due == b->due && a->order < b->order);
}

static void heap_push(struct soft_sim *sim, struct event *event)
{
	uint32_t index = sim->heap_count++;

	while (index && before(event, sim->heap[(index - 1) / 2])) {
		sim->heap[index] = sim->heap[(index - 1) / 2];
		index = (index - 1) / 2;
	}
	sim->heap[index] = event;
}

static struct event *heap_pop(struct soft_sim *sim)
{
	struct event *first = sim->heap[0], *last = sim->heap[--sim->heap_count];
	uint32_t index = 0, child;

	while ((child = 2 * index + 1) < sim->heap_count) {
		if (child + 1 < sim->heap_count && before(sim->heap[child + 1], sim->heap[child]))
			child++;
		if (!before(sim->heap[child], last))
			break;
		sim->heap[index] = sim->heap[child];
		index = child;
	}
	sim->heap[index] = last;
	return first;
}

/* Queue the event for that time. */
static void schedule(struct soft_sim *sim, struct event *event, uint64_t due)
{
	uint64_t time = now(sim);

	soft_lock_expect(&sim->lock);
	event->due = due;
	event->order = sim->order++;
	heap_push(sim, event);
	if (sim->heap[0] == event)
		soft_timer_arm(&sim->fabric->timers, &sim->timer, due > time ? due - time : 0);
}

/* A free event; NULL when too many datagrams are on their way. */
static struct event *take(struct soft_sim *sim)
{
	soft_lock_expect(&sim->lock);
	return sim->unused_count ? sim->unused[--sim->unused_count] : NULL;
}

static void give_back(struct soft_sim *sim, struct event *event)
{
	sim->unused[sim->unused_count++] = event;
}

static uint8_t *begin(struct soft_link *link, size_t length)
{
	struct soft_sim *sim = soft_container_of(link, struct soft_sim, link);
	struct event *event = NULL;

	soft_lock_take(&sim->lock);
	sim->counters.sent++;
	if (length <= DATAGRAM && !(event = take(sim)))
		sim->counters.overflowed++;
	soft_lock_release(&sim->lock);
	return event ? event->datagram : NULL;
}

/* The index of the device with that address; SOFT_SIM_DEVICES when there is none. */
static uint32_t find(const struct soft_sim *sim, const union ibv_gid *address)
{
	uint32_t index = 0;

	while (index < sim->device_count &&
	       !soft_device_owns(sim->devices[index], address))
		index++;
	return index < sim->device_count ? index : SOFT_SIM_DEVICES;
}

static uint64_t below(struct soft_sim *sim, uint64_t limit)
{
	return limit ? soft_random_next(&sim->random) % limit : 0;
}

static struct event *copy(struct soft_sim *sim, const struct event *event)
{
	struct event *other = take(sim);

	if (!other)
		return NULL;
	other->qp = NULL;
	other->length = event->length;
	memcpy(other->datagram, event->datagram, event->length);
	return other;
}

/* Send the datagram on its way, with the faults of the verdict. */
static void carry(struct soft_sim *sim, struct event *event, uint32_t from, uint32_t to,
		  const struct soft_fault_verdict *verdict)
{
	uint64_t due = now(sim) + sim->options.delay + below(sim, sim->options.jitter);
	struct event *twin;

	soft_lock_expect(&sim->lock);
	event->device = sim->devices[to];
	if (verdict->corrupt) {
		sim->counters.corrupted++;
		event->datagram[below(sim, event->length)] ^= (uint8_t)(1u << below(sim, 8));
	}
	if (from < SOFT_SIM_DEVICES && due < sim->latest[from][to])
		due = sim->latest[from][to];
	due += verdict->delay;
	if (verdict->duplicate && (twin = copy(sim, event))) {
		sim->counters.duplicated++;
		twin->device = event->device;
		schedule(sim, twin, due + verdict->duplicate_delay);
	}
	if (verdict->reorder) {
		sim->counters.reordered++;
		due += below(sim, verdict->reorder_limit ? verdict->reorder_limit : REORDER_LIMIT);
	} else if (from < SOFT_SIM_DEVICES) {
		sim->latest[from][to] = due;
	}
	schedule(sim, event, due);
}

static void send_datagram(struct soft_link *link, uint8_t *datagram, size_t length,
			  const union ibv_gid *from, const union ibv_gid *to)
{
	struct soft_sim *sim = soft_container_of(link, struct soft_sim, link);
	struct event *event = soft_container_of(datagram, struct event, datagram), *other;
	struct soft_faults *faults = &sim->fabric->faults;
	struct soft_fault_verdict verdict = {0};
	const uint8_t *bth = datagram + (datagram[0] >> 4 == 6 ? SOFT_GRH : SOFT_IPV4_HEADER) + SOFT_UDP_HEADER;
	struct soft_fault_subject what = {SOFT_FAULT_DATA, .operation = bth[0] & SOFT_OPERATION,
					  .psn = soft_get24(bth + 9)};
	uint32_t source, target;

	event->qp = NULL;
	event->length = length;
	if (soft_faults_active(faults))
		verdict = soft_fault_judge(faults, from, to, &what);
	soft_lock_take(&sim->lock);
	source = find(sim, from);
	target = find(sim, to);
	sim->counters.lost += verdict.lose;
	if (verdict.lose) {
		give_back(sim, event);
	} else if (soft_gid_is_multicast(to)) {
		/* A copy for every device, which knows the members of the group. */
		for (target = 0; target < sim->device_count; target++)
			if ((other = copy(sim, event)))
				carry(sim, other, source, target, &verdict);
		give_back(sim, event);
	} else if (target < SOFT_SIM_DEVICES) {
		carry(sim, event, source, target, &verdict);
	} else {
		sim->counters.dropped++;
		give_back(sim, event);
	}
	soft_lock_release(&sim->lock);
}

static bool owe(struct soft_link *link, struct soft_qp *qp)
{
	struct soft_sim *sim = soft_container_of(link, struct soft_sim, link);
	struct event *event = NULL;

	if (!sim->options.acknowledge_delay)
		return false;
	soft_lock_take(&sim->lock);
	if ((event = take(sim))) {
		soft_qp_hold(qp);
		event->qp = qp;
		schedule(sim, event, now(sim) + sim->options.acknowledge_delay);
	}
	soft_lock_release(&sim->lock);
	return event;
}

static void happen(struct soft_sim *sim, struct event *event, bool *delivered)
{
	if (event->qp) {
		soft_link_acknowledge(event->qp);
		soft_qp_release(event->qp);
		return;
	}
	/* As a receiver's IP layer does, check the IP checksum first. */
	*delivered = (!sim->link.icrc || soft_ip_is_whole(event->datagram, event->length)) &&
		     soft_link_receive(event->device, sim->link.icrc, event->datagram, event->length);
}

static void expire(struct soft_timer *timer)
{
	struct soft_sim *sim = soft_container_of(timer, struct soft_sim, timer);
	uint64_t time = now(sim);

	soft_lock_take(&sim->lock);
	while (sim->heap_count && sim->heap[0]->due <= time) {
		struct event *event = heap_pop(sim);
		bool datagram = !event->qp, delivered = false;

		soft_lock_release(&sim->lock);
		happen(sim, event, &delivered);
		soft_lock_take(&sim->lock);
		sim->counters.delivered += datagram && delivered;
		sim->counters.dropped += datagram && !delivered;
		give_back(sim, event);
	}
	if (sim->heap_count)
		soft_timer_arm(&sim->fabric->timers, &sim->timer, sim->heap[0]->due - time);
	soft_lock_release(&sim->lock);
}

int soft_sim_create(struct soft_fabric *fabric, const struct soft_sim_options *options,
		    struct soft_sim **out)
{
	struct soft_sim *sim = calloc(1, sizeof(*sim));
	int result = -ENOMEM;

	if (!sim)
		return result;
	sim->link = (struct soft_link){.icrc = options->icrc, .begin = begin, .send = send_datagram,
				       .owe = owe};
	sim->fabric = fabric;
	sim->options = *options;
	sim->random.state = options->seed;
	sim->events = calloc(options->datagrams, sizeof(*sim->events));
	sim->unused = calloc(options->datagrams, sizeof(struct event *));
	sim->heap = calloc(options->datagrams, sizeof(struct event *));
	if (!sim->events || !sim->unused || !sim->heap)
		goto free_queues;
	for (uint32_t index = options->datagrams; index; index--)
		give_back(sim, &sim->events[index - 1]);
	result = soft_timer_register(&fabric->timers, &sim->timer, expire);
	if (result)
		goto free_queues;
	soft_lock_init(&sim->lock, SOFT_ORDER_SIM);
	fabric->faults.take_time = true;
	*out = sim;
	return 0;

free_queues:
	free(sim->heap);
	free(sim->unused);
	free(sim->events);
	free(sim);
	return result;
}

void soft_sim_destroy(struct soft_sim *sim)
{
	soft_timer_unregister(&sim->fabric->timers, &sim->timer);
	while (sim->heap_count) {
		struct event *event = heap_pop(sim);

		if (event->qp)
			soft_qp_release(event->qp);
	}
	for (uint32_t index = 0; index < sim->device_count; index++)
		sim->devices[index]->link = NULL;
	free(sim->heap);
	free(sim->unused);
	free(sim->events);
	free(sim);
}

int soft_sim_attach(struct soft_sim *sim, struct soft_device *device, const union ibv_gid *address)
{
	if (sim->device_count == SOFT_SIM_DEVICES)
		return -ENOSPC;
	device->gids[0] = *address;
	device->link = &sim->link;
	sim->devices[sim->device_count++] = device;
	return 0;
}

struct soft_sim_counters soft_sim_count(struct soft_sim *sim)
{
	struct soft_sim_counters counters;

	soft_lock_take(&sim->lock);
	counters = sim->counters;
	soft_lock_release(&sim->lock);
	return counters;
}
