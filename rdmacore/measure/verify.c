/*
 * Contents of messages: each word depends on its offset and on the number of the message. So stale, shifted or torn
 * contents are detected.
 */
#include "measure/worker.h"

#include <string.h>


#define NUMBER_STEP UINT64_C(0x9e3779b97f4a7c15) /* 2^64 by the golden ratio: distributes multiples evenly */
#define INDEX_STEP UINT64_C(0xd1b54a32d192ed03) /* an odd number with no relation to the first */

static inline uint64_t word(uint64_t number, uint64_t index)
{
	uint64_t mixed = (number + 1) * NUMBER_STEP + index * INDEX_STEP;

	return mixed ^ mixed >> 32;
}

void core_measure_fill(void *message, uint64_t size, uint64_t number)
{
	char *bytes = message;
	uint64_t index = 0, value;

	for (; size >= sizeof(value); size -= sizeof(value), bytes += sizeof(value)) {
		value = word(number, index++);
		memcpy(bytes, &value, sizeof(value));
	}
	value = word(number, index);
	memcpy(bytes, &value, size);
}

/* Writes of a peer are ordered by completions, or by a byte seen in memory. ThreadSanitizer knows neither. */
__attribute__((no_sanitize_thread)) uint64_t core_measure_compare(const void *message, uint64_t size,
								  uint64_t number)
{
	const unsigned char *bytes = message;
	uint64_t offset = 0;

	for (uint64_t index = 0; offset < size; index++) {
		uint64_t left = size - offset < sizeof(uint64_t) ? size - offset : sizeof(uint64_t);
		uint64_t wanted = word(number, index), found = 0;

		__builtin_memcpy(&found, bytes + offset, left);
		if (left < sizeof(uint64_t))
			wanted &= (UINT64_C(1) << 8 * left) - 1; /* little-endian, like all hosts of verbs.h here */
		if (found != wanted)
			return offset + (uint64_t)__builtin_ctzll(found ^ wanted) / 8;
		offset += left;
	}
	return size;
}

int core_measure_verify(struct core_measure_worker *worker, uint64_t slot, uint64_t number)
{
	const void *message = (const void *)(uintptr_t)(worker->receive_base + slot * worker->stride);
	uint64_t wrong = core_measure_compare(message, worker->size, number);

	if (wrong < worker->size)
		return core_measure_fail_message(worker, CORE_MEASURE_CONTENTS, number, wrong);
	worker->result.verified++;
	return 0;
}
