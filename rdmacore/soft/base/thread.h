/* The threads that soft makes for itself. */
#ifndef SOFT_BASE_THREAD_H
#define SOFT_BASE_THREAD_H

#include <pthread.h>
#include <signal.h>

/*
 * pthread_create with every signal blocked: signals are for the threads of the program that uses soft, which may wait to be
 * interrupted by one.  0 or a positive errno.
 */
static inline int soft_thread_create(pthread_t *thread, void *(*run)(void *argument), void *argument)
{
	sigset_t all, before;
	int error;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(thread, NULL, run, argument);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return error;
}

#endif
