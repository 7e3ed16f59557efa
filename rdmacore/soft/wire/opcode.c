#include "soft/wire/opcode.h"

#include "soft/base/clock.h"

uint64_t soft_rnr_timer(uint8_t code)
{
	/* hundredths of a millisecond */
	static const uint32_t timers[32] = {
		65536, 1,   2,   3,   4,    6,    8,	12,   16,   24,	  32,	48,    64,    96,    128,   192,
		256,   384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
	};

	return timers[code & SOFT_RNR_TIMER_MASK] * 10 * SOFT_MICROSECOND;
}

uint64_t soft_ack_timeout(uint8_t code)
{
	return code ? UINT64_C(4096) << (code & 0x1f) : 0;
}

static uint8_t first_part(uint8_t operation)
{
	switch (operation) {
	case SOFT_RDMA_WRITE_ONLY:
	case SOFT_RDMA_WRITE_ONLY_IMMEDIATE:
		return SOFT_RDMA_WRITE_FIRST;
	case SOFT_RDMA_READ_RESPONSE_ONLY:
		return SOFT_RDMA_READ_RESPONSE_FIRST;
	default:
		return SOFT_SEND_FIRST;
	}
}

static uint8_t last_part(uint8_t operation)
{
	switch (operation) {
	case SOFT_RDMA_WRITE_ONLY:
		return SOFT_RDMA_WRITE_LAST;
	case SOFT_RDMA_WRITE_ONLY_IMMEDIATE:
		return SOFT_RDMA_WRITE_LAST_IMMEDIATE;
	case SOFT_RDMA_READ_RESPONSE_ONLY:
		return SOFT_RDMA_READ_RESPONSE_LAST;
	case SOFT_SEND_ONLY_IMMEDIATE:
		return SOFT_SEND_LAST_IMMEDIATE;
	case SOFT_SEND_ONLY_INVALIDATE:
		return SOFT_SEND_LAST_INVALIDATE;
	default:
		return SOFT_SEND_LAST;
	}
}

uint8_t soft_operation_part(uint8_t opcode, bool first, bool last)
{
	uint8_t service = opcode & SOFT_SERVICE, operation = opcode & SOFT_OPERATION;

	if (first && last)
		return opcode;
	if (last)
		return service | last_part(operation);
	/* A middle packet's operation is the one after the first one's. */
	return (uint8_t)(service | (first_part(operation) + !first));
}
