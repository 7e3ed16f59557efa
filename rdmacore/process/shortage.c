/*
 * Limits that are too low for Go's runtime, which would end with a traceback or by SIGABRT. A constructor, which is
 * the only C code before main, checks them. It tries to use each resource and does not compute, because it is
 * unknown how much of a limit is in use.
 */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "process.h"

/*
 * For a run of a small scenario with Go 1.26. The runtime reserves 0.7 GiB for its tables, the keys of soft's device
 * 64 MiB, and each thread has a stack of 8 MiB.
 */
#define ADDRESS_SPACE ((size_t)1400 << 20)
#define DESCRIPTORS 16
#define THREADS 12
/* A limit of more processes was not set for rdmarun. */
#define MANY_PROCESSES 4096

static void add_limit(struct sentence *sentence, rlim_t limit, uint64_t unit)
{
	if (limit == RLIM_INFINITY)
		sentence_add(sentence, "unlimited");
	else
		sentence_add_decimal(sentence, limit / unit);
}

static void end(struct sentence *sentence)
{
	sentence_write(sentence);
	_exit(PROCESS_EXIT_ENVIRONMENT);
}

/* Files that are opened later must not become stdout. */
static void open_standard_descriptors(void)
{
	for (int descriptor = 0; descriptor <= 2; descriptor++)
		if (fcntl(descriptor, F_GETFD) < 0 && errno == EBADF && open("/dev/null", O_RDWR) < 0)
			return; /* Go's runtime tries again, and reports the reason */
}

static bool has_descriptors(void)
{
	int taken[DESCRIPTORS];
	int count = 0;

	while (count < DESCRIPTORS && (taken[count] = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0)) >= 0)
		count++;
	for (int i = 0; i < count; i++)
		close(taken[i]);
	return count == DESCRIPTORS;
}

static void check_descriptors(void)
{
	struct sentence sentence = {0};
	struct rlimit given, raised;
	bool enough = has_descriptors();

	if (enough || getrlimit(RLIMIT_NOFILE, &given))
		return;
	/* Go raises the limit to its maximum; programs that it starts get the original one. */
	raised = given;
	raised.rlim_cur = given.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &raised) == 0) {
		enough = has_descriptors();
		setrlimit(RLIMIT_NOFILE, &given);
	}
	if (enough)
		return;
	sentence_add(&sentence, "rdmarun: too few file descriptors: ");
	sentence_add_decimal(&sentence, DESCRIPTORS);
	sentence_add(&sentence, " more are needed to begin, and the limit is ");
	add_limit(&sentence, given.rlim_max, 1);
	sentence_add(&sentence, " in all\n  hint: raise it: ulimit -n 1024\n");
	end(&sentence);
}

static bool has_address_space(size_t size)
{
	void *memory = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (memory == MAP_FAILED)
		return false;
	munmap(memory, size);
	return true;
}

static void check_address_space(void)
{
	struct sentence sentence = {0};
	struct rlimit limit;

	if (getrlimit(RLIMIT_AS, &limit) || limit.rlim_cur == RLIM_INFINITY)
		return;
	/* By default the C library reserves 64 MiB for each thread that allocates. */
	mallopt(M_ARENA_MAX, 1);
	if (has_address_space(ADDRESS_SPACE))
		return;
	sentence_add(&sentence, "rdmarun: too little address space: ");
	sentence_add_decimal(&sentence, ADDRESS_SPACE >> 10);
	sentence_add(&sentence, " KiB more are needed to begin, and the limit is ");
	add_limit(&sentence, limit.rlim_cur, 1024);
	sentence_add(&sentence, " KiB in all\n"
		     "  hint: raise it: ulimit -v unlimited; what limits memory and not addresses is a control group\n");
	end(&sentence);
}

static void *wait_for_all(void *barrier)
{
	pthread_mutex_lock(barrier);
	pthread_mutex_unlock(barrier);
	return NULL;
}

static bool has_threads(void)
{
	pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
	pthread_t threads[THREADS];
	int count = 0;

	pthread_mutex_lock(&gate);
	while (count < THREADS && pthread_create(&threads[count], NULL, wait_for_all, &gate) == 0)
		count++;
	pthread_mutex_unlock(&gate);
	for (int i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	return count == THREADS;
}

static void add_shortage_of_processes(struct sentence *sentence)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NPROC, &limit))
		limit.rlim_cur = RLIM_INFINITY;
	sentence_add(sentence, "rdmarun: no more threads can be made: the limit of this user's processes is ");
	add_limit(sentence, limit.rlim_cur, 1);
	sentence_add(sentence, ", and a control group may have one of its own\n"
		     "  hint: raise it: ulimit -u, or pids.max of the control group (--pids-limit of a container)\n");
}

static void check_threads(void)
{
	struct sentence sentence = {0};
	struct rlimit limit;

	if (getrlimit(RLIMIT_NPROC, &limit) || limit.rlim_cur > MANY_PROCESSES || has_threads())
		return;
	add_shortage_of_processes(&sentence);
	end(&sentence);
}

__attribute__((constructor)) static void check_limits(void)
{
	open_standard_descriptors();
	check_descriptors();
	check_address_space();
	check_threads();
}

/* vfork counts in all limits of threads, and needs no stack. */
static bool has_process(void)
{
	pid_t child = vfork();

	if (child == 0)
		_exit(0);
	if (child < 0)
		return errno != EAGAIN;
	while (waitpid(child, NULL, __WALL) < 0 && errno == EINTR)
		;
	return true;
}

bool shortage_of_threads(size_t stack_size, struct sentence *sentence)
{
	struct rlimit limit;

	if (!has_process()) {
		add_shortage_of_processes(sentence);
		return true;
	}
	if (getrlimit(RLIMIT_AS, &limit) || limit.rlim_cur == RLIM_INFINITY || has_address_space(stack_size))
		return false;
	sentence_add(sentence, "rdmarun: no more threads can be made: the limit of address space, ");
	add_limit(sentence, limit.rlim_cur, 1024);
	sentence_add(sentence, " KiB, is reached\n  hint: raise it: ulimit -v unlimited\n");
	return true;
}
