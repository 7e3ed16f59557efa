#include "ctest/model/model_memory.h"

#include "ctest/support/check.h"
#include "provider/newer.h"
#include "soft/objects/mr.h"

#define GUARD 0xa5
#define GUARD_SIZE 64 /* bytes before and behind registered memory */

void model_open_memory(struct model_memory *memory, struct ibv_pd *pd, uint32_t size)
{
	uint8_t *all = malloc(size + 2 * GUARD_SIZE);

	CHECK(all);
	memset(all, GUARD, GUARD_SIZE);
	memset(all + GUARD_SIZE + size, GUARD, GUARD_SIZE);
	*memory = (struct model_memory){.bytes = all + GUARD_SIZE, .size = size};
	memory->mr = soft_reg_mr(pd, memory->bytes, size,
				 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
					 IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |
					 IBV_ACCESS_MW_BIND | CORE_ACCESS_FLUSH_GLOBAL);
	CHECK(memory->mr);
}

void model_close_memory(struct model_memory *memory)
{
	for (int byte = 0; byte < GUARD_SIZE; byte++)
		CHECK(memory->bytes[byte - GUARD_SIZE] == GUARD &&
		      memory->bytes[memory->size + (uint32_t)byte] == GUARD);
	CHECK(!soft_dereg_mr(memory->mr));
	free(memory->bytes - GUARD_SIZE);
}

bool model_take(struct model_memory *ring, uint32_t length, uint64_t *place)
{
	uint64_t head = ring->head;

	if (head % ring->size + length > ring->size)
		head += ring->size - head % ring->size;
	head = (head + 7) & ~UINT64_C(7); /* atomics return to aligned words */
	if (head % ring->size + length > ring->size || head + length - ring->tail > ring->size)
		return false;
	*place = head;
	ring->head = head + length;
	return true;
}

uint8_t *model_at(const struct model_memory *ring, uint64_t place)
{
	return ring->bytes + place % ring->size;
}

int model_cut(struct soft_random *random, const uint8_t *bytes, uint32_t length, uint32_t key,
	      struct ibv_sge *list)
{
	int pieces = 1 + (int)model_below(random, MODEL_PIECES);
	uint32_t done = 0;

	if (!length && model_below(random, 2))
		return 0;
	for (int piece = 0; piece < pieces; piece++) {
		uint32_t step = piece + 1 == pieces ? length - done :
						      (uint32_t)model_below(random, length - done + 1);

		list[piece] = (struct ibv_sge){(uintptr_t)bytes + done, step, key};
		done += step;
	}
	return pieces;
}
