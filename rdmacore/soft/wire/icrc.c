#include "soft/wire/datagram.h"

#include <string.h>

#include "soft/base/page_guard.h"
#include "soft/wire/fields.h"

#define IPV4_IDENTIFICATION 4 /* offset in the header */
#define LOCAL_ROUTE 8

/* Mask the fields of an IP header that a router may change. */
static void mask_ip(uint8_t *ip)
{
	if (ip[0] >> 4 == 6) {
		ip[0] |= 0x0f; /* traffic class and flow label */
		memset(&ip[1], 0xff, 3);
		ip[7] = 0xff; /* hop limit */
	} else {
		ip[1] = 0xff; /* type of service */
		ip[8] = 0xff; /* time to live */
		memset(&ip[10], 0xff, 2); /* checksum */
	}
}

uint32_t soft_icrc(const uint8_t *datagram, size_t length)
{
	/* The headers up to the BTH, masked. */
	uint8_t masked[LOCAL_ROUTE + SOFT_GRH + SOFT_UDP_HEADER + SOFT_WIRE_BTH];
	uint8_t *ip = masked + LOCAL_ROUTE;
	size_t ip_header = datagram[0] >> 4 == 6 ? SOFT_GRH : SOFT_IPV4_HEADER;
	size_t headers = ip_header + SOFT_UDP_HEADER + SOFT_WIRE_BTH;
	uint32_t state;

	memset(masked, 0xff, LOCAL_ROUTE);
	memcpy(ip, datagram, headers);
	mask_ip(ip);
	memset(&ip[ip_header + 6], 0xff, 2); /* UDP checksum */
	ip[ip_header + SOFT_UDP_HEADER + 4] = 0xff; /* FECN, BECN and reserved bits */
	state = soft_crc32(0xffffffff, masked, LOCAL_ROUTE + headers);
	return ~soft_crc32(state, datagram + headers, length - headers);
}

void soft_icrc_put(uint8_t *cursor, uint32_t icrc)
{
	for (int byte = 0; byte < SOFT_WIRE_ICRC; byte++)
		cursor[byte] = (uint8_t)(icrc >> 8 * byte);
}

uint32_t soft_icrc_get(const uint8_t *cursor)
{
	return (uint32_t)cursor[3] << 24 | (uint32_t)cursor[2] << 16 | (uint32_t)cursor[1] << 8 | cursor[0];
}

/*
 * CRC states are polynomials over GF(2) modulo that of CRC-32, with the lowest power in the highest bit.
 * Multiplication moves a state back over following bytes.
 */
#define POLYNOMIAL 0xedb88320u

/* x to the power -8 * 2^n: the factor that moves a state back over 2^n zero bytes. */
static const uint32_t before_bytes[] = {
	0x6567cb95, 0xd7125358, 0x5b358fd3, 0x2e9bb40b, 0x12a59a49, 0x8df9403d,
	0x5139de12, 0xba340226, 0x29c45641, 0x12fbc105, 0xecd30c55, 0x3755ebd8,
	0x24ee460c, 0x23783fcf, 0x479933fc, 0xa39442a5, 0x9ea0056d,
};

static uint32_t multiply(uint32_t a, uint32_t b)
{
	uint32_t product = 0;

	for (int bit = 0; bit < 32; bit++) {
		product ^= b & (0u - (a >> 31));
		a <<= 1;
		b = b >> 1 ^ (POLYNOMIAL & (0u - (b & 1)));
	}
	return product;
}

/* The state before that many zero bytes. */
static uint32_t turn_back(uint32_t state, uint32_t bytes)
{
	for (unsigned int bit = 0; bytes; bit++, bytes >>= 1)
		if (bytes & 1)
			state = multiply(state, before_bytes[bit]);
	return state;
}

void soft_icrc_headers_make(struct soft_icrc_headers *headers, const struct soft_endpoint *from,
			    const struct soft_endpoint *to)
{
	struct ibv_global_route route = {.dgid = to->address};
	uint8_t ip[SOFT_GRH], *cursor = headers->bytes;
	size_t offset;

	soft_ip_make(ip, &route, &from->address);
	offset = soft_ip_offset(ip);
	headers->ipv4 = offset != 0;
	memset(cursor, 0xff, LOCAL_ROUTE);
	cursor += LOCAL_ROUTE;
	memcpy(cursor, ip + offset, SOFT_GRH - offset);
	mask_ip(cursor);
	cursor += SOFT_GRH - offset;
	soft_put16(cursor, from->port);
	soft_put16(cursor + 2, to->port);
	memset(cursor + 4, 0, 2);
	memset(cursor + 6, 0xff, 2);
	headers->length = (uint8_t)(cursor + SOFT_UDP_HEADER - headers->bytes);
}

