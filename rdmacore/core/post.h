/*
 * Work requests in flat form, for both ways of posting: core/post.c by ibv_post_send(3), core/build.c by the builders
 * of ibv_wr_post(3).
 *
 * The memory of the flat form may change at any time (a guest's, by a remote write). So each value is read once into
 * a local variable, which is checked and used.
 */
#ifndef CORE_POST_H
#define CORE_POST_H

#include "core/call.h"

/* Maximum number of entries of a request. */
#define CORE_WORK_ENTRIES 64

#define CORE_READ_ONCE(place) (*(const volatile __typeof__(place) *)&(place))

/* What all requests of one call share. */
struct core_work {
	const struct core_sge *sges;
	uint32_t num_sges;
	uint64_t base; /* of the guest's memory, for data that is copied now */
	uint64_t named; /* what is added to the guest's addresses for the device (core_work_named) */
	uint64_t limit; /* 0: none */
	const struct core_ah_table *handles; /* datagrams: its lock is held; otherwise NULL */
	const struct ibv_pd *pd;
};

/* The address handle of a datagram, or NULL. */
static inline struct ibv_ah *core_work_ah(const struct core_work *work, const struct core_send_wr *from)
{
	return core_ah_find(work->handles, CORE_READ_ONCE(from->ah), work->pd);
}

/*
 * What to add to a guest's addresses that go with its keys. Its regions are registered under the guest's addresses,
 * so that a guest learns no others: 0. On iWARP a region keeps its address in this process (siw of Linux ignores an
 * iova): base.
 */
static inline uint64_t core_work_named(const struct ibv_context *context, const void *base)
{
	return context->device->transport_type == IBV_TRANSPORT_IWARP ? (uintptr_t)base : 0;
}

/* Copy count entries from first on to list. in_line: with their addresses in this process. 0, -EINVAL or -EFAULT. */
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
