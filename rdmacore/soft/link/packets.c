#include "soft/link/packets.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "soft/base/fabric.h"
#include "soft/capture/capture.h"
#include "soft/engine/segment.h"
#include "soft/link/calls.h"
#include "soft/objects/device.h"
#include "soft/objects/qp.h"
#include "soft/wire/datagram.h"

/* Routers distribute flows by source port: each queue pair has one of the dynamic ports (annex A17.9.2). */
#define SOURCE_PORT 0xc000
/* Offset of the packet in an event, behind its headers. */
#define PACKET (SOFT_GRH + SOFT_UDP_HEADER)
/* How long a datagram waits for a later one that arrives before it, unless the rule sets a limit. */
#define REORDER_LIMIT (20 * SOFT_MICROSECOND)

/* The byte of the BTH that routers may change and the ICRC does not cover (IBTA 7.8.1, annex A17.3.3). */
#define UNCOVERED 4

/* Lists of flows, by key. */
#define FLOWS 1024

/* Packets of one flow keep their order, except for faults. A fault on one flow does not change others. */
struct flow {
	struct flow *next; /* in its list, or in that of unused ones */
	uint64_t key;
	uint64_t latest; /* arrival time of the last packet */
	uint32_t events;
};

/* A datagram that will arrive, or an acknowledgement that will be due. */
struct event {
	uint64_t due, order; /* at the same time, the lower order comes first */
	struct soft_device *device; /* receiver */
	struct soft_packets_sender sender; /* with a send function: a packet of another link, which is sent by it */
	struct flow *flow; /* the packet keeps its order in it; NULL: it may be reordered */
	struct soft_qp *qp; /* reference: it has a pending acknowledgement; NULL: a datagram */
	uint32_t from; /* the queue pair that sent it */
	size_t begin, length; /* of the datagram */
	uint8_t bytes[SOFT_DATAGRAM];
};

struct soft_packets {
	struct soft_link link;
	struct soft_fabric *fabric;
	struct soft_packets_options options;
	struct soft_timer timer; /* for the earliest event */

	struct soft_lock lock; /* guards the fields below */
	struct soft_random random;
	struct soft_device *devices[SOFT_PACKETS_DEVICES];
	struct flow *flows; /* as many as events */
	struct flow *used_flows[FLOWS], *unused_flows;
	uint32_t device_count;
	struct event *events;
	struct event **unused; /* a stack */
	struct event **heap; /* packets in flight, by due and order */
	uint32_t unused_count, heap_count;
	uint64_t order;
	struct soft_packets_counters counters;
};

static uint64_t now(struct soft_packets *packets)
{
	return packets->fabric->clock.now(&packets->fabric->clock);
}

static bool before(const struct event *a, const struct event *b)
{
	return a->due < b->due || (a->due == b->due && a->order < b->order);
}

static void heap_push(struct soft_packets *packets, struct event *event)
{
	uint32_t index = packets->heap_count++;

	while (index && before(event, packets->heap[(index - 1) / 2])) {
		packets->heap[index] = packets->heap[(index - 1) / 2];
		index = (index - 1) / 2;
	}
	packets->heap[index] = event;
}

static struct event *heap_pop(struct soft_packets *packets)
{
	struct event *first = packets->heap[0], *last = packets->heap[--packets->heap_count];
	uint32_t index = 0, child;

	while ((child = 2 * index + 1) < packets->heap_count) {
		if (child + 1 < packets->heap_count && before(packets->heap[child + 1], packets->heap[child]))
			child++;
		if (!before(packets->heap[child], last))
			break;
		packets->heap[index] = packets->heap[child];
		index = child;
	}
	packets->heap[index] = last;
	return first;
}

/* Queue the event for that time. */
static void schedule(struct soft_packets *packets, struct event *event, uint64_t due)
{
	uint64_t time = now(packets);

	soft_lock_expect(&packets->lock);
	event->due = due;
	event->order = packets->order++;
	heap_push(packets, event);
	if (packets->heap[0] == event)
		soft_timer_arm(&packets->fabric->timers, &packets->timer, due > time ? due - time : 0);
}

/* A free event; NULL if too many datagrams are in flight. */
static struct event *take(struct soft_packets *packets)
{
	soft_lock_expect(&packets->lock);
	return packets->unused_count ? packets->unused[--packets->unused_count] : NULL;
}

