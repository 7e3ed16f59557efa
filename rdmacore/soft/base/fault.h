/*
 * Injected faults: packets and connection management messages between two addresses are lost, delayed, duplicated or
 * reordered, by rules and a seed, so that a run repeats.
 *
 * Without rules this costs one relaxed load a transmission.
 */
#ifndef SOFT_BASE_FAULT_H
#define SOFT_BASE_FAULT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "soft/base/mutex.h"
#include "soft/base/random.h"

#define SOFT_FAULTS_MAX 64 /* a result has a bit for each */

enum soft_fault_traffic {
	SOFT_FAULT_DATA = 1, /* requests and responses of queue pairs */
	SOFT_FAULT_CM = 2, /* connection management messages */
	/* ARP and path queries, before there is a connection.  A rule is about one when it names its attribute. */
	SOFT_FAULT_QUESTION = 4,
};

enum soft_fault_action {
	SOFT_FAULT_LOSE,
	/* of connection management messages, and of data on a link where it takes time: */
	SOFT_FAULT_DELAY,
	SOFT_FAULT_DUPLICATE, /* the copy follows after delay */
	SOFT_FAULT_REORDER, /* held back until another message has passed, or delay */
	SOFT_FAULT_CORRUPT, /* one bit is flipped; of data on such a link only */
	SOFT_FAULT_ACTIONS
};

/* What a rule may concern. */
struct soft_fault_subject {
	enum soft_fault_traffic traffic;
	uint32_t attribute; /* of a message of connection management or a question */
	uint8_t operation; /* of data: the lower five bits of the opcode */
	uint32_t psn;
	uint32_t message; /* of data: its number in its queue pair (soft_link_subject) */
};

/* A rule: in both directions, or if directed from a to b only.  A GID of zeros is any address. */
struct soft_fault {
	union ibv_gid a, b;
	bool directed;
	uint32_t traffic; /* enum soft_fault_traffic */
	uint32_t attribute; /* CM: only this message (enum soft_cm_attribute); 0: all that ids send */
	uint32_t operations; /* data: only these, bits by the lower five of an opcode; 0: all */
	bool has_psn; /* data: only the numbers from psn_first to psn_last, round their end */
	uint32_t psn_first, psn_last;
	uint32_t message; /* data: only this one of each queue pair; 0: all */
	enum soft_fault_action action;
	uint64_t delay; /* nanoseconds */
	uint32_t probability; /* in millionths; 1000000: always */
	uint32_t skip; /* let this many pass first */
	uint32_t count; /* do it to this many at most; 0: no limit */
};

struct soft_fault_rule {
	struct soft_fault fault;
	uint32_t seen, done;
	bool active;
};

struct soft_faults {
	struct soft_mutex lock;
	_Atomic unsigned int active; /* rules, and watchers */
	_Atomic bool corrupt; /* there was a rule that damages data */
	bool take_time; /* data takes time on its link, so it can be held back */
	struct soft_random random;
	struct soft_fault_rule rules[SOFT_FAULTS_MAX];
};

/* What all rules together do to one message; delays add up. */
struct soft_fault_result {
	bool lose, duplicate, reorder, corrupt;
	uint64_t delay, duplicate_delay, reorder_limit;
	uint64_t rules; /* which: a bit each */
};

void soft_faults_init(struct soft_faults *faults, uint64_t seed);
void soft_faults_destroy(struct soft_faults *faults);

/* The rule's number, or -ENOSPC, -EINVAL. */
int soft_fault_add(struct soft_faults *faults, const struct soft_fault *fault);
/* *done: how often it was applied.  -ENOENT. */
int soft_fault_remove(struct soft_faults *faults, int rule, uint32_t *done);

/* What happens to a message from one address to the other. */
struct soft_fault_result soft_faults_apply(struct soft_faults *faults, const union ibv_gid *from,
					   const union ibv_gid *to, const struct soft_fault_subject *what);

/* From now on each message is looked at, also without rules: it is recorded. */
static inline void soft_faults_watch(struct soft_faults *faults)
{
	atomic_fetch_add_explicit(&faults->active, 1, memory_order_relaxed);
}

/* Whether data was damaged on purpose. */
static inline bool soft_faults_corrupt(struct soft_faults *faults)
{
	return atomic_load_explicit(&faults->corrupt, memory_order_relaxed);
}

/* Whether messages are looked at. */
static inline bool soft_faults_active(struct soft_faults *faults)
{
	return atomic_load_explicit(&faults->active, memory_order_relaxed);
}

#endif
