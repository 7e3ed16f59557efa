/* Times of connection management. */
#ifndef SOFT_CM_TIMES_H
#define SOFT_CM_TIMES_H

#include "soft/base/clock.h"

#define SOFT_CM_ACK_TIMEOUT 19 /* what Linux puts in a RoCE connection: 2.1 s */
#define SOFT_CM_RESPONSE_CODE 20 /* what Linux allows a peer for its answer: 4.1 s */

#define SOFT_CM_TIME_CODE_MAX 31 /* they are fields of five bits (IBTA 12.7) */

/*
 * They are codes (4.096 us * 2^code), which Linux takes as powers of two milliseconds
 * (drivers/infiniband/core/cm.c); in nanoseconds.  What does not fit their field counts as the most that does.
 */
static inline uint64_t soft_cm_time(unsigned int code)
{
	if (code > SOFT_CM_TIME_CODE_MAX)
		code = SOFT_CM_TIME_CODE_MAX;
	return SOFT_MILLISECOND << (code > 8 ? code - 8 : 0);
}

#endif
