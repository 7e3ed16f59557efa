#include "soft/base/refusal.h"

#include <stdarg.h>
#include <stdio.h>

/* No lock: each thread has its own. */
static _Thread_local char sentence[240];
static _Thread_local void (*unsaid)(char *text, size_t size); /* what makes the sentence, or NULL: it is made */

int soft_refuse(int error, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(sentence, sizeof(sentence), format, arguments);
	va_end(arguments);
	unsaid = NULL;
	return error;
}

int soft_refuse_later(int error, void (*tell)(char *text, size_t size))
{
	unsaid = tell;
	return error;
}

const char *soft_refusal(void)
{
	if (unsaid)
		unsaid(sentence, sizeof(sentence));
	unsaid = NULL;
	return sentence;
}

void soft_refusal_clear(void)
{
	sentence[0] = '\0';
	unsaid = NULL;
}