static struct flow **list_of(struct soft_packets *packets, uint64_t key)
{
	return &packets->used_flows[key * UINT64_C(0x9e3779b97f4a7c15) >> 54];
}

/* Add an event to the flow of that key. */
static struct flow *use_flow(struct soft_packets *packets, uint64_t key)
{
	struct flow **list = list_of(packets, key), *flow = *list;

	soft_lock_expect(&packets->lock);
	while (flow && flow->key != key)
		flow = flow->next;
	if (!flow) {
		flow = packets->unused_flows;
		packets->unused_flows = flow->next;
		*flow = (struct flow){.next = *list, .key = key};
		*list = flow;
	}
	flow->events++;
	return flow;
}

/* Remove an event. A flow without events is freed. */
static void leave_flow(struct soft_packets *packets, struct flow *flow)
{
	struct flow **link = list_of(packets, flow->key);

	if (--flow->events)
		return;
	while (*link != flow)
		link = &(*link)->next;
	*link = flow->next;
	flow->next = packets->unused_flows;
	packets->unused_flows = flow;
}

static void give_back(struct soft_packets *packets, struct event *event)
{
	if (event->flow)
		leave_flow(packets, event->flow);
	event->flow = NULL;
	packets->unused[packets->unused_count++] = event;
}

static uint8_t *begin(struct soft_link *link, struct soft_burst *burst, struct soft_qp *qp,
		      const struct soft_packet *packet, size_t length)
{
	struct soft_packets *packets = soft_container_of(link, struct soft_packets, link);
	struct event *event = NULL;

	(void)burst, (void)qp, (void)packet;
	soft_lock_take(&packets->lock);
	packets->counters.sent++;
	if (length <= SOFT_DATAGRAM - PACKET && !(event = take(packets)))
		packets->counters.overflowed++;
	soft_lock_release(&packets->lock);
	return event ? event->bytes + PACKET : NULL;
}

/* The index of the device with that address; SOFT_PACKETS_DEVICES if there is none. */
static uint32_t find(const struct soft_packets *packets, const union ibv_gid *address)
{
	uint32_t index = 0;

	while (index < packets->device_count &&
	       !soft_device_owns(packets->devices[index], address))
		index++;
	return index < packets->device_count ? index : SOFT_PACKETS_DEVICES;
}

static uint64_t below(struct soft_packets *packets, uint64_t limit)
{
	return limit ? soft_random_next(&packets->random) % limit : 0;
}

static struct event *copy(struct soft_packets *packets, const struct event *event)
{
	struct event *other = take(packets);

	if (!other)
		return NULL;
	other->qp = NULL;
	other->from = event->from;
	other->sender = event->sender;
	other->begin = event->begin;
	other->length = event->length;
	memcpy(other->bytes + other->begin, event->bytes + event->begin, event->length);
	return other;
}

/* Send the datagram on the flow of that key, subject to faults. */
static void carry(struct soft_packets *packets, struct event *event, uint64_t key,
		  const struct soft_fault_result *fault_result)
{
	uint64_t due = now(packets) + packets->options.delay + below(packets, packets->options.jitter);
	struct event *duplicate;

	soft_lock_expect(&packets->lock);
	if (fault_result->corrupt) {
		/* A packet of another link has no headers here. */
		size_t bth = event->sender.send ? 0 : PACKET;
		uint8_t bit = (uint8_t)(1u << below(packets, 8));
		size_t offset = below(packets, event->begin + event->length - bth - 1);

		packets->counters.corrupted++;
		event->bytes[bth + offset + (offset >= UNCOVERED)] ^= bit;
	}
	event->flow = use_flow(packets, key);
	if (due < event->flow->latest)
		due = event->flow->latest;
	due += fault_result->delay;
	if (fault_result->duplicate && (duplicate = copy(packets, event))) {
		packets->counters.duplicated++;
		duplicate->device = event->device;
		schedule(packets, duplicate, due + fault_result->duplicate_delay);
	}
	if (fault_result->reorder) {
		packets->counters.reordered++;
		due += below(packets, fault_result->reorder_limit ? fault_result->reorder_limit : REORDER_LIMIT);
	} else {
		event->flow->latest = due;
	}
	schedule(packets, event, due);
}

/* The flow between two queue pairs; all members of a group are one. */
static uint64_t key_of(const struct soft_qp *qp, const struct soft_packet *packet, uint32_t from, uint32_t to)
{
	return (uint64_t)(from * (SOFT_PACKETS_DEVICES + 1) + to) << 48 | (uint64_t)qp->ibv.qp_num << 24 | packet->destination;
}

