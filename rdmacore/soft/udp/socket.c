#include "soft/udp/internal.h"

#include <errno.h>
#include <linux/filter.h>
#include <net/if.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "soft/base/fabric.h"
#include "soft/base/refusal.h"
#include "soft/wire/fields.h"

/* Not in the headers of all C libraries (linux/udp.h). */
#ifndef UDP_NO_CHECK6_RX
#define UDP_NO_CHECK6_RX 102
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif
#ifndef SO_BINDTOIFINDEX
#define SO_BINDTOIFINDEX 62
#endif

#define LOOPBACK 1 /* index of the interface lo in each network namespace (include/net/flow.h of Linux) */
#define SOURCE 8 /* offset in an IPv6 header */

const union ibv_gid soft_udp_loopback = {.raw = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1}};

union ibv_gid soft_udp_address_of(const union ibv_gid *gid)
{
	return soft_gid_is_loopback(gid) ? soft_udp_loopback : *gid;
}

static bool set(int fd, int level, int option, int value)
{
	return !setsockopt(fd, level, option, &value, sizeof(value));
}

/* The options that soft/udp/udp.h describes, and those that let packets of other kinds of senders arrive. */
static bool set_options(int fd, int family, int buffer)
{
	/* Without these, buffers are smaller and receiving is slower. */
	(void)set(fd, SOL_SOCKET, SO_RCVBUF, buffer);
	(void)set(fd, SOL_SOCKET, SO_SNDBUF, buffer);
	(void)set(fd, IPPROTO_UDP, UDP_GRO, 1);
	if (family == AF_INET)
		return set(fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO);
	/* The RoCE driver of Linux sends no UDP checksum. */
	return set(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1) && set(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_DO) &&
	       set(fd, IPPROTO_UDP, UDP_NO_CHECK6_RX, 1);
}

/*
 * Another host may send with an address of this host as source. The kernel drops such packets over IPv4, not over
 * IPv6. So the socket has a filter. Only this host sends to the port of a block: packets that did not arrive by lo
 * are dropped. At SOFT_WIRE_PORT, packets from the address of the socket are dropped.
 *
 * In a VRF, sockets are bound to an interface that delivers both kinds, and the filter cannot distinguish them.
 */
static void drop_other_hosts(int fd, const struct soft_endpoint *endpoint)
{
	const bool is_block = endpoint->port != SOFT_WIRE_PORT;
	const uint8_t *own = endpoint->address.raw;
	const struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)(SKF_AD_OFF + SKF_AD_IFINDEX)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, LOOPBACK, 10, 0),
		BPF_JUMP(BPF_JMP | BPF_JA, is_block ? 8 : 0, 0, 0),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)(SKF_NET_OFF + SOURCE)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, soft_get32(own), 0, 7),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)(SKF_NET_OFF + SOURCE + 4)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, soft_get32(own + 4), 0, 5),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)(SKF_NET_OFF + SOURCE + 8)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, soft_get32(own + 8), 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)(SKF_NET_OFF + SOURCE + 12)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, soft_get32(own + 12), 0, 1),
		BPF_STMT(BPF_RET | BPF_K, 0),
		BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
	};
	const struct sock_fprog program = {sizeof(code) / sizeof(code[0]), (struct sock_filter *)(uintptr_t)code};
	int interface = 0;
	socklen_t length = sizeof(interface);

	/* Where filters are forbidden, as in some containers, only addresses and ports are compared. */
	if (getsockopt(fd, SOL_SOCKET, SO_BINDTOIFINDEX, &interface, &length) || !interface)
		(void)setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program));
}

/* Send multicasts by the interface of the socket's address. */
static void choose_interface(int fd, const union soft_udp_address *address, unsigned int interface)
{
	if (address->any.sa_family == AF_INET)
		(void)setsockopt(fd, IPPROTO_IP, IP_MULTICAST_IF, &address->ipv4.sin_addr, sizeof(address->ipv4.sin_addr));
	else if (interface)
		(void)set(fd, IPPROTO_IPV6, IPV6_MULTICAST_IF, (int)interface);
}

