/*
 * A librdmacm that crashes in the rdma_connect that CRASH_CALL counts, as CRASH says.  All else is soft, which is
 * linked behind it under the same names.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define THREADS 8

static int *volatile nowhere;
static volatile int zero;

static void *fault(void *unused)
{
	(void)unused;
	*nowhere = 1;
	return NULL;
}

/* As threads of libraries often are. */
static void *fault_without_signals(void *unused)
{
	sigset_t all;

	sigfillset(&all);
	sigdelset(&all, SIGSEGV);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	return fault(unused);
}

static void fault_in_threads(int count, void *(*function)(void *))
{
	pthread_t threads[THREADS];

	for (int i = 0; i < count; i++)
		pthread_create(&threads[i], NULL, function, NULL);
	for (int i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
}

static int endless(volatile char *above)
{
	volatile char frame[4096];

	frame[0] = *above;
	return endless(frame) + frame[1];
}

static int crash(const char *how)
{
	char byte = 0;

	if (!strcmp(how, "segv"))
		fault(NULL);
	else if (!strcmp(how, "fpe"))
		return getpid() / zero;
	else if (!strcmp(how, "ill"))
		__builtin_trap();
	else if (!strcmp(how, "abort"))
		abort();
	else if (!strcmp(how, "call"))
		((void (*)(void))nowhere)();
	else if (!strcmp(how, "stack"))
		return endless(&byte);
	else if (!strcmp(how, "thread"))
		fault_in_threads(1, fault_without_signals);
	else if (!strcmp(how, "threads"))
		fault_in_threads(THREADS, fault);
	else if (!strcmp(how, "free")) {
		/* The C library finds that out. */
		void *volatile block = malloc(24);

		free(block);
		free(block);
	} else if (!strcmp(how, "locked")) {
		flockfile(stderr);
		fault(NULL);
	}
	return 0;
}

int rdma_connect(void *id, void *param)
{
	static int calls;
	void *soft = dlopen("librdmarun-soft.so", RTLD_NOW | RTLD_NOLOAD);
	int (*connect)(void *, void *) = (int (*)(void *, void *))dlsym(soft, "rdma_connect");

	if (calls++ == atoi(getenv("CRASH_CALL")))
		return crash(getenv("CRASH"));
	return connect(id, param);
}
