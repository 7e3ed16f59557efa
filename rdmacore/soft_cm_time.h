/* Times of connection management. */
#ifndef SOFT_CM_TIME_H
#define SOFT_CM_TIME_H

#include "soft_clock.h"

#define SOFT_CM_ACK_TIMEOUT 19 /* what Linux puts in a RoCE connection: 2.1 s */
#define SOFT_CM_RESPONSE_CODE 20 /* what Linux allows a peer for its answer: 4.1 s */

/*
 * They are codes (4.096 us * 2^code), which Linux takes as powers of two milliseconds
 * (drivers/infiniband/core/cm.c); in nanoseconds.
 */
static inline uint64_t soft_cm_time(unsigned int code)
{
	return SOFT_MILLISECOND << (code > 8 ? code - 8 : 0);
}

#endif
