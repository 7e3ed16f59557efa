#include "soft/objects/late_writes.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "soft/base/fabric.h"
#include "soft/objects/device.h"
#include "soft/wire/packet.h"

#define LATE_MAX (200 * SOFT_MICROSECOND)
#define BYTES_MAX (UINT64_C(1) << 20) /* of all late writes */

struct late_write {
	struct late_write *next;
	struct soft_segment to;
	uint8_t bytes[];
};

struct soft_late_writes {
	struct soft_mutex lock;
	struct soft_legal_draws draws;
	struct soft_timers *timers;
	struct soft_timer timer; /* armed while there are any */
	struct late_write *first, **last;
	_Atomic uint64_t bytes; /* of all of them; written under lock */
};

static void flush(struct soft_late_writes *writes)
{
	struct late_write *write;

	soft_mutex_expect(&writes->lock);
	while ((write = writes->first)) {
		writes->first = write->next;
		soft_segments_copy(&write->to, &(struct soft_segment){write->bytes, write->to.length}, write->to.length);
		free(write);
	}
	writes->last = &writes->first;
	atomic_store_explicit(&writes->bytes, 0, memory_order_release);
}

void soft_late_writes_flush(struct soft_late_writes *writes)
{
	if (!writes || !atomic_load_explicit(&writes->bytes, memory_order_acquire))
		return;
	soft_mutex_lock(&writes->lock);
	flush(writes);
	soft_mutex_unlock(&writes->lock);
}

static void expire(struct soft_timer *timer)
{
	soft_late_writes_flush(soft_container_of(timer, struct soft_late_writes, timer));
}

int soft_late_writes_create(struct soft_device *device)
{
	struct soft_late_writes *writes = calloc(1, sizeof(*writes));

	if (!writes)
		return -ENOMEM;
	writes->timers = &device->fabric->timers;
	if (soft_timer_register(writes->timers, &writes->timer, expire)) {
		free(writes);
		return -ENOMEM;
	}
	writes->last = &writes->first;
	soft_mutex_init(&writes->lock, SOFT_ORDER_LATE_WRITES);
	soft_legal_draws_init(&writes->draws, device->legal);
	device->late_writes = writes;
	return 0;
}

void soft_late_writes_destroy(struct soft_device *device)
{
	struct soft_late_writes *writes = device->late_writes;
	struct late_write *write;

	if (!writes)
		return;
	soft_timer_unregister(writes->timers, &writes->timer);
	while ((write = writes->first)) { /* the memory of these may be gone */
		writes->first = write->next;
		free(write);
	}
	soft_mutex_destroy(&writes->lock);
	free(writes);
	device->late_writes = NULL;
}

static bool overlaps(const struct soft_late_writes *writes, const struct soft_segment *to)
{
	for (const struct late_write *write = writes->first; write; write = write->next)
		if ((uintptr_t)to->address < (uintptr_t)write->to.address + write->to.length &&
		    (uintptr_t)write->to.address < (uintptr_t)to->address + to->length)
			return true;
	return false;
}

/* Keep the first bytes of the payload. Returns how many: 0 without memory or without room. */
static uint64_t keep(struct soft_late_writes *writes, const struct soft_segment *to, const struct soft_packet *packet,
		     uint64_t length)
{
	uint64_t bytes = atomic_load_explicit(&writes->bytes, memory_order_relaxed);
	struct late_write *write;

	soft_mutex_expect(&writes->lock);
	if (length > BYTES_MAX - bytes || !(write = malloc(sizeof(*write) + length)))
		return 0;
	write->next = NULL;
	write->to = (struct soft_segment){to->address, length};
	soft_segments_copy(&(struct soft_segment){write->bytes, length}, packet->segments, length);
	*writes->last = write;
	writes->last = &write->next;
	atomic_store_explicit(&writes->bytes, bytes + length, memory_order_release);
	return length;
}

void soft_late_writes_place(struct soft_late_writes *writes, const struct soft_segment *to, const struct soft_packet *packet)
{
	uint64_t length = packet->length, late = 0, drawn;
	struct soft_packet rest = *packet;

	soft_mutex_lock(&writes->lock);
	if (overlaps(writes, to))
		flush(writes);
	drawn = length && !soft_clock_is_virtual(writes->timers->clock) ? soft_legal_choose(&writes->draws, CORE_LEGAL_WRITE_LATE) : 0;
	if (drawn && (soft_timer_is_armed(writes->timers, &writes->timer) ||
		      !soft_timer_arm(writes->timers, &writes->timer, soft_legal_amount(drawn, LATE_MAX))))
		late = keep(writes, to, packet, soft_legal_amount(drawn >> 24, length));
	if (late < length) {
		soft_packet_skip(&rest, late);
		soft_segments_copy(&(struct soft_segment){(uint8_t *)to->address + late, length - late}, rest.segments,
				   length - late);
	}
	soft_mutex_unlock(&writes->lock);
}
