/* Ports of processes: names of sockets, and the rules of ports, which the kernel does not know for such names. */
#include "soft/ipc/ipc.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "soft/base/fabric.h"
#include "soft/base/local_name.h"
#include "soft/base/refusal.h"

#define BINDINGS 4 /* names that a destination is reached by: its address or any, for one family or both */
#define BACKLOG 4096 /* processes that connect at the same time; the kernel limits it to net.core.somaxconn */

/* The family in a name: the addresses that it occupies. */
#define ONLY_IPV4 "4"
#define ONLY_IPV6 "6"
#define BOTH "46"

/* The end of a name: the address that a process listens on. */
struct binding {
	char family[3];
	char address[INET6_ADDRSTRLEN];
};

static void write_address(const struct sockaddr *address, char text[INET6_ADDRSTRLEN])
{
	const struct sockaddr_in *in4 = (const void *)address;
	const struct sockaddr_in6 *in6 = (const void *)address;

	inet_ntop(address->sa_family,
		  address->sa_family == AF_INET ? (const void *)&in4->sin_addr : (const void *)&in6->sin6_addr, text,
		  INET6_ADDRSTRLEN);
}

static uint16_t port_of(const struct sockaddr *address)
{
	/* sin_port and sin6_port have the same offset */
	return ntohs(((const struct sockaddr_in *)(const void *)address)->sin_port);
}

static bool is_any(const char *address)
{
	return !strcmp(address, "0.0.0.0") || !strcmp(address, "::");
}

/*
 * Write the beginning of all names of a port; returns its length. For other hosts all fabrics of a user are one, with
 * the user's number as name. Only processes of one user share the UDP port of other hosts.
 */
static int write_port(const struct soft_ipc *ipc, const struct soft_ipc_port *port, char name[SOFT_IPC_NAME])
{
	char user[16];

	snprintf(user, sizeof(user), "/%u", ipc->user);
	return snprintf(name, SOFT_IPC_NAME, "rdmarun/%s/%x/%u/", port->for_hosts ? user : ipc->name,
			(unsigned int)port->space, port->number);
}

static void write_name(const struct soft_ipc *ipc, const struct soft_ipc_port *port, const struct binding *binding,
		       char name[SOFT_IPC_NAME])
{
	int length = write_port(ipc, port, name);

	/* The longest has 107 bytes, with =NUMBER. */
	snprintf(name + length, SOFT_IPC_NAME - (size_t)length, "%s/%s", binding->family, binding->address);
}

/* What a claim is compared with. */
struct claimant {
	const struct soft_ipc *ipc;
	struct binding binding;
	const char *begin; /* beginning of all names of the port */
	const struct soft_local_trust *trust; /* users with names that count; NULL: all users */
	bool shared;
	uid_t holder; /* the user with the conflicting name; (uid_t)-1: unknown */
	int error;
};

/* FAMILY/ADDRESS, followed by /NUMBER if shared; soft_local_bind_own adds =NUMBER */
static bool read_binding(const char *rest, struct binding *binding, bool *shared)
{
	char end = 0;
	int fields = sscanf(rest, "%2[46]/%45[0-9a-f.:]%c", binding->family, binding->address, &end);

	*shared = end == '/';
	return fields == 2 || (fields == 3 && (*shared || end == '='));
}

static uid_t holder_of(const char *begin, const struct soft_local_entry *entry)
{
	char name[SOFT_IPC_NAME];

	if (entry->user != SOFT_LOCAL_UNKNOWN)
		return entry->user;
	snprintf(name, sizeof(name), "%s%s", begin, entry->rest);
	return soft_local_holder(name);
}

/* Names of this process, which soft/cm/ports.c compares. */
static bool is_own(const struct claimant *mine, const char *rest)
{
	size_t length = strlen(mine->begin);
	const struct soft_claim *claim;

	LIST_FOREACH(claim, &mine->ipc->claims, entry)
		if (!strncmp(claim->name, mine->begin, length) && !strcmp(claim->name + length, rest))
			return true;
	return false;
}

