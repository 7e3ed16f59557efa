#include "ctest/support/sides.h"

#include <arpa/inet.h>

#include "ctest/support/check.h"
#include "soft/host.h"
#include "soft/udp/udp.h"
#include "soft/udp/internal.h"

struct soft_host *sides_host(struct sides *sides, int side)
{
	return sides->providers[side]->host;
}

void sides_open_with(struct sides *sides, enum ibv_qp_type type, int buffer)
{
	struct core_options options = {.link = CORE_LINK_UDP};
	char why[512];

	for (int side = 0; side < 2; side++) {
		CHECK(!core_open("soft", &options, &sides->providers[side], why, sizeof(why)));
		if (buffer)
			sides_host(sides, side)->udp->buffer_wanted = buffer;
		bench_open(&sides->benches[side], sides->providers[side]);
		bare_create(&sides->ends[side], &sides->benches[side], type, NULL);
	}
	bare_connect(&sides->ends[0], &sides->ends[1]);
}

void sides_open(struct sides *sides, enum ibv_qp_type type)
{
	sides_open_with(sides, type, 0);
}

void sides_close(struct sides *sides)
{
	for (int side = 0; side < 2; side++) {
		bare_destroy(&sides->ends[side]);
		bench_close(&sides->benches[side]);
		close_provider(sides->providers[side]);
	}
}

void sides_fill(char *memory, size_t length, unsigned int seed)
{
	for (size_t byte = 0; byte < length; byte++)
		memory[byte] = (char)(byte * 7 + byte / 251 + seed);
}

void sides_post(struct sides *sides, enum ibv_wr_opcode opcode, uint32_t length)
{
	struct bench *there = &sides->benches[1];
	struct ibv_sge sge = bench_sge(&sides->benches[0], 0, length);
	struct ibv_send_wr wr = bench_wr(opcode, 1, &sge);

	wr.wr.rdma.remote_addr = (uintptr_t)there->memory;
	wr.wr.rdma.rkey = there->mr->rkey;
	wr.imm_data = htonl(length);
	CHECK(!bare_post(&sides->ends[0], &wr));
}
