/*
 * Destructors of C++'s thread_local objects, which wasi-libc leaves to others. They run at the end of their thread,
 * the last object first.  At exit, those of the thread that calls it run.
 */
#include <pthread.h>
#include <stdlib.h>
#include "internal.h"

struct destructor {
	void (*run)(void *);
	void *object;
	struct destructor *before;
};

/* Its value is the last destructor of the thread. */
static pthread_key_t key;

static void run_from(void *last)
{
	for (struct destructor *each = last, *before; each; each = before) {
		before = each->before;
		each->run(each->object);
		free(each);
	}
}

/* A destructor may make further objects. */
static void run_all(void)
{
	for (void *last; (last = pthread_getspecific(key));) {
		pthread_setspecific(key, NULL);
		run_from(last);
	}
}

int __cxa_thread_atexit(void (*run)(void *), void *object, void *library)
{
	static bool ready;
	struct destructor *made = malloc(sizeof(*made));

	(void)library;
	if (!made)
		return -1;
	if (!ready) {
		if (pthread_key_create(&key, run_from) || atexit(run_all)) {
			free(made);
			return -1;
		}
		ready = true;
	}
	*made = (struct destructor){run, object, pthread_getspecific(key)};
	return pthread_setspecific(key, made) ? -1 : 0;
}
