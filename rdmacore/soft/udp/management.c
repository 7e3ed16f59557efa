/* Management datagrams to and from other hosts, at SOFT_WIRE_PORT of each address (IBTA annex A17.9.2, 13.5.1). */
#include "soft/udp/udp.h"

#include <errno.h>
#include <string.h>

#include "soft/base/fabric.h"
#include "soft/base/refusal.h"
#include "soft/udp/internal.h"
#include "soft/wire/datagram.h"
#include "soft/wire/mad.h"
#include "soft/wire/packet.h"

static struct soft_udp *udp_of(struct soft_management *management)
{
	return soft_udp_of(soft_container_of(management, struct soft_device, management)->link);
}

/* A listener on any address remains reachable at the other addresses. So the user gets a notice, and no call fails. */
static void report_unreachable(struct soft_udp *udp, const union ibv_gid *address)
{
	(void)soft_udp_refuse_port(address);
	soft_notice_text(&udp->fabric->notices, "a listener is not reachable from other hosts: %s", soft_refusal());
	soft_refusal_clear();
}

/* If another user has the port, no answer can come. The CM notices that by its retries. */
static int open_address(struct soft_management *management, const union ibv_gid *address)
{
	struct soft_udp *udp = udp_of(management);
	uint32_t count = soft_gid_count(&udp->device->gid_table);
	int error = 0;

	if (address && soft_udp_open(udp, address, SOFT_WIRE_PORT, &error))
		return soft_udp_check_identifications(udp, address);
	if (address)
		return error == EADDRINUSE ? soft_udp_refuse_port(address) : error;
	for (uint32_t index = 0; index < count; index++) {
		const union ibv_gid *gid = &udp->device->gid_table.gids[index];

		if (!soft_gid_is_this_host_only(gid) && !soft_udp_open(udp, gid, SOFT_WIRE_PORT, &error) && error == EADDRINUSE)
			report_unreachable(udp, gid);
	}
	return 0;
}

static void leave(struct soft_management *management)
{
	soft_udp_share_leave(udp_of(management));
}

static void send_datagram(struct soft_management *management, const union ibv_gid *from, const union ibv_gid *to, const uint8_t *mad,
			  bool record)
{
	struct soft_udp *udp = udp_of(management);
	struct soft_packet packet = {
		.opcode = SOFT_UNRELIABLE_DATAGRAM | SOFT_SEND_ONLY,
		.migrated = true,
		.partition = SOFT_WIRE_PARTITION,
		.destination = SOFT_GSI_QUEUE_PAIR,
		.source = SOFT_GSI_QUEUE_PAIR,
		.queue_key = SOFT_GSI_QUEUE_KEY,
		.psn = atomic_fetch_add_explicit(&udp->management_psn, 1, memory_order_relaxed) & SOFT_PSN_MASK,
		.length = SOFT_MAD,
		.num_segments = 1,
		.segments = {{(void *)(uintptr_t)mad, SOFT_MAD}},
	};
	uint8_t bytes[SOFT_WIRE_BTH + SOFT_WIRE_DETH + SOFT_MAD + SOFT_WIRE_ICRC];
	const struct ibv_global_route path = {.hop_limit = SOFT_HOP_LIMIT};
	const struct soft_capture_outcome outcome = {0};
	struct soft_udp_route route;
	int error = 0;

	if (!soft_udp_route_from(soft_udp_open(udp, from, SOFT_WIRE_PORT, &error), to, SOFT_WIRE_PORT, &route))
		return;
	soft_icrc_encode(&route.headers, 0, &packet, bytes, sizeof(bytes));
	if (record) /* before an answer can come */
		soft_udp_record(udp, &route.socket->endpoint, &route.peer, &path, bytes, sizeof(bytes), false,
				&outcome);
	soft_udp_send_alone(udp, &route, bytes, sizeof(bytes));
}

void soft_udp_management_init(struct soft_udp *udp)
{
	udp->device->management.block_source = &udp->block_sources[SOFT_UDP_COMMUNICATION].block_source;
	udp->device->management.open = open_address;
	udp->device->management.leave = leave;
	udp->device->management.send = send_datagram;
	udp->device->mtu = soft_gid_host_mtu();
}
