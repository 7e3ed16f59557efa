#include "ctest/support/forge.h"

#include <arpa/inet.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#include "ctest/support/check.h"

#define HEADERS (sizeof(struct iphdr) + sizeof(struct udphdr))
/* The kernel fills it in where it is 0. */
#define IDENTIFICATION 1

struct soft_endpoint forge_endpoint(const char *address, uint16_t port)
{
	struct soft_endpoint endpoint = {.port = port};
	uint8_t bytes[4];

	CHECK(inet_pton(AF_INET, address, bytes) == 1);
	soft_gid_from_ipv4(&endpoint.address, bytes);
	return endpoint;
}

static void make_headers(struct forged *forged, const struct soft_endpoint *from, const struct soft_endpoint *to, size_t length)
{
	struct udphdr udp = {.source = htons(from->port), .dest = htons(to->port), .len = htons((uint16_t)(sizeof(udp) + length))};
	struct iphdr ip = {.version = 4, .ihl = 5, .ttl = SOFT_HOP_LIMIT, .protocol = IPPROTO_UDP, .id = htons(IDENTIFICATION),
			   .frag_off = htons(IP_DF), .tot_len = htons((uint16_t)(HEADERS + length))};

	memcpy(&ip.saddr, from->address.raw + 12, 4);
	memcpy(&ip.daddr, to->address.raw + 12, 4);
	memcpy(forged->bytes, &ip, sizeof(ip));
	memcpy(forged->bytes + sizeof(ip), &udp, sizeof(udp));
	forged->length = HEADERS + length;
}

void forge_packet(struct forged *forged, const struct soft_endpoint *from, const struct soft_endpoint *to, const struct soft_packet *packet)
{
	size_t length = soft_wire_length(packet);
	struct soft_icrc_headers headers;

	CHECK(length && HEADERS + length <= sizeof(forged->bytes));
	soft_icrc_headers_make(&headers, from, to);
	soft_icrc_encode(&headers, IDENTIFICATION, packet, forged->bytes + HEADERS, length);
	make_headers(forged, from, to, length);
}

void forge_message(struct forged *forged, const struct soft_endpoint *from, const struct soft_endpoint *to,
		   const struct soft_cm_message *message)
{
	uint8_t mad[SOFT_MAD];
	struct soft_packet packet = {
		.opcode = SOFT_UNRELIABLE_DATAGRAM | SOFT_SEND_ONLY, .partition = SOFT_WIRE_PARTITION, .destination = SOFT_GSI_QUEUE_PAIR,
		.source = SOFT_GSI_QUEUE_PAIR, .queue_key = SOFT_GSI_QUEUE_KEY, .length = SOFT_MAD, .num_segments = 1,
		.segments = {{mad, SOFT_MAD}},
	};

	soft_mad_encode(message, mad);
	forge_packet(forged, from, to, &packet);
}

int forge_socket(void)
{
	int fd = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_RAW);

	CHECK(fd >= 0);
	return fd;
}

void forge_send(int fd, const struct forged *forged)
{
	struct sockaddr_in to = {.sin_family = AF_INET};

	memcpy(&to.sin_addr, &((const struct iphdr *)(const void *)forged->bytes)->daddr, 4);
	CHECK(sendto(fd, forged->bytes, forged->length, 0, (struct sockaddr *)&to, sizeof(to)) == (ssize_t)forged->length);
}

void forge_send_payload(int fd, const struct forged *forged, const struct soft_endpoint *to)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(to->port)};
	size_t length = forged->length - HEADERS;

	memcpy(&address.sin_addr, to->address.raw + 12, 4);
	CHECK(sendto(fd, forged->bytes + HEADERS, length, 0, (struct sockaddr *)&address, sizeof(address)) == (ssize_t)length);
}
