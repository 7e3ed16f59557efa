/* Registered memory with guards around it, and rings in it; and the random decisions of a model. */
#ifndef CTEST_MODEL_MODEL_MEMORY_H
#define CTEST_MODEL_MODEL_MEMORY_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "soft/base/random.h"

#define MODEL_LARGEST 65536
#define MODEL_AREA (2 * MODEL_LARGEST)
#define MODEL_PIECES 4 /* of a scatter/gather list */

struct model_memory {
	uint8_t *bytes;
	uint32_t size;
	struct ibv_mr *mr;
	uint64_t head, tail; /* of a ring: taken and given back so far */
};

static inline uint64_t model_below(struct soft_random *random, uint64_t limit)
{
	return soft_random_next(random) % limit;
}

void model_open_memory(struct model_memory *memory, struct ibv_pd *pd, uint32_t size);
/* Its guards are looked at. */
void model_close_memory(struct model_memory *memory);
/* Take a contiguous piece of a ring; false if there is no room. */
bool model_take(struct model_memory *ring, uint32_t length, uint64_t *place);
uint8_t *model_at(const struct model_memory *ring, uint64_t place);
/* A stretch of memory as a list of random pieces, some of them empty; how many. */
int model_cut(struct soft_random *random, const uint8_t *bytes, uint32_t length, uint32_t key,
	      struct ibv_sge *list);

#endif