/* The state after the BTH of a packet of that length without its ICRC. */
static uint32_t sum_headers(const struct soft_icrc_headers *headers, uint16_t identification, const uint8_t *packet,
			    size_t length)
{
	uint8_t masked[sizeof(headers->bytes) + SOFT_WIRE_BTH], *ip = masked + LOCAL_ROUTE;
	uint8_t *behind = masked + headers->length;
	uint32_t datagram = (uint32_t)(SOFT_UDP_HEADER + length + SOFT_WIRE_ICRC);

	memcpy(masked, headers->bytes, sizeof(headers->bytes));
	if (headers->ipv4) {
		soft_put16(ip + 2, SOFT_IPV4_HEADER + datagram);
		soft_put16(ip + IPV4_IDENTIFICATION, identification);
	} else {
		soft_put16(ip + 4, datagram);
	}
	soft_put16(behind - 4, datagram);
	memcpy(behind, packet, SOFT_WIRE_BTH);
	behind[4] = 0xff;
	return soft_crc32(0xffffffff, masked, (size_t)headers->length + SOFT_WIRE_BTH);
}

uint32_t soft_icrc_of_packet(const struct soft_icrc_headers *headers, uint16_t identification, const uint8_t *packet,
			     size_t length)
{
	uint32_t state = sum_headers(headers, identification, packet, length);

	return ~soft_crc32(state, packet + SOFT_WIRE_BTH, length - SOFT_WIRE_BTH);
}

/* Shorter packets are copied and then summed: both take little time. */
#define WORTH_WHILE 1024

void soft_icrc_encode(const struct soft_icrc_headers *headers, uint16_t identification, const struct soft_packet *packet,
		      uint8_t *bytes, size_t length)
{
	const struct soft_segment *from = packet->segments + (packet->header ? 1 : 0);
	size_t before, left = length - SOFT_WIRE_ICRC;
	uint32_t state;

	if (length < WORTH_WHILE) {
		soft_wire_encode(packet, bytes);
		soft_icrc_put(bytes + left, soft_icrc_of_packet(headers, identification, bytes, left));
		return;
	}
	before = soft_wire_encode_headers(packet, bytes);
	state = sum_headers(headers, identification, bytes, left);
	state = soft_crc32(state, bytes + SOFT_WIRE_BTH, before - SOFT_WIRE_BTH);
	bytes += before;
	left = packet->length;
	soft_page_guard_begin();
	for (; left; from++) {
		size_t step = from->length < left ? from->length : left;

		state = soft_crc32_copy(state, bytes, from->address, step);
		bytes += step;
		left -= step;
	}
	soft_page_guard_end();
	left = length - SOFT_WIRE_ICRC - before - packet->length; /* padding */
	memset(bytes, 0, left);
	soft_icrc_put(bytes + left, ~soft_crc32(state, bytes, left));
}

bool soft_icrc_identify(const struct soft_icrc_headers *headers, uint16_t guess, const uint8_t *packet, size_t length,
			uint16_t *identification)
{
	/* The effect of the right bytes on the ICRC, moved back over these bytes and all that follow. */
	uint32_t difference = soft_icrc_of_packet(headers, guess, packet, length) ^ soft_icrc_get(packet + length);
	uint32_t behind = (uint32_t)(SOFT_IPV4_HEADER + SOFT_UDP_HEADER + length - IPV4_IDENTIFICATION), bytes;

	_Static_assert(sizeof(before_bytes) / sizeof(before_bytes[0]) == 17, "any length of a datagram");
	*identification = guess;
	if (!difference)
		return true;
	if (!headers->ipv4)
		return false;
	bytes = turn_back(difference, behind);
	*identification = (uint16_t)(guess ^ (uint16_t)(bytes << 8 | (bytes >> 8 & 0xff)));
	return bytes >> 16 == 0;
}
