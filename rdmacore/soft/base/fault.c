#include "soft/base/fault.h"

#include <errno.h>
#include <string.h>

#define CERTAIN 1000000
#define PSN_MASK 0xffffffu /* messages are numbered in as many bits */

void soft_faults_init(struct soft_faults *faults, uint64_t seed)
{
	*faults = (struct soft_faults){.random.state = seed};
	soft_mutex_init(&faults->lock, SOFT_ORDER_FAULTS);
}

void soft_faults_destroy(struct soft_faults *faults)
{
	soft_mutex_destroy(&faults->lock);
}

/* Whether the rule's action is possible with its traffic. */
static bool can_be(const struct soft_faults *faults, const struct soft_fault *fault)
{
	if (fault->action == SOFT_FAULT_LOSE)
		return true;
	if (fault->action == SOFT_FAULT_CORRUPT)
		return faults->take_time && fault->traffic == SOFT_FAULT_DATA;
	return faults->take_time || fault->traffic == SOFT_FAULT_CM;
}

/* Packets have operations and numbers, of 24 bits. */
static bool concerns_some(const struct soft_fault *fault)
{
	if (!fault->operations && !fault->has_psn && !fault->message)
		return true;
	return fault->traffic == SOFT_FAULT_DATA && fault->psn_first <= PSN_MASK && fault->psn_last <= PSN_MASK &&
	       fault->message <= PSN_MASK;
}

int soft_fault_add(struct soft_faults *faults, const struct soft_fault *fault)
{
	int result = -ENOSPC;

	if (!fault->traffic || fault->traffic & ~(uint32_t)(SOFT_FAULT_DATA | SOFT_FAULT_CM) ||
	    fault->probability > CERTAIN || fault->action >= SOFT_FAULT_ACTIONS ||
	    !can_be(faults, fault) || !concerns_some(fault))
		return -EINVAL;
	soft_mutex_lock(&faults->lock);
	for (int rule = 0; rule < SOFT_FAULTS_MAX && result < 0; rule++) {
		if (faults->rules[rule].active)
			continue;
		faults->rules[rule] = (struct soft_fault_rule){.fault = *fault, .active = true};
		atomic_fetch_add_explicit(&faults->active, 1, memory_order_relaxed);
		if (fault->action == SOFT_FAULT_CORRUPT)
			atomic_store_explicit(&faults->corrupt, true, memory_order_relaxed);
		result = rule;
	}
	soft_mutex_unlock(&faults->lock);
	return result;
}

int soft_fault_remove(struct soft_faults *faults, int rule, uint32_t *done)
{
	int result = -ENOENT;

	soft_mutex_lock(&faults->lock);
	if (rule >= 0 && rule < SOFT_FAULTS_MAX && faults->rules[rule].active) {
		faults->rules[rule].active = false;
		atomic_fetch_sub_explicit(&faults->active, 1, memory_order_relaxed);
		*done = faults->rules[rule].done;
		result = 0;
	}
	soft_mutex_unlock(&faults->lock);
	return result;
}

static bool means(const union ibv_gid *rule, const union ibv_gid *address)
{
	static const union ibv_gid any;

	return memcmp(rule, address, sizeof(*rule)) == 0 || memcmp(rule, &any, sizeof(any)) == 0;
}

static bool concerns(const struct soft_fault *fault, const union ibv_gid *from,
		     const union ibv_gid *to, const struct soft_fault_subject *what)
{
	if (what->traffic == SOFT_FAULT_QUESTION ? !fault->attribute : !(fault->traffic & what->traffic))
		return false;
	if (fault->attribute && fault->attribute != what->attribute)
		return false;
	if (fault->operations && !(fault->operations >> what->operation & 1))
		return false;
	if (fault->has_psn && ((what->psn - fault->psn_first) & PSN_MASK) >
				      ((fault->psn_last - fault->psn_first) & PSN_MASK))
		return false;
	if (fault->message && fault->message != what->message)
		return false;
	return (means(&fault->a, from) && means(&fault->b, to)) ||
	       (!fault->directed && means(&fault->a, to) && means(&fault->b, from));
}

/* Count the message, and decide by skip, count and probability. */
static bool rule_applies(struct soft_faults *faults, struct soft_fault_rule *rule)
{
	const struct soft_fault *fault = &rule->fault;

	soft_mutex_expect(&faults->lock);
	if (rule->seen < fault->skip) {
		rule->seen++;
		return false;
	}
	if (fault->count && rule->done >= fault->count)
		return false;
	if (fault->probability < CERTAIN &&
	    soft_random_next(&faults->random) % CERTAIN >= fault->probability)
		return false;
	rule->done++;
	return true;
}

static void add_rule(struct soft_fault_result *fault_result, const struct soft_fault *fault)
{
	switch (fault->action) {
	case SOFT_FAULT_LOSE:
		fault_result->lose = true;
		break;
	case SOFT_FAULT_DELAY:
		fault_result->delay += fault->delay;
		break;
	case SOFT_FAULT_DUPLICATE:
		fault_result->duplicate = true;
		fault_result->duplicate_delay = fault->delay;
		break;
	case SOFT_FAULT_REORDER:
		fault_result->reorder = true;
		fault_result->reorder_limit = fault->delay;
		break;
	case SOFT_FAULT_CORRUPT:
		fault_result->corrupt = true;
		break;
	case SOFT_FAULT_ACTIONS:
		break;
	}
}

struct soft_fault_result soft_faults_apply(struct soft_faults *faults, const union ibv_gid *from,
					   const union ibv_gid *to, const struct soft_fault_subject *what)
{
	struct soft_fault_result fault_result = {0};

	soft_mutex_lock(&faults->lock);
	for (int rule = 0; rule < SOFT_FAULTS_MAX; rule++) {
		if (!faults->rules[rule].active ||
		    !concerns(&faults->rules[rule].fault, from, to, what) ||
		    !rule_applies(faults, &faults->rules[rule]))
			continue;
		add_rule(&fault_result, &faults->rules[rule].fault);
		fault_result.rules |= UINT64_C(1) << rule;
	}
	soft_mutex_unlock(&faults->lock);
	return fault_result;
}
