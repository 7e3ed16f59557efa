/* The limits of a soft device: as much as rdma_rxe advertises (drivers/infiniband/sw/rxe/rxe_param.h), or more. */
#ifndef SOFT_BASE_BOUNDS_H
#define SOFT_BASE_BOUNDS_H

#include <stdint.h>

#define SOFT_MAX_RD_ATOMIC 128
#define SOFT_MAX_SGE 32
#define SOFT_MAX_WR (1 << 20)
#define SOFT_MAX_CQE (1 << 20)
#define SOFT_MAX_INLINE 1024
#define SOFT_MAX_QP (1 << 20)
#define SOFT_MAX_CQ (1 << 20)
#define SOFT_MAX_PD (1 << 20)
#define SOFT_MAX_SRQ (1 << 20)
#define SOFT_MAX_MESSAGE (UINT32_C(1) << 31)
#define SOFT_MAX_AH (1 << 20)
#define SOFT_MTU 4096 /* the largest payload of a packet */

/* The slots of a queue for that many requests, which are all granted: a power of two, or 0. */
static inline uint32_t soft_ring_slots(uint32_t requests)
{
	uint32_t slots = 1;

	while (slots < requests)
		slots *= 2;
	return requests ? slots : 0;
}

#endif
