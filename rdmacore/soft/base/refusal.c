#include "soft/base/refusal.h"

#include <stdarg.h>
#include <stdio.h>

/* No lock: each thread has its own. */
static _Thread_local char sentence[240];

int soft_refuse(int error, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(sentence, sizeof(sentence), format, arguments);
	va_end(arguments);
	return error;
}

const char *soft_refusal(void)
{
	return sentence;
}

void soft_refusal_clear(void)
{
	sentence[0] = '\0';
}