static bool conflicts(void *context, const struct soft_local_entry *entry)
{
	struct claimant *mine = context;
	struct binding other;
	bool shared;
	int error;

	if (mine->trust && soft_local_is_untrusted(mine->trust, entry->user))
		return false;
	if (is_own(mine, entry->rest) || !read_binding(entry->rest, &other, &shared))
		return false;
	error = soft_port_conflict(&(struct soft_port_pair){
		.both_reuse = mine->shared && shared,
		.families_apart = strcmp(mine->binding.family, BOTH) != 0 && strcmp(other.family, BOTH) != 0 &&
				  strcmp(mine->binding.family, other.family) != 0,
		.one_is_any = is_any(mine->binding.address) || is_any(other.address),
		.same_address = !strcmp(mine->binding.address, other.address),
	});
	if (!error)
		return false;
	mine->holder = holder_of(mine->begin, entry);
	if (mine->trust && !soft_local_trusts(mine->trust, mine->holder))
		return false;
	mine->error = error;
	return true;
}

/*
 * Among the processes of the machine, a port belongs to the first one that binds it, of any user, as with a kernel.
 * For other hosts only this user's processes count.
 */
static int check_others(const struct soft_ipc *ipc, const struct soft_ipc_port *port, const struct soft_claim *claim,
			const struct binding *binding, const struct soft_local_list *list, uid_t *holder)
{
	const struct soft_local_trust same = {.user = ipc->user};
	char begin[SOFT_IPC_NAME];
	struct claimant mine = {
		.ipc = ipc,
		.binding = *binding,
		.begin = begin,
		.trust = port->for_hosts ? &same : NULL,
		.shared = claim->shared,
	};

	write_port(ipc, port, begin);
	soft_local_list_each(list, begin, conflicts, &mine);
	*holder = mine.holder;
	return mine.error;
}

static const char *family_of(const struct sockaddr *address, bool only_family)
{
	if (!only_family)
		return BOTH;
	return address->sa_family == AF_INET ? ONLY_IPV4 : ONLY_IPV6;
}

struct soft_ipc_port soft_ipc_port(int space, const struct sockaddr *address, bool for_hosts)
{
	return (struct soft_ipc_port){space, port_of(address), for_hosts};
}

/* 0 or an errno; EADDRINUSE: *holder has the name. */
static int bind_name(struct soft_claim *claim, const struct soft_ipc_port *port, uid_t *holder)
{
	struct soft_ipc *ipc = claim->ipc;
	bool is_taken = false;
	int fd;

	if (port->for_hosts)
		fd = soft_local_bind_own(claim->name, ipc->instance, &is_taken, holder);
	else
		fd = soft_local_bind(claim->name);
	if (is_taken) {
		char name[SOFT_IPC_NAME];

		soft_notice_port_owner(&ipc->fabric->notices, claim->name, *holder);
		strcpy(name, claim->name);
		soft_local_other_name(name, ipc->instance, claim->name);
	}
	if (fd == -EADDRINUSE)
		*holder = soft_local_holder(claim->name);
	claim->socket.fd = fd;
	return fd < 0 ? -fd : 0;
}

static int refuse_port(const struct soft_ipc *ipc, const struct soft_ipc_port *port, uid_t holder, int error)
{
	if (holder != SOFT_LOCAL_UNKNOWN && holder != ipc->user)
		return soft_refuse(error, "a process of user %u has port %u of this fabric: choose another port, or another fabric (--fabric NAME)",
				   holder, port->number);
	return soft_refuse(error, "another process has port %u", port->number);
}

int soft_claim_make(struct soft_ipc *ipc, const struct soft_ipc_port *port, const struct sockaddr *address, bool only_family,
		    bool shared, struct soft_claim **out)
{
	struct soft_claim *claim = calloc(1, sizeof(*claim));
	uid_t holder = SOFT_LOCAL_UNKNOWN;
	struct binding binding;
	int error;

	soft_mutex_expect(ipc->lock);
	if (!claim)
		return ENOMEM;
	claim->ipc = ipc;
	claim->shared = shared;
	claim->socket.is_claim = true;
	strcpy(binding.family, family_of(address, only_family));
	write_address(address, binding.address);
	write_name(ipc, port, &binding, claim->name);
	if (shared) {
		size_t length = strlen(claim->name);

		snprintf(claim->name + length, sizeof(claim->name) - length, "/%x", (uint32_t)soft_fabric_random(ipc->fabric));
	}
	error = bind_name(claim, port, &holder);
	if (error == EADDRINUSE && is_any(binding.address))
		error = EADDRNOTAVAIL;
	if (error) {
		free(claim);
		return error == EADDRINUSE || error == EADDRNOTAVAIL ? refuse_port(ipc, port, holder, error) : error;
	}
	LIST_INSERT_HEAD(&ipc->claims, claim, entry);
	*out = claim;
	return 0;
}

