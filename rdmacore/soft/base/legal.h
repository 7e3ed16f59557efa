/*
 * Choices of legal behaviour (provider/legal.h), drawn from a seed.
 *
 * Each draw depends on the seed, the choice, the object and the number of the object's draws for this choice, and on
 * nothing else. So a choice that is switched off changes no draw of another one, and threads with different objects do
 * not change each other's draws.
 */
#ifndef SOFT_BASE_LEGAL_H
#define SOFT_BASE_LEGAL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "provider/legal.h"

/* The draws of one object. */
struct soft_legal_draws {
	struct soft_legal *legal; /* NULL: nothing is ever chosen */
	uint64_t key;
	_Atomic uint32_t drawn[CORE_LEGAL_CHOICES];
};

struct soft_legal {
	uint64_t seed;
	uint32_t choices; /* a bit for each that may be made; 0: none */
	uint32_t rates[CORE_LEGAL_CHOICES]; /* each is made once in so many times */
	_Atomic uint32_t objects; /* that draw, so far */
	_Atomic uint64_t *made; /* how often each was, CORE_LEGAL_CHOICES numbers */
	struct soft_legal_draws calls; /* for calls of the user that have no object */
};

/*
 * choices: a bit for each; 0: nothing is ever chosen. rates: CORE_LEGAL_CHOICES of them, 0 for that of the table; NULL:
 * all of the table. made: zeros, as many.
 */
void soft_legal_init(struct soft_legal *legal, uint64_t seed, uint32_t choices, const uint32_t *rates,
		     _Atomic uint64_t *made);
/* For the next object that draws. */
void soft_legal_draws_init(struct soft_legal_draws *draws, struct soft_legal *legal);

/* legal.c: draw. 0, or any other number if the choice is made now. */
uint64_t soft_legal_draw(struct soft_legal_draws *draws, enum core_legal choice);

/* Whether any of these is ever chosen, a bit for each. */
static inline bool soft_legal_has(const struct soft_legal *legal, uint32_t choices)
{
	return legal->choices & choices;
}

/* The same for one choice. */
static inline uint64_t soft_legal_choose(struct soft_legal_draws *draws, enum core_legal choice)
{
	if (!draws->legal || !soft_legal_has(draws->legal, UINT32_C(1) << choice))
		return 0;
	return soft_legal_draw(draws, choice);
}

/* An amount from 1 to most, of the number that soft_legal_choose returned. */
static inline uint64_t soft_legal_amount(uint64_t drawn, uint64_t most)
{
	return 1 + (drawn >> 8) % most;
}

/*
 * Whether a call that waits fails with EINTR now. Only a process that handles some signal without SA_RESTART can see
 * that (signal(7)).
 */
bool soft_legal_interrupts(struct soft_legal *legal);

#endif
