/*
 * Signals: those that the program sends to itself, those of its timers, and SIGTERM when the guest is stopped.  A thread is
 * never interrupted: handlers run where main's thread waits, or polls a CQ.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>
#include "internal.h"

static struct sigaction actions[_NSIG];
static sigset_t pending, blocked;
static struct {
	int64_t at, every; /* at: -1 if it is not set */
} timer = {-1, 0};
static bool terminated;

static sigset_t bit(int number) { return 1ull << (number - 1); }

static bool is_number(int number)
{
	if (number > 0 && number < _NSIG)
		return true;
	errno = EINVAL;
	return false;
}

/* Programs compare and call these by their addresses. */
void __SIG_IGN(int number) { (void)number; }
void __SIG_ERR(int number) { (void)number; }

static bool is_ignored(int number)
{
	void (*handler)(int) = actions[number].sa_handler;

	return handler == SIG_IGN ||
	       (handler == SIG_DFL && (number == SIGCHLD || number == SIGURG || number == SIGWINCH || number == SIGCONT));
}

/* Runs a handler; the default ends the program with the exit code that a shell shows. */
static void handle(int number)
{
	struct sigaction action = actions[number];
	siginfo_t info = {.si_signo = number, .si_code = number == SIGALRM ? SI_KERNEL : SI_USER, .si_pid = getpid()};
	sigset_t before = blocked;
	int error = errno;

	if (is_ignored(number))
		return;
	if (action.sa_handler == SIG_DFL) {
		fprintf(stderr, "librdmacm: the program ends by signal %d: %s\n", number, strsignal(number));
		exit(128 + number);
	}
	if ((unsigned)action.sa_flags & SA_RESETHAND)
		actions[number].sa_handler = SIG_DFL;
	blocked |= action.sa_mask | (action.sa_flags & SA_NODEFER ? 0 : bit(number));
	if (action.sa_flags & SA_SIGINFO)
		action.sa_sigaction(number, &info, NULL);
	else
		action.sa_handler(number);
	blocked = before;
	errno = error;
}

static void run_timer(void)
{
	int64_t now;

	if (timer.at < 0 || timer.at > (now = clock_now()))
		return;
	pending |= bit(SIGALRM);
	timer.at = timer.every ? now + timer.every - (now - timer.at) % timer.every : -1;
}

static int64_t deadline(void) { return timer.at; }

static bool due(void)
{
	run_timer();
	return pending & ~blocked;
}

static bool deliver(bool *restart)
{
	bool ran = false;

	*restart = true;
	while (due()) {
		int number = __builtin_ctzll(pending & ~blocked) + 1;

		pending &= ~bit(number);
		if (is_ignored(number))
			continue;
		*restart &= (actions[number].sa_flags & SA_RESTART) != 0;
		ran = true;
		handle(number);
	}
	return ran;
}

static bool terminate(void)
{
	if (terminated || actions[SIGTERM].sa_handler == SIG_DFL || is_ignored(SIGTERM))
		return false;
	terminated = true;
	handle(SIGTERM);
	return true;
}

static const struct signals own_signals = {.deadline = deadline, .due = due, .deliver = deliver, .terminate = terminate};

int sigaction(int number, const struct sigaction *action, struct sigaction *old)
{
	if (!is_number(number))
		return -1;
	if (action && (number == SIGKILL || number == SIGSTOP)) {
		errno = EINVAL;
		return -1;
	}
	signals = &own_signals;
	if (old)
		*old = actions[number];
	if (action)
		actions[number] = *action;
	return 0;
}

void (*signal(int number, void (*handler)(int)))(int)
{
	struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART}, old;

	return sigaction(number, &action, &old) ? SIG_ERR : old.sa_handler;
}

int raise(int number)
{
	if (!is_number(number))
		return -1;
	signals = &own_signals;
	if (blocked & bit(number))
		pending |= bit(number);
	else
		handle(number);
	return 0;
}

int kill(pid_t process, int number)
{
	if (process != getpid() && process != 0) { /* there is no other process */
		errno = ESRCH;
		return -1;
	}
	return number ? raise(number) : 0;
}

/* Handlers run in main's thread, whichever was meant. */
int pthread_kill(pthread_t thread, int number)
{
	(void)thread;
	if (number < 0 || number >= _NSIG)
		return EINVAL;
	signals = &own_signals;
	if (number)
		pending |= bit(number);
	return 0;
}

/* ---- sets and masks ---- */

int sigemptyset(sigset_t *set)
{
	*set = 0;
	return 0;
}

