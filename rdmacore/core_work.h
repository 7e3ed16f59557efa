/*
 * Work requests in flat form, as the two ways of posting them read them: core_work.c, by ibv_post_send(3), and
 * core_builder.c, by the builders of ibv_wr_post(3).
 *
 * The flat form may lie in memory that somebody else writes meanwhile (a guest's, with a remote write
 * into it), so whatever is checked is read once, into a local, and the local is used.
 */
#ifndef CORE_WORK_H
#define CORE_WORK_H

#include "core_count.h"

/* A request has at most this many entries. */
#define CORE_WORK_ENTRIES 64

#define CORE_READ_ONCE(place) (*(const volatile __typeof__(place) *)&(place))

/* What all requests of one call share. */
struct core_work {
	const struct core_sge *sges;
	uint32_t num_sges;
	uint64_t base;
	uint64_t limit; /* 0: none */
	const struct core_ah_table *handles; /* datagrams: its lock is held; else NULL */
	const struct ibv_pd *pd;
};

/* The address handle of a datagram, or NULL. */
static inline struct ibv_ah *core_work_ah(const struct core_work *work, const struct core_send_wr *from)
{
	return core_ah_find(work->handles, CORE_READ_ONCE(from->ah), work->pd);
}

/* Copy entries first to first + count - 1 to list; 0, -EINVAL or -EFAULT. */
static inline int core_work_entries(const struct core_work *work, uint32_t first, uint32_t count,
				    struct ibv_sge *list)
{
	if (first > work->num_sges || count > work->num_sges - first)
		return -EINVAL;
	for (uint32_t i = 0; i < count; i++) {
		const struct core_sge *sge = &work->sges[first + i];
		uint64_t address = CORE_READ_ONCE(sge->address);
		uint32_t length = CORE_READ_ONCE(sge->length);

		if (work->limit && (address > work->limit || length > work->limit - address))
			return -EFAULT;
		list[i].addr = work->base + address;
		list[i].length = length;
		list[i].lkey = CORE_READ_ONCE(sge->lkey);
	}
	return 0;
}

#endif
