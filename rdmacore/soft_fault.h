/*
 * Faults of the soft fabric: packets and connection management messages between two addresses that are
 * lost, by rule and by seed, so that a run repeats.
 *
 * A healthy fabric pays one relaxed load a transmission.
 */
#ifndef SOFT_FAULT_H
#define SOFT_FAULT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "soft_random.h"

#define SOFT_FAULTS_MAX 64

enum soft_fault_traffic {
	SOFT_FAULT_DATA = 1, /* requests and responses of queue pairs */
	SOFT_FAULT_CM = 2, /* connection management messages */
};

/* One rule.  A rule about a link holds in both directions, one about a path only from a to b. */
struct soft_fault {
	union ibv_gid a, b;
	bool directed;
	uint32_t traffic; /* enum soft_fault_traffic */
	uint32_t attribute; /* CM: only this message (enum soft_cm_attribute); 0: all */
	uint32_t probability; /* of a loss, in millionths; 1000000: always */
	uint32_t skip; /* let this many pass first */
	uint32_t count; /* lose this many at most; 0: no limit */
};

struct soft_fault_rule {
	struct soft_fault fault;
	uint32_t seen, lost;
	bool active;
};

struct soft_faults {
	pthread_mutex_t lock;
	_Atomic unsigned int active;
	struct soft_random random;
	struct soft_fault_rule rules[SOFT_FAULTS_MAX];
};

void soft_faults_init(struct soft_faults *faults, uint64_t seed);
void soft_faults_destroy(struct soft_faults *faults);

/* The rule's number, or -ENOSPC, -EINVAL. */
int soft_fault_add(struct soft_faults *faults, const struct soft_fault *fault);
/* What the rule has lost; -ENOENT. */
int soft_fault_remove(struct soft_faults *faults, int rule, uint32_t *lost);

/* The slow half of soft_fault_loses. */
bool soft_fault_match(struct soft_faults *faults, const union ibv_gid *from, const union ibv_gid *to,
		      uint32_t traffic, uint32_t attribute);

/* Whether what goes from one address to the other now is lost. */
static inline bool soft_fault_loses(struct soft_faults *faults, const union ibv_gid *from,
				    const union ibv_gid *to, uint32_t traffic, uint32_t attribute)
{
	return atomic_load_explicit(&faults->active, memory_order_relaxed) &&
	       soft_fault_match(faults, from, to, traffic, attribute);
}

#endif