int soft_claim_check(const struct soft_claim *claim, const struct soft_ipc_port *port, const struct sockaddr *address, bool only_family,
		     const struct soft_local_list *list)
{
	struct soft_ipc *ipc = claim->ipc;
	uid_t holder = SOFT_LOCAL_UNKNOWN;
	struct binding binding;
	int error;

	soft_mutex_expect(ipc->lock);
	strcpy(binding.family, family_of(address, only_family));
	write_address(address, binding.address);
	error = check_others(ipc, port, claim, &binding, list, &holder);
	return error ? refuse_port(ipc, port, holder, error) : 0;
}

int soft_claim_listen(struct soft_claim *claim)
{
	soft_mutex_expect(claim->ipc->lock);
	if (listen(claim->socket.fd, BACKLOG))
		return errno;
	return soft_ipc_watch(claim->ipc, &claim->socket, EPOLLIN);
}

void soft_claim_release(struct soft_claim *claim)
{
	soft_mutex_expect(claim->ipc->lock);
	LIST_REMOVE(claim, entry);
	soft_ipc_close(claim->ipc, &claim->socket);
	free(claim);
}

/* The names of listeners that destination reaches: those of its address, then those of any address. */
static void list_bindings(const struct sockaddr *destination, struct binding bindings[BINDINGS])
{
	bool ipv4 = destination->sa_family == AF_INET;
	const char *only = ipv4 ? ONLY_IPV4 : ONLY_IPV6;

	for (int index = 0; index < BINDINGS; index++)
		strcpy(bindings[index].family, index % 2 ? BOTH : only);
	write_address(destination, bindings[0].address);
	write_address(destination, bindings[1].address);
	strcpy(bindings[2].address, ipv4 ? "0.0.0.0" : "::");
	strcpy(bindings[3].address, "::");
}

static bool is_listener(void *context, const struct soft_local_entry *entry)
{
	(void)context;
	return entry->listens;
}

bool soft_claim_may_listen(const struct soft_ipc *ipc, const struct soft_ipc_port *port, const struct soft_local_list *list)
{
	char begin[SOFT_IPC_NAME];

	write_port(ipc, port, begin);
	return !list->known || soft_local_list_each(list, begin, is_listener, NULL);
}

/*
 * Names are tried from the narrowest address on, as a kernel looks up a listener. Another user can bind a narrower
 * name than the listener's, or fill its backlog: that name is skipped.
 */
int soft_claim_connect(const struct soft_ipc *ipc, const struct soft_ipc_port *port, const struct sockaddr *destination,
		       const struct soft_local_list *list, int *out, uid_t *untrusted_user)
{
	const struct soft_local_trust same = {.user = ipc->user}, *trust = port->for_hosts ? &same : &ipc->trust;
	struct binding bindings[BINDINGS];
	char name[SOFT_IPC_NAME];
	int fd = -ECONNREFUSED, error = -ECONNREFUSED;

	soft_mutex_expect(ipc->lock);
	*untrusted_user = SOFT_LOCAL_UNKNOWN;
	list_bindings(destination, bindings);
	for (int index = 0; index < BINDINGS && fd < 0; index++) {
		write_name(ipc, port, &bindings[index], name);
		fd = soft_local_connect(name, trust, untrusted_user);
		if (fd < 0 && error == -ECONNREFUSED)
			error = fd;
	}
	for (int index = 0; index < BINDINGS && fd < 0 && port->for_hosts; index++) {
		write_name(ipc, port, &bindings[index], name);
		fd = soft_local_connect_other(name, trust, list, soft_fabric_wall_now(ipc->fabric));
	}
	if (fd < 0)
		return -error;
	*out = fd;
	return 0;
}

struct search {
	const char *begin;
	const struct soft_local_trust *trust;
};

/* A process with an unknown user counts (its backlog is full): this only determines the reason of a REJ. */
static bool may_be_trusted(void *context, const struct soft_local_entry *entry)
{
	const struct search *search = context;
	uid_t holder = entry->listens ? holder_of(search->begin, entry) : SOFT_LOCAL_UNKNOWN;

	return entry->listens && (holder == SOFT_LOCAL_UNKNOWN || soft_local_trusts(search->trust, holder));
}

bool soft_claim_has_listener(const struct soft_ipc *ipc, const struct soft_ipc_port *port, const struct soft_local_list *list)
{
	const struct soft_local_trust same = {.user = ipc->user};
	char begin[SOFT_IPC_NAME];
	struct search search = {begin, port->for_hosts ? &same : &ipc->trust};

	write_port(ipc, port, begin);
	return soft_local_list_each(list, begin, may_be_trusted, &search);
}
