/*
 * A program's own faults are its own. The handlers that it sets for SIGSEGV and SIGBUS are returned and called as
 * without a device. Without a handler the signal ends it. Placeholder pages for a copy of the device in its memory
 * change nothing.
 */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "exec_test.h"

#define PAGE ((size_t)sysconf(_SC_PAGESIZE))

static struct endpoint *endpoint;
static char *gone; /* registered, and unmapped */
static struct ibv_mr *gone_mr;

/* The device copies into memory that is gone. */
static void use_device(void)
{
	struct ibv_sge from = {.addr = (uintptr_t)endpoint->memory, .length = 64, .lkey = endpoint->mr->lkey};
	struct ibv_send_wr send = {.sg_list = &from, .num_sge = 1, .opcode = IBV_WR_SEND};

	endpoint_expect(endpoint, gone_mr, gone, 64);
	endpoint_post(endpoint, &send);
	endpoint_complete(endpoint, 2);
}

static void open_device(void)
{
	struct ibv_device **list;

	REQUIRE(endpoint = calloc(1, sizeof(*endpoint)));
	endpoint_open(endpoint, first_device(&list));
	ibv_free_device_list(list);
	gone = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	REQUIRE(gone != MAP_FAILED && (gone_mr = ibv_reg_mr(endpoint->pd, gone, PAGE, IBV_ACCESS_LOCAL_WRITE)));
	REQUIRE(!munmap(gone, PAGE));
	use_device();
}

/* --- what the program's handlers get --------------------------------------------------------- */

static sigjmp_buf back;
static volatile int calls, number_seen, code_seen;
static void *volatile address_seen;
static volatile bool on_own_stack;
static stack_t own_stack;
static sigset_t blocked_seen;

static void note(int number)
{
	char here;

	calls++;
	number_seen = number;
	on_own_stack = &here >= (char *)own_stack.ss_sp && &here < (char *)own_stack.ss_sp + own_stack.ss_size;
	REQUIRE(!pthread_sigmask(SIG_BLOCK, NULL, &blocked_seen));
}

static void leave(int number)
{
	note(number);
	siglongjmp(back, 1);
}

static void leave_with_details(int number, siginfo_t *info, void *context)
{
	REQUIRE(context);
	address_seen = info->si_addr;
	code_seen = info->si_code;
	leave(number);
}

/* Whether it was left by a handler. */
static bool touch(volatile char *address)
{
	if (sigsetjmp(back, 1))
		return true;
	*address = 1;
	return false;
}

static struct sigaction ask(int number)
{
	struct sigaction action;

	REQUIRE(!sigaction(number, NULL, &action));
	return action;
}

/* As far as the C library returns it (x86 has a flag of its own, too). */
static bool is_same(const struct sigaction *one, const struct sigaction *other)
{
	const int flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK | SA_RESTART | (int)SA_RESETHAND;

	for (int number = 1; number < 32; number++)
		if (sigismember(&one->sa_mask, number) != sigismember(&other->sa_mask, number))
			return false;
	return one->sa_handler == other->sa_handler && (one->sa_flags & flags) == (other->sa_flags & flags);
}

/* --- each in a process of its own ----------------------------------------------------------------- */

static void set_before(void)
{
	struct sigaction action = {.sa_sigaction = leave_with_details, .sa_flags = SA_SIGINFO}, is;

	sigaddset(&action.sa_mask, SIGUSR1);
	REQUIRE(!sigaction(SIGSEGV, &action, NULL));
	open_device();
	is = ask(SIGSEGV);
	REQUIRE(is_same(&is, &action));
	for (int round = 1; round <= 2; round++) {
		REQUIRE(touch(gone) && calls == round && number_seen == SIGSEGV);
		REQUIRE(address_seen == gone && code_seen == SEGV_MAPERR);
		REQUIRE(sigismember(&blocked_seen, SIGUSR1) && sigismember(&blocked_seen, SIGSEGV));
		use_device();
	}
	REQUIRE(!calls || calls == 2);
	REQUIRE(touch(NULL) && !address_seen);
}

static void set_after(void)
{
	struct sigaction action = {.sa_sigaction = leave_with_details, .sa_flags = SA_SIGINFO | SA_NODEFER | SA_RESTART}, was;
	struct sigaction other = {.sa_handler = leave, .sa_flags = (int)SA_RESETHAND}, is;

	open_device();
	REQUIRE(ask(SIGSEGV).sa_handler == SIG_DFL && ask(SIGBUS).sa_handler == SIG_DFL);
	REQUIRE(!sigaction(SIGSEGV, &action, &was) && was.sa_handler == SIG_DFL);
	use_device();
	REQUIRE(touch(gone) && address_seen == gone && !sigismember(&blocked_seen, SIGSEGV));
	is = ask(SIGSEGV);
	REQUIRE(is_same(&is, &action));
	REQUIRE(!sigaction(SIGSEGV, &other, &was) && is_same(&was, &action));
	REQUIRE(touch(gone) && calls == 2 && ask(SIGSEGV).sa_handler == SIG_DFL);
	/* Invalid signals and handlers are rejected as always. */
	REQUIRE(sigaction(SIGKILL, &action, NULL) == -1 && errno == EINVAL);
	REQUIRE(signal(SIGSEGV, SIG_ERR) == SIG_ERR && errno == EINVAL);
}

