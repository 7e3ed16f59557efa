/* Packets as a third host makes them: from and to any address, with any numbers in them, and an ICRC that is right. */
#ifndef CTEST_SUPPORT_FORGE_H
#define CTEST_SUPPORT_FORGE_H

#include "soft/wire/datagram.h"
#include "soft/wire/mad.h"

/* The source port of a process on another host. */
#define FORGE_PORT 0xc000

struct forged {
	uint8_t bytes[576]; /* from the IPv4 header on */
	size_t length;
};

/* Of an IPv4 address. */
struct soft_endpoint forge_endpoint(const char *address, uint16_t port);
void forge_packet(struct forged *forged, const struct soft_endpoint *from, const struct soft_endpoint *to, const struct soft_packet *packet);
/* As a management datagram. */
void forge_message(struct forged *forged, const struct soft_endpoint *from, const struct soft_endpoint *to,
		   const struct soft_cm_message *message);
/* A socket that sends packets with their IP headers: only root has it. */
int forge_socket(void);
void forge_send(int socket, const struct forged *forged);
/* The same without its headers, as any user sends it. */
void forge_send_payload(int socket, const struct forged *forged, const struct soft_endpoint *to);

#endif
