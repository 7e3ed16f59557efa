#include "soft/base/refusal.h"

#include <stdarg.h>
#include <stdio.h>

/* Needs no lock: each thread has its own. */
static _Thread_local char sentence[SOFT_REFUSAL_MAX];
/* writes the sentence when it is asked for; NULL: it is written */
static _Thread_local void (*describe_later)(char *text, size_t size);

int soft_refuse(int error, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(sentence, sizeof(sentence), format, arguments);
	va_end(arguments);
	describe_later = NULL;
	return error;
}

int soft_refuse_later(int error, void (*write_text)(char *text, size_t size))
{
	describe_later = write_text;
	return error;
}

const char *soft_refusal(void)
{
	if (describe_later)
		describe_later(sentence, sizeof(sentence));
	describe_later = NULL;
	return sentence;
}

void soft_refusal_clear(void)
{
	sentence[0] = '\0';
	describe_later = NULL;
}
