/* Ports of processes: names of sockets, and rules about them where the kernel that gives the names knows none. */
#include "soft/ipc/ipc.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "soft/base/refusal.h"

#define BACKLOG 4096 /* processes that connect at once, which the kernel limits to net.core.somaxconn */

/* The family in a name: what an address of it keeps others from. */
#define ONLY_IPV4 "4"
#define ONLY_IPV6 "6"
#define BOTH "46"

/* The end of a name: who listens where. */
struct place {
	char family[3];
	char address[INET6_ADDRSTRLEN];
};

static int socket_type(void)
{
	return SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK;
}

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
	/* sin_port and sin6_port are in one place. */
	return ntohs(((const struct sockaddr_in *)(const void *)address)->sin_port);
}

static bool is_any(const char *address)
{
	return !strcmp(address, "0.0.0.0") || !strcmp(address, "::");
}


/* What all names of a port begin with; its length.  Towards other hosts all fabrics are one, which has no name. */
static int write_port(const struct soft_ipc *ipc, const struct soft_ipc_port *port, char name[SOFT_IPC_NAME])
{
	return snprintf(name, SOFT_IPC_NAME, "rdmarun/%s/%x/%u/", port->for_hosts ? "" : ipc->name,
			(unsigned int)port->space, port->number);
}

/* The abstract address of a name: its length. */
static socklen_t to_sockaddr(const char *name, struct sockaddr_un *address)
{
	size_t length = strlen(name);

	*address = (struct sockaddr_un){.sun_family = AF_UNIX};
	memcpy(address->sun_path + 1, name, length);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length);
}

static void write_name(const struct soft_ipc *ipc, const struct soft_ipc_port *port, const struct place *place,
		       char name[SOFT_IPC_NAME])
{
	int length = write_port(ipc, port, name);

	/* The longest takes 96 bytes. */
	snprintf(name + length, SOFT_IPC_NAME - (size_t)length, "%s/%s", place->family, place->address);
}

/*
 * The kernel's list of sockets (proc(5), /proc/net/unix), which has the names of all processes of the network namespace.
 * Names are told one after another until each returns true, without what all names of the port begin with.
 */
static bool each_name(const char *begin, bool (*each)(void *context, const char *rest, bool listens), void *context)
{
	FILE *list = fopen("/proc/net/unix", "re");
	size_t size = 0, length = strlen(begin);
	char *line = NULL;
	bool found = false;

	if (!list)
		return false; /* then bind(2) alone tells of others: those with the same address */
	while (!found && getline(&line, &size, list) > 0) {
		unsigned int flags, state;
		char *name = strstr(line, " @rdmarun/");

		/* Num RefCount Protocol Flags Type St Inode Path */
		if (!name || strncmp(name + 2, begin, length) != 0 ||
		    sscanf(line, "%*s %*x %*x %x %*x %x", &flags, &state) != 2 || state != 1 /* SS_UNCONNECTED */)
			continue;
		name[strcspn(name, "\n")] = 0;
		found = each(context, name + 2 + length, flags & 0x10000 /* __SO_ACCEPTCON */);
	}
	free(line);
	fclose(list);
	return found;
}

/* What a claim has to be compared with. */
struct claimant {
	const char *name, *own; /* without what all names of the port begin with */
	struct place place;
	bool shared;
	int error;
};

/* FAMILY/ADDRESS, and of one that is shared /NUMBER */
static bool read_place(const char *rest, struct place *place, bool *shared)
{
	char end = 0;
	int fields = sscanf(rest, "%2[46]/%45[0-9a-f.:]%c", place->family, place->address, &end);

	*shared = end == '/';
	return fields == 2 || (fields == 3 && *shared);
}

/* As cma_check_port of Linux (soft/cm/ports.c). */
static bool conflicts(void *context, const char *rest, bool listens)
{
	struct claimant *mine = context;
	struct place other;
	bool shared;

	(void)listens;
	if (!strcmp(rest, mine->name) || (mine->own && !strcmp(rest, mine->own)) || !read_place(rest, &other, &shared))
		return false;
	if (mine->shared && shared)
		return false;
	if (strcmp(mine->place.family, BOTH) != 0 && strcmp(other.family, BOTH) != 0 &&
	    strcmp(mine->place.family, other.family) != 0)
		return false;
	if (is_any(mine->place.address) || is_any(other.address))
		mine->error = EADDRNOTAVAIL;
	else if (!strcmp(mine->place.address, other.address))
		mine->error = EADDRINUSE;
	return mine->error;
}

