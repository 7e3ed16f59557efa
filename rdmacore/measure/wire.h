/*
 * Control messages between two ends: empty SENDs with a kind and a number as immediate data. All of them use the queue
 * pair that is measured.
 *
 *   CREDIT n  SEND bandwidth, from the receiver: n more receives are posted. The first one grants all of
 *             them, so a sender never meets a receiver without receives.
 *   LAST n    no more data comes from here; n messages came. In SEND latency the last data message has it.
 *   DONE      your LAST has come, so no more CREDIT comes from here.
 *   COUNT n   after LAST and DONE of the peer: n receives are left here, without the one for your COUNT.
 *   BEGIN     bidirectional one-sided bandwidth with ends in two processes, from the active end: both begin
 *             now. Other measurements begin with the first of the messages above, or need one end only.
 *   FILLER    n of these use up the receives, so that none is left.
 *
 * RDMA WRITE bandwidth with verify uses only LAST, which follows all writes, and HIGH, which precedes it with the
 * upper half of its number.
 *
 * iWARP has no immediate data (RFC 5040). There the same four bytes end the payload. The length shows which messages
 * have them: no data message is as long as a control message. The last data message of a latency is four bytes longer
 * than the others. Each receive then has memory of its own.
 */
#ifndef MEASURE_WIRE_H
#define MEASURE_WIRE_H

#include <stdint.h>

#define CORE_MEASURE_IMMEDIATE_BITS 24
#define CORE_MEASURE_IMMEDIATE_MASK UINT32_C(0xffffff)

enum core_measure_control {
	CORE_MEASURE_CREDIT = 0xc1,
	CORE_MEASURE_LAST,
	CORE_MEASURE_DONE,
	CORE_MEASURE_COUNT,
	CORE_MEASURE_FILLER,
	CORE_MEASURE_HIGH,
	CORE_MEASURE_BEGIN,
};

/* In host byte order. */
static inline uint32_t core_measure_immediate(enum core_measure_control control, uint64_t number)
{
	return (uint32_t)control << CORE_MEASURE_IMMEDIATE_BITS | ((uint32_t)number & CORE_MEASURE_IMMEDIATE_MASK);
}

#define CORE_MEASURE_TRAILER 4
#define CORE_MEASURE_PAYLOAD_MAX 12

/* The length of a control message: neither size nor size + CORE_MEASURE_TRAILER, the lengths of data. */
static inline uint32_t core_measure_payload(uint32_t size)
{
	return size && size != CORE_MEASURE_TRAILER ? CORE_MEASURE_TRAILER : CORE_MEASURE_PAYLOAD_MAX;
}

#endif
