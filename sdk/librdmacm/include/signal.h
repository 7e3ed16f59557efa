/* Signals that a program sends to itself, and those of its timers: there are no others in a guest. */
#ifndef LIBRDMACM_SIGNAL_H
#define LIBRDMACM_SIGNAL_H

#include_next <signal.h>

#define __NEED_pid_t
#define __NEED_pthread_t
#define __NEED_uid_t
#define __NEED_sigset_t
#define __NEED_struct_timespec
#include <bits/alltypes.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SIG_BLOCK 0
#define SIG_UNBLOCK 1
#define SIG_SETMASK 2

#define SA_NOCLDSTOP 1
#define SA_SIGINFO 4
#define SA_ONSTACK 0x08000000
#define SA_RESTART 0x10000000
#define SA_NODEFER 0x40000000
#define SA_RESETHAND 0x80000000

#define SI_USER 0
#define SI_KERNEL 128

typedef struct {
	int si_signo, si_errno, si_code;
	pid_t si_pid;
	uid_t si_uid;
	void *si_addr;
} siginfo_t;

struct sigaction {
	union {
		void (*sa_handler)(int);
		void (*sa_sigaction)(int, siginfo_t *, void *);
	};
	sigset_t sa_mask;
	int sa_flags;
};

int sigaction(int number, const struct sigaction *action, struct sigaction *old);
int sigprocmask(int how, const sigset_t *set, sigset_t *old);
int pthread_sigmask(int how, const sigset_t *set, sigset_t *old);
int sigemptyset(sigset_t *set);
int sigfillset(sigset_t *set);
int sigaddset(sigset_t *set, int number);
int sigdelset(sigset_t *set, int number);
int sigismember(const sigset_t *set, int number);
int sigpending(sigset_t *set);
int sigsuspend(const sigset_t *mask);
int sigwait(const sigset_t *set, int *number);
int kill(pid_t process, int number);
int pthread_kill(pthread_t thread, int number);

#ifdef __cplusplus
}
#endif

#endif
