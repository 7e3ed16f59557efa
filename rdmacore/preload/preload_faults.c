/*
 * Faults of the device's copies, in memory that the program has unmapped but not deregistered. A kernel pins it, so
 * programs that do this (UCX at its end) get no fault. Here placeholder pages are mapped, and the copy continues
 * (soft/base/page_guard.h).
 *
 * For that, the handler here precedes the program's handlers of both signals. The program's handler is stored,
 * returned by queries, and called for all other faults as the kernel would call it. It is installed when the first
 * device is opened. A handler that is set without these functions (by a system call, like Go's) is found when the next
 * device is opened.
 *
 * A fault in a thread that blocks the signal ends the process. So these signals are never blocked from then on,
 * whatever a thread requests: polling threads are often created with all signals blocked.
 */
#include "preload.h"

#include <dlfcn.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "soft/base/page_guard.h"
#include "soft/objects/mr_table.h"

/* The C library's own function, under a name that is not replaced here. */
int __sigaction(int number, const struct sigaction *action, struct sigaction *old);

enum { COUNT = 2 };

static const int numbers[COUNT] = {SIGSEGV, SIGBUS};

static struct {
	_Atomic(const struct soft_mr_table *) memory; /* of the device */
	atomic_flag lock; /* its holder blocks all signals, so handlers may wait for it */
	/* the process of the handler; a child of vfork(2) has its parent's memory, but its own handlers */
	_Atomic pid_t process;
	struct sigaction program[COUNT];
} faults = {.lock = ATOMIC_FLAG_INIT};

static void lock(sigset_t *before)
{
	sigset_t all;

	sigfillset(&all);
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, before, _NSIG / 8);
	while (atomic_flag_test_and_set_explicit(&faults.lock, memory_order_acquire))
		sched_yield();
}

static void unlock(const sigset_t *before)
{
	atomic_flag_clear_explicit(&faults.lock, memory_order_release);
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, before, NULL, _NSIG / 8);
}

/* COUNT: neither of them. */
static int index_of(int number)
{
	int index = 0;

	while (index < COUNT && numbers[index] != number)
		index++;
	return index;
}

static bool is_function(const struct sigaction *action)
{
	return action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN;
}

/* --- the handler ---------------------------------------------------------------------------------- */

static bool recover(int number, const siginfo_t *info)
{
	const struct soft_mr_table *memory = atomic_load_explicit(&faults.memory, memory_order_acquire);
	uint64_t address = (uintptr_t)info->si_addr, end;

	if (number == SIGSEGV && info->si_code == SEGV_MAPERR)
		return soft_mr_table_holds(memory, address, &end) && soft_page_guard_map(address, end);
	if (number == SIGBUS && info->si_code == BUS_ADRERR)
		return soft_mr_table_holds(memory, address, &end) && soft_page_guard_replace(address, end);
	return false;
}

/* As the kernel does: a program cannot block or ignore a fault, only a signal that was sent. */
static void end_process(int number, siginfo_t *info)
{
	const struct sigaction default_action = {.sa_handler = SIG_DFL};

	__sigaction(number, &default_action, NULL);
	/* A fault occurs again when this returns. */
	if (info->si_code <= 0)
		syscall(SYS_rt_tgsigqueueinfo, getpid(), gettid(), number, info);
}

static void pass_on(int number, siginfo_t *info, void *context)
{
	struct sigaction *program = &faults.program[index_of(number)], action;
	sigset_t before;

	lock(&before);
	action = *program;
	if (is_function(program) && program->sa_flags & (int)SA_RESETHAND)
		program->sa_handler = SIG_DFL;
	unlock(&before);
	/* A handler with fewer parameters ignores the others. */
	if (is_function(&action))
		action.sa_sigaction(number, info, context);
	else if (action.sa_handler == SIG_DFL || info->si_code > 0)
		end_process(number, info);
}

static void on_fault(int number, siginfo_t *info, void *context)
{
	int error = errno;
	bool recovered = soft_page_guard != SOFT_UNGUARDED && recover(number, info);

	errno = error;
	if (!recovered)
		pass_on(number, info, context);
}

/* --- setting handlers ------------------------------------------------------------------------------- */

static bool is_ours(const struct sigaction *action)
{
	return action->sa_flags & SA_SIGINFO && action->sa_sigaction == on_fault;
}

/* Stack, mask and restart flag are those of the program's handler. */
static int install_handler(int index)
{
	const struct sigaction *program = &faults.program[index];
	struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART};

	if (is_function(program)) {
		action.sa_mask = program->sa_mask;
		action.sa_flags = SA_SIGINFO | (program->sa_flags & (SA_ONSTACK | SA_RESTART | SA_NODEFER));
	}
	return __sigaction(numbers[index], &action, NULL);
}

