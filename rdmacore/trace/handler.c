/*
 * Signal handlers of the program, for "rdmarun check": calls that a handler makes have the flag TRACE_IN_HANDLER.
 *
 * Handlers of asynchronous signals are called through one of this library. Those of faults are not: they interrupt no
 * library, and may leave by siglongjmp(3).
 */
#include "trace.h"

#include <dlfcn.h>
#include <signal.h>

typedef void (*action)(int signal, siginfo_t *info, void *context);

/* The program's handlers. */
static struct {
	_Atomic(action) function;
	_Atomic bool info; /* SA_SIGINFO */
} handlers[NSIG];

static bool on;

void trace_handlers_watch(void)
{
	on = true;
}

bool trace_in_handler(void)
{
	/* A handler that was left by siglongjmp is above the stack pointer. */
	return trace_self.handler && (uintptr_t)__builtin_frame_address(0) < trace_self.handler;
}

/* A handler without SA_SIGINFO ignores the other arguments. */
static void handle(int number, siginfo_t *info, void *context)
{
	uintptr_t outer = trace_self.handler;

	trace_self.handler = (uintptr_t)__builtin_frame_address(0);
	handlers[number].function(number, info, context);
	trace_self.handler = outer;
}

static bool is_watched(int number)
{
	return on && number > 0 && number < NSIG && number != SIGSEGV && number != SIGBUS && number != SIGFPE &&
	       number != SIGILL && number != SIGTRAP;
}

static bool is_function(const struct sigaction *act)
{
	return act && act->sa_handler != SIG_DFL && act->sa_handler != SIG_IGN;
}

/* What the program has set, rather than what this library has. */
static void show(struct sigaction *old, action was, bool info)
{
	if (!(old->sa_flags & SA_SIGINFO) || old->sa_sigaction != handle)
		return;
	old->sa_sigaction = was;
	if (!info)
		old->sa_flags &= ~SA_SIGINFO;
}

TRACE_EXPORT int sigaction(int number, const struct sigaction *act, struct sigaction *old)
{
	int (*next)(int, const struct sigaction *, struct sigaction *) =
		(int (*)(int, const struct sigaction *, struct sigaction *))dlsym(RTLD_NEXT, "sigaction");
	struct sigaction mine;
	action was;
	int result;
	bool info;

	if (!is_watched(number))
		return next(number, act, old);
	was = handlers[number].function;
	info = handlers[number].info;
	if (is_function(act)) {
		mine = *act;
		handlers[number].info = act->sa_flags & SA_SIGINFO;
		handlers[number].function = act->sa_sigaction;
		mine.sa_sigaction = handle;
		mine.sa_flags |= SA_SIGINFO;
		act = &mine;
	}
	result = next(number, act, old);
	if (result) {
		handlers[number].function = was;
		handlers[number].info = info;
	} else if (old) {
		show(old, was, info);
	}
	return result;
}

/* As the C library does it (signal(2), BSD semantics). */
TRACE_EXPORT sighandler_t signal(int number, sighandler_t handler)
{
	sighandler_t (*next)(int, sighandler_t) = (sighandler_t (*)(int, sighandler_t))dlsym(RTLD_NEXT, "signal");
	struct sigaction act = {.sa_handler = handler, .sa_flags = SA_RESTART}, old;

	if (!is_watched(number))
		return next(number, handler);
	return sigaction(number, &act, &old) ? SIG_ERR : old.sa_handler;
}
