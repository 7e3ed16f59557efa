/* Why the last call of this thread failed, in a sentence: what an errno does not say. */
#ifndef SOFT_BASE_REFUSAL_H
#define SOFT_BASE_REFUSAL_H

#include <stddef.h>

#define SOFT_REFUSAL_MAX 240 /* bytes of the sentence, with its zero byte */

/* Store the sentence, and return error, a positive errno. */
int soft_refuse(int error, const char *format, ...) __attribute__((format(printf, 2, 3)));
/*
 * The same for a sentence that cannot be written here, because locks are held. write_text writes it, with its zero
 * byte, into size bytes when the program asks for it.
 */
int soft_refuse_later(int error, void (*write_text)(char *text, size_t size));
/* The last sentence since soft_refusal_clear; "" if there is none. The caller holds no lock. */
const char *soft_refusal(void);
void soft_refusal_clear(void);

#endif
