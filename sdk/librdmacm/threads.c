/*
 * Threads.  They are green: one runs until it waits for something that is not there, and the next goes on.  WebAssembly
 * has no way to leave a stack and come back; Asyncify (wasm-opt) rewrites the program so that it has.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "internal.h"

#define ASYNCIFY(name) __attribute__((import_module("asyncify"), import_name(#name)))
ASYNCIFY(start_unwind) void asyncify_start_unwind(void *);
ASYNCIFY(stop_unwind) void asyncify_stop_unwind(void);
ASYNCIFY(start_rewind) void asyncify_start_rewind(void *);
ASYNCIFY(stop_rewind) void asyncify_stop_rewind(void);

uint32_t stack_pointer(void);
void set_stack_pointer(uint32_t);
void set_variables(uint32_t);

/*
 * Begin and end of the variables by thread. build adds both around a program that has such variables. Those of main are
 * where the linker has put them. Each other thread has a copy of their first values, and set_variables its distance.
 */
__attribute__((weak)) char *rdmarun_variables_begin(void);
__attribute__((weak)) char *rdmarun_variables_end(void);
enum { ALIGNMENT_OF_VARIABLES = 64 };

/* Of a thread: what Asyncify saves of it, and its stack.  A write beyond the stack's end meets the mark first. */
enum { SAVED = 64 << 10, STACK = 256 << 10, STACK_OF_MAIN = 1 << 20, MARK = 0x5ca1ab1e };

struct thread {
	struct {
		char *at, *end;
	} saved; /* as Asyncify wants it */
	uint32_t *mark;
	char *memory, *variables;
	uint32_t sp;
	bool started, rewinding, done, detached, cancelled;
	void *(*run)(void *);
	void *argument, *result;
	struct wait *wait; /* NULL: can go on */
	bool found;        /* the host has something for wait */
	int error;         /* its errno, while others run */
	uint32_t distance; /* from main's variables to its own */
	void *values[PTHREAD_KEYS_MAX];
	struct thread *next;
};
static struct thread *threads, *current;
static uint32_t home; /* the scheduler's own stack */

__attribute__((noreturn)) static void die(const char *why)
{
	fprintf(stderr, "librdmacm: %s\n", why);
	abort();
}

/* Looked at whenever a thread waits, and when it ends. */
static void check_stack(const struct thread *thread)
{
	if (*thread->mark == MARK && (thread->done || stack_pointer() > (uint32_t)(uintptr_t)thread->mark))
		return;
	set_stack_pointer(home); /* what lies beyond the stack is not to be written to further */
	die("a thread's stack has overflowed");
}

/* Called by a thread, or before main: then the values are the first ones. */
static bool copy_variables(struct thread *thread)
{
	static char *first_values, *of_main;
	static size_t size;

	if (!rdmarun_variables_begin)
		return true;
	if (!first_values) {
		of_main = rdmarun_variables_begin();
		size = (size_t)(rdmarun_variables_end() - of_main);
		first_values = malloc(size);
		if (first_values)
			memcpy(first_values, of_main, size);
		return first_values;
	}
	thread->variables =
		aligned_alloc(ALIGNMENT_OF_VARIABLES, (size + ALIGNMENT_OF_VARIABLES - 1) & -(size_t)ALIGNMENT_OF_VARIABLES);
	if (!thread->variables)
		return false;
	memcpy(thread->variables, first_values, size);
	thread->distance = (uint32_t)(uintptr_t)thread->variables - (uint32_t)(uintptr_t)of_main;
	return true;
}

static struct thread *new_thread(void *(*run)(void *), void *argument, size_t stack)
{
	struct thread *thread = calloc(1, sizeof(*thread)), **end = &threads;

