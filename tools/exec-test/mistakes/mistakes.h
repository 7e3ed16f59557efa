/*
 * Programs with one mistake each, for check.sh: "rdmarun check" must find it in the line that has the comment "finding:
 * NAME". The name of a mistake is that of its finding, and after two underscores what distinguishes it from others of
 * the finding. A link in a comment leads to a project that has made the mistake.
 */
#ifndef MISTAKES_H
#define MISTAKES_H

#include <arpa/inet.h>

#include "../exec_test.h"

#define MISTAKES(MISTAKE)                                                                          \
	/* memory.c */                                                                             \
	MISTAKE(outside_region)                                                                    \
	MISTAKE(outside_region__receive)                                                           \
	MISTAKE(unknown_key)                                                                       \
	MISTAKE(unknown_key__unset)                                                                \
	MISTAKE(region_gone)                                                                       \
	MISTAKE(region_gone__receive)                                                              \
	MISTAKE(wrong_pd)                                                                          \
	MISTAKE(region_read_only)                                                                  \
	MISTAKE(region_read_only__read)                                                            \
	MISTAKE(region_in_use)                                                                     \
	MISTAKE(region_in_use__rereg)                                                              \
	MISTAKE(receive_overlap)                                                                   \
	MISTAKE(receive_overlap__read)                                                             \
	MISTAKE(sent_too_early)                                                                    \
	MISTAKE(changed_in_flight)                                                                 \
	MISTAKE(changed_in_flight__unsignaled)                                                     \
	MISTAKE(changed_in_flight__list)                                                           \
	MISTAKE(changed_in_flight__long)                                                           \
	MISTAKE(changed_in_flight__builder)                                                        \
	MISTAKE(freed_in_use)                                                                      \
	MISTAKE(freed_in_use__munmap)                                                              \
	MISTAKE(freed_registered)                                                                  \
	MISTAKE(freed_registered__realloc)                                                         \
	MISTAKE(inline_too_long)                                                                   \
	MISTAKE(registered_again)                                                                  \
	/* queues.c */                                                                             \
	MISTAKE(all_unsignaled)                                                                    \
	MISTAKE(post_ignored)                                                                      \
	MISTAKE(post_ignored__send)                                                                \
	MISTAKE(queue_overrun)                                                                     \
	MISTAKE(queue_overrun__shared)                                                             \
	MISTAKE(completion_unseen)                                                                 \
	MISTAKE(wakeup_lost)                                                                       \
	MISTAKE(failure_ignored)                                                                   \
	MISTAKE(failure_ignored__receive)                                                          \
	/* connections.c */                                                                        \
	MISTAKE(receive_late)                                                                      \
	MISTAKE(event_unacked)                                                                     \
	MISTAKE(event_unacked__queue)                                                              \
	MISTAKE(private_data_long)                                                                 \
	MISTAKE(private_data_long__connect)                                                        \
	MISTAKE(retry_forever)                                                                     \
	MISTAKE(connection_over)                                                                   \
	MISTAKE(timewait_ignored)                                                                  \
	/* objects.c */                                                                            \
	MISTAKE(destroy_busy)                                                                      \
	MISTAKE(destroy_busy__queue)                                                               \
	MISTAKE(used_after_destroy)                                                                \
	MISTAKE(object_left)                                                                       \
	MISTAKE(object_left__channel)                                                              \
	MISTAKE(object_left__child)                                                                \
	MISTAKE(single_threaded)                                                                   \
	MISTAKE(single_threaded__domain)                                                           \
	MISTAKE(in_signal_handler)                                                                 \
	MISTAKE(fork_unsafe)

#define DECLARE(name) void name(struct endpoint *e);
MISTAKES(DECLARE)
DECLARE(none) /* no mistake */
DECLARE(long_poll) /* no mistake, with a poll of many completions */
DECLARE(connected) /* no mistake, with a connection */
DECLARE(device_memory) /* no mistake; likewise the others of kinds.c */
DECLARE(null_region)
DECLARE(changed_region)
DECLARE(shared_twice)
DECLARE(killed) /* no mistake, with a child process */
#undef DECLARE

/* Where connections are made to: an address of the device. */
extern struct in_addr own_address;

/* Memory of the endpoint. */
static inline struct ibv_sge segment(struct endpoint *e, size_t from, uint32_t length)
{
	return (struct ibv_sge){.addr = (uintptr_t)e->memory + from, .length = length, .lkey = e->mr->lkey};
}

static inline void poll_one(struct ibv_cq *cq, struct ibv_wc *wc)
{
	int polled;

	while (!(polled = ibv_poll_cq(cq, 1, wc)))
		;
	REQUIRE(polled == 1);
}

#endif
