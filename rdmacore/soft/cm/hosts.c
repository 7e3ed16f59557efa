/*
 * Messages from and to other hosts, which go over the wire as management datagrams.  Of all of this user's processes any one
 * gets a request, and finds out whose it is; what answers a message of ours comes to us by the number of its id
 * (soft/link/udp_share.c).
 *
 * A link gives them to us while it holds locks of its own, so they wait in a queue of fixed size for the poller's thread.
 * Who floods it fills it, and then requests are lost, which their senders repeat.
 */
#include "soft/cm/calls.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "soft/base/fabric.h"
#include "soft/base/lock.h"
#include "soft/ipc/ipc.h"
#include "soft/objects/device.h"
#include "soft/wire/address.h"

#define INBOX 1024
/* Between two looks at what else the poller's thread has to do. */
#define BATCH 64
/*
 * Requests in vain that are answered, of all hosts together: who asks for ports that nobody has can make this process look for
 * other processes and send refusals so often, and no more.
 */
#define REFUSALS 16
#define REFUSALS_TIME (10 * SOFT_MILLISECOND)

struct datagram {
	union ibv_gid from, to;
	uint8_t mad[SOFT_MAD];
};

struct soft_cm_inbox {
	struct soft_source source; /* of the eventfd, which is not 0 while there are datagrams */
	struct soft_cm *cm;
	struct soft_lock lock; /* guards the rest */
	uint32_t first, count;
	uint64_t dropped; /* for want of room */
	/* The next under cm.lock. */
	uint64_t invalid; /* no messages, or not from where they say */
	uint64_t unanswered; /* requests in vain over the bound */
	uint64_t refusals_until;
	uint32_t refusals; /* that are left until then */
	struct datagram datagrams[INBOX];
};

/* soft_management.receive */
static void receive(struct soft_management *management, const union ibv_gid *from, const union ibv_gid *to,
		    const uint8_t *mad)
{
	struct soft_cm_inbox *inbox = management->receiver;
	struct datagram *datagram;
	bool first = false;

	soft_lock_take(&inbox->lock);
	if (inbox->count == INBOX) {
		inbox->dropped++;
		soft_notice(&inbox->cm->fabric->notices, SOFT_NOTICE_FLOOD, from, 1);
	} else {
		datagram = &inbox->datagrams[(inbox->first + inbox->count) % INBOX];
		datagram->from = *from;
		datagram->to = *to;
		memcpy(datagram->mad, mad, SOFT_MAD);
		first = !inbox->count++;
	}
	soft_lock_release(&inbox->lock);
	if (first)
		(void)eventfd_write(inbox->source.fd, 1);
}

static bool take(struct soft_cm_inbox *inbox, struct datagram *datagram)
{
	bool any;

	soft_lock_take(&inbox->lock);
	any = inbox->count;
	if (any) {
		*datagram = inbox->datagrams[inbox->first];
		inbox->first = (inbox->first + 1) % INBOX;
		inbox->count--;
	}
	soft_lock_release(&inbox->lock);
	return any;
}

static bool is_from(const struct sockaddr_storage *address, const union ibv_gid *gid)
{
	union ibv_gid said;

	soft_address_to_gid((const struct sockaddr *)address, &said);
	return memcmp(&said, gid, sizeof(said)) == 0;
}

/* A request says by its IP header which addresses it is between; of others the datagram's are all there is. */
static bool set_addresses(const struct datagram *datagram, struct soft_cm_message *message)
{
	if (message->attribute == SOFT_CM_REQ || message->attribute == SOFT_CM_SIDR_REQ)
		return message->source.ss_family != AF_UNSPEC && is_from(&message->source, &datagram->from) &&
		       is_from(&message->destination, &datagram->to);
	soft_gid_to_sockaddr(&datagram->from, 0, (struct sockaddr *)&message->source);
	soft_gid_to_sockaddr(&datagram->to, 0, (struct sockaddr *)&message->destination);
	return true;
}

static bool may_refuse(struct soft_cm *cm)
{
	struct soft_cm_inbox *inbox = cm->inbox;
	uint64_t now = cm->fabric->wall.now(&cm->fabric->wall);

	if (now >= inbox->refusals_until) {
		inbox->refusals_until = now + REFUSALS_TIME;
		inbox->refusals = REFUSALS;
	}
	return inbox->refusals;
}

