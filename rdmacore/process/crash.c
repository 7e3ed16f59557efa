/*
 * Crashes of native code: of the core, of a device's library, and of what those load. Memory may be damaged, and the
 * crashed thread may hold any lock. So the handler uses only system calls and its own memory, and prints what
 * happened. Then it executes another rdmarun, which has neither problem and completes the reports.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "process.h"

static const struct crash_signal {
	int number;
	const char *what;
} crash_signals[] = {
	{SIGSEGV, "SIGSEGV, an access to memory that it may not touch"},
	{SIGBUS, "SIGBUS, an access to memory that is not there"},
	{SIGFPE, "SIGFPE, a division that has no result"},
	{SIGILL, "SIGILL, an instruction that the processor does not have"},
	{SIGTRAP, "SIGTRAP, an instruction that stops the program"},
	{SIGSYS, "SIGSYS, a system call that this process may not make"},
	{SIGABRT, "SIGABRT, it called abort()"},
};

#define SIGNALS (sizeof(crash_signals) / sizeof(crash_signals[0]))

/* Global, like signal handlers. */
static struct {
	const char *argv0, *command, *arguments;
	uintptr_t go_text, go_text_end;
	size_t stack_size;
	struct sigaction before[SIGNALS]; /* the handlers of Go */
	atomic_flag crashed;
	/* Written before text is published, and constant afterwards. */
	int descriptors[PROCESS_FILES];
	size_t files;
	_Atomic(const char *) plan;
} process = {.crashed = ATOMIC_FLAG_INIT, .plan = ""};

static size_t index_of(int number)
{
	size_t i = 0;

	while (i + 1 < SIGNALS && crash_signals[i].number != number)
		i++;
	return i;
}

static uintptr_t program_counter(const ucontext_t *context)
{
#if defined(__x86_64__)
	return (uintptr_t)context->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
	return (uintptr_t)context->uc_mcontext.pc;
#else
#error "where is the program counter of this processor?"
#endif
}

static uintptr_t stack_pointer(const ucontext_t *context)
{
#if defined(__x86_64__)
	return (uintptr_t)context->uc_mcontext.gregs[REG_RSP];
#elif defined(__aarch64__)
	return (uintptr_t)context->uc_mcontext.sp;
#endif
}

/* Faults of Go code, and signals that were sent, are for Go's runtime: a panic, or a request for a traceback. */
static bool is_native(const siginfo_t *info, uintptr_t pc)
{
	if (pc >= process.go_text && pc < process.go_text_end)
		return false;
	if (info->si_code == SI_USER || info->si_code == SI_QUEUE || info->si_code == SI_TKILL)
		return info->si_pid == getpid();
	return true;
}

static void forward(int number, siginfo_t *info, void *context)
{
	const struct sigaction *before = &process.before[index_of(number)];

	if (before->sa_flags & SA_SIGINFO) {
		before->sa_sigaction(number, info, context);
	} else if (before->sa_handler != SIG_IGN) {
		/* The fault occurs again when this returns, and the system handles it. */
		sigaction(number, before, NULL);
		if (info->si_code <= 0)
			raise(number);
	}
}

static void describe(struct sentence *sentence, int number, const siginfo_t *info, uintptr_t pc)
{
	sentence_add(sentence, "rdmarun: native code crashed: ");
	sentence_add(sentence, crash_signals[index_of(number)].what);
	if (info->si_code > 0 && number != SIGSYS && (uintptr_t)info->si_addr != pc) {
		sentence_add(sentence, ", at address ");
		sentence_add_hex(sentence, (uintptr_t)info->si_addr);
	}
	if (number != SIGABRT) {
		sentence_add(sentence, "; the code was ");
		sentence_add_hex(sentence, pc);
		mapping_add(sentence, pc);
	}
	sentence_add(sentence, "\n");
}

/*
 * Execute another rdmarun, with all signals as a new program expects them. Ignored signals would stay ignored, so
 * all handlers are reset.
 */
static void become(const struct sentence *report, const char *code)
{
	const char *plan = atomic_load_explicit(&process.plan, memory_order_acquire);
	const char *const argv[] = {process.argv0, process.command, code, report->text,
				    plan, process.arguments, NULL};
	sigset_t none;

	for (size_t i = 0; *plan && i < process.files; i++)
		fcntl(process.descriptors[i], F_SETFD, 0);
	sigemptyset(&none);
	pthread_sigmask(SIG_SETMASK, &none, NULL);
	execve("/proc/self/exe", (char *const *)argv, environ);
}

static void on_crash(int number, siginfo_t *info, void *context)
{
	/* Static, because the alternate stack is small; only the first crashing thread uses it. */
	static struct sentence sentence;
	uintptr_t pc = program_counter(context);
	int before = errno;

	if (!is_native(info, pc)) {
		forward(number, info, context);
		errno = before;
		return;
	}
	/* The first crashing thread ends the process, and all others with it. */
	while (atomic_flag_test_and_set_explicit(&process.crashed, memory_order_acq_rel))
		pause();
	if (number == SIGABRT && shortage_of_threads(process.stack_size, &sentence)) {
		sentence_write(&sentence);
		become(&sentence, "environment");
		_exit(PROCESS_EXIT_ENVIRONMENT);
	}
	describe(&sentence, number, info, pc);
	sentence_write(&sentence);
	mapping_add_callers(&sentence, stack_pointer(context));
	become(&sentence, "bug");
	_exit(PROCESS_EXIT_BUG);
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
/* Sanitizers print more about a crash. */
static const bool is_sanitized = true;
#else
static const bool is_sanitized = false;
#endif

int crash_catch(const char *argv0, const char *command, const char *arguments, uintptr_t go_text,
		uintptr_t go_text_end)
{
	struct sigaction action = {.sa_sigaction = on_crash, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART};
	pthread_attr_t attr;

	if (is_sanitized)
		return 0;
	process.argv0 = argv0;
	process.command = command;
	process.arguments = arguments;
	process.go_text = go_text;
	process.go_text_end = go_text_end;
	if (pthread_attr_init(&attr))
		return -ENOMEM;
	pthread_attr_getstacksize(&attr, &process.stack_size);
	pthread_attr_destroy(&attr);
	/* The system handles a crash of the handler, which ends the process at once. */
	sigfillset(&action.sa_mask);
	for (size_t i = 0; i < SIGNALS; i++)
		if (sigaction(crash_signals[i].number, &action, &process.before[i]))
			return -errno;
	return 0;
}

void crash_plan(const char *plan, const int *descriptors, size_t files)
{
	for (size_t i = 0; i < files && i < PROCESS_FILES; i++)
		process.descriptors[process.files++] = descriptors[i];
	atomic_store_explicit(&process.plan, plan ? plan : "", memory_order_release);
}
