/*
 * Messages from and to other hosts, which go over the wire as management datagrams.  Of all of this user's processes any one
 * gets a request, and finds out whose it is; what answers a message of ours comes to us by the number of its id
 * (soft/udp/share.c).
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
#include "soft/base/local_name.h"
#include "soft/base/lock.h"
#include "soft/base/order.h"
#include "soft/ipc/ipc.h"
#include "soft/objects/device.h"
#include "soft/wire/address.h"

/*
 * Datagrams.  Hosts that have shown that they receive what is sent to them (soft/cm/gate.c) have half of them, and the others have
 * the other half.  A host gets as many as are left for all of its kind.
 */
#define INBOX 4096
/* Between two looks at what else the poller's thread has to do. */
#define BATCH 64
/*
 * What requests for ports that this process does not have may cost in a while, of all hosts together: looks at the kernel's
 * list of sockets, attempts to connect to processes that are on it, and refusals.  A host has as many refusals as are left for
 * all.  What is passed on to a process costs none.
 */
#define BUDGET_TIME (10 * SOFT_MILLISECOND)
#define LISTS 2
#define ATTEMPTS 64
#define REFUSALS 16
/* Requests that were passed on last, which their senders may take back. */
#define PASSED 1024

struct datagram {
	union ibv_gid from, to;
	uint16_t source;
	bool proven;
	uint8_t mad[SOFT_MAD];
};

struct budget {
	uint64_t until; /* what is left then begins anew */
	uint32_t lists, attempts, refusals;
	uint8_t refused[SOFT_HALF_OPEN_SOURCES]; /* refusals by source */
};

/* port: host byte order; 0: there is none */
struct passed {
	union ibv_gid from;
	uint64_t guid;
	uint32_t local;
	int port_space;
	uint16_t port;
};

struct soft_cm_inbox {
	struct soft_source source; /* of the eventfd, which is not 0 while there are datagrams */
	struct soft_cm *cm;
	struct soft_lock lock; /* guards the rest */
	uint32_t first, count;
	uint32_t of_kind[2]; /* of them: of hosts that have not shown it, and of others */
	uint64_t dropped; /* for want of room */
	uint16_t by_source[SOFT_HALF_OPEN_SOURCES];
	uint64_t invalid; /* no messages, or not from where they say; of the poller's thread */
	/* The next under cm.lock. */
	uint64_t unanswered; /* requests in vain over the bound */
	struct budget budget;
	struct passed passed[PASSED];
	struct soft_local_list list; /* of sockets, as the poller's thread read it last */
	/* Requests that are refused unless a new list has a process for them: those of this budget, and of the one before. */
	struct soft_cm_message refused[2 * REFUSALS];
	uint32_t refused_count;
	struct soft_timer refuse_later; /* when there are lists again */
	struct datagram datagrams[INBOX];
};