	if (thread)
		thread->memory = aligned_alloc(16, SAVED + 16 + stack);
	if (!thread || !thread->memory || !copy_variables(thread)) {
		if (thread)
			free(thread->memory);
		free(thread);
		return NULL;
	}
	thread->run = run;
	thread->argument = argument;
	thread->saved.at = thread->memory;
	thread->saved.end = thread->memory + SAVED;
	thread->mark = (uint32_t *)(thread->memory + SAVED);
	*thread->mark = MARK;
	thread->sp = (uint32_t)(uintptr_t)(thread->memory + SAVED + 16 + stack);
	while (*end)
		end = &(*end)->next;
	*end = thread;
	return thread;
}

static void free_thread(struct thread *thread)
{
	struct thread **at = &threads;

	while (*at != thread)
		at = &(*at)->next;
	*at = thread->next;
	free(thread->variables);
	free(thread->memory);
	free(thread);
}

/* Leaves this thread's stack; returns when the scheduler goes on with it. */
__attribute__((noinline)) static void leave(void)
{
	if (current->rewinding) {
		asyncify_stop_rewind();
		current->rewinding = false;
		return;
	}
	current->sp = stack_pointer();
	asyncify_start_unwind(&current->saved);
}

/* In locks.c, which is linked only for programs that have such values, or locks other than mutexes. */
__attribute__((weak)) void destroy_values(void);

/* NULL after the end of all. */
void **values_of_thread(void) { return current ? current->values : NULL; }

__attribute__((noinline)) static void enter(struct thread *thread)
{
	thread->result = thread->run(thread->argument);
	if (destroy_values)
		destroy_values();
	thread->done = true;
	thread->wait = NULL;
}

/* Asyncify leaves alone what calls these functions of its: the bottom of every thread. */
__attribute__((noinline)) static void resume(struct thread *thread)
{
	home = stack_pointer();
	current = thread;
	errno = thread->error;
	set_variables(thread->distance);
	set_stack_pointer(thread->sp);
	if (thread->started) {
		thread->rewinding = true;
		asyncify_start_rewind(&thread->saved);
	}
	thread->started = true;
	enter(thread);
	if (thread->wait)
		asyncify_stop_unwind();
	thread->error = errno;
	set_variables(0);
	check_stack(thread);
	set_stack_pointer(home);
	current = NULL;
}

static bool can_run(const struct thread *thread)
{
	const struct wait *wait = thread->wait;

	if (thread->done || thread == current)
		return false;
	return !wait || thread->cancelled || thread->found || (thread == threads && signals && signals->due()) ||
	       (wait->deadline > 0 && clock_now() >= wait->deadline) ||
	       ((!wait->count || wait->local) && wait->ready(wait->object));
}

static bool any_can_run(void)
{
	if (current)
		check_stack(current);
	for (const struct thread *thread = threads; thread; thread = thread->next)
		if (can_run(thread))
			return true;
	return false;
}

static uint32_t gather(struct rdmarun_poll_entry *entries, uint32_t count, uint32_t room, int64_t *deadline)
{
	for (const struct thread *thread = threads; thread; thread = thread->next) {
		const struct wait *wait = thread->wait;

		if (thread == current || thread->done || !wait)
			continue;
		if (wait->deadline > 0 && (*deadline < 0 || wait->deadline < *deadline))
			*deadline = wait->deadline;
		if (count + wait->count > room)
			die("its threads wait for too much");
		memcpy(entries + count, wait->entries, wait->count * sizeof(*entries));
		count += wait->count;
	}
	return count;
}

static void scatter(const struct rdmarun_poll_entry *entries, uint32_t first)
{
	for (struct thread *thread = threads; thread; thread = thread->next) {
		const struct wait *wait = thread->wait;

		if (thread == current || thread->done || !wait)
			continue;
		for (uint32_t i = 0; i < wait->count; i++)
			thread->found |= entries[first + i].revents != 0;
		first += wait->count;
	}
}

__attribute__((noinline)) static void run_others(struct wait *wait)
{
	if (!current) /* the scheduler itself waits */
		return;
	current->wait = wait;
	current->found = false;
	leave();
	current->wait = NULL;
	if (current->cancelled)
		pthread_exit(PTHREAD_CANCELED);
}

