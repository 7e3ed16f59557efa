/* How processes give each other packets: what udp_pass and udp_share have in common. */
#ifndef SOFT_LINK_UDP_PASS_H
#define SOFT_LINK_UDP_PASS_H

#include <stdio.h>
#include <string.h>
#include <sys/un.h>

#include "soft/link/udp_socket.h"

#define SOFT_UDP_MAGIC 0x52445031u

/* What goes before the packets of a record. */
struct soft_udp_record {
	uint32_t magic;
	uint16_t segment, first;
	uint16_t port; /* of the sender */
	uint8_t hops, traffic_class;
	union ibv_gid source, destination;
};

struct soft_udp_end;

struct soft_udp_share {
	struct soft_udp *udp;
	uid_t user;
	_Atomic uint64_t own[SOFT_UDP_BLOCKS / 64]; /* blocks of this process, a bit each */
	struct soft_source source; /* an epoll set of the ends */
	/* The next two under udp.lock. */
	struct soft_udp_end *ends;
	uint32_t giver_count;
	/* The rest under udp.receiving. */
	struct {
		int fd; /* -1: there is none */
		uint64_t nobody_until;
	} passages[SOFT_UDP_BLOCKS];
	uint32_t passage_count, attempts;
	uint64_t attempts_until;
};

/* The name of a block; its length. */
static inline socklen_t soft_udp_block_name(uint32_t block, struct sockaddr_un *address)
{
	*address = (struct sockaddr_un){.sun_family = AF_UNIX};
	/* Where others have the name of a fabric there is none: blocks are the host's. */
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
			   (size_t)snprintf(address->sun_path + 1, sizeof(address->sun_path) - 1, "rdmarun//block/%u", block));
}

static inline int soft_udp_block_socket(void)
{
	return socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

/* Whether the process at the other end is that user's, as the kernel knows it. */
static inline bool soft_udp_is_of_user(int fd, uid_t user)
{
	struct ucred credentials;
	socklen_t length = sizeof(credentials);

	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &length) && credentials.uid == user;
}

#endif