/* soft_management.receive */
static void receive(struct soft_management *management, const union ibv_gid *from, const union ibv_gid *to,
		    const uint8_t *mad)
{
	struct soft_cm_inbox *inbox = management->receiver;
	uint64_t source = soft_address_source(inbox->cm, from);
	uint16_t *of_source = &inbox->by_source[source % SOFT_HALF_OPEN_SOURCES];
	bool proven = soft_gate_is_proven(inbox->cm, source);
	struct datagram *datagram;
	bool first = false;

	soft_lock_take(&inbox->lock);
	if (*of_source >= INBOX / 2 - inbox->of_kind[proven]) {
		inbox->dropped++;
		soft_notice(&inbox->cm->fabric->notices, SOFT_NOTICE_FLOOD, from, 1);
	} else {
		datagram = &inbox->datagrams[(inbox->first + inbox->count) % INBOX];
		datagram->from = *from;
		datagram->to = *to;
		datagram->source = (uint16_t)(source % SOFT_HALF_OPEN_SOURCES);
		memcpy(datagram->mad, mad, SOFT_MAD);
		datagram->proven = proven;
		(*of_source)++;
		inbox->of_kind[proven]++;
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
		inbox->by_source[datagram->source]--;
		inbox->of_kind[datagram->proven]--;
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

static struct budget *budget_now(struct soft_cm *cm)
{
	struct budget *budget = &cm->inbox->budget;
	uint64_t now = soft_fabric_wall_now(cm->fabric);

	soft_mutex_expect(&cm->lock);
	if (now >= budget->until)
		*budget = (struct budget){now + BUDGET_TIME, LISTS, ATTEMPTS, REFUSALS, {0}};
	return budget;
}

static uint8_t *refused_of(struct soft_cm *cm, const struct soft_cm_message *request)
{
	union ibv_gid from;

	soft_address_to_gid((const struct sockaddr *)&request->source, &from);
	return &cm->inbox->budget.refused[soft_address_source(cm, &from) % SOFT_HALF_OPEN_SOURCES];
}

static bool may_refuse(struct soft_cm *cm, const struct soft_cm_message *request)
{
	uint32_t refusals = budget_now(cm)->refusals;

	return *refused_of(cm, request) < refusals;
}

/* The slot of a request by what is known of it. */
static struct passed *passed_of(struct soft_cm *cm, const union ibv_gid *from, const struct soft_cm_message *request)
{
	return &cm->inbox->passed[(soft_address_source(cm, from) + request->guid + request->local) % PASSED];
}

static bool pass_on(struct soft_cm *cm, const struct soft_cm_message *request, const struct soft_local_list *list)
{
	union ibv_gid from;

	if (!cm->ipc || !soft_ipc_pass_on(cm->ipc, request->port_space, request, list))
		return false;
	soft_address_to_gid((const struct sockaddr *)&request->source, &from);
	*passed_of(cm, &from, request) = (struct passed){from, request->guid, request->local, request->port_space,
							 soft_address_port((const struct sockaddr *)&request->destination)};
	return true;
}

/*
 * A REJ for want of time takes a request back, and its sender knows no id here.  Whether it was for a request that went to
 * another process, which has the REJ now.
 */
static bool is_passed_after(struct soft_cm *cm, const struct soft_cm_message *message)
{
	struct soft_cm_message rej = *message;
	struct passed *passed;
	union ibv_gid from;

	if (message->attribute != SOFT_CM_REJ || message->reason != SOFT_REJ_TIMEOUT || message->remote || !cm->ipc)
		return false;
	soft_address_to_gid((const struct sockaddr *)&message->source, &from);
	passed = passed_of(cm, &from, message);
	if (!passed->port || passed->guid != message->guid || passed->local != message->local ||
	    memcmp(&passed->from, &from, sizeof(from)) != 0)
		return false;
	soft_address_set_port((struct sockaddr *)&rej.destination, passed->port);
	(void)soft_ipc_pass_on(cm->ipc, passed->port_space, &rej, NULL);
	passed->port = 0;
	return true;
}

static struct soft_id *find_listener(struct soft_cm *cm, const struct soft_cm_message *request)
{
	return soft_port_find_listener(cm, request->port_space, (const struct sockaddr *)&request->destination);
}

/* Whether the list has a process for it, or could not be read. */
static bool is_listed(struct soft_cm *cm, const struct soft_cm_message *request)
{
	struct soft_ipc_port port = soft_ipc_port(request->port_space, (const struct sockaddr *)&request->destination, true);

	return cm->ipc && soft_claim_may_listen(cm->ipc, &port, &cm->inbox->list);
}

/* By the last list, which may be old.  What is on it and does not answer is tried a bounded number of times. */
static bool pass_on_by_old_list(struct soft_cm *cm, const struct soft_cm_message *request)
{
	struct budget *budget = budget_now(cm);

	if (!cm->inbox->list.known || !budget->attempts || !is_listed(cm, request))
		return false;
	if (pass_on(cm, request, &cm->inbox->list))
		return true;
	budget->attempts--;
	return false;
}

/* Nobody is known to listen: the request is refused by the next list, if its source may be. */
static void note_refused(struct soft_cm *cm, const struct soft_cm_message *request)
{
	struct soft_cm_inbox *inbox = cm->inbox;
	union ibv_gid from;

	if (may_refuse(cm, request) && inbox->refused_count < 2 * REFUSALS) {
		inbox->budget.refusals--;
		(*refused_of(cm, request))++;
		inbox->refused[inbox->refused_count++] = *request;
		return;
	}
	inbox->unanswered++;
	soft_address_to_gid((const struct sockaddr *)&request->source, &from);
	soft_notice(&cm->fabric->notices, SOFT_NOTICE_FLOOD, &from, 1);
}

/* Whether the message was dealt with, else it is for an id of this process, as far as can be told. */
static bool is_done(struct soft_cm *cm, const struct soft_cm_message *message)
{
	struct soft_id *listener;

	if (message->attribute != SOFT_CM_REQ && message->attribute != SOFT_CM_SIDR_REQ)
		return is_passed_after(cm, message);
	listener = find_listener(cm, message);
	if (listener && !listener->no_remote_port)
		return false;
	if (!pass_on(cm, message, NULL) && !pass_on_by_old_list(cm, message))
		note_refused(cm, message);
	return true;
}

/* The list is new: what is not on it is not there. */
static void refuse_one(struct soft_cm *cm, struct soft_cm_message *request)
{
	struct soft_ipc_port port = soft_ipc_port(request->port_space, (const struct sockaddr *)&request->destination, true);
	struct soft_id *listener = find_listener(cm, request);

	if ((!listener || listener->no_remote_port) && is_listed(cm, request) && pass_on(cm, request, &cm->inbox->list))
		return;
	request->served = cm->ipc && soft_claim_has_listener(cm->ipc, &port, &cm->inbox->list);
	soft_cm_arrived(cm, request);
}

/* Whether a new list is within the bounds; else a timer tells when it is. */
static bool may_list(struct soft_cm *cm)
{
	struct budget *budget = budget_now(cm);

	if (budget->lists) {
		budget->lists--;
		return true;
	}
	soft_timer_arm(&cm->fabric->timers, &cm->inbox->refuse_later, BUDGET_TIME);
	return false;
}

/* Takes cm.lock, but not while it reads the list. */
static void refuse_noted(struct soft_cm *cm)
{
	struct soft_cm_inbox *inbox = cm->inbox;
	struct soft_local_list list, old;
	bool may;

	soft_mutex_lock(&cm->lock);
	may = may_list(cm);
	soft_mutex_unlock(&cm->lock);
	if (!may)
		return;
	soft_order_expect_none();
	soft_local_list_read(&list, &cm->fabric->without_users);
	soft_mutex_lock(&cm->lock);
	old = inbox->list;
	inbox->list = list;
	for (uint32_t index = 0; index < inbox->refused_count; index++)
		refuse_one(cm, &inbox->refused[index]);
	inbox->refused_count = 0;
	soft_cm_unlock(cm);
	soft_local_list_free(&old);
}

/* soft_timer.expire */
static void refuse_later(struct soft_timer *timer)
{
	(void)eventfd_write(soft_container_of(timer, struct soft_cm_inbox, refuse_later)->source.fd, 1);
}

/* The message of a datagram; false when it is none, or not from where it says. */
static bool read_message(struct soft_cm *cm, const struct datagram *datagram, struct soft_cm_message *message)
{
	/* One host's own messages go another way (soft/ipc), so nobody else may speak for it. */
	if (!soft_mad_decode(datagram->mad, message) || !set_addresses(datagram, message) ||
	    soft_device_owns(cm->device, &datagram->from) || !soft_device_owns(cm->device, &datagram->to)) {
		cm->inbox->invalid++;
		soft_notice(&cm->fabric->notices, SOFT_NOTICE_MANAGEMENT, &datagram->from, 1);
		return false;
	}
	message->arrived = true;
	message->between_hosts = true;
	return true;
}

/* The next message that is not kept; false when there is none.  What is kept or dropped takes no cm.lock. */
static bool next_message(struct soft_cm *cm, int *left, struct soft_cm_message *message)
{
	struct datagram datagram;

	while (*left && take(cm->inbox, &datagram)) {
		(*left)--;
		if (read_message(cm, &datagram, message) && !soft_gate_keeps(cm, message))
			return true;
	}
	if (!*left || !soft_gate_take(cm, message))
		return false;
	(*left)--;
	return true;
}

static void ready(struct soft_source *source, uint32_t events)
{
	struct soft_cm_inbox *inbox = soft_container_of(source, struct soft_cm_inbox, source);
	struct soft_cm *cm = inbox->cm;
	struct soft_cm_message message;
	bool locked = false;
	eventfd_t value;
	int left = BATCH;

	(void)events;
	(void)eventfd_read(source->fd, &value);
	while (next_message(cm, &left, &message)) {
		if (!locked)
			soft_mutex_lock(&cm->lock);
		locked = true;
		if (!is_done(cm, &message))
			soft_cm_arrived(cm, &message);
	}
	if (locked)
		soft_cm_unlock(cm);
	if (inbox->refused_count)
		refuse_noted(cm);
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
	if (!inbox || soft_gate_open(cm))
		goto free_inbox;
	inbox->cm = cm;
	soft_lock_init(&inbox->lock, SOFT_ORDER_INBOX);
	fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (fd < 0) {
		result = -errno;
		goto free_inbox;
	}
	result = soft_timer_register(&cm->fabric->timers, &inbox->refuse_later, refuse_later);
	if (result)
		goto close_event;
	result = soft_poller_add(&cm->fabric->poller, &inbox->source, fd, EPOLLIN, ready);
	if (result)
		goto unregister_timer;
	cm->inbox = inbox;
	cm->device->management.receiver = inbox;
	cm->device->management.receive = receive;
	return 0;

unregister_timer:
	soft_timer_unregister(&cm->fabric->timers, &inbox->refuse_later);
close_event:
	close(fd);
free_inbox:
	soft_gate_close(cm);
	free(inbox);
	return result;
}

void soft_cm_stop_inbox(struct soft_cm *cm)
{
	struct soft_cm_inbox *inbox = cm->inbox;

	if (!inbox)
		return;
	/* It arms the timer. */
	soft_poller_remove(&cm->fabric->poller, &inbox->source);
	soft_timer_unregister(&cm->fabric->timers, &inbox->refuse_later);
}

void soft_cm_close_inbox(struct soft_cm *cm)
{
	struct soft_cm_inbox *inbox = cm->inbox;

	if (!inbox)
		return;
	close(inbox->source.fd);
	soft_local_list_free(&inbox->list);
	soft_gate_close(cm);
	free(inbox);
	cm->inbox = NULL;
}
