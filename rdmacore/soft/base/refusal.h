/* Why the last call of this thread was refused, in a sentence: what an errno does not say. */
#ifndef SOFT_BASE_REFUSAL_H
#define SOFT_BASE_REFUSAL_H

/* Keep the sentence and return error, a positive errno. */
int soft_refuse(int error, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The last sentence since soft_refusal_clear; "" when there is none. */
const char *soft_refusal(void);
void soft_refusal_clear(void);

#endif
