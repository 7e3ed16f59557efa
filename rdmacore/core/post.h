/*
 * Work requests in flat form, as the two ways of posting them read them: core/post.c, by ibv_post_send(3), and
 * core/build.c, by the builders of ibv_wr_post(3).
 *
 * The flat form may lie in memory that somebody else writes meanwhile (a guest's, with a remote write
 * into it), so whatever is checked is read once, into a local, and the local is used.
 */
#ifndef CORE_POST_H
#define CORE_POST_H

#include "core/call.h"

/* A request has at most this many entries. */
#define CORE_WORK_ENTRIES 64

#define CORE_READ_ONCE(place) (*(const volatile __typeof__(place) *)&(place))

/* What all requests of one call share. */
struct core_work {
	const struct core_sge *sges;
	uint32_t num_sges;
	uint64_t base; /* where the guest's memory is, for what the processor copies now */
	uint64_t named; /* what its device adds to the guest's addresses: see core_work_named */
	uint64_t limit; /* 0: none */
	const struct core_ah_table *handles; /* datagrams: its lock is held; else NULL */
	const struct ibv_pd *pd;
};

/* The address handle of a datagram, or NULL. */
static inline struct ibv_ah *core_work_ah(const struct core_work *work, const struct core_send_wr *from)
{
	return core_ah_find(work->handles, CORE_READ_ONCE(from->ah), work->pd);
}

/*
 * A guest's regions are registered under its own addresses, so that it learns of no other, and a request's keys are
 * good for those.  With iWARP a region has the address that it has in this process (siw of Linux ignores another).
 */
static inline uint64_t core_work_named(const struct ibv_context *context, const void *base)
{
	return context->device->transport_type == IBV_TRANSPORT_IWARP ? (uintptr_t)base : 0;
}

/*
 * Copy entries first to first + count - 1 to list, in_line with the addresses that they have in this process; 0,
 * -EINVAL or -EFAULT.
 */
static inline int core_work_entries(const struct core_work *work, uint32_t first, uint32_t count, bool in_line,
				    struct ibv_sge *list)
{
	uint64_t base = in_line ? work->base : work->named;

	if (first > work->num_sges || count > work->num_sges - first)
		return -EINVAL;
	for (uint32_t i = 0; i < count; i++) {
		const struct core_sge *sge = &work->sges[first + i];
		uint64_t address = CORE_READ_ONCE(sge->address);
		uint32_t length = CORE_READ_ONCE(sge->length);

		if (work->limit && (address > work->limit || length > work->limit - address))
			return -EFAULT;
		list[i].addr = base + address;
		list[i].length = length;
		list[i].lkey = CORE_READ_ONCE(sge->lkey);
	}
	return 0;
}

#endif
