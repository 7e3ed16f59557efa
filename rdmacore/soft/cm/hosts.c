/*
 * Messages of other hosts, which are management datagrams on the wire. Any process of this user may get a request and
 * finds the process that it is for. An answer to a message of this process comes to this process, because its id
 * belongs to a block of this process (soft/udp/share.c).
 *
 * The link passes messages while it holds its own locks. So they wait in a queue of fixed size for the poller's
 * thread. A flood fills the queue. Requests are lost then, and their senders repeat them.
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
 * Queued datagrams: half of them for proven hosts (soft/cm/gate.c), half for others. A host gets at most as many as
 * are left for all hosts of its kind. The queue takes 1.2 MiB.
 */
#define INBOX 4096
/* Messages in one callback of the poller, so that its other descriptors are served. */
#define BATCH 64
/*
 * Limits of what requests for unknown ports may cost in each BUDGET_TIME, for all hosts together. They limit reads of
 * the kernel's list of sockets, attempts to connect to listed processes, and REJs (1,600 a second). A read takes 0.5
 * ms with 1,800 sockets. A host gets at most as many REJs as are left for all. Forwarding a request to its process is
 * not limited.
 */
#define BUDGET_TIME (10 * SOFT_MILLISECOND)
#define LISTS 2
#define ATTEMPTS 64
#define REFUSALS 16
static const struct soft_budget_limits refusal_limits = {BUDGET_TIME, REFUSALS, REFUSALS};
/* Forwarded requests that are remembered, because their senders may take them back. */
#define PASSED 1024

struct datagram {
	union ibv_gid from, to;
	uint16_t source;
	bool proven;
	uint8_t mad[SOFT_MAD];
};

struct budget {
	uint64_t until; /* the budget is reset then */
	uint32_t lists, attempts;
};

/* port: host byte order; 0: unused */
struct passed {
	union ibv_gid from;
	uint64_t guid;
	uint32_t local;
	int port_space;
	uint16_t port;
};

struct soft_cm_inbox {
	struct soft_source source; /* of the eventfd, which is readable while there are datagrams */
	struct soft_cm *cm;
	struct soft_lock lock; /* guards the fields up to by_source */
	uint32_t first, count;
	uint32_t of_kind[2]; /* count of unproven and of proven hosts */
	uint64_t dropped; /* because there was no room */
	uint16_t by_source[SOFT_HALF_OPEN_SOURCES];
	uint64_t invalid; /* malformed messages, or messages of another sender than they say; of the poller's thread */
	/* The fields below are guarded by cm.lock. */
	uint64_t unanswered; /* requests over the limit, which get no REJ */
	struct budget budget;
	struct soft_budget refusals;
	struct passed passed[PASSED];
	struct soft_local_list list; /* as the poller's thread read it last */
	/* Requests that get a REJ unless the next list has a process for them: of this budget and the one before. */
	struct soft_cm_message refused[2 * REFUSALS];
	uint32_t refused_count;
	struct soft_timer refuse_later; /* expires when the budget allows another list */
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

/* A request contains its IP addresses. Other messages get those of the datagram. */
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
		*budget = (struct budget){now + BUDGET_TIME, LISTS, ATTEMPTS};
	return budget;
}

/* The slot of a forwarded request. */
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
 * A client that gives up sends a REJ (timeout) without an id of this process. Whether it was for a request that was
 * forwarded: then the other process gets the REJ, too.
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

/* Whether the list has a process for the request, or could not be read. */
static bool is_listed(struct soft_cm *cm, const struct soft_cm_message *request)
{
	struct soft_ipc_port port = soft_ipc_port(request->port_space, (const struct sockaddr *)&request->destination, true);

	return cm->ipc && soft_claim_may_listen(cm->ipc, &port, &cm->inbox->list);
}

/* Forward by the last list, which may be outdated. Failed attempts to connect are limited. */
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

/* No process is known to listen. The request gets a REJ after the next list, if its source may have one. */
static void note_refused(struct soft_cm *cm, const struct soft_cm_message *request)
{
	struct soft_cm_inbox *inbox = cm->inbox;
	union ibv_gid from;

	soft_address_to_gid((const struct sockaddr *)&request->source, &from);
	if (inbox->refused_count < 2 * REFUSALS && soft_budget_take(cm, &inbox->refusals, &refusal_limits, &from))
		inbox->refused[inbox->refused_count++] = *request;
	else
		inbox->unanswered++;
}

/* Whether the message is handled here. Otherwise it is for an id of this process. */
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

/* The list is new, so a process that it does not have does not exist. */
static void refuse_one(struct soft_cm *cm, struct soft_cm_message *request)
{
	struct soft_ipc_port port = soft_ipc_port(request->port_space, (const struct sockaddr *)&request->destination, true);
	struct soft_id *listener = find_listener(cm, request);

	if ((!listener || listener->no_remote_port) && is_listed(cm, request) && pass_on(cm, request, &cm->inbox->list))
		return;
	request->served = cm->ipc && soft_claim_has_listener(cm->ipc, &port, &cm->inbox->list);
	soft_cm_arrived(cm, request);
}

/* Whether the budget allows another list. If not, the timer expires when it does. */
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

/* Takes cm.lock, except while it reads the list. */
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

/* Decode a datagram; false when it is malformed, or comes from another sender than it says. */
static bool read_message(struct soft_cm *cm, const struct datagram *datagram, struct soft_cm_message *message)
{
	/* Messages of this host go by soft/ipc, so a datagram with its source address is forged. */
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

/*
 * The next message that is not kept back; false when there is none. Messages that are kept or dropped do not take
 * cm.lock.
 */
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
	/* The poller's callback arms the timer, so it ends first. */
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
