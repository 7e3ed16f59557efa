/* Two providers on the link udp, each with sockets of its own as two processes have, and a queue pair each, connected by hand. */
#ifndef CTEST_SUPPORT_SIDES_H
#define CTEST_SUPPORT_SIDES_H

#include "ctest/support/bare.h"

struct soft_host;

struct sides {
	struct core_provider *providers[2];
	struct bench benches[2];
	struct bare ends[2];
};

struct soft_host *sides_host(struct sides *sides, int side);
void sides_open(struct sides *sides, enum ibv_qp_type type);
/* buffer: of each socket, for what arrives; 0: as large as may be. */
void sides_open_with(struct sides *sides, enum ibv_qp_type type, int buffer);
void sides_close(struct sides *sides);
void sides_fill(char *memory, size_t length, unsigned int seed);
/* From the memory of the first side to that of the second, or back: request 1. */
void sides_post(struct sides *sides, enum ibv_wr_opcode opcode, uint32_t length);

#endif
