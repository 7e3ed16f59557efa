#include "soft/base/order.h"

#ifdef SOFT_ORDER_CHECKED

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include <sanitizer/common_interface_defs.h>

#define MOST_HELD 16 /* at once, by one thread */

static const char *const names[] = {
	[SOFT_ORDER_POLLING] = "cq.polling",
	[SOFT_ORDER_BUILDING] = "builder.lock",
	[SOFT_ORDER_RECEIVING] = "udp.receiving",
	[SOFT_ORDER_CM] = "cm.lock",
	[SOFT_ORDER_PD] = "pd.lock",
	[SOFT_ORDER_REQUESTER] = "requester.lock",
	[SOFT_ORDER_RESPONDER] = "responder.lock",
	[SOFT_ORDER_TRANSFER] = "srq.transfer",
	[SOFT_ORDER_RECEIVE_QUEUE] = "receive_queue.lock",
	[SOFT_ORDER_CONSUMER] = "cq.consumer_lock",
	[SOFT_ORDER_CQ] = "cq.lock",
	[SOFT_ORDER_MR] = "mr.lock",
	[SOFT_ORDER_MULTICAST] = "multicast.lock",
	[SOFT_ORDER_DEVICE] = "device.lock",
	[SOFT_ORDER_TABLE] = "table.lock",
	[SOFT_ORDER_EVENT_QUEUE] = "event_queue.lock",
	[SOFT_ORDER_ASKING] = "gate.asking",
	[SOFT_ORDER_GATE] = "gate.lock",
	[SOFT_ORDER_INBOX] = "inbox.lock",
	[SOFT_ORDER_FAULTS] = "faults.lock",
	[SOFT_ORDER_PACKETS] = "packets.lock",
	[SOFT_ORDER_UDP] = "udp.lock",
	[SOFT_ORDER_BUFFERS] = "udp.buffers.lock",
	[SOFT_ORDER_POLLER] = "poller.lock",
	[SOFT_ORDER_NOTICES] = "notices.lock",
	[SOFT_ORDER_TIMERS] = "timers.lock",
	[SOFT_ORDER_FABRIC] = "fabric.lock",
	[SOFT_ORDER_CAPTURE] = "capture_file.lock",
};

/* The locks that the calling thread holds, in the order in which it took them. */
static _Thread_local struct {
	const void *lock;
	enum soft_order order;
} held[MOST_HELD];
static _Thread_local unsigned int count;

static _Noreturn void end(void)
{
	__sanitizer_print_stack_trace();
	abort();
}

static unsigned int find(const void *lock)
{
	unsigned int at = 0;

	while (at < count && held[at].lock != lock)
		at++;
	return at;
}

void soft_order_take(const void *lock, enum soft_order order)
{
	bool by_user = order <= SOFT_ORDER_BUILDING;

	if (count && held[count - 1].order >= order && !(by_user && held[count - 1].order <= SOFT_ORDER_BUILDING)) {
		fprintf(stderr, "%s is taken after %s: soft/base/order.h has them the other way\n", names[order],
			names[held[count - 1].order]);
		end();
	}
	if (count == MOST_HELD) {
		fprintf(stderr, "%s is taken by a thread that has %u locks\n", names[order], count);
		end();
	}
	held[count].lock = lock;
	held[count++].order = order;
}

void soft_order_expect(const void *lock)
{
	if (find(lock) < count)
		return;
	fprintf(stderr, "a lock is not held by the thread that needs it\n");
	end();
}

void soft_order_expect_none(void)
{
	if (!count || held[count - 1].order <= SOFT_ORDER_RECEIVING)
		return;
	fprintf(stderr, "%s is held where no lock may be\n", names[held[count - 1].order]);
	end();
}

void soft_order_release(const void *lock)
{
	unsigned int at = find(lock);

	if (at == count) {
		fprintf(stderr, "a lock is given up by a thread that does not have it\n");
		end();
	}
	count--;
	for (; at < count; at++)
		held[at] = held[at + 1];
}

#endif
