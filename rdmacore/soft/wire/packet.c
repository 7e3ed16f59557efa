#include "soft/wire/packet.h"

#include <string.h>

void soft_packet_skip(struct soft_packet *packet, uint64_t bytes)
{
	uint32_t first = 0;

	while (first < packet->num_segments && bytes >= packet->segments[first].length)
		bytes -= packet->segments[first++].length;
	packet->num_segments -= first;
	for (uint32_t segment = 0; segment < packet->num_segments; segment++)
		packet->segments[segment] = packet->segments[first + segment];
	if (bytes) {
		packet->segments[0].address = (char *)packet->segments[0].address + bytes;
		packet->segments[0].length -= bytes;
	}
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