/* Join the group on each interface that allows it; false if none does. */
static bool join(int fd, const union soft_udp_address *group)
{
	struct if_nameindex *interfaces = if_nameindex();
	bool joined = false;

	for (struct if_nameindex *entry = interfaces; entry && entry->if_index; entry++) {
		struct ip_mreqn four = {.imr_multiaddr = group->ipv4.sin_addr, .imr_ifindex = (int)entry->if_index};
		struct ipv6_mreq six = {.ipv6mr_multiaddr = group->ipv6.sin6_addr, .ipv6mr_interface = entry->if_index};

		if (group->any.sa_family == AF_INET)
			joined |= !setsockopt(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &four, sizeof(four));
		else
			joined |= !setsockopt(fd, IPPROTO_IPV6, IPV6_JOIN_GROUP, &six, sizeof(six));
	}
	if_freenameindex(interfaces);
	return joined;
}

/* A bound socket, or a negative errno. */
static int make_descriptor(struct soft_udp *udp, const struct soft_endpoint *endpoint, bool is_shared)
{
	union soft_udp_address address;
	unsigned int interface = 0;
	bool group = soft_gid_is_multicast(&endpoint->address);
	int fd, result;

	soft_gid_to_sockaddr(&endpoint->address, endpoint->port, &address.any);
	if (address.any.sa_family == AF_INET6 && !group) {
		interface = soft_gid_interface(&udp->device->gid_table, &endpoint->address);
		address.ipv6.sin6_scope_id = interface; /* a link-local address is ambiguous without it */
	}
	fd = socket(address.any.sa_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (address.any.sa_family == AF_INET6 && !group)
		drop_other_hosts(fd, endpoint);
	if (!set_options(fd, address.any.sa_family, udp->buffer_wanted) ||
	    /* A network namespace with lo down has no 127.0.0.1. The block is claimed nevertheless. */
	    (!memcmp(&endpoint->address, &soft_udp_loopback, sizeof(soft_udp_loopback)) && !set(fd, IPPROTO_IP, IP_FREEBIND, 1)) ||
	    (group && !set(fd, SOL_SOCKET, SO_REUSEADDR, 1)) /* all members on this host bind that port */ ||
	    (is_shared && !set(fd, SOL_SOCKET, SO_REUSEPORT, 1)) ||
	    bind(fd, &address.any, soft_udp_length(&address)) || (group && !join(fd, &address))) {
		result = -errno;
		close(fd);
		return result;
	}
	if (!group)
		choose_interface(fd, &address, interface);
	return fd;
}

static void note_buffer(struct soft_udp *udp, int fd)
{
	int32_t bytes;
	socklen_t length = sizeof(bytes);

	if (!getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, &length))
		atomic_store_explicit(&udp->buffer_bytes, bytes, memory_order_relaxed);
}

struct soft_udp_socket *soft_udp_find(struct soft_udp *udp, const union ibv_gid *address, uint16_t port)
{
	uint32_t count = atomic_load_explicit(&udp->socket_count, memory_order_acquire);

	for (uint32_t index = 0; index < count; index++) {
		struct soft_udp_socket *socket = atomic_load_explicit(&udp->sockets[index], memory_order_relaxed);

		if (socket->endpoint.port == port && !socket->is_management &&
		    !memcmp(&socket->endpoint.address, address, sizeof(*address)))
			return socket;
	}
	return NULL;
}

/*
 * Check once, with the first socket that sends to other hosts. Between processes of this host the identification
 * does not matter.
 */
static void check_identifications(struct soft_udp *udp, const struct soft_endpoint *endpoint, int fd)
{
	enum soft_udp_identifications answer;

	if (endpoint->port != SOFT_WIRE_PORT || !soft_gid_is_ipv4(&endpoint->address) || soft_gid_is_multicast(&endpoint->address) ||
	    atomic_load_explicit(&udp->identifications, memory_order_relaxed) != SOFT_UDP_NOT_ASKED)
		return;
	answer = udp->ask_identifications(fd);
	if (answer != SOFT_UDP_AS_MEANT)
		atomic_store_explicit(&udp->segments, 1, memory_order_relaxed);
	atomic_store_explicit(&udp->identifications, answer, memory_order_relaxed);
}