/* Write the headers before the packet, and the ICRC after it. */
static void finish(struct event *event, bool icrc, struct soft_qp *qp, const struct soft_packet *packet, size_t length)
{
	uint8_t header[SOFT_GRH], *place;
	size_t offset;

	if (qp->service == SOFT_UNRELIABLE_DATAGRAM) {
		memcpy(header, packet->grh, SOFT_GRH);
	} else {
		memcpy(header, qp->segmentation->header, SOFT_GRH);
		soft_ip_finish(header, (uint32_t)(SOFT_UDP_HEADER + length));
	}
	offset = soft_ip_offset(header);
	event->begin = offset;
	event->length = PACKET - offset + length;
	place = event->bytes + offset;
	memcpy(place, header + offset, SOFT_GRH - offset);
	soft_udp_make(event->bytes + SOFT_GRH, (uint16_t)(SOURCE_PORT | (qp->ibv.qp_num & 0x3fff)), length);
	soft_icrc_put(place + event->length - SOFT_WIRE_ICRC,
		      icrc ? soft_icrc(place, event->length - SOFT_WIRE_ICRC) : 0);
}

static void send_datagram(struct soft_link *link, struct soft_burst *burst, struct soft_qp *qp,
			  const struct soft_packet *packet, uint8_t *bytes, size_t length)
{
	struct soft_packets *packets = soft_container_of(link, struct soft_packets, link);
	struct event *event = (struct event *)(void *)(bytes - PACKET - offsetof(struct event, bytes)), *other;
	const union ibv_gid *from = soft_link_source(qp, packet), *to = soft_link_destination(qp, packet);
	struct soft_faults *faults = &packets->fabric->faults;
	struct soft_capture_outcome outcome = {0};
	const struct soft_fault_result *fault_result = &outcome.fault_result;
	uint32_t source, target;

	(void)burst;
	soft_wire_encode(packet, bytes);
	event->sender.send = NULL;
	finish(event, link->icrc, qp, packet, length);
	event->qp = NULL;
	event->from = qp->ibv.qp_num;
	if (soft_faults_active(faults)) {
		struct soft_fault_subject what = soft_link_subject(qp, packet);

		outcome.fault_result = soft_faults_apply(faults, from, to, &what);
		if (packets->fabric->capture)
			soft_capture_datagram(packets->fabric->capture, event->bytes + event->begin, event->length, from,
					      false, &outcome);
	}
	soft_lock_take(&packets->lock);
	source = find(packets, from);
	target = find(packets, to);
	packets->counters.lost += fault_result->lose;
	if (fault_result->lose) {
		give_back(packets, event);
	} else if (soft_gid_is_multicast(to)) {
		/* A copy for each device, which knows the members of the group. */
		for (target = 0; target < packets->device_count; target++)
			if ((other = copy(packets, event))) {
				other->device = packets->devices[target];
				carry(packets, other, key_of(qp, packet, source, target), fault_result);
			}
		give_back(packets, event);
	} else if (target < SOFT_PACKETS_DEVICES) {
		event->device = packets->devices[target];
		carry(packets, event, key_of(qp, packet, source, target), fault_result);
	} else {
		packets->counters.dropped++;
		give_back(packets, event);
	}
	soft_lock_release(&packets->lock);
}

static bool queue_ack(struct soft_link *link, struct soft_qp *qp)
{
	struct soft_packets *packets = soft_container_of(link, struct soft_packets, link);
	struct event *event = NULL;

	if (!packets->options.acknowledge_delay)
		return false;
	soft_lock_take(&packets->lock);
	if ((event = take(packets))) {
		soft_qp_hold(qp);
		event->qp = qp;
		schedule(packets, event, now(packets) + packets->options.acknowledge_delay);
	}
	soft_lock_release(&packets->lock);
	return event;
}

static void handle_event(struct soft_packets *packets, struct event *event, bool *delivered)
{
	if (event->qp) {
		soft_link_acknowledge(event->qp);
		soft_qp_release(event->qp);
		return;
	}
	if (event->sender.send) {
		event->sender.send(&event->sender, event->bytes + event->begin, event->length);
		*delivered = true;
		return;
	}
	*delivered = soft_link_receive(event->device, packets->link.icrc, event->from, event->bytes + event->begin,
				       event->length);
}

