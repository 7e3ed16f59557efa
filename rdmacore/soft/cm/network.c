/*
 * Changes of the host's networks. rtnetlink(7) reports that something has changed, and then everything is read again.
 * So repeated and lost reports do no harm.
 */
#include "soft/cm/calls.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "soft/base/fabric.h"
#include "soft/objects/context.h"
#include "soft/objects/device.h"

struct soft_cm_network {
	struct soft_source source;
	struct soft_cm *cm;
	bool ran; /* an interface with addresses was running */
};

/*
 * Like rdma_rxe (rxe_notify of Linux): a port without a network is down. A port that never had one is up, for its
 * own host.
 */
static void set_port_state(struct soft_cm_network *network, bool runs)
{
	struct soft_device *device = network->cm->device;

	if (runs == network->ran)
		return;
	network->ran = runs;
	if (atomic_exchange(&device->port_down, !runs) == !runs)
		return;
	soft_device_raise(device, runs ? SOFT_CONTEXT_PORT_ACTIVE : SOFT_CONTEXT_PORT_ERROR);
}

static void look(struct soft_cm_network *network)
{
	struct soft_cm *cm = network->cm;
	struct soft_gid_changes changes;

	if (!soft_gid_table_refresh(&cm->device->gid_table, &changes))
		return;
	set_port_state(network, changes.runs);
	if (changes.changed)
		soft_device_raise(cm->device, SOFT_CONTEXT_GID_CHANGE);
	if (changes.vanished)
		soft_cm_remove_interfaces(cm);
}

static void ready(struct soft_source *source, uint32_t events)
{
	char message[4096];

	(void)events;
	/* Also after an overflow, which is reported once as ENOBUFS. */
	while (recv(source->fd, message, sizeof(message), MSG_DONTWAIT) >= 0 || errno == ENOBUFS)
		;
	look(soft_container_of(source, struct soft_cm_network, source));
}

/* Negative where it is forbidden. */
static int open_descriptor(void)
{
	struct sockaddr_nl groups = {.nl_family = AF_NETLINK, .nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR};
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);

	if (fd >= 0 && bind(fd, (struct sockaddr *)&groups, sizeof(groups))) {
		close(fd);
		fd = -1;
	}
	return fd;
}

int soft_cm_watch_network(struct soft_cm *cm)
{
	struct soft_cm_network *network;
	struct soft_gid_changes changes;
	int fd, result;

	if (!soft_device_reaches_hosts(cm->device))
		return 0;
	fd = open_descriptor();
	if (fd < 0)
		return 0; /* changes are not reported then */
	network = calloc(1, sizeof(*network));
	if (!network) {
		result = -ENOMEM;
		goto close_descriptor;
	}
	network->cm = cm;
	/* Changes between the creation of the device and this watch are not reported. */
	network->ran = soft_gid_table_refresh(&cm->device->gid_table, &changes) && changes.runs;
	result = soft_poller_add(&cm->fabric->poller, &network->source, fd, EPOLLIN, ready);
	if (result)
		goto free_network;
	cm->network = network;
	return 0;

free_network:
	free(network);
close_descriptor:
	close(fd);
	return result;
}

void soft_cm_close_network(struct soft_cm *cm)
{
	struct soft_cm_network *network = cm->network;

	if (!network)
		return;
	soft_poller_remove(&cm->fabric->poller, &network->source);
	close(network->source.fd);
	free(network);
	cm->network = NULL;
}
