/*
 * Whether the next hop answers. rdma_resolve_ip of the kernel waits for ARP or neighbour discovery. So does this, by
 * rtnetlink(7), which shows any user what the kernel has resolved.
 */
#include "soft/cm/calls.h"

#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/*
 * The kernel resolves a neighbour when there is a packet to send. The discard service (RFC 863) ignores it, where it
 * exists.
 */
#define DISCARD 9
/* NUD_VALID of Linux: the hardware address is known, or none is needed. */
#define VALID (NUD_PERMANENT | NUD_NOARP | NUD_REACHABLE | NUD_PROBE | NUD_STALE | NUD_DELAY)
/* Interfaces without neighbours. */
#define WITHOUT_NEIGHBOURS (IFF_NOARP | IFF_LOOPBACK | IFF_POINTOPOINT)

/* A netlink request and its answer, of which only the beginning is needed. */
struct message {
	struct nlmsghdr header;
	uint8_t rest[1024 - sizeof(struct nlmsghdr)];
};

/* The next hop; without a gateway, the destination itself. */
struct hop {
	int interface;
	uint8_t family;
	uint8_t address[16];
};

static size_t address_size(int family)
{
	return family == AF_INET ? 4 : 16;
}

static const void *address_in(const struct sockaddr *address)
{
	return address->sa_family == AF_INET ? (const void *)&((const struct sockaddr_in *)(const void *)address)->sin_addr :
					       (const void *)&((const struct sockaddr_in6 *)(const void *)address)->sin6_addr;
}

static void begin(struct message *message, uint16_t type, const void *body, size_t length)
{
	*message = (struct message){.header = {
		.nlmsg_len = (uint32_t)NLMSG_LENGTH(length), .nlmsg_type = type, .nlmsg_flags = NLM_F_REQUEST}};
	memcpy(NLMSG_DATA(&message->header), body, length);
}

static void put(struct message *message, uint16_t type, const void *value, size_t length)
{
	struct rtattr attribute = {.rta_len = (unsigned short)RTA_LENGTH(length), .rta_type = type};
	uint8_t *end = (uint8_t *)message + NLMSG_ALIGN(message->header.nlmsg_len);

	memcpy(end, &attribute, sizeof(attribute));
	memcpy(end + RTA_LENGTH(0), value, length);
	message->header.nlmsg_len = (uint32_t)(NLMSG_ALIGN(message->header.nlmsg_len) + RTA_LENGTH(length));
}

/* The answer is available when sendto(2) returns. False if it is an error, or of another type. */
static bool ask(int fd, struct message *message, uint16_t type, size_t length)
{
	ssize_t got;

	if (send(fd, message, message->header.nlmsg_len, 0) < 0)
		return false;
	memset(message, 0, sizeof(*message));
	got = recv(fd, message, sizeof(*message), MSG_DONTWAIT);
	if (got < (ssize_t)NLMSG_LENGTH(length))
		return false;
	if (message->header.nlmsg_len > (size_t)got)
		message->header.nlmsg_len = (uint32_t)got;
	return message->header.nlmsg_type == type && message->header.nlmsg_len >= NLMSG_LENGTH(length);
}

/*
 * The payload of an attribute that is at least that long; otherwise NULL. fixed: length of the header before the
 * attributes.
 */
static const void *find(const struct message *message, size_t fixed, uint16_t type, size_t length)
{
	const uint8_t *cursor = message->rest + NLMSG_ALIGN(fixed), *end = (const uint8_t *)message +
		message->header.nlmsg_len;
	struct rtattr attribute;

	for (; cursor + sizeof(attribute) <= end; cursor += RTA_ALIGN(attribute.rta_len)) {
		memcpy(&attribute, cursor, sizeof(attribute));
		if (attribute.rta_len < sizeof(attribute) || attribute.rta_len > end - cursor)
			return NULL;
		if (attribute.rta_type == type && attribute.rta_len >= RTA_LENGTH(length))
			return cursor + RTA_LENGTH(0);
	}
	return NULL;
}

