#include "soft/udp/udp.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "soft/base/fabric.h"
#include "soft/link/packets.h"
#include "soft/udp/internal.h"

/*
 * Wanted receive buffer of a socket: 4 MiB hold 0.1 s of a flood (docs/decisions/0014-request-flood.md). The kernel
 * grants up to net.core.rmem_max.
 */
#define BUFFER_BYTES (4 << 20)
/* Packets that faults may delay at the same time: 4 MiB at the largest path MTU. */
#define STAGED 1024

int soft_udp_create(struct soft_fabric *fabric, struct soft_device *device, bool share, struct soft_udp **out)
{
	struct soft_packets_options stage = {.seed = soft_fabric_random(fabric), .datagrams = STAGED};
	struct soft_udp *udp = calloc(1, sizeof(*udp));
	int result = -ENOMEM;

	if (!udp)
		return result;
	udp->fabric = fabric;
	udp->device = device;
	udp->buffer_wanted = BUFFER_BYTES;
	udp->link = (struct soft_link){
		.icrc = true,
		.piggybacks_acks = true,
		.coarse_timeouts = true,
		.route_size = sizeof(struct soft_udp_route),
		.connect = soft_udp_connect,
		.join = soft_udp_join_group,
		.is_peer = soft_udp_is_peer,
		.begin = soft_udp_begin,
		.send = soft_udp_send,
		.flush = soft_udp_flush,
		.queue_ack = soft_udp_queue_ack,
		.answer_later = soft_udp_answer_later,
		.request_later = soft_udp_request_later,
	};
	soft_udp_init_block_source(udp, SOFT_UDP_QUEUE_PAIRS);
	soft_udp_init_block_source(udp, SOFT_UDP_COMMUNICATION);
	udp->ready = soft_udp_ready;
	udp->open_management = soft_udp_open_management;
	udp->ask_identifications = soft_udp_ask_identifications;
	soft_mutex_init(&udp->lock, SOFT_ORDER_UDP);
	result = soft_udp_send_init(udp);
	if (result)
		goto free_udp;
	result = soft_packets_create(fabric, &stage, &udp->delay_queue);
	if (result)
		goto destroy_send;
	result = soft_udp_progress_init(udp);
	if (result)
		goto destroy_stage;
	result = share ? soft_udp_share_create(udp) : 0;
	if (result)
		goto destroy_progress;
	device->link = &udp->link;
	soft_udp_management_init(udp);
	device->progress = &udp->progress;
	soft_table_use_blocks(&device->queue_pairs, &udp->block_sources[SOFT_UDP_QUEUE_PAIRS].block_source);
	*out = udp;
	return 0;

destroy_progress:
	soft_udp_progress_stop(udp);
	soft_udp_progress_destroy(udp);
destroy_stage:
	soft_packets_destroy(udp->delay_queue);
destroy_send:
	soft_udp_send_destroy(udp);
free_udp:
	soft_mutex_destroy(&udp->lock);
	free(udp);
	return result;
}

/*
 * The order matters: first sockets, then receivers, then the queue of delayed packets. The timers that any of those
 * arm come last.
 */
void soft_udp_destroy(struct soft_udp *udp)
{
	uint32_t count;

	udp->device->link = NULL;
	udp->device->management.block_source = NULL;
	udp->device->management.open = NULL;
	udp->device->management.leave = NULL;
	if (udp->device->management.send) /* otherwise soft_cm_stop_mad_tx did it, under the lock of its readers */
		udp->device->management.send = NULL;
	udp->device->progress = NULL;
	soft_udp_share_leave(udp);
	count = atomic_load_explicit(&udp->socket_count, memory_order_acquire);
	for (uint32_t index = 0; index < count; index++)
		soft_poller_remove(&udp->fabric->poller, &udp->sockets[index]->source);
	soft_udp_progress_stop(udp);
	soft_udp_share_stop(udp);
	soft_packets_destroy(udp->delay_queue);
	soft_udp_progress_destroy(udp);
	for (uint32_t index = 0; index < count; index++) {
		close(udp->sockets[index]->source.fd);
		free(udp->sockets[index]);
	}
	soft_udp_share_destroy(udp);
	soft_udp_send_destroy(udp);
	soft_mutex_destroy(&udp->lock);
	free(udp);
}