static void expire(struct soft_timer *timer)
{
	struct soft_packets *packets = soft_container_of(timer, struct soft_packets, timer);
	uint64_t time = now(packets);

	soft_lock_take(&packets->lock);
	while (packets->heap_count && packets->heap[0]->due <= time) {
		struct event *event = heap_pop(packets);
		bool datagram = !event->qp, delivered = false;

		soft_lock_release(&packets->lock);
		handle_event(packets, event, &delivered);
		soft_lock_take(&packets->lock);
		packets->counters.delivered += datagram && delivered;
		packets->counters.dropped += datagram && !delivered;
		give_back(packets, event);
	}
	if (packets->heap_count)
		soft_timer_arm(&packets->fabric->timers, &packets->timer, packets->heap[0]->due - time);
	soft_lock_release(&packets->lock);
}

void soft_packets_send(struct soft_packets *packets, const struct soft_fault_result *fault_result,
		       const struct soft_packets_sender *sender, const uint8_t *bytes, size_t length)
{
	struct event *event = NULL;

	soft_lock_take(&packets->lock);
	packets->counters.sent++;
	packets->counters.lost += fault_result->lose;
	if (!fault_result->lose && length <= SOFT_DATAGRAM && !(event = take(packets)))
		packets->counters.overflowed++;
	if (event) {
		event->qp = NULL;
		event->sender = *sender;
		event->begin = 0;
		event->length = length;
		memcpy(event->bytes, bytes, length);
		carry(packets, event, sender->flow, fault_result);
	}
	soft_lock_release(&packets->lock);
}

bool soft_packets_is_empty(struct soft_packets *packets)
{
	bool empty;

	soft_lock_take(&packets->lock);
	empty = packets->unused_count == packets->options.datagrams;
	soft_lock_release(&packets->lock);
	return empty;
}

int soft_packets_create(struct soft_fabric *fabric, const struct soft_packets_options *options,
		    struct soft_packets **out)
{
	struct soft_packets *packets = calloc(1, sizeof(*packets));
	int result = -ENOMEM;

	if (!packets)
		return result;
	packets->link = (struct soft_link){.icrc = options->icrc, .begin = begin, .send = send_datagram,
				       .queue_ack = queue_ack};
	packets->fabric = fabric;
	packets->options = *options;
	packets->random.state = options->seed;
	packets->events = calloc(options->datagrams, sizeof(*packets->events));
	packets->unused = calloc(options->datagrams, sizeof(struct event *));
	packets->heap = calloc(options->datagrams, sizeof(struct event *));
	packets->flows = calloc(options->datagrams, sizeof(*packets->flows));
	if (!packets->events || !packets->unused || !packets->heap || !packets->flows)
		goto free_queues;
	for (uint32_t index = options->datagrams; index; index--) {
		give_back(packets, &packets->events[index - 1]);
		packets->flows[index - 1].next = packets->unused_flows;
		packets->unused_flows = &packets->flows[index - 1];
	}
	result = soft_timer_register(&fabric->timers, &packets->timer, expire);
	if (result)
		goto free_queues;
	soft_lock_init(&packets->lock, SOFT_ORDER_PACKETS);
	fabric->faults.take_time = true;
	*out = packets;
	return 0;

free_queues:
	free(packets->flows);
	free(packets->heap);
	free(packets->unused);
	free(packets->events);
	free(packets);
	return result;
}

void soft_packets_destroy(struct soft_packets *packets)
{
	soft_timer_unregister(&packets->fabric->timers, &packets->timer);
	while (packets->heap_count) {
		struct event *event = heap_pop(packets);

		if (event->qp)
			soft_qp_release(event->qp);
	}
	for (uint32_t index = 0; index < packets->device_count; index++)
		packets->devices[index]->link = NULL;
	free(packets->flows);
	free(packets->heap);
	free(packets->unused);
	free(packets->events);
	free(packets);
}

int soft_packets_attach(struct soft_packets *packets, struct soft_device *device, const union ibv_gid *address)
{
	if (packets->device_count == SOFT_PACKETS_DEVICES)
		return -ENOSPC;
	device->gid_table.gids[0] = *address;
	device->link = &packets->link;
	packets->devices[packets->device_count++] = device;
	return 0;
}

struct soft_packets_counters soft_packets_count(struct soft_packets *packets)
{
	struct soft_packets_counters counters;

	soft_lock_take(&packets->lock);
	counters = packets->counters;
	soft_lock_release(&packets->lock);
	return counters;
}