static int check_others(const struct soft_ipc *ipc, const struct soft_ipc_port *port, const struct soft_claim *claim,
			const struct soft_claim *own, const struct place *place)
{
	char begin[SOFT_IPC_NAME];
	int length = write_port(ipc, port, begin);
	struct claimant mine = {
		.name = claim->name + length,
		.own = own ? own->name + length : NULL,
		.place = *place,
		.shared = claim->shared,
	};

	each_name(begin, conflicts, &mine);
	return mine.error;
}

/* A socket of that name: 0 or an errno. */
static int bind_name(struct soft_claim *claim)
{
	struct sockaddr_un address;
	socklen_t length = to_sockaddr(claim->name, &address);
	int error = 0;

	claim->socket.fd = socket(AF_UNIX, socket_type(), 0);
	if (claim->socket.fd < 0)
		return errno;
	if (bind(claim->socket.fd, (struct sockaddr *)&address, length)) {
		error = errno;
		close(claim->socket.fd);
	}
	return error;
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

int soft_claim_make(struct soft_ipc *ipc, const struct soft_ipc_port *port, const struct sockaddr *address, bool only_family,
		    bool shared, const struct soft_claim *own, struct soft_claim **out)
{
	struct soft_claim *claim = calloc(1, sizeof(*claim));
	struct place place;
	int error;

	soft_mutex_expect(ipc->lock);
	if (!claim)
		return ENOMEM;
	claim->ipc = ipc;
	claim->shared = shared;
	claim->socket.is_claim = true;
	strcpy(place.family, family_of(address, only_family));
	write_address(address, place.address);
	write_name(ipc, port, &place, claim->name);
	if (shared) {
		size_t length = strlen(claim->name);

		snprintf(claim->name + length, sizeof(claim->name) - length, "/%x", (uint32_t)soft_fabric_random(ipc->fabric));
	}
	/* First the name, then a look at others: of two at once, one at least sees the other. */
	error = bind_name(claim);
	if (error == EADDRINUSE && is_any(place.address))
		error = EADDRNOTAVAIL;
	if (error)
		goto free_claim;
	error = check_others(ipc, port, claim, own, &place);
	if (error)
		goto close_socket;
	claim->next = ipc->claims;
	claim->link = &ipc->claims;
	if (claim->next)
		claim->next->link = &claim->next;
	ipc->claims = claim;
	*out = claim;
	return 0;

close_socket:
	close(claim->socket.fd);
free_claim:
	free(claim);
	if (error == EADDRINUSE || error == EADDRNOTAVAIL)
		return soft_refuse(error, "another process has port %u", port->number);
	return error;
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
	*claim->link = claim->next;
	if (claim->next)
		claim->next->link = claim->link;
	soft_ipc_close(claim->ipc, &claim->socket);
	free(claim);
}

/* One socket serves for all that are tried. */
static int connect_name(int fd, const char *name)
{
	struct sockaddr_un address;
	socklen_t length = to_sockaddr(name, &address);

	return connect(fd, (struct sockaddr *)&address, length) ? errno : 0;
}

int soft_claim_connect(const struct soft_ipc *ipc, const struct soft_ipc_port *port, const struct sockaddr *destination, int *out)
{
	bool ipv4 = destination->sa_family == AF_INET;
	struct place places[4] = {{.family = ONLY_IPV4}, {.family = BOTH}, {.family = ONLY_IPV4}, {.family = BOTH}};
	char name[SOFT_IPC_NAME];
	int fd, error = ECONNREFUSED;

	soft_mutex_expect(ipc->lock);
	if (!ipv4)
		strcpy(places[0].family, ONLY_IPV6), strcpy(places[2].family, ONLY_IPV6);
	write_address(destination, places[0].address);
	write_address(destination, places[1].address);
	strcpy(places[2].address, ipv4 ? "0.0.0.0" : "::");
	strcpy(places[3].address, "::");
	fd = socket(AF_UNIX, socket_type(), 0);
	if (fd < 0)
		return errno;
	for (int index = 0; index < 4 && error == ECONNREFUSED; index++) {
		write_name(ipc, port, &places[index], name);
		error = connect_name(fd, name);
	}
	if (error)
		close(fd);
	else
		*out = fd;
	return error;
}

static bool listens(void *context, const char *rest, bool does)
{
	(void)context;
	(void)rest;
	return does;
}

bool soft_claim_has_listener(const struct soft_ipc *ipc, const struct soft_ipc_port *port)
{
	char begin[SOFT_IPC_NAME];

	write_port(ipc, port, begin);
	return each_name(begin, listens, NULL);
}
