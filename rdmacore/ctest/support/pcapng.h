/* A pcapng file as this project writes it, read back: every length, option and count is checked. */
#ifndef CTEST_SUPPORT_PCAPNG_H
#define CTEST_SUPPORT_PCAPNG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PCAPNG_INTERFACES 8
#define PCAPNG_COMMENTS 2
#define PCAPNG_TEXT 256

struct pcapng_interface {
	char name[PCAPNG_TEXT];
	uint32_t snap_length;
	uint64_t packets; /* that the file has */
	uint64_t counted, missing; /* as its statistics say */
	bool has_statistics;
};

struct pcapng_packet {
	uint32_t interface;
	uint64_t time;
	uint32_t captured, length;
	uint8_t *bytes; /* where they lie in the file */
	char comments[PCAPNG_COMMENTS][PCAPNG_TEXT]; /* "": none */
};

struct pcapng {
	uint8_t *file;
	size_t size;
	uint32_t interface_count;
	struct pcapng_interface interfaces[PCAPNG_INTERFACES];
	uint32_t count;
	struct pcapng_packet *packets;
};

/* cut: the file may end within a block. */
void pcapng_read(struct pcapng *pcapng, const char *path, bool cut);
/* The number of the packet's interface of that name. */
uint32_t pcapng_find(const struct pcapng *pcapng, const char *name);
void pcapng_free(struct pcapng *pcapng);
/* Whether the checksum of an IPv4 header is right (RFC 1071); an IPv6 header has none. */
bool ip_is_whole(const uint8_t *datagram);

#endif
