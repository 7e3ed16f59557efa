/*
 * What messages contain, for "rdmarun record": a record for each segment of a request, before that of its post. The
 * memory of a READ is recorded when its completion is polled, before that poll.
 *
 * A record has the first TRACE_BYTES of the memory. Where bytes repeat, it has those of one period, and describes memory
 * of any length.
 */
#include "trace.h"

#include <string.h>

/*
 * The shortest period of the bytes, up to TRACE_BYTES; 0: they do not repeat. Bytes twice as many as the longest period
 * have the period of all, if that has one (theorem of Fine and Wilf). So no other period is tried on the rest.
 */
static uint32_t period_of(const unsigned char *bytes, uint32_t length)
{
	uint32_t beginning = length < 2 * TRACE_BYTES ? length : 2 * TRACE_BYTES;

	for (uint32_t period = 1; period <= TRACE_BYTES && period < length; period++)
		if (!memcmp(bytes, bytes + period, beginning - period))
			return memcmp(bytes, bytes + period, length - period) ? 0 : period;
	return 0;
}

void trace_content(uint16_t number, uint32_t qp_num, uint64_t wr_id, const void *bytes, uint32_t length)
{
	uint32_t period = period_of(bytes, length);
	struct trace_call call;

	trace_begin(&call, number, (struct trace_site){0});
	if (call.on) {
		trace_put(&call, qp_num);
		trace_put(&call, wr_id);
		trace_put(&call, (uintptr_t)bytes);
		trace_put(&call, length);
		trace_put(&call, period);
		trace_put_bytes(&call, bytes, period ? period : length);
	}
	trace_end(&call, 0);
}
