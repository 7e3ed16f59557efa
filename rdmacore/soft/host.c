#include "soft/host.h"

#include <errno.h>
#include <stdlib.h>

#include "soft/capture/capture.h"
#include "soft/link/packets.h"
#include "soft/udp/udp.h"
#include "soft/objects/device.h"
#include "soft/objects/late_writes.h"
#include "soft/rdma/rdma.h"

/* Packets in flight on the link packets take memory: allow the windows of a few dozen busy queue pairs. */
#define PACKETS_ON_THEIR_WAY 8192

static int create_packets(struct soft_host *host)
{
	struct soft_packets_options options = {
		.seed = soft_fabric_random(&host->fabric),
		.datagrams = PACKETS_ON_THEIR_WAY,
		.delay = CORE_LINK_PACKETS_DELAY,
		.icrc = true,
	};
	int result = soft_packets_create(&host->fabric, &options, &host->packets);

	return result ? result : soft_packets_attach(host->packets, host->device, &host->device->gid_table.gids[0]);
}

static int create_link(struct soft_host *host, const struct core_options *options)
{
	switch (options->link) {
	case CORE_LINK_PACKETS:
		return create_packets(host);
	case CORE_LINK_UDP:
		return soft_udp_create(&host->fabric, host->device, *options->fabric, &host->udp);
	case CORE_LINK_LOCAL:
		break;
	}
	return 0;
}

static void destroy_link(struct soft_host *host)
{
	if (host->packets)
		soft_packets_destroy(host->packets);
	if (host->udp)
		soft_udp_destroy(host->udp);
}

int soft_host_create(struct soft_host **out, const struct core_options *options)
{
	struct soft_host *host = calloc(1, sizeof(*host));
	int result;

	if (!host)
		return -ENOMEM;
	soft_fabric_init(&host->fabric, options->seed, options->virtual_clock, options->tally);
	if (options->legal)
		soft_fabric_choose(&host->fabric, options->legal_seed + (options->seeded ? options->seed : 0),
				   options->legal, options->legal_rates);
	result = soft_device_create(&host->fabric, "soft0", &host->device);
	if (result)
		goto destroy_fabric;
	if (options->legal)
		result = soft_late_writes_create(host->device);
	if (!result && options->capture)
		result = soft_capture_create(options->capture, &host->fabric,
					     options->capture_label ? options->capture_label : "", &host->fabric.capture);
	if (host->fabric.capture)
		soft_faults_watch(&host->fabric.faults);
	if (!result && options->notices && options->link == CORE_LINK_UDP)
		result = soft_notices_open(&host->fabric.notices, &host->fabric.timers, &host->fabric.faults, options->notices,
					   options->notice_prefix ? options->notice_prefix : "");
	if (!result)
		result = create_link(host, options);
	if (result)
		goto destroy_link;
	result = soft_cm_create(&host->fabric, host->device, options, &host->cm);
	if (result)
		goto destroy_link;
	*out = host;
	return 0;

destroy_link:
	destroy_link(host);
	if (host->fabric.capture)
		soft_capture_destroy(host->fabric.capture);
	soft_late_writes_destroy(host->device);
	soft_device_destroy(host->device);
destroy_fabric:
	soft_notices_close(&host->fabric.notices);
	soft_fabric_destroy(&host->fabric);
	free(host);
	return result;
}

void soft_host_destroy(struct soft_host *host)
{
	/* First what passes messages to the communication manager; it may be about to answer one. */
	soft_cm_stop_mad_tx(host->cm);
	destroy_link(host);
	soft_cm_destroy(host->cm);
	if (host->fabric.capture) {
		soft_capture_finish(host->fabric.capture);
		soft_capture_destroy(host->fabric.capture);
	}
	soft_late_writes_destroy(host->device);
	soft_device_destroy(host->device);
	soft_notices_close(&host->fabric.notices);
	soft_fabric_destroy(&host->fabric);
	free(host);
}
