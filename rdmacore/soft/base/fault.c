#include "soft/base/fault.h"

#include <errno.h>
#include <string.h>

#include "provider/provider.h"

#define CERTAIN 1000000 /* in millionths */
#define LATE_MAX UINT64_C(5000000) /* nanoseconds that a message is late by legal choice */
#define SLOW_MIN UINT64_C(3000000000) /* from there on a message arrives shortly before its repeat, by legal choice */
#define SLOW_MAX UINT64_C(4000000000)
#define ACK_LATE_MAX UINT64_C(20000000)
#define PSN_MASK 0xffffffu /* messages have 24-bit numbers, like packets */

void soft_faults_init(struct soft_faults *faults, uint64_t seed, _Atomic uint32_t *applied)
{
	*faults = (struct soft_faults){.random.state = seed, .applied = applied};
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

/* Whether the rule can apply at all: operations and numbers of packets have limits. */
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
	    fault->probability > CERTAIN || fault->side > CORE_FAULT_RECEIVED || fault->action >= SOFT_FAULT_ACTIONS ||
	    !can_be(faults, fault) || !concerns_some(fault))
		return -EINVAL;
	soft_mutex_lock(&faults->lock);
	for (int rule = 0; rule < SOFT_FAULTS_MAX && result < 0; rule++) {
		if (faults->rules[rule].active)
			continue;
		faults->rules[rule] = (struct soft_fault_rule){.fault = *fault, .active = true};
		atomic_store_explicit(&faults->applied[rule], 0, memory_order_relaxed);
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
		*done = atomic_load_explicit(&faults->applied[rule], memory_order_relaxed);
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
	if (fault->side != CORE_FAULT_EITHER && (fault->side == CORE_FAULT_RECEIVED) != what->inbound)
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
	_Atomic uint32_t *applied = &faults->applied[rule - faults->rules];

	soft_mutex_expect(&faults->lock);
	if (rule->seen < fault->skip) {
		rule->seen++;
		return false;
	}
	if (fault->count && atomic_load_explicit(applied, memory_order_relaxed) >= fault->count)
		return false;
	if (fault->probability < CERTAIN &&
	    soft_random_next(&faults->random) % CERTAIN >= fault->probability)
		return false;
	atomic_fetch_add_explicit(applied, 1, memory_order_relaxed);
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

void soft_faults_choose(struct soft_faults *faults, struct soft_legal *legal)
{
	uint32_t messages = UINT32_C(1) << CORE_LEGAL_CM_LATE | UINT32_C(1) << CORE_LEGAL_CM_LOST |
			    UINT32_C(1) << CORE_LEGAL_CM_DUPLICATED | UINT32_C(1) << CORE_LEGAL_CM_ANSWER_LOST |
			    UINT32_C(1) << CORE_LEGAL_PACKET_LOST | UINT32_C(1) << CORE_LEGAL_CM_SLOW |
			    UINT32_C(1) << CORE_LEGAL_ACK_LATE;

	soft_legal_draws_init(&faults->legal, legal);
	if (soft_legal_has(legal, messages))
		soft_faults_watch(faults);
}

static void add_data_choices(struct soft_faults *faults, struct soft_fault_result *fault_result,
			     const struct soft_fault_subject *what)
{
	uint64_t most = what->ack_timeout / 2 < ACK_LATE_MAX ? what->ack_timeout / 2 : ACK_LATE_MAX, drawn;

	if (!faults->take_time)
		return;
	fault_result->lose |= what->repeated && soft_legal_choose(&faults->legal, CORE_LEGAL_PACKET_LOST);
	if (most && (drawn = soft_legal_choose(&faults->legal, CORE_LEGAL_ACK_LATE)))
		fault_result->delay += soft_legal_amount(drawn, most);
}

/* What a network may do to any message. The sender's process decides. */
static void add_choices(struct soft_faults *faults, struct soft_fault_result *fault_result,
			const struct soft_fault_subject *what)
{
	uint64_t drawn;

	if (what->inbound || what->traffic == SOFT_FAULT_QUESTION)
		return;
	if (what->traffic == SOFT_FAULT_DATA) {
		add_data_choices(faults, fault_result, what);
		return;
	}
	fault_result->lose |= soft_legal_choose(&faults->legal, what->unanswered ? CORE_LEGAL_CM_ANSWER_LOST :
										     CORE_LEGAL_CM_LOST) != 0;
	if ((drawn = soft_legal_choose(&faults->legal, CORE_LEGAL_CM_LATE)))
		fault_result->delay += soft_legal_amount(drawn, LATE_MAX);
	if ((drawn = soft_legal_choose(&faults->legal, CORE_LEGAL_CM_SLOW)))
		fault_result->delay += SLOW_MIN + soft_legal_amount(drawn, SLOW_MAX - SLOW_MIN);
	/* At once: a late copy of a REQ would be a request of a peer that has gone. */
	if (soft_legal_choose(&faults->legal, CORE_LEGAL_CM_DUPLICATED))
		fault_result->duplicate = true;
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
	if (faults->legal.legal)
		add_choices(faults, &fault_result, what);
	return fault_result;
}
