#include "soft/capture/pcapng.h"

enum block {
	INTERFACE_BLOCK = 1,
	STATISTICS_BLOCK = 5,
	PACKET_BLOCK = SOFT_PCAPNG_PACKET_BLOCK,
	SECTION_BLOCK = 0x0a0d0d0a,
};

/* Each kind of block has its own option numbers; comments are allowed in all. */
enum option {
	END_OF_OPTIONS = 0,
	COMMENT = 1,
	SECTION_APPLICATION = 4,
	INTERFACE_NAME = 2,
	INTERFACE_DESCRIPTION = 3,
	INTERFACE_RESOLUTION = 9,
	PACKET_FLAGS = 2,
	STATISTICS_PACKETS = 4,
	STATISTICS_MISSING = 5,
};

#define BYTE_ORDER_MAGIC 0x1a2b3c4du
#define LINKTYPE_RAW 101 /* IPv4 or IPv6, by the first four bits */
#define NANOSECONDS 9 /* a negative power of ten */
#define INBOUND 1u
#define OUTBOUND 2u

static uint8_t *put16(uint8_t *cursor, uint16_t value)
{
	memcpy(cursor, &value, sizeof(value));
	return cursor + sizeof(value);
}

static uint8_t *put32(uint8_t *cursor, uint32_t value)
{
	memcpy(cursor, &value, sizeof(value));
	return cursor + sizeof(value);
}

/* A 64-bit time consists of two words, the upper one first. */
static uint8_t *put_time(uint8_t *cursor, uint64_t time)
{
	cursor = put32(cursor, (uint32_t)(time >> 32));
	return put32(cursor, (uint32_t)time);
}

static uint8_t *pad(uint8_t *cursor, size_t length)
{
	size_t bytes = -length & 3;

	memset(cursor, 0, bytes);
	return cursor + bytes;
}

static uint8_t *put_option(uint8_t *cursor, enum option option, const void *value, size_t length)
{
	cursor = put16(cursor, (uint16_t)option);
	cursor = put16(cursor, (uint16_t)length);
	memcpy(cursor, value, length);
	return pad(cursor + length, length);
}

/* Texts are UTF-8: a long text is cut between characters. */
static uint8_t *put_text(uint8_t *cursor, enum option option, const char *text)
{
	size_t length = text ? strlen(text) : 0;

	if (!length)
		return cursor;
	if (length > SOFT_PCAPNG_TEXT) {
		length = SOFT_PCAPNG_TEXT;
		while (length && ((uint8_t)text[length] & 0xc0) == 0x80)
			length--;
	}
	return put_option(cursor, option, text, length);
}

static uint8_t *begin(uint8_t *cursor, enum block block)
{
	return put32(cursor, block) + sizeof(uint32_t);
}

/* End the options, and write the block's length at both of its ends. */
static size_t end(uint8_t *block, uint8_t *cursor)
{
	uint32_t length;

	cursor = put_option(cursor, END_OF_OPTIONS, "", 0);
	length = (uint32_t)(cursor - block) + sizeof(length);
	put32(cursor, length);
	put32(block + 4, length);
	return length;
}

size_t soft_pcapng_section(uint8_t *cursor, const char *application)
{
	uint8_t *next = begin(cursor, SECTION_BLOCK);

	next = put32(next, BYTE_ORDER_MAGIC);
	next = put16(next, 1);
	next = put16(next, 0);
	/* The length of the section: unknown. */
	next = put32(next, UINT32_MAX);
	next = put32(next, UINT32_MAX);
	return end(cursor, put_text(next, SECTION_APPLICATION, application));
}

size_t soft_pcapng_interface(uint8_t *cursor, const char *name, const char *description, uint32_t snap_length)
{
	static const uint8_t resolution = NANOSECONDS;
	uint8_t *next = begin(cursor, INTERFACE_BLOCK);

	next = put16(next, LINKTYPE_RAW);
	next = put16(next, 0);
	next = put32(next, snap_length);
	next = put_text(next, INTERFACE_NAME, name);
	next = put_text(next, INTERFACE_DESCRIPTION, description);
	return end(cursor, put_option(next, INTERFACE_RESOLUTION, &resolution, sizeof(resolution)));
}

size_t soft_pcapng_packet(uint8_t *cursor, const struct soft_pcapng_packet *packet)
{
	uint8_t *next = begin(cursor, PACKET_BLOCK);
	uint32_t flags = packet->inbound ? INBOUND : OUTBOUND;

	next = put32(next, packet->interface);
	next = put_time(next, packet->time);
	next = put32(next, packet->captured);
	next = put32(next, packet->length);
	next = pad(next + packet->captured, packet->captured);
	next = put_option(next, PACKET_FLAGS, &flags, sizeof(flags));
	for (int comment = 0; comment < SOFT_PCAPNG_COMMENTS; comment++)
		next = put_text(next, COMMENT, packet->comments[comment]);
	return end(cursor, next);
}

size_t soft_pcapng_statistics(uint8_t *cursor, uint32_t interface, uint64_t time, uint64_t packets, uint64_t missing)
{
	uint8_t *next = begin(cursor, STATISTICS_BLOCK);

	next = put32(next, interface);
	next = put_time(next, time);
	next = put_option(next, STATISTICS_PACKETS, &packets, sizeof(packets));
	return end(cursor, put_option(next, STATISTICS_MISSING, &missing, sizeof(missing)));
}
