/*
 * What two ends tell each other, in empty SENDs whose immediate data carries a kind and a number.  All of
 * it goes by the queue pair that is measured.
 *
 *   CREDIT n  SEND bandwidth, from the receiver: n more receives are posted.  The first grants all of
 *             them, so a sender never meets a receiver that is not ready.
 *   LAST n    no more data comes from here; n of them came.  In SEND latency the last data message says it.
 *   DONE      your LAST has come, so no more CREDIT comes from here.
 *   COUNT n   after LAST and DONE of the peer: n receives are left here besides the one for your COUNT.
 *   BEGIN     bidirectional one-sided bandwidth with an end in each of two processes, from the active end: both
 *             begin now.  Anything else begins with the first message of one of the above, or needs one end only.
 *   FILLER    n of these use them up, so that no receive is left over.
 *
 * RDMA WRITE bandwidth with verify uses LAST only, which comes after everything that was written, and HIGH,
 * which comes before it with the upper half of its number.
 *
 * iWARP has no immediate data (RFC 5040).  There the same four bytes are the end of the payload, and the length tells
 * which messages have them: no data message is as long as a control message, and the last data message of a latency
 * has four bytes more than the others.  Each receive then has memory of its own.
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

/* The length of a control message: neither size nor size + CORE_MEASURE_TRAILER, which data has. */
static inline uint32_t core_measure_payload(uint32_t size)
{
	return size && size != CORE_MEASURE_TRAILER ? CORE_MEASURE_TRAILER : CORE_MEASURE_PAYLOAD_MAX;
}

#endif
