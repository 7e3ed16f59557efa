/* One system call that receives: the packets, their sender, and their headers. */
#include "soft/udp/internal.h"

#include <netinet/udp.h>
#include <string.h>

#ifndef UDP_GRO
#define UDP_GRO 104 /* linux/udp.h */
#endif

/* Read the control messages. */
static void read_options(struct msghdr *message, struct soft_udp_rx_batch *rx)
{
	for (struct cmsghdr *option = CMSG_FIRSTHDR(message); option; option = CMSG_NXTHDR(message, option)) {
		int value = 0;
		size_t length = option->cmsg_len - CMSG_LEN(0);

		memcpy(&value, CMSG_DATA(option), length < sizeof(value) ? length : sizeof(value));
		if (option->cmsg_level == IPPROTO_UDP && option->cmsg_type == UDP_GRO)
			rx->segment = (size_t)value;
		else if ((option->cmsg_level == IPPROTO_IP && option->cmsg_type == IP_TTL) ||
			 (option->cmsg_level == IPPROTO_IPV6 && option->cmsg_type == IPV6_HOPLIMIT))
			rx->hops = (uint8_t)value;
		else if ((option->cmsg_level == IPPROTO_IP && option->cmsg_type == IP_TOS) ||
			 (option->cmsg_level == IPPROTO_IPV6 && option->cmsg_type == IPV6_TCLASS))
			rx->traffic_class = (uint8_t)value;
	}
}

static void read_source(const union soft_udp_address *address, struct soft_endpoint *source)
{
	(void)soft_gid_from_sockaddr(&source->address, &address->any);
	source->port = ntohs(address->any.sa_family == AF_INET ? address->ipv4.sin_port : address->ipv6.sin6_port);
}

/* Receive with one system call. The length of all packets; negative when there is nothing. */
static ssize_t take(struct soft_udp *udp, struct soft_udp_socket *socket, struct soft_udp_rx_batch *rx)
{
	union {
		char bytes[3 * CMSG_SPACE(sizeof(int))];
		struct cmsghdr aligned;
	} control;
	union soft_udp_address from;
	struct iovec vector = {udp->arrived, SOFT_UDP_ARRIVED};
	struct msghdr message = {.msg_name = &from, .msg_namelen = sizeof(from), .msg_iov = &vector, .msg_iovlen = 1,
				 .msg_control = &control, .msg_controllen = sizeof(control)};
	socklen_t size = sizeof(from);
	bool alone = !socket->gro && !atomic_load_explicit(&socket->shows_headers, memory_order_relaxed);
	ssize_t length = alone ? soft_udp_recvfrom(socket->source.fd, udp->arrived, SOFT_UDP_ARRIVED, &from.any, &size) :
				 soft_udp_recvmsg(socket->source.fd, &message);

	if (length < 0)
		return length;
	rx->destination = socket->endpoint;
	rx->segment = (size_t)length;
	rx->first = 0;
	rx->hops = SOFT_HOP_LIMIT;
	rx->traffic_class = 0;
	if (!alone)
		read_options(&message, rx);
	read_source(&from, &rx->source);
	return length;
}

bool soft_udp_receive(struct soft_udp *udp, struct soft_udp_socket *socket)
{
	struct soft_udp_rx_batch rx;
	ssize_t length = take(udp, socket, &rx);

	soft_lock_expect(&udp->receiving);
	if (length < 0) {
		soft_udp_note_nothing(socket);
		return false;
	}
	soft_udp_add(&udp->counters.calls_to_receive, 1);
	soft_udp_note_arrival(socket, rx.segment ? ((size_t)length + rx.segment - 1) / rx.segment : 0);
	if (!rx.segment) /* an empty datagram */
		soft_udp_drop(udp, SOFT_NOTICE_MALFORMED, &rx.source.address);
	else if (socket->is_shared && length == SOFT_UDP_PROBE && soft_udp_watch_answer(udp, socket, &rx, udp->arrived))
		;
	else if (socket->is_shared)
		soft_udp_take_shared(udp, &rx, udp->arrived, (size_t)length);
	else
		soft_udp_take(udp, &rx, udp->arrived, (size_t)length);
	return true;
}