static void set_by_signal(void)
{
	open_device();
	REQUIRE(signal(SIGSEGV, leave) == SIG_DFL && signal(SIGBUS, note) == SIG_DFL && signal(SIGUSR1, note) == SIG_DFL);
	REQUIRE(touch(gone) && touch(NULL) && calls == 2 && sigismember(&blocked_seen, SIGSEGV));
	use_device();
	REQUIRE(!raise(SIGUSR1) && number_seen == SIGUSR1);
	REQUIRE(!kill(getpid(), SIGBUS) && number_seen == SIGBUS && calls == 4);
	REQUIRE(signal(SIGSEGV, SIG_IGN) == leave && signal(SIGUSR1, SIG_DFL) == note);
	REQUIRE(!raise(SIGSEGV) && calls == 4 && ask(SIGSEGV).sa_handler == SIG_IGN);
	use_device();
	REQUIRE(ask(SIGBUS).sa_handler == note && ask(SIGBUS).sa_flags & SA_RESTART);
}

static int deeper(volatile char *above, int more)
{
	volatile char frame[4096];

	frame[0] = *above;
	return more ? deeper(frame, more - 1) + frame[1] : 0;
}

static void overflow_stack(void)
{
	struct sigaction action = {.sa_handler = leave, .sa_flags = SA_ONSTACK};
	char first = 0;

	own_stack.ss_size = 1 << 16;
	REQUIRE((own_stack.ss_sp = malloc(own_stack.ss_size)) && !sigaltstack(&own_stack, NULL));
	open_device();
	REQUIRE(!sigaction(SIGSEGV, &action, NULL));
	if (!sigsetjmp(back, 1))
		deeper(&first, 1 << 20);
	REQUIRE(calls == 1 && on_own_stack);
	use_device();
}

/* It shares its parent's memory and none of its handlers (as Python's subprocess). */
static void reset_in_child(void)
{
	struct sigaction none = {.sa_handler = SIG_DFL};
	pid_t child;

	open_device();
	REQUIRE(signal(SIGSEGV, leave) == SIG_DFL);
	child = vfork();
	if (!child) {
		sigaction(SIGSEGV, &none, NULL);
		_exit(0);
	}
	REQUIRE(waitpid(child, NULL, 0) == child);
	REQUIRE(ask(SIGSEGV).sa_handler == leave && touch(gone));
	use_device();
}

static void in_forked_child(void)
{
	open_device();
	REQUIRE(signal(SIGSEGV, leave) == SIG_DFL);
	if (fork()) {
		int status;

		REQUIRE(wait(&status) > 0 && WIFEXITED(status) && !WEXITSTATUS(status));
		use_device();
		return;
	}
	REQUIRE(touch(gone) && touch(NULL));
	open_device();
	REQUIRE(touch(gone) && signal(SIGSEGV, SIG_DFL) == leave);
}

static void *use_without_signals(void *unused)
{
	sigset_t all;

	(void)unused;
	sigfillset(&all);
	REQUIRE(!pthread_sigmask(SIG_SETMASK, &all, NULL));
	use_device();
	REQUIRE(!pthread_sigmask(SIG_SETMASK, NULL, &all) && sigismember(&all, SIGUSR1) && sigismember(&all, SIGTERM));
	return NULL;
}

static void block_all(void)
{
	pthread_t thread;
	sigset_t all;

	sigfillset(&all);
	REQUIRE(!sigprocmask(SIG_SETMASK, &all, NULL));
	open_device();
	REQUIRE(sigprocmask(77, &all, NULL) == -1 && errno == EINVAL);
	REQUIRE(!pthread_create(&thread, NULL, use_without_signals, NULL) && !pthread_join(thread, NULL));
	REQUIRE(!sigprocmask(SIG_UNBLOCK, &all, NULL) && !sigprocmask(SIG_BLOCK, &all, NULL));
	use_device();
}

static void die_of_own(void)
{
	open_device();
	*(volatile char *)gone = 1;
}

static void die_of_second(void)
{
	struct sigaction once = {.sa_handler = leave, .sa_flags = (int)SA_RESETHAND};

	open_device();
	REQUIRE(!sigaction(SIGSEGV, &once, NULL) && touch(gone) && calls == 1);
	touch(gone);
}

static void die_ignoring(void)
{
	open_device();
	signal(SIGSEGV, SIG_IGN);
	touch(NULL);
}

static void die_by_another(void)
{
	open_device();
	raise(SIGSEGV);
}

static const struct {
	const char *name;
	void (*run)(void);
	int signal; /* that ends it */
} cases[] = {
	{"set before", set_before, 0},
	{"set after", set_after, 0},
	{"set by signal", set_by_signal, 0},
	{"overflow stack", overflow_stack, 0},
	{"reset in child", reset_in_child, 0},
	{"in forked child", in_forked_child, 0},
	{"block all", block_all, 0},
	{"die of own", die_of_own, SIGSEGV},
	{"die of second", die_of_second, SIGSEGV},
	{"die ignoring", die_ignoring, SIGSEGV},
	{"die by another", die_by_another, SIGSEGV},
};

int main(void)
{
	alarm(PATIENCE);
	for (size_t index = 0; index < sizeof(cases) / sizeof(cases[0]); index++) {
		pid_t child = fork();
		int status;

		REQUIRE(child >= 0);
		if (!child) {
			alarm(PATIENCE);
			cases[index].run();
			_exit(0);
		}
		REQUIRE(waitpid(child, &status, 0) == child);
		if (cases[index].signal ? !WIFSIGNALED(status) || WTERMSIG(status) != cases[index].signal : status) {
			fprintf(stderr, "%s: it ended with status %#x\n", cases[index].name, (unsigned int)status);
			return 1;
		}
	}
	return 0;
}
