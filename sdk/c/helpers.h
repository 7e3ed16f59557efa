/*
 * What most guests in C write themselves otherwise: inline functions over rdma.h, for one request, one event, one completion.
 * As all functions there they return 0 or more, or a negative errno.
 */
#ifndef RDMARUN_HELPERS_H
#define RDMARUN_HELPERS_H

#include "rdma.h"

/* What a struct begins as. */
#ifdef __cplusplus
#define RDMARUN_ZERO {}
#else
#define RDMARUN_ZERO {0}
#endif

/* A request's buffer, local memory of a region. */
static inline struct rdmarun_sge rdmarun_sge_of(const void *start, uint32_t length, const struct rdmarun_mr *mr)
{
	struct rdmarun_sge sge = {RDMARUN_ADDRESS(start), length, mr->lkey};

	return sge;
}

/* A send request that completes with a completion; remote_addr and rkey are 0 where the operation has none. */
static inline struct rdmarun_send_wr rdmarun_wr_of(uint32_t opcode, uint64_t wr_id, uint64_t remote_addr, uint32_t rkey)
{
	struct rdmarun_send_wr wr = RDMARUN_ZERO;

	wr.wr_id = wr_id;
	wr.opcode = opcode;
	wr.send_flags = RDMARUN_SEND_SIGNALED;
	wr.num_sge = 1;
	wr.remote_addr = remote_addr;
	wr.rkey = rkey;
	return wr;
}

/* Posts one send request that completes with a completion; remote_addr and rkey are 0 where the operation has none. */
static inline int32_t rdmarun_post_one(rdmarun_handle qp, uint32_t opcode, uint64_t wr_id, const void *start, uint32_t length,
				       const struct rdmarun_mr *mr, uint64_t remote_addr, uint32_t rkey)
{
	struct rdmarun_sge sge = rdmarun_sge_of(start, length, mr);
	struct rdmarun_send_wr wr = rdmarun_wr_of(opcode, wr_id, remote_addr, rkey);

	return rdmarun_post_send(qp, &wr, 1, &sge, 1, 0);
}

static inline int32_t rdmarun_post_send_one(rdmarun_handle qp, uint64_t wr_id, const void *start, uint32_t length,
					    const struct rdmarun_mr *mr)
{
	return rdmarun_post_one(qp, RDMARUN_WR_SEND, wr_id, start, length, mr, 0, 0);
}

static inline int32_t rdmarun_post_write_one(rdmarun_handle qp, uint64_t wr_id, const void *start, uint32_t length,
					     const struct rdmarun_mr *mr, uint64_t remote_addr, uint32_t rkey)
{
	return rdmarun_post_one(qp, RDMARUN_WR_RDMA_WRITE, wr_id, start, length, mr, remote_addr, rkey);
}

static inline int32_t rdmarun_post_read_one(rdmarun_handle qp, uint64_t wr_id, void *start, uint32_t length,
					    const struct rdmarun_mr *mr, uint64_t remote_addr, uint32_t rkey)
{
	return rdmarun_post_one(qp, RDMARUN_WR_RDMA_READ, wr_id, start, length, mr, remote_addr, rkey);
}

/* The word comes to the peer with the message, or with the memory: rdmarun_immediate of its completion. */
static inline int32_t rdmarun_post_send_imm_one(rdmarun_handle qp, uint64_t wr_id, const void *start, uint32_t length,
						const struct rdmarun_mr *mr, uint32_t imm)
{
	struct rdmarun_sge sge = rdmarun_sge_of(start, length, mr);
	struct rdmarun_send_wr wr = rdmarun_wr_of(RDMARUN_WR_SEND_WITH_IMM, wr_id, 0, 0);

	wr.imm_data = __builtin_bswap32(imm);
	return rdmarun_post_send(qp, &wr, 1, &sge, 1, 0);
}

static inline int32_t rdmarun_post_write_imm_one(rdmarun_handle qp, uint64_t wr_id, const void *start, uint32_t length,
						 const struct rdmarun_mr *mr, uint64_t remote_addr, uint32_t rkey, uint32_t imm)
{
	struct rdmarun_sge sge = rdmarun_sge_of(start, length, mr);
	struct rdmarun_send_wr wr = rdmarun_wr_of(RDMARUN_WR_RDMA_WRITE_WITH_IMM, wr_id, remote_addr, rkey);

	wr.imm_data = __builtin_bswap32(imm);
	return rdmarun_post_send(qp, &wr, 1, &sge, 1, 0);
}

/* The word that came with what completed; 0 without one. */
static inline uint32_t rdmarun_immediate(const struct rdmarun_wc *wc)
{
	return wc->wc_flags & RDMARUN_WC_WITH_IMM ? __builtin_bswap32(wc->imm_data) : 0;
}

/* Adds to a word of the peer's memory; the old one comes to *old, memory of mr. */
static inline int32_t rdmarun_post_fetch_add_one(rdmarun_handle qp, uint64_t wr_id, uint64_t *old, const struct rdmarun_mr *mr,
						 uint64_t remote_addr, uint32_t rkey, uint64_t add)
{
	struct rdmarun_sge sge = rdmarun_sge_of(old, sizeof(*old), mr);
	struct rdmarun_send_wr wr = rdmarun_wr_of(RDMARUN_WR_ATOMIC_FETCH_AND_ADD, wr_id, remote_addr, rkey);

	wr.compare_add = add;
	return rdmarun_post_send(qp, &wr, 1, &sge, 1, 0);
}

