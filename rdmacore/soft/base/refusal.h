/* Why the last call of this thread was refused, in a sentence: what an errno does not say. */
#ifndef SOFT_BASE_REFUSAL_H
#define SOFT_BASE_REFUSAL_H

#include <stddef.h>

/* Keep the sentence and return error, a positive errno. */
int soft_refuse(int error, const char *format, ...) __attribute__((format(printf, 2, 3)));
/*
 * The same of a sentence that must not be made here, as locks are held: tell writes it, with its zero into size bytes, when the program
 * asks.
 */
int soft_refuse_later(int error, void (*tell)(char *text, size_t size));
/* The last sentence since soft_refusal_clear; "" when there is none.  The caller holds no lock. */
const char *soft_refusal(void);
void soft_refusal_clear(void);

#endif