int soft_udp_check_identifications(struct soft_udp *udp, const union ibv_gid *source)
{
	if (!soft_gid_is_ipv4(source) ||
	    atomic_load_explicit(&udp->identifications, memory_order_relaxed) != SOFT_UDP_DATAGRAMS_DIFFER)
		return 0;
	return soft_refuse(EOPNOTSUPP, "this system (a sandbox?) writes IP headers of its own choice, for which other hosts drop RoCE over IPv4: use IPv6 addresses");
}

/* udp->lock is held. */
static struct soft_udp_socket *add(struct soft_udp *udp, const struct soft_endpoint *endpoint, bool is_management, int *error)
{
	uint32_t index = atomic_load_explicit(&udp->socket_count, memory_order_relaxed);
	struct soft_udp_socket *socket;
	int fd, result = -EMFILE;

	soft_mutex_expect(&udp->lock);
	if (index == SOFT_UDP_SOCKETS)
		goto fail;
	result = -ENOMEM;
	socket = calloc(1, sizeof(*socket));
	if (!socket)
		goto fail;
	socket->udp = udp;
	socket->endpoint = *endpoint;
	socket->gro = true;
	socket->is_management = is_management;
	socket->is_shared = udp->share && endpoint->port == SOFT_WIRE_PORT && !soft_gid_is_multicast(&endpoint->address);
	result = fd = make_descriptor(udp, endpoint, socket->is_shared);
	if (fd < 0)
		goto free_socket;
	note_buffer(udp, fd);
	check_identifications(udp, endpoint, fd);
	result = soft_poller_add(&udp->fabric->poller, &socket->source, fd,
				 atomic_load_explicit(&udp->poller_idle, memory_order_relaxed) ? 0 : EPOLLIN,
					udp->ready);
	if (result)
		goto close_descriptor;
	atomic_store_explicit(&udp->sockets[index], socket, memory_order_relaxed);
	atomic_store_explicit(&udp->socket_count, index + 1, memory_order_release);
	if (socket->is_shared && !is_management)
		soft_udp_watch_begin(udp->share);
	return socket;

close_descriptor:
	close(fd);
free_socket:
	free(socket);
fail:
	*error = -result;
	return NULL;
}

struct soft_udp_socket *soft_udp_open(struct soft_udp *udp, const union ibv_gid *address, uint16_t port, int *error)
{
	struct soft_endpoint endpoint = {soft_udp_address_of(address), port}, roce = {endpoint.address, SOFT_WIRE_PORT};
	struct soft_udp_socket *socket;
	int taken = 0;

	soft_mutex_lock(&udp->lock);
	socket = soft_udp_find(udp, &endpoint.address, port);
	if (!socket)
		socket = add(udp, &endpoint, false, error);
	/* Kernels and adapters send to SOFT_WIRE_PORT. Packets between processes of this host do not use it. */
	if (socket && !soft_gid_is_this_host_only(&endpoint.address) && !soft_gid_is_multicast(&endpoint.address) &&
	    !soft_udp_find(udp, &roce.address, roce.port))
		/* if another user has the port, connecting to other hosts fails later with a sentence */
		(void)add(udp, &roce, false, &taken);
	soft_mutex_unlock(&udp->lock);
	return socket;
}

static void show_headers(struct soft_udp_socket *socket)
{
	int fd = socket->source.fd;

	soft_mutex_expect(&socket->udp->lock);
	if (socket->shows_headers)
		return;
	if (soft_gid_is_ipv4(&socket->endpoint.address))
		socket->shows_headers = set(fd, IPPROTO_IP, IP_RECVTTL, 1) && set(fd, IPPROTO_IP, IP_RECVTOS, 1);
	else
		socket->shows_headers = set(fd, IPPROTO_IPV6, IPV6_RECVHOPLIMIT, 1) && set(fd, IPPROTO_IPV6, IPV6_RECVTCLASS, 1);
}

