#include "soft/wire/packet.h"

#include <string.h>

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

void soft_segments_copy_pieces(const struct soft_segment *to, const struct soft_segment *from,
			       uint64_t length)
{
	uint64_t to_done = 0, from_done = 0;

	while (length) {
		uint64_t step = to->length - to_done;

		if (step > from->length - from_done)
			step = from->length - from_done;
		if (step > length)
			step = length;
		if (step)
			memmove((char *)to->address + to_done, (const char *)from->address + from_done,
				step);
		to_done += step;
		from_done += step;
		length -= step;
		if (to_done == to->length) {
			to++;
			to_done = 0;
		}
		if (from_done == from->length) {
			from++;
			from_done = 0;
		}
	}
}