/* Puts swap in the place of compare, if that is there; what was there comes to *old. */
static inline int32_t rdmarun_post_compare_swap_one(rdmarun_handle qp, uint64_t wr_id, uint64_t *old, const struct rdmarun_mr *mr,
						    uint64_t remote_addr, uint32_t rkey, uint64_t compare, uint64_t swap)
{
	struct rdmarun_sge sge = rdmarun_sge_of(old, sizeof(*old), mr);
	struct rdmarun_send_wr wr = rdmarun_wr_of(RDMARUN_WR_ATOMIC_CMP_AND_SWP, wr_id, remote_addr, rkey);

	wr.compare_add = compare;
	wr.swap = swap;
	return rdmarun_post_send(qp, &wr, 1, &sge, 1, 0);
}

static inline int32_t rdmarun_post_recv_one(rdmarun_handle qp, uint64_t wr_id, void *start, uint32_t length,
					    const struct rdmarun_mr *mr)
{
	struct rdmarun_sge sge = rdmarun_sge_of(start, length, mr);
	struct rdmarun_recv_wr wr = RDMARUN_ZERO;

	wr.wr_id = wr_id;
	wr.num_sge = 1;
	return rdmarun_post_recv(qp, &wr, 1, &sge, 1, 0);
}

/* Waits for the next event of ep.  One of another type, or one of a fault, is -EPROTO; it is in *event all the same. */
static inline int32_t rdmarun_expect_event(rdmarun_handle channel, rdmarun_handle ep, uint32_t type,
					   struct rdmarun_cm_event *event, int64_t timeout_ns)
{
	int32_t result;

	event->struct_size = sizeof(*event);
	result = rdmarun_wait_event(channel, ep, event, timeout_ns);
	if (result < 0)
		return result;
	return event->event == type && event->status == 0 ? 0 : -RDMARUN_EPROTO;
}

/* Waits for one completion; one that is no success is -EIO, and in *wc. */
static inline int32_t rdmarun_wait_one(rdmarun_handle cq, struct rdmarun_wc *wc, int64_t timeout_ns)
{
	int32_t result = rdmarun_wait_cq(cq, wc, 1, timeout_ns);

	if (result < 0)
		return result;
	return wc->status == RDMARUN_WC_SUCCESS ? 0 : -RDMARUN_EIO;
}

/* How many polls a call of the host makes: a microsecond of them, for the peer may wait for this processor. */
#define RDMARUN_SPIN 64

/* The same without sleeping: polls in native code, and lets others run now and then. */
static inline int32_t rdmarun_spin_one(rdmarun_handle cq, struct rdmarun_wc *wc, int64_t timeout_ns)
{
	uint64_t begin, now;
	int32_t result;

	rdmarun_clock_ns(&begin);
	for (;;) {
		result = rdmarun_spin_cq(cq, wc, 1, RDMARUN_SPIN);
		if (result < 0)
			return result;
		if (result > 0)
			return wc->status == RDMARUN_WC_SUCCESS ? 0 : -RDMARUN_EIO;
		rdmarun_yield();
		rdmarun_clock_ns(&now);
		if (timeout_ns >= 0 && now - begin >= (uint64_t)timeout_ns)
			return -RDMARUN_ETIMEDOUT;
	}
}

/*
 * Sends a message and spins for a completion on a CQ of this guest's: that of the send, or of the answer's receive.  One call
 * of the host, unless it takes long.
 */
static inline int32_t rdmarun_send_spin_one(rdmarun_handle qp, uint64_t wr_id, const void *start, uint32_t length,
					    const struct rdmarun_mr *mr, uint32_t send_flags, rdmarun_handle cq,
					    struct rdmarun_wc *wc, int64_t timeout_ns)
{
	struct rdmarun_sge sge = rdmarun_sge_of(start, length, mr);
	struct rdmarun_send_wr wr = RDMARUN_ZERO;
	int32_t result;

	wr.wr_id = wr_id;
	wr.opcode = RDMARUN_WR_SEND;
	wr.send_flags = send_flags;
	wr.num_sge = 1;
	result = rdmarun_post_send_spin(qp, &wr, 1, &sge, 1, 0, cq, wc, 1, RDMARUN_SPIN);
	if (result == 0)
		return rdmarun_spin_one(cq, wc, timeout_ns);
	if (result < 0)
		return result;
	return wc->status == RDMARUN_WC_SUCCESS ? 0 : -RDMARUN_EIO;
}

/* Reads an address as it is written, "192.0.2.1" or "2001:db8::1". */
static inline int32_t rdmarun_numeric_address(const char *text, uint16_t port, struct rdmarun_address *address)
{
	struct rdmarun_addr_query query = RDMARUN_ZERO;
	struct rdmarun_addr_result found = RDMARUN_ZERO;
	uint32_t length = 0;
	int32_t result;

	query.struct_size = sizeof(query);
	query.flags = RDMARUN_RAI_NUMERICHOST;
	while (text[length] && length < sizeof(query.node) - 1) {
		query.node[length] = (uint8_t)text[length];
		length++;
	}
	found.struct_size = sizeof(found);
	result = rdmarun_getaddrinfo(&query, &found, 5000000000);
	if (result < 0)
		return result;
	*address = found.destination;
	address->port = port;
	return 0;
}

#endif