void soft_udp_show_headers(struct soft_udp_socket *socket)
{
	struct soft_udp_socket *management;

	soft_mutex_lock(&socket->udp->lock);
	show_headers(socket);
	management = atomic_load_explicit(&socket->management, memory_order_relaxed);
	if (management) /* the management socket gets datagrams, too, while the kernel does not distinguish them */
		show_headers(management);
	soft_mutex_unlock(&socket->udp->lock);
}

bool soft_udp_open_management(struct soft_udp_socket *socket)
{
	struct soft_udp_socket *management;
	int error;

	soft_mutex_lock(&socket->udp->lock);
	management = atomic_load_explicit(&socket->management, memory_order_relaxed);
	if (!management && socket->is_shared) {
		management = add(socket->udp, &socket->endpoint, true, &error);
		if (management && socket->shows_headers)
			show_headers(management);
		atomic_store_explicit(&socket->management, management, memory_order_release);
	}
	soft_mutex_unlock(&socket->udp->lock);
	return management;
}

/*
 * A socket that changes its interface leaves the group of the port (udp_lib_rehash of Linux), and packets of other
 * hosts do not come by lo. Processes without privileges may do this since Linux 5.7, unless the socket is in a VRF.
 */
bool soft_udp_leave_port(struct soft_udp_socket *socket)
{
	return set(socket->source.fd, SOL_SOCKET, SO_BINDTOIFINDEX, LOOPBACK);
}

bool soft_udp_set_gro(struct soft_udp_socket *socket, bool join)
{
	return set(socket->source.fd, IPPROTO_UDP, UDP_GRO, join);
}

struct soft_udp_socket *soft_udp_bind_block(struct soft_udp *udp, uint16_t port, int *error)
{
	struct soft_udp_socket *socket;

	soft_mutex_lock(&udp->lock);
	socket = add(udp, &(struct soft_endpoint){soft_udp_loopback, port}, false, error);
	soft_mutex_unlock(&udp->lock);
	return socket;
}

void soft_udp_record(struct soft_udp *udp, const struct soft_endpoint *from, const struct soft_endpoint *to,
		     const struct ibv_global_route *route, const uint8_t *bytes, size_t length, bool inbound,
		     const struct soft_capture_outcome *outcome)
{
	uint8_t datagram[SOFT_DATAGRAM], header[SOFT_GRH], *cursor = datagram;
	struct ibv_global_route path = *route;
	size_t offset;

	if (!udp->fabric->capture || length > sizeof(datagram) - SOFT_GRH - SOFT_UDP_HEADER)
		return;
	path.dgid = to->address;
	soft_ip_make(header, &path, &from->address);
	soft_ip_finish(header, (uint32_t)(SOFT_UDP_HEADER + length));
	offset = soft_ip_offset(header);
	memcpy(cursor, header + offset, SOFT_GRH - offset);
	cursor += SOFT_GRH - offset;
	soft_udp_make(cursor, from->port, length);
	memcpy(cursor + SOFT_UDP_HEADER, bytes, length);
	cursor += SOFT_UDP_HEADER + length - SOFT_WIRE_ICRC;
	soft_icrc_put(cursor, soft_icrc(datagram, (size_t)(cursor - datagram)));
	soft_capture_datagram(udp->fabric->capture, datagram, (size_t)(cursor - datagram) + SOFT_WIRE_ICRC,
			      inbound ? &to->address : &from->address, inbound, outcome);
}

void soft_udp_drop(struct soft_udp *udp, enum soft_notice fault, const union ibv_gid *source)
{
	atomic_fetch_add_explicit(&udp->counters.dropped, 1, memory_order_relaxed);
	soft_notice(&udp->fabric->notices, fault, source, 1);
}