/* Whether a request was dealt with: passed on to the process that listens for other hosts, or dropped. */
static bool is_done(struct soft_cm *cm, const struct soft_cm_message *request)
{
	struct soft_id *listener = soft_port_find_listener(cm, request->port_space,
							   (const struct sockaddr *)&request->destination);
	union ibv_gid from;

	if (listener && !listener->yields_hosts)
		return false;
	if (!may_refuse(cm)) {
		cm->inbox->unanswered++;
		soft_address_to_gid((const struct sockaddr *)&request->source, &from);
		soft_notice(&cm->fabric->notices, SOFT_NOTICE_FLOOD, &from, 1);
		return true;
	}
	if (cm->ipc && soft_ipc_pass_on(cm->ipc, request->port_space, request))
		return true;
	cm->inbox->refusals--;
	return false;
}

/* Whether it is for an id of this process, as far as can be told: a request, or a message to one of its ids. */
static bool is_for_us(struct soft_cm *cm, const struct soft_cm_message *message)
{
	if (message->attribute == SOFT_CM_REQ || message->attribute == SOFT_CM_SIDR_REQ)
		return !is_done(cm, message);
	/* A request is taken back by who has no id of ours yet: any process may have it. */
	if (message->attribute == SOFT_CM_REJ && !message->remote && cm->ipc)
		soft_ipc_tell_all(cm->ipc, message);
	return true;
}

static void arrive(struct soft_cm *cm, const struct datagram *datagram)
{
	struct soft_cm_message message;

	/* One host's own messages go another way (soft/ipc), so nobody else may speak for it. */
	if (!soft_mad_decode(datagram->mad, &message) || !set_addresses(datagram, &message) ||
	    soft_device_owns(cm->device, &datagram->from) || !soft_device_owns(cm->device, &datagram->to)) {
		cm->inbox->invalid++;
		soft_notice(&cm->fabric->notices, SOFT_NOTICE_MANAGEMENT, &datagram->from, 1);
		return;
	}
	message.arrived = true;
	message.between_hosts = true;
	if (is_for_us(cm, &message))
		soft_cm_arrived(cm, &message);
}

static void ready(struct soft_source *source, uint32_t events)
{
	struct soft_cm_inbox *inbox = soft_container_of(source, struct soft_cm_inbox, source);
	struct soft_cm *cm = inbox->cm;
	struct datagram datagram;
	eventfd_t value;
	int left = BATCH;

	(void)events;
	(void)eventfd_read(source->fd, &value);
	soft_mutex_lock(&cm->lock);
	while (left && take(inbox, &datagram)) {
		arrive(cm, &datagram);
		left--;
	}
	soft_cm_unlock(cm);
	if (!left)
		(void)eventfd_write(source->fd, 1);
}

int soft_cm_open_inbox(struct soft_cm *cm)
{
	struct soft_cm_inbox *inbox;
	int fd, result = -ENOMEM;

	if (!soft_device_reaches_hosts(cm->device))
		return 0;
	inbox = calloc(1, sizeof(*inbox));
	if (!inbox)
		return result;
	inbox->cm = cm;
	soft_lock_init(&inbox->lock, SOFT_ORDER_INBOX);
	fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (fd < 0) {
		result = -errno;
		goto free_inbox;
	}
	result = soft_poller_add(&cm->fabric->poller, &inbox->source, fd, EPOLLIN, ready);
	if (result)
		goto close_event;
	cm->inbox = inbox;
	cm->device->management.receiver = inbox;
	cm->device->management.receive = receive;
	return 0;

close_event:
	close(fd);
free_inbox:
	free(inbox);
	return result;
}

void soft_cm_close_inbox(struct soft_cm *cm)
{
	struct soft_cm_inbox *inbox = cm->inbox;

	if (!inbox)
		return;
	soft_poller_remove(&cm->fabric->poller, &inbox->source);
	close(inbox->source.fd);
	free(inbox);
	cm->inbox = NULL;
}