/* False when the kernel does not answer, or there is no single next hop: a group or a broadcast. */
static bool find_hop(int fd, const struct sockaddr *source, const struct sockaddr *destination, struct hop *hop)
{
	int family = destination->sa_family;
	size_t size = address_size(family);
	struct rtmsg route = {.rtm_family = (uint8_t)family, .rtm_src_len = (uint8_t)(8 * size), .rtm_dst_len = (uint8_t)(8 * size)};
	const struct rtvia *via;
	const void *interface, *gateway;
	struct message message;
	int scope = family == AF_INET6 ? (int)((const struct sockaddr_in6 *)(const void *)destination)->sin6_scope_id : 0;

	begin(&message, RTM_GETROUTE, &route, sizeof(route));
	put(&message, RTA_DST, address_in(destination), size);
	put(&message, RTA_SRC, address_in(source), size);
	if (scope)
		put(&message, RTA_OIF, &scope, sizeof(scope));
	if (!ask(fd, &message, RTM_NEWROUTE, sizeof(route)))
		return false;
	memcpy(&route, message.rest, sizeof(route));
	interface = find(&message, sizeof(route), RTA_OIF, sizeof(hop->interface));
	if (!interface || route.rtm_type != RTN_UNICAST)
		return false;
	*hop = (struct hop){.family = (uint8_t)family};
	memcpy(&hop->interface, interface, sizeof(hop->interface));
	gateway = find(&message, sizeof(route), RTA_GATEWAY, size);
	/* the gateway of an IPv4 route may have an IPv6 address */
	via = find(&message, sizeof(route), RTA_VIA, sizeof(via->rtvia_family) + 16);
	if (via) {
		hop->family = (uint8_t)via->rtvia_family;
		gateway = via->rtvia_addr;
	}
	memcpy(hop->address, gateway ? gateway : address_in(destination), address_size(hop->family));
	return true;
}

static bool is_valid(int fd, const struct hop *hop)
{
	struct ndmsg neighbour = {.ndm_family = hop->family, .ndm_ifindex = hop->interface};
	struct message message;

	begin(&message, RTM_GETNEIGH, &neighbour, sizeof(neighbour));
	put(&message, NDA_DST, hop->address, address_size(hop->family));
	if (!ask(fd, &message, RTM_NEWNEIGH, sizeof(neighbour)))
		return false;
	memcpy(&neighbour, message.rest, sizeof(neighbour));
	return neighbour.ndm_state & VALID;
}

static bool has_neighbours(int fd, const struct hop *hop)
{
	struct ifinfomsg interface = {.ifi_index = hop->interface};
	struct message message;

	begin(&message, RTM_GETLINK, &interface, sizeof(interface));
	if (!ask(fd, &message, RTM_NEWLINK, sizeof(interface)))
		return false;
	memcpy(&interface, message.rest, sizeof(interface));
	return !(interface.ifi_flags & WITHOUT_NEIGHBOURS);
}

/* Make the kernel resolve the neighbour. */
static void send_nothing(const struct sockaddr *source, const struct sockaddr *destination)
{
	int fd = socket(destination->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	socklen_t length = soft_address_length(destination);
	struct sockaddr_in6 from, to; /* for both families */

	if (fd < 0)
		return;
	memcpy(&from, source, length);
	memcpy(&to, destination, length);
	soft_address_set_port((struct sockaddr *)&from, 0);
	soft_address_set_port((struct sockaddr *)&to, DISCARD);
	if (!bind(fd, (struct sockaddr *)&from, length))
		(void)sendto(fd, NULL, 0, MSG_DONTWAIT, (struct sockaddr *)&to, length);
	close(fd);
}

bool soft_neighbour_answers(const struct sockaddr *source, const struct sockaddr *destination)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	bool answers = true;
	struct hop hop;

	if (fd < 0)
		return true;
	if (find_hop(fd, source, destination, &hop) && !is_valid(fd, &hop) && has_neighbours(fd, &hop)) {
		answers = false;
		send_nothing(source, destination);
	}
	close(fd);
	return answers;
}
