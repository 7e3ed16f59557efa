/*
 * Header: magic (4 bytes), version, kind, two zero bytes, instance (8 bytes). A message follows: source, destination
 * and management datagram. An address: 4 or 6, a zero byte, port, scope, and 16 bytes, of which IPv4 uses the last
 * four.
 */
#include "soft/ipc/record.h"

#include <string.h>

#include "soft/wire/fields.h"

#define MAGIC 0x52434d41u /* "RCMA" */
#define VERSION 1

static uint8_t *put_header(uint8_t *cursor, enum soft_record_kind kind, uint64_t instance)
{
	cursor = soft_put32(cursor, MAGIC);
	*cursor++ = VERSION;
	*cursor++ = (uint8_t)kind;
	return soft_put64(soft_put16(cursor, 0), instance);
}

static uint8_t *put_address(uint8_t *cursor, const struct sockaddr_storage *address)
{
	const struct sockaddr_in *in4 = (const void *)address;
	const struct sockaddr_in6 *in6 = (const void *)address;
	bool ipv6 = address->ss_family == AF_INET6;

	memset(cursor, 0, SOFT_RECORD_ADDRESS);
	cursor[0] = ipv6 ? 6 : 4;
	memcpy(cursor + 2, &in4->sin_port, sizeof(in4->sin_port)); /* sin6_port has the same offset */
	if (ipv6) {
		soft_put32(cursor + 4, in6->sin6_scope_id);
		memcpy(cursor + 8, &in6->sin6_addr, sizeof(in6->sin6_addr));
	} else {
		memcpy(cursor + 20, &in4->sin_addr, sizeof(in4->sin_addr));
	}
	return cursor + SOFT_RECORD_ADDRESS;
}

static bool get_address(const uint8_t *cursor, struct sockaddr_storage *address)
{
	static const uint8_t zeros[16];
	struct sockaddr_in *in4 = (void *)address;
	struct sockaddr_in6 *in6 = (void *)address;

	memset(address, 0, sizeof(*address));
	memcpy(&in4->sin_port, cursor + 2, sizeof(in4->sin_port));
	if (cursor[1])
		return false;
	switch (cursor[0]) {
	case 4:
		in4->sin_family = AF_INET;
		memcpy(&in4->sin_addr, cursor + 20, sizeof(in4->sin_addr));
		return !memcmp(cursor + 4, zeros, 16);
	case 6:
		in6->sin6_family = AF_INET6;
		in6->sin6_scope_id = soft_get32(cursor + 4);
		memcpy(&in6->sin6_addr, cursor + 8, sizeof(in6->sin6_addr));
		return true;
	default:
		return false;
	}
}

size_t soft_record_encode(const struct soft_cm_message *message, uint64_t instance, uint8_t record[SOFT_RECORD_MAX])
{
	uint8_t *cursor = put_header(record, message->between_hosts ? SOFT_RECORD_FROM_HOST : SOFT_RECORD_MESSAGE,
				     instance);

	cursor = put_address(cursor, &message->source);
	cursor = put_address(cursor, &message->destination);
	soft_mad_encode(message, cursor);
	return SOFT_RECORD_MAX;
}

size_t soft_record_encode_end(uint64_t instance, uint8_t record[SOFT_RECORD_MAX])
{
	put_header(record, SOFT_RECORD_END, instance);
	return SOFT_RECORD_HEADER;
}

static bool decode_message(const uint8_t *cursor, struct soft_cm_message *message)
{
	struct sockaddr_storage source, destination;

	/* First the datagram, which sets all fields of message, including the addresses of a REQ. */
	if (!get_address(cursor, &source) || !get_address(cursor + SOFT_RECORD_ADDRESS, &destination) ||
	    source.ss_family != destination.ss_family ||
	    !soft_mad_decode(cursor + 2 * SOFT_RECORD_ADDRESS, message))
		return false;
	message->source = source;
	message->destination = destination;
	return true;
}

enum soft_record_kind soft_record_decode(const uint8_t *record, size_t length, uint64_t *instance,
					 struct soft_cm_message *message)
{
	if (length < SOFT_RECORD_HEADER || soft_get32(record) != MAGIC || record[4] != VERSION || soft_get16(record + 6))
		return SOFT_RECORD_INVALID;
	*instance = soft_get64(record + 8);
	if (record[5] == SOFT_RECORD_END && length == SOFT_RECORD_HEADER)
		return SOFT_RECORD_END;
	if ((record[5] != SOFT_RECORD_MESSAGE && record[5] != SOFT_RECORD_FROM_HOST) || length != SOFT_RECORD_MAX ||
	    !decode_message(record + SOFT_RECORD_HEADER, message))
		return SOFT_RECORD_INVALID;
	message->between_hosts = record[5] == SOFT_RECORD_FROM_HOST;
	return (enum soft_record_kind)record[5];
}
