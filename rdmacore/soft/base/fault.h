/*
 * Injected faults: packets and messages of connection management between two addresses are lost, delayed, duplicated
 * or reordered. Rules and a seed decide, so that a run repeats.
 *
 * Without rules this costs one relaxed load for each transmission.
 */
#ifndef SOFT_BASE_FAULT_H
#define SOFT_BASE_FAULT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "soft/base/legal.h"
#include "soft/base/mutex.h"
#include "soft/base/random.h"

#define SOFT_FAULTS_MAX 64 /* a result has a bit for each */

enum soft_fault_traffic {
	SOFT_FAULT_DATA = 1, /* requests and responses of queue pairs */
	SOFT_FAULT_CM = 2, /* connection management messages */
	/* ARP and path queries before a connection. A rule applies to one if it names its attribute. */
	SOFT_FAULT_QUESTION = 4,
};

enum soft_fault_action {
	SOFT_FAULT_LOSE,
	/* For messages of connection management, and for data on a link where it takes time: */
	SOFT_FAULT_DELAY,
	SOFT_FAULT_DUPLICATE, /* the copy follows after delay */
	SOFT_FAULT_REORDER, /* delayed until the next message has passed, or by delay */
	SOFT_FAULT_CORRUPT, /* one bit is flipped; only data on such a link */
	SOFT_FAULT_ACTIONS
};

/* What a rule can apply to. */
struct soft_fault_subject {
	enum soft_fault_traffic traffic;
	bool inbound; /* it came from another process */
	uint32_t attribute; /* of a message of connection management or a query */
	uint8_t operation; /* of data: the lower five bits of the opcode */
	uint32_t psn;
	uint32_t message; /* of data: its number in its queue pair (soft_link_subject) */
	bool unanswered; /* of connection management: an RTU or DREP, which is not repeated by itself */
	uint64_t ack_timeout; /* of an acknowledgement: its receiver's timeout in nanoseconds, or 0 */
	bool repeated; /* of data: the sender sends it again when it is lost */
};

/* A rule: in both directions, or if directed only from a to b. A GID of zeros is any address. */
struct soft_fault {
	union ibv_gid a, b;
	bool directed;
	uint32_t side; /* enum core_fault_side */
	uint32_t traffic; /* enum soft_fault_traffic */
	uint32_t attribute; /* CM: only this message (enum soft_cm_attribute); 0: all messages of ids */
	uint32_t operations; /* data: only these, a bit for each lower five bits of an opcode; 0: all */
	bool has_psn; /* data: only numbers from psn_first to psn_last, which may wrap */
	uint32_t psn_first, psn_last;
	uint32_t message; /* data: only this message of each queue pair; 0: all */
	enum soft_fault_action action;
	uint64_t delay; /* nanoseconds */
	uint32_t probability; /* in millionths; 1000000: always */
	uint32_t skip; /* let this many pass first */
	uint32_t count; /* apply to this many at most; 0: no limit */
};

struct soft_fault_rule {
	struct soft_fault fault;
	uint32_t seen;
	bool active;
};

struct soft_faults {
	struct soft_mutex lock;
	_Atomic unsigned int active; /* number of rules and watchers */
	_Atomic bool corrupt; /* a rule has corrupted data, now or earlier */
	bool take_time; /* data takes time on its link, so it can be delayed */
	struct soft_random random;
	struct soft_legal_draws legal; /* of what networks do without a rule */
	struct soft_fault_rule rules[SOFT_FAULTS_MAX];
	_Atomic uint32_t *applied; /* by number of the rule; written with the lock held */
};

/* What all rules together do to one message. Delays add up. */
struct soft_fault_result {
	bool lose, duplicate, reorder, corrupt;
	uint64_t delay, duplicate_delay, reorder_limit;
	uint64_t rules; /* the rules that apply: a bit each */
};

/* applied: SOFT_FAULTS_MAX numbers, which may be shared with other processes. */
void soft_faults_init(struct soft_faults *faults, uint64_t seed, _Atomic uint32_t *applied);
void soft_faults_destroy(struct soft_faults *faults);

/* The rule's number, or -ENOSPC, -EINVAL. */
int soft_fault_add(struct soft_faults *faults, const struct soft_fault *fault);
/* *done: how often it was applied. -ENOENT. */
int soft_fault_remove(struct soft_faults *faults, int rule, uint32_t *done);

/* From now on messages are also lost, delayed and duplicated by those choices. */
void soft_faults_choose(struct soft_faults *faults, struct soft_legal *legal);

/* What happens to a message from one address to the other. */
struct soft_fault_result soft_faults_apply(struct soft_faults *faults, const union ibv_gid *from,
					   const union ibv_gid *to, const struct soft_fault_subject *what);

/* From now on check each message, even without rules, because it is captured. */
static inline void soft_faults_watch(struct soft_faults *faults)
{
	atomic_fetch_add_explicit(&faults->active, 1, memory_order_relaxed);
}

/* Whether data may have been corrupted by a rule. */
static inline bool soft_faults_corrupt(struct soft_faults *faults)
{
	return atomic_load_explicit(&faults->corrupt, memory_order_relaxed);
}

/* Whether messages are checked. */
static inline bool soft_faults_active(struct soft_faults *faults)
{
	return atomic_load_explicit(&faults->active, memory_order_relaxed);
}

#endif
