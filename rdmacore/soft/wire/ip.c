#include "soft/wire/datagram.h"

#include <string.h>

#include "soft/wire/fields.h"

#define IPV4_OFFSET (SOFT_GRH - SOFT_IPV4_HEADER)
#define UDP 17

void soft_ip_make(uint8_t header[SOFT_GRH], const struct ibv_global_route *route,
		  const union ibv_gid *source)
{
	uint8_t hops = route->hop_limit ? route->hop_limit : SOFT_HOP_LIMIT;

	memset(header, 0, SOFT_GRH);
	if (soft_gid_is_ipv4(&route->dgid)) {
		header += IPV4_OFFSET;
		header[0] = 0x45;
		header[1] = route->traffic_class;
		header[6] = 0x40; /* do not fragment */
		header[8] = hops;
		header[9] = UDP;
		memcpy(&header[12], &source->raw[12], 4);
		memcpy(&header[16], &route->dgid.raw[12], 4);
		return;
	}
	header[0] = (uint8_t)(0x60 | route->traffic_class >> 4);
	header[1] = (uint8_t)(route->traffic_class << 4 | (route->flow_label >> 16 & 0xf));
	header[2] = (uint8_t)(route->flow_label >> 8);
	header[3] = (uint8_t)route->flow_label;
	header[6] = UDP;
	header[7] = hops;
	memcpy(&header[8], source->raw, 16);
	memcpy(&header[24], route->dgid.raw, 16);
}

/* The sum of an IPv4 header's words (RFC 1071). */
static uint32_t sum_words(const uint8_t header[SOFT_IPV4_HEADER])
{
	uint32_t sum = 0;

	for (int word = 0; word < SOFT_IPV4_HEADER; word += 2)
		sum += soft_get16(&header[word]);
	sum = (sum & 0xffff) + (sum >> 16);
	return (sum & 0xffff) + (sum >> 16);
}

void soft_ip_finish(uint8_t header[SOFT_GRH], uint32_t length)
{
	if (header[0] >> 4 == 6) {
		soft_put16(&header[4], length);
		return;
	}
	header += IPV4_OFFSET;
	soft_put16(&header[2], length + SOFT_IPV4_HEADER);
	soft_put16(&header[10], ~sum_words(header) & 0xffff);
}

size_t soft_ip_parse(const uint8_t *datagram, size_t length, uint8_t header[SOFT_GRH],
		     union ibv_gid *source, union ibv_gid *destination)
{
	if (length < SOFT_IPV4_HEADER + SOFT_UDP_HEADER)
		return 0;
	if (datagram[0] == 0x45) {
		if (datagram[9] != UDP || soft_get16(&datagram[2]) != length || soft_get16(&datagram[6]) & 0x3fff)
			return 0;
		memset(header, 0, IPV4_OFFSET);
		memcpy(header + IPV4_OFFSET, datagram, SOFT_IPV4_HEADER);
		soft_gid_from_ipv4(source, &datagram[12]);
		soft_gid_from_ipv4(destination, &datagram[16]);
		return SOFT_IPV4_HEADER;
	}
	if (length < SOFT_GRH + SOFT_UDP_HEADER || datagram[0] >> 4 != 6 || datagram[6] != UDP ||
	    soft_get16(&datagram[4]) + SOFT_GRH != length)
		return 0;
	memcpy(header, datagram, SOFT_GRH);
	memcpy(source->raw, &datagram[8], 16);
	memcpy(destination->raw, &datagram[24], 16);
	return SOFT_GRH;
}

void soft_udp_make(uint8_t header[SOFT_UDP_HEADER], uint16_t source_port, size_t length)
{
	soft_put16(header, source_port);
	soft_put16(header + 2, SOFT_WIRE_PORT);
	soft_put16(header + 4, (uint32_t)(SOFT_UDP_HEADER + length));
	soft_put16(header + 6, 0);
}

uint16_t soft_udp_port(const uint8_t header[SOFT_UDP_HEADER])
{
	return (uint16_t)soft_get16(header + 2);
}