int sigfillset(sigset_t *set)
{
	*set = ~0ull;
	return 0;
}

int sigaddset(sigset_t *set, int number)
{
	if (!is_number(number))
		return -1;
	*set |= bit(number);
	return 0;
}

int sigdelset(sigset_t *set, int number)
{
	if (!is_number(number))
		return -1;
	*set &= ~bit(number);
	return 0;
}

int sigismember(const sigset_t *set, int number) { return is_number(number) ? (*set & bit(number)) != 0 : -1; }

int sigpending(sigset_t *set)
{
	run_timer();
	*set = pending & blocked;
	return 0;
}

/* Threads share one mask: signals are main's thread's. */
int pthread_sigmask(int how, const sigset_t *set, sigset_t *old)
{
	bool restart;

	if (set && how != SIG_BLOCK && how != SIG_UNBLOCK && how != SIG_SETMASK)
		return EINVAL;
	signals = &own_signals;
	if (old)
		*old = blocked;
	if (set)
		blocked = (how == SIG_BLOCK ? blocked | *set : how == SIG_UNBLOCK ? blocked & ~*set : *set) & ~(bit(SIGKILL) | bit(SIGSTOP));
	if (set)
		deliver(&restart);
	return 0;
}

int sigprocmask(int how, const sigset_t *set, sigset_t *old)
{
	int error = pthread_sigmask(how, set, old);

	errno = error ? error : errno;
	return error ? -1 : 0;
}

static bool never(void *unused)
{
	(void)unused;
	return false;
}

int pause(void)
{
	struct wait wait = {.ready = never, .restart = RESTART_NEVER};

	signals = &own_signals;
	errno = wait_for(&wait, -1);
	return -1;
}

int sigsuspend(const sigset_t *mask)
{
	struct wait wait = {.ready = never, .restart = RESTART_NEVER};
	sigset_t before = blocked;

	signals = &own_signals;
	blocked = *mask;
	errno = wait_for(&wait, -1);
	blocked = before;
	return -1;
}

static bool is_pending(void *set)
{
	run_timer();
	return pending & *(const sigset_t *)set;
}

int sigwait(const sigset_t *set, int *number)
{
	sigset_t wanted = *set;
	struct wait wait = {.ready = is_pending, .object = &wanted, .restart = RESTART_ALWAYS};
	int ended;

	signals = &own_signals;
	ended = wait_for(&wait, -1);
	if (ended)
		return ended;
	*number = __builtin_ctzll(pending & wanted) + 1;
	pending &= ~bit(*number);
	return 0;
}

/* ---- timers ---- */

static int64_t nanoseconds(const struct timeval *time) { return time->tv_sec * 1000000000ll + time->tv_usec * 1000ll; }

static struct timeval timeval_of(int64_t nanoseconds)
{
	return (struct timeval){.tv_sec = nanoseconds / 1000000000, .tv_usec = (suseconds_t)(nanoseconds % 1000000000 / 1000)};
}

int getitimer(int which, struct itimerval *value)
{
	int64_t left = timer.at < 0 ? 0 : timer.at - clock_now();

	if (which != ITIMER_REAL) { /* a guest does not know of its own time of the CPU */
		errno = EINVAL;
		return -1;
	}
	*value = (struct itimerval){.it_interval = timeval_of(timer.every), .it_value = timeval_of(left < 0 ? 0 : left)};
	return 0;
}

static bool is_time(const struct timeval *time) { return time->tv_sec >= 0 && time->tv_sec < INT32_MAX && time->tv_usec >= 0 && time->tv_usec < 1000000; }

int setitimer(int which, const struct itimerval *value, struct itimerval *old)
{
	struct itimerval before;

	if (getitimer(which, &before))
		return -1;
	if (!is_time(&value->it_value) || !is_time(&value->it_interval)) {
		errno = EINVAL;
		return -1;
	}
	signals = &own_signals;
	if (old)
		*old = before;
	timer.every = nanoseconds(&value->it_interval);
	timer.at = nanoseconds(&value->it_value) ? clock_now() + nanoseconds(&value->it_value) : -1;
	return 0;
}

unsigned alarm(unsigned seconds)
{
	struct itimerval value = {.it_value.tv_sec = seconds > INT32_MAX - 1 ? INT32_MAX - 1 : seconds}, old;

	setitimer(ITIMER_REAL, &value, &old);
	return (unsigned)old.it_value.tv_sec + (old.it_value.tv_usec > 0);
}