void preload_faults_catch(const struct soft_mr_table *memory)
{
	sigset_t before;

	atomic_store_explicit(&faults.memory, memory, memory_order_release);
	lock(&before);
	for (int index = 0; index < COUNT; index++) {
		struct sigaction now;

		if (__sigaction(numbers[index], NULL, &now) || is_ours(&now))
			continue;
		faults.program[index] = now;
		install_handler(index);
	}
	faults.process = getpid();
	for (int index = 0; index < COUNT; index++)
		sigdelset(&before, numbers[index]);
	unlock(&before);
}

void preload_faults_forget(void)
{
	atomic_flag_clear(&faults.lock);
	faults.process = getpid();
}

static int set(int number, const struct sigaction *wanted, struct sigaction *before)
{
	int index = index_of(number), result = __sigaction(number, NULL, before);
	bool in_front = !result && is_ours(before);

	if (in_front)
		*before = faults.program[index];
	if (result || !wanted)
		return result;
	if (!in_front || faults.process != getpid())
		return __sigaction(number, wanted, NULL);
	if (is_ours(wanted)) /* the program queried it without these functions, and sets it again */
		return 0;
	faults.program[index] = *wanted;
	return install_handler(index);
}

int preload_sigaction(int number, const struct sigaction *action, struct sigaction *old) SYMBOL(sigaction);
sighandler_t preload_signal(int number, sighandler_t handler) SYMBOL(signal);
sighandler_t preload_bsd_signal(int number, sighandler_t handler) SYMBOL(bsd_signal);
sighandler_t preload_sysv_signal(int number, sighandler_t handler) SYMBOL(sysv_signal);
sighandler_t preload_xsysv_signal(int number, sighandler_t handler) SYMBOL(__sysv_signal);

int preload_sigaction(int number, const struct sigaction *action, struct sigaction *old)
{
	struct sigaction wanted, is;
	sigset_t before;
	int result;

	if (index_of(number) == COUNT)
		return __sigaction(number, action, old);
	/* The program's memory is not accessed under the lock. */
	if (action)
		wanted = *action;
	lock(&before);
	result = set(number, action ? &wanted : NULL, &is);
	unlock(&before);
	if (!result && old)
		*old = is;
	return result;
}

static sighandler_t set_handler(int number, sighandler_t handler, int flags)
{
	struct sigaction action = {.sa_handler = handler, .sa_flags = flags}, old;

	if (!(flags & SA_NODEFER))
		sigaddset(&action.sa_mask, number);
	return preload_sigaction(number, &action, &old) ? SIG_ERR : old.sa_handler;
}

/* ssignal(3) is another name of signal(2), and siginterrupt(3) applies to it. */
sighandler_t preload_signal(int number, sighandler_t handler)
{
	return index_of(number) == COUNT || handler == SIG_ERR ? ssignal(number, handler) :
								 set_handler(number, handler, SA_RESTART);
}

sighandler_t preload_bsd_signal(int number, sighandler_t handler)
{
	return preload_signal(number, handler);
}

sighandler_t preload_sysv_signal(int number, sighandler_t handler)
{
	if (handler == SIG_ERR) {
		errno = EINVAL;
		return SIG_ERR;
	}
	return set_handler(number, handler, (int)SA_RESETHAND | SA_NODEFER);
}

sighandler_t preload_xsysv_signal(int number, sighandler_t handler)
{
	return preload_sysv_signal(number, handler);
}

/* --- blocking signals ------------------------------------------------------------------------------- */

/* The functions of these names without this library; NULL until they are looked up, and then a system call is made. */
static int (*next_mask)(int, const sigset_t *, sigset_t *);

static __attribute__((constructor)) void find_next(void)
{
	*(void **)&next_mask = dlsym(RTLD_NEXT, "pthread_sigmask");
}

int preload_pthread_sigmask(int how, const sigset_t *set, sigset_t *old) SYMBOL(pthread_sigmask);
int preload_sigprocmask(int how, const sigset_t *set, sigset_t *old) SYMBOL(sigprocmask);

int preload_pthread_sigmask(int how, const sigset_t *set, sigset_t *old)
{
	int error = errno, result;
	sigset_t others;

	if (set && how != SIG_UNBLOCK && faults.process) {
		others = *set;
		for (int index = 0; index < COUNT; index++)
			sigdelset(&others, numbers[index]);
		set = &others;
	}
	if (next_mask)
		return next_mask(how, set, old);
	result = syscall(SYS_rt_sigprocmask, how, set, old, _NSIG / 8) ? errno : 0;
	errno = error;
	return result;
}

int preload_sigprocmask(int how, const sigset_t *set, sigset_t *old)
{
	int error = preload_pthread_sigmask(how, set, old);

	if (!error)
		return 0;
	errno = error;
	return -1;
}
