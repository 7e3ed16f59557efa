/* A posted send request: its kind, and its form in the send queue. */
#ifndef SOFT_OBJECTS_REQUEST_H
#define SOFT_OBJECTS_REQUEST_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct soft_ah;

/*
 * Followed in the ring by its scatter/gather list, and for an atomic by the value to compare with. Or it is followed
 * by its inline data (IBV_SEND_INLINE), or by the struct soft_binding of a BIND_MW. With one entry it takes one cache
 * line.
 */
struct soft_send_wqe {
	uint64_t wr_id;
	union {
		uint64_t remote_address;
		struct soft_ah *ah; /* datagrams; a reference */
	};
	union {
		struct {
			uint32_t immediate; /* or the key to invalidate */
			uint32_t queue_key; /* datagrams */
		};
		uint64_t operand; /* atomics: the value to add or to swap in */
		struct {
			uint32_t length; /* length of the peer's memory; the request itself has no data */
			uint8_t placement, selectivity; /* enums of provider/newer.h */
		} flush;
		struct {
			uint32_t key; /* first key of the window, whatever its key is now (soft_mr_slot.window) */
			uint32_t type; /* enum ibv_mw_type */
		} window; /* BIND_MW */
	};
	uint32_t length;
	union {
		uint32_t rkey;
		uint32_t remote_qp_num; /* datagrams */
	};
	uint32_t psn;
	uint8_t num_sge; /* 0 with inline data */
	uint8_t traits; /* of its kind */
	uint8_t opcode; /* enum ibv_wr_opcode */
	uint8_t flags; /* enum ibv_send_flags */
	struct ibv_sge sge[];
};

/*
 * The range that a BIND_MW binds its window to: length bytes at remote_address. With length 0 the window is unbound.
 */
struct soft_binding {
	uint64_t length;
	uint32_t access; /* enum ibv_access_flags */
	uint32_t region; /* its key, or 0 */
};

/* Services that have an opcode: IBTA 10.8.2, ibv_post_send(3). */
enum { SOFT_RC = 1, SOFT_UC = 2, SOFT_UD = 4 };

enum soft_request_trait {
	SOFT_RESPONDS = 1, /* READ and atomics: max_rd_atomic limits them, and a fence waits for them */
	SOFT_ATOMIC = 2,
	SOFT_LOCAL = 4, /* no packet: the requester executes it */
	SOFT_NO_RESPONSE_DATA = 8, /* its response has no data: ATOMIC_WRITE, FLUSH */
	SOFT_FLUSHES = 16, /* posted only by ibv_wr_*(3) */
	SOFT_SHARED = 32, /* XRC: it names a shared receive queue (soft_request_shared_queue) */
};

struct soft_request_kind {
	uint8_t operation; /* enum soft_operation */
	uint8_t completion; /* enum ibv_wc_opcode */
	uint8_t services;
	uint8_t traits; /* enum soft_request_trait */
};

#define SOFT_REQUEST_KINDS (IBV_WR_ATOMIC_WRITE + 1)

extern const struct soft_request_kind soft_request_kinds[SOFT_REQUEST_KINDS];

/* NULL, or without services, for an unknown opcode. */
static inline const struct soft_request_kind *soft_request_kind(uint32_t opcode)
{
	return opcode < SOFT_REQUEST_KINDS ? &soft_request_kinds[opcode] : NULL;
}

/* The service of a queue pair type, as a bit; 0 for an unsupported type. */
uint8_t soft_request_service(enum ibv_qp_type type);

/* At most max_inline_data bytes, or the value of an ATOMIC_WRITE. */
static inline char *soft_request_inline(struct soft_send_wqe *wqe)
{
	return (char *)wqe->sge;
}

static inline struct soft_binding *soft_request_binding(struct soft_send_wqe *wqe)
{
	return (struct soft_binding *)(void *)wqe->sge;
}

static inline uint64_t *soft_request_compare(struct soft_send_wqe *wqe)
{
	return (uint64_t *)(void *)&wqe->sge[wqe->num_sge];
}

#endif
