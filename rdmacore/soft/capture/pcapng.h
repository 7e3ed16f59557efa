/*
 * The blocks of a pcapng file (draft-ietf-opsawg-pcapng), in host byte order, which the first block shows. Pure
 * functions: each writes a whole block and returns its length, a multiple of 4.
 */
#ifndef SOFT_CAPTURE_PCAPNG_H
#define SOFT_CAPTURE_PCAPNG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define SOFT_PCAPNG_TEXT 255 /* maximum length of a text in bytes; longer texts are cut */
#define SOFT_PCAPNG_COMMENTS 2 /* maximum for a packet */
/* What a block needs in addition to the bytes of a packet: its own fields, and the longest options. */
#define SOFT_PCAPNG_OVERHEAD 1024

/* The section header. application: the program that writes the file. */
size_t soft_pcapng_section(uint8_t *cursor, const char *application);
/* An interface with packets that begin with an IP header, and times in nanoseconds. snap_length 0: whole packets. */
size_t soft_pcapng_interface(uint8_t *cursor, const char *name, const char *description, uint32_t snap_length);

#define SOFT_PCAPNG_PACKET_BLOCK 6u

/* Whether a block has a packet. */
static inline bool soft_pcapng_is_packet(const uint8_t *block)
{
	uint32_t kind;

	memcpy(&kind, block, sizeof(kind));
	return kind == SOFT_PCAPNG_PACKET_BLOCK;
}

/* The length of a block. */
static inline uint32_t soft_pcapng_length(const uint8_t *block)
{
	uint32_t length;

	memcpy(&length, block + sizeof(length), sizeof(length));
	return length;
}

struct soft_pcapng_packet {
	uint32_t interface; /* in the order of interface blocks */
	uint64_t time; /* nanoseconds since 1970 */
	uint32_t length; /* of the packet, from its IP header on */
	uint32_t captured; /* bytes of it in the file */
	bool inbound; /* otherwise outbound */
	const char *comments[SOFT_PCAPNG_COMMENTS]; /* NULL or "": none */
};

/* Offset of the packet's bytes in its block; they are written before the other fields. */
#define SOFT_PCAPNG_PACKET 28
/* The block of captured bytes that are at SOFT_PCAPNG_PACKET already. */
size_t soft_pcapng_packet(uint8_t *cursor, const struct soft_pcapng_packet *packet);
/* How many packets an interface had, and how many of them are missing in the file. */
size_t soft_pcapng_statistics(uint8_t *cursor, uint32_t interface, uint64_t time, uint64_t packets, uint64_t missing);

#endif