/* main's, which is the first. */
static bool handles_signals(void) { return current && current == threads; }

static const struct other_threads green_threads = {
	.gather = gather, .scatter = scatter, .runnable = any_can_run, .handles_signals = handles_signals, .run = run_others};

static bool scheduler_ready(void *unused)
{
	(void)unused;
	return any_can_run();
}

static void *run_main(void *unused)
{
	(void)unused;
	return (void *)(intptr_t)__main_void();
}

int run_with_threads(void)
{
	struct wait anybody = {.ready = scheduler_ready};
	struct thread *first, *next;

	other_threads = &green_threads;
	first = new_thread(run_main, NULL, STACK_OF_MAIN);
	if (!first)
		die("no memory for threads");
	while (!first->done) {
		if (!any_can_run() && wait_for(&anybody, -1))
			return 1; /* the run has ended */
		for (struct thread *thread = threads; thread && !first->done; thread = next) {
			if (can_run(thread))
				resume(thread);
			next = thread->next;
			if (thread->done && thread->detached)
				free_thread(thread);
		}
	}
	return (int)(intptr_t)first->result;
}

int pthread_create(pthread_t *made, const pthread_attr_t *attr, void *(*run)(void *), void *argument)
{
	struct thread *thread = new_thread(run, argument, attr && attr->__u.__i[1] ? (size_t)attr->__u.__i[1] : STACK);

	if (!thread)
		return EAGAIN;
	thread->detached = attr && attr->__u.__i[0] == PTHREAD_CREATE_DETACHED;
	*made = (pthread_t)thread;
	return 0;
}

static bool is_done(void *thread) { return ((struct thread *)thread)->done; }

int pthread_join(pthread_t which, void **result)
{
	struct thread *thread = (struct thread *)which;
	struct wait wait = {.ready = is_done, .object = thread, .restart = RESTART_ALWAYS};
	int ended = wait_for(&wait, -1);

	if (ended)
		return ended;
	if (result)
		*result = thread->result;
	free_thread(thread);
	return 0;
}

int pthread_detach(pthread_t thread)
{
	((struct thread *)thread)->detached = true;
	return 0;
}

static bool never(void *unused)
{
	(void)unused;
	return false;
}

void pthread_exit(void *result)
{
	static struct wait for_ever = {.ready = never, .deadline = -1};

	if (destroy_values)
		destroy_values();
	current->result = result;
	current->done = true;
	current->wait = &for_ever;
	leave();
	__builtin_unreachable();
}

/* It ends where it waits, or waits next. */
int pthread_cancel(pthread_t thread)
{
	((struct thread *)thread)->cancelled = true;
	return 0;
}

void pthread_testcancel(void)
{
	if (current->cancelled)
		pthread_exit(PTHREAD_CANCELED);
}

pthread_t pthread_self(void) { return (pthread_t)current; }

int pthread_equal(pthread_t a, pthread_t b) { return a == b; }

int pthread_attr_init(pthread_attr_t *attr)
{
	memset(attr, 0, sizeof(*attr));
	return 0;
}

int pthread_attr_destroy(pthread_attr_t *attr)
{
	(void)attr;
	return 0;
}

int pthread_attr_setdetachstate(pthread_attr_t *attr, int state)
{
	attr->__u.__i[0] = state;
	return 0;
}

int pthread_attr_getdetachstate(const pthread_attr_t *attr, int *state)
{
	*state = attr->__u.__i[0];
	return 0;
}

int pthread_attr_setstacksize(pthread_attr_t *attr, size_t size)
{
	if (size < PTHREAD_STACK_MIN || size > INT32_MAX / 2)
		return EINVAL;
	attr->__u.__i[1] = (int)((size + 15) / 16 * 16);
	return 0;
}

int pthread_attr_getstacksize(const pthread_attr_t *attr, size_t *size)
{
	*size = attr->__u.__i[1] ? (size_t)attr->__u.__i[1] : STACK;
	return 0;
}
