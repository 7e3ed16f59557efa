/*
 * Which IP identifications the kernel gives to packets of soft's sockets.
 *
 * The ICRC covers them (soft/udp/udp.h), and no socket shows them. If they differ from what was assumed, a kernel or
 * adapter drops every packet without a notice. But the filter of a socket (socket(7), SO_ATTACH_FILTER) can read the
 * IP header of a received packet, and returns the length to keep. So one socket sends to another on this host: one
 * datagram, and a burst. The kernel cuts the burst for a receiver without GRO, as it does for an interface without
 * segmentation (udp_rcv_segment and inet_gso_segment of Linux). The filter keeps a length that encodes the
 * identification.
 *
 * What an adapter that cuts bursts itself writes is not detected.
 */
#include <errno.h>
#include <linux/filter.h>
#include <netinet/udp.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "soft/udp/internal.h"

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103 /* linux/udp.h */
#endif

#define BURST 3 /* packets */
#define LENGTH 200 /* bytes of each */
/* length that is kept of a packet with an unexpected header; otherwise the identification + 1 is kept */
#define OTHER 100
/* Timeout of a packet. On loopback it has arrived when send(2) returns; a busy machine may defer that by a few ms. */
#define ARRIVAL_MS 20

/* Offset in an IPv4 header, and the field's value there with only "don't fragment" set (RFC 791). */
#define IDENTIFICATION 4
#define FRAGMENT 6
#define DO_NOT_FRAGMENT 0x4000

static bool attach_filter(int fd)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, (uint32_t)SKF_NET_OFF + FRAGMENT),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, DO_NOT_FRAGMENT, 0, 4),
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, (uint32_t)SKF_NET_OFF + IDENTIFICATION),
		BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, SOFT_UDP_SEGMENTS, 2, 0),
		BPF_STMT(BPF_ALU | BPF_ADD | BPF_K, SOFT_UDP_HEADER + 1),
		BPF_STMT(BPF_RET | BPF_A, 0),
		BPF_STMT(BPF_RET | BPF_K, SOFT_UDP_HEADER + OTHER),
	};
	struct sock_fprog filter = {sizeof(code) / sizeof(code[0]), code};

	_Static_assert(SOFT_UDP_SEGMENTS < OTHER && OTHER < LENGTH, "the lengths differ");
	return !setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter));
}

/* A socket that receives only from sender, and its address in *address; or a negative errno. */
static int open_receiver(int sender, struct sockaddr_in *address)
{
	struct sockaddr_in from;
	socklen_t length = sizeof(from);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), error;

	if (fd < 0)
		return -errno;
	if (getsockname(sender, (struct sockaddr *)&from, &length))
		goto fail;
	*address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr = from.sin_addr};
	if (bind(fd, (struct sockaddr *)address, length) || getsockname(fd, (struct sockaddr *)address, &length) ||
	    connect(fd, (struct sockaddr *)&from, length) || !attach_filter(fd))
		goto fail;
	return fd;

fail:
	error = errno;
	close(fd);
	return -error;
}

static bool send_packets(int fd, struct sockaddr_in *to, int count)
{
	union {
		char bytes[CMSG_SPACE(sizeof(uint16_t))];
		struct cmsghdr aligned;
	} control = {{0}};
	uint8_t bytes[BURST * LENGTH] = {0};
	struct iovec vector = {bytes, (size_t)count * LENGTH};
	struct msghdr message = {.msg_name = to, .msg_namelen = sizeof(*to), .msg_iov = &vector, .msg_iovlen = 1};
	const uint16_t segment = LENGTH;

	if (count > 1) {
		control.aligned = (struct cmsghdr){CMSG_LEN(sizeof(segment)), IPPROTO_UDP, UDP_SEGMENT};
		memcpy(CMSG_DATA(&control.aligned), &segment, sizeof(segment));
		message.msg_control = &control;
		message.msg_controllen = sizeof(control);
	}
	return soft_udp_sendmsg(fd, &message) >= 0;
}

/* The length that was kept of the next packet; negative: none came. */
static ssize_t receive_one(int fd)
{
	struct pollfd arrival = {fd, POLLIN, 0};
	uint8_t bytes[LENGTH];
	ssize_t length = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);

	if (length < 0 && poll(&arrival, 1, ARRIVAL_MS) > 0)
		length = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);
	return length;
}

static enum soft_udp_identifications compare(int sender, int receiver, struct sockaddr_in *address)
{
	ssize_t length;

	if (!send_packets(sender, address, 1))
		return SOFT_UDP_AS_MEANT;
	length = receive_one(receiver);
	if (length != 1)
		return length < 0 ? SOFT_UDP_AS_MEANT : SOFT_UDP_DATAGRAMS_DIFFER;
	if (!send_packets(sender, address, BURST))
		return SOFT_UDP_SEGMENTS_DIFFER; /* no bursts */
	for (int index = 0; index < BURST; index++) {
		length = receive_one(receiver);
		if (length != index + 1)
			return length < 0 ? SOFT_UDP_AS_MEANT : SOFT_UDP_SEGMENTS_DIFFER;
	}
	return SOFT_UDP_AS_MEANT;
}

enum soft_udp_identifications soft_udp_ask_identifications(int fd)
{
	enum soft_udp_identifications result;
	struct sockaddr_in address;
	int receiver, state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	receiver = open_receiver(fd, &address);
	if (receiver >= 0) {
		result = compare(fd, receiver, &address);
		close(receiver);
	} else {
		/* Linux has socket filters. Another system with Linux's system calls may use any identifications. */
		result = receiver == -ENOPROTOOPT || receiver == -EOPNOTSUPP || receiver == -ENOSYS ? SOFT_UDP_DATAGRAMS_DIFFER :
												SOFT_UDP_AS_MEANT;
	}
	pthread_setcancelstate(state, &state);
	return result;
}
