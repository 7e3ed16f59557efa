#include "trace.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

/*
 * RDMARUN_EXEC_TRACE is the name of an abstract unix socket and a token, which other users of the host do not know. A
 * process makes its ring at its first call, sends it to that socket, and waits for a byte. rdmarun sends this byte when
 * it reads the ring, so it sees the calls of the process before those of others that they cause. Both descriptors are
 * closed then, so that the program has those that it would have without. A process that could not make a ring sends the
 * errno behind the token, as a decimal number, in place of a descriptor. Further words of the setting: "complete" is
 * for readers that need all data calls. "memory" is for those that need to know what happens to memory and in signal
 * handlers (memory.c, handler.c). "contents" is for those that need to know what messages contain (contents.c).
 */
#define SETTING "RDMARUN_EXEC_TRACE"
#define TOKEN_MAX 64
#define CONNECT_TIME 10 /* seconds that each step of handing over the ring takes at most, and all retries together */

#define CALIBRATION 100000 /* nanoseconds between the pairs of times of the header */
/* Pairs of times follow at growing distances: the longer the span, the better they say how long a tick is. */
#define SYNC_FIRST 500000 /* nanoseconds until the first of them */
#define SYNC_LAST 500000000 /* the longest distance */
#define FULL_PAUSE 50000 /* nanoseconds between two looks of a control call at a full ring */
#define FULL_PAUSES 400 /* of them, 20 ms, until its record is lost */
#define COMPLETE_PAUSES 40000 /* of them, 2 s, where the reader needs all calls */

enum { CLOSED, OPEN, OFF };

static struct {
	_Atomic int state;
	pthread_mutex_t lock;
	struct trace_header *header;
	unsigned char *data; /* mapped twice, one after the other, so that a record has no gap */
	_Atomic uint64_t gave_up; /* the head at which a wait for room has failed, plus 1: rdmarun may be gone */
	bool complete; /* data calls wait for room, too */
	bool counts; /* the processor's counter is a clock */
	_Atomic uint64_t next_sync, sync_period, longest_period; /* ticks */
} ring = {.lock = PTHREAD_MUTEX_INITIALIZER};

__thread struct trace_thread trace_self;

static uint64_t nanoseconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

/* Reading CLOCK_MONOTONIC costs 25 to 65 ns, and a record has two times. */
uint64_t trace_ticks(void)
{
#if defined(__x86_64__)
	if (ring.counts)
		return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
	uint64_t ticks;

	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
	return ticks;
#endif
	return nanoseconds();
}

/* Whether the counter of the processor has one rate, also when the processor changes its own or sleeps. */
static bool counter_is_invariant(void)
{
#if defined(__x86_64__)
	unsigned int a, b, c, d;

	return __get_cpuid(0x80000007, &a, &b, &c, &d) && (d & 1u << 8);
#else
	return false;
#endif
}

#define CLOCK_TRIES 4

/* The best of some tries: this thread may lose the processor between two readings. */
static struct trace_clock clock_now(void)
{
	struct trace_clock best = {0};
	uint64_t error = UINT64_MAX;

	for (int i = 0; i < CLOCK_TRIES; i++) {
		uint64_t before = trace_ticks(), middle = nanoseconds(), after = trace_ticks();

		if (after - before < error) {
			error = after - before;
			best = (struct trace_clock){before + error / 2, middle};
		}
	}
	return best;
}

/* A memory file of that size, which can never shrink: rdmarun takes no other. */
static int make_file(size_t size)
{
	int file = memfd_create("rdmarun-trace", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (file < 0)
		return -1;
	if (ftruncate(file, (off_t)size) || fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW)) {
		close(file);
		return -1;
	}
	return file;
}

/* With all pages: the first touch of each would cost a data call more than its record. */
static bool map_file(int file)
{
	unsigned char *area = mmap(NULL, TRACE_HEADER_SIZE + 2 * (size_t)TRACE_RING_SIZE, PROT_NONE,
				   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	int protection = PROT_READ | PROT_WRITE, flags = MAP_SHARED | MAP_FIXED | MAP_POPULATE;

	if (area == MAP_FAILED)
		return false;
	if (mmap(area, TRACE_HEADER_SIZE + TRACE_RING_SIZE, protection, flags, file, 0) == MAP_FAILED ||
	    mmap(area + TRACE_HEADER_SIZE + TRACE_RING_SIZE, TRACE_RING_SIZE, protection, flags, file,
		 TRACE_HEADER_SIZE) == MAP_FAILED) {
		munmap(area, TRACE_HEADER_SIZE + 2 * (size_t)TRACE_RING_SIZE);
		return false;
	}
	ring.header = (struct trace_header *)area;
	ring.data = area + TRACE_HEADER_SIZE;
	return true;
}

/* Whether a signal has interrupted a call that may be tried again until that time. */
static bool interrupted(uint64_t until)
{
	return errno == EINTR && nanoseconds() < until;
}

/* A connection to rdmarun, or -1. */
static int connect_to(const char *name, size_t name_length, uint64_t until)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct timeval limit = {CONNECT_TIME, 0};
	int connection = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), result;

	if (connection < 0)
		return -1;
	memcpy(address.sun_path + 1, name, name_length); /* abstract: it begins with a NUL */
	setsockopt(connection, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	do {
		result = connect(connection, (struct sockaddr *)&address,
				 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + name_length));
	} while (result && interrupted(until));
	if (result) {
		close(connection);
		return -1;
	}
	return connection;
}

/* Send text with the ring's file, unless that is -1, and wait until rdmarun reads the ring. */
static bool hand_over(int connection, const char *text, int file, uint64_t until)
{
	char control[CMSG_SPACE(sizeof(int))] = {0}, answer;
	struct iovec part = {(void *)(uintptr_t)text, strlen(text)};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
	ssize_t count;

	if (file >= 0) {
		message.msg_control = control;
		message.msg_controllen = sizeof(control);
		struct cmsghdr *rights = CMSG_FIRSTHDR(&message);

		rights->cmsg_level = SOL_SOCKET;
		rights->cmsg_type = SCM_RIGHTS;
		rights->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(rights), &file, sizeof(int));
	}
	do {
		count = sendmsg(connection, &message, MSG_NOSIGNAL);
	} while (count < 0 && interrupted(until));
	if (count < 0)
		return false;
	do {
		count = recv(connection, &answer, 1, 0);
	} while (count < 0 && interrupted(until));
	return count == 1;
}

/* Whether the setting has that word behind the token. */
static bool is_asked_for(const char *setting, const char *word)
{
	const char *token = setting ? strchr(setting, ' ') : NULL, *words = token ? strchr(token + 1, ' ') : NULL;

	return words && strstr(words, word);
}

/* A ring with its first pairs of times: its file, or -1 with errno. */
static int make_ring(void)
{
	int file = make_file(TRACE_HEADER_SIZE + TRACE_RING_SIZE);

	if (file < 0)
		return -1;
	if (!map_file(file)) {
		int error = errno;

		close(file);
		errno = error;
		return -1;
	}
	ring.counts = counter_is_invariant();
	*ring.header = (struct trace_header){
		.magic = TRACE_MAGIC, .version = TRACE_VERSION, .table = TRACE_TABLE, .process = (uint32_t)getpid(),
		.parent = (uint32_t)getppid(), .size = TRACE_RING_SIZE, .clocks = {clock_now()},
	};
	while (nanoseconds() - ring.header->clocks[0].nanoseconds < CALIBRATION)
		;
	ring.header->clocks[1] = clock_now();
	ring.sync_period = (ring.header->clocks[1].ticks - ring.header->clocks[0].ticks) * (SYNC_FIRST / CALIBRATION);
	ring.longest_period = ring.sync_period * (SYNC_LAST / SYNC_FIRST);
	ring.next_sync = ring.header->clocks[1].ticks + ring.sync_period;
	return file;
}

static void unmap_ring(void)
{
	munmap(ring.header, TRACE_HEADER_SIZE + 2 * (size_t)TRACE_RING_SIZE);
	ring.header = NULL;
}

static bool open_ring(void)
{
	const char *setting = getenv(SETTING), *token = setting ? strchr(setting, ' ') : NULL;
	size_t name_length = token ? (size_t)(token - setting) : 0, token_length;
	char text[TOKEN_MAX + sizeof(" 2147483647")];
	uint64_t until = nanoseconds() + CONNECT_TIME * UINT64_C(1000000000);
	bool opened;
	int connection, file;

	if (!token || name_length >= sizeof(((struct sockaddr_un *)0)->sun_path) - 1)
		return false;
	token_length = strcspn(++token, " ");
	if (token_length > TOKEN_MAX)
		return false;
	ring.complete = is_asked_for(setting, "complete");
	connection = connect_to(setting, name_length, until);
	if (connection < 0)
		return false; /* rdmarun has ended */
	file = make_ring();
	if (file >= 0) {
		snprintf(text, sizeof(text), "%.*s", (int)token_length, token);
		trace_images();
	} else {
		snprintf(text, sizeof(text), "%.*s %d", (int)token_length, token, errno);
	}
	opened = hand_over(connection, text, file, until) && file >= 0;
	if (file >= 0) {
		if (!opened)
			unmap_ring();
		close(file);
	}
	close(connection);
	return opened;
}

/* The parent's ring stays the parent's. */
static void in_child(void)
{
	pthread_mutex_init(&ring.lock, NULL);
	trace_map_forget_lock();
	trace_memory_forget_lock();
	if (ring.header)
		unmap_ring();
	ring.gave_up = 0;
	ring.state = CLOSED;
	trace_self.id = 0;
	trace_self.polls = 0;
}

static __attribute__((constructor)) void begin(void)
{
	const char *setting = getenv(SETTING);

	pthread_atfork(NULL, NULL, in_child);
	if (is_asked_for(setting, "memory")) { /* a program sets its handlers before its first call */
		trace_memory_watch(false);
		trace_handlers_watch();
	} else if (is_asked_for(setting, "contents")) {
		trace_memory_watch(true);
	}
}

/* Only the parent of a process learns its status, and that may be another one than rdmarun. */
static __attribute__((destructor)) void exits(void)
{
	if (ring.header)
		atomic_store_explicit(&ring.header->exits, 1, memory_order_relaxed);
}

/* _exit(2) runs no destructor. It must be safe after fork and in signal handlers, where dlsym(3) is not. */
TRACE_EXPORT _Noreturn void _exit(int status)
{
	exits();
	for (;;)
		syscall(SYS_exit_group, status);
}

TRACE_EXPORT _Noreturn void _Exit(int status)
{
	_exit(status);
}

/* Only a process that has made calls is of interest. A handler of pthread_atfork would not know who forks. */
TRACE_EXPORT pid_t fork(void)
{
	pid_t (*next)(void) = (pid_t (*)(void))dlsym(RTLD_NEXT, "fork");
	struct trace_call call = {.number = 0};
	int error = errno;

	if (ring.state == OPEN) {
		call.site = TRACE_SITE;
		trace_note(TRACE_FORK, &call);
		errno = error;
	}
	return next();
}

bool trace_on(void)
{
	int state = atomic_load_explicit(&ring.state, memory_order_acquire), error = errno;

	if (state != CLOSED)
		return state == OPEN;
	pthread_mutex_lock(&ring.lock);
	if (ring.state == CLOSED)
		atomic_store_explicit(&ring.state, open_ring() ? OPEN : OFF, memory_order_release);
	pthread_mutex_unlock(&ring.lock);
	errno = error;
	return ring.state == OPEN;
}

uint32_t trace_thread_id(void)
{
	if (!trace_self.id)
		trace_self.id = (uint32_t)syscall(SYS_gettid);
	return trace_self.id;
}

/* Reserve size bytes: the offset from the beginning of all records, or UINT64_MAX if the ring is full. */
static uint64_t reserve(uint64_t size)
{
	struct trace_header *header = ring.header;
	uint64_t tail = atomic_load_explicit(&header->tail, memory_order_relaxed);

	do {
		if (tail + size - atomic_load_explicit(&header->seen_head, memory_order_relaxed) > TRACE_RING_SIZE) {
			/* Acquire: the zeros behind the head come before it. */
			uint64_t head = atomic_load_explicit(&header->head, memory_order_acquire);

			if (tail + size - head > TRACE_RING_SIZE)
				return UINT64_MAX;
			atomic_store_explicit(&header->seen_head, head, memory_order_release);
		}
		atomic_thread_fence(memory_order_acquire); /* with the release of seen_head by another thread */
	} while (!atomic_compare_exchange_weak_explicit(&header->tail, &tail, tail + size, memory_order_relaxed,
							memory_order_relaxed));
	return tail;
}

/* A control call waits for room, but not again while the reader has not moved. */
static uint64_t reserve_patiently(uint64_t size)
{
	struct timespec pause = {0, FULL_PAUSE};
	int pauses = ring.complete ? COMPLETE_PAUSES : FULL_PAUSES;
	uint64_t at = reserve(size), head;

	for (int i = 0; at == UINT64_MAX && i < pauses; i++) {
		head = atomic_load_explicit(&ring.header->head, memory_order_relaxed);
		if (ring.gave_up == head + 1)
			return UINT64_MAX;
		nanosleep(&pause, NULL);
		at = reserve(size);
		if (at == UINT64_MAX && i == pauses - 1)
			ring.gave_up = head + 1;
	}
	return at;
}

struct trace_record *trace_reserve(enum trace_kind kind, uint16_t number, uint32_t words)
{
	uint64_t size = sizeof(struct trace_record) + words * sizeof(uint64_t);
	bool data = kind == TRACE_DATA || kind == TRACE_POLLS || kind == TRACE_CLOCK;
	uint64_t at = data && !ring.complete ? reserve(size) : reserve_patiently(size);
	struct trace_record *record;

	if (at == UINT64_MAX) {
		if (kind == TRACE_CALL || kind == TRACE_DATA)
			atomic_fetch_add_explicit(&ring.header->lost, 1, memory_order_relaxed);
		return NULL;
	}
	record = (struct trace_record *)(ring.data + at % TRACE_RING_SIZE);
	/* Not committed yet. If this thread is killed now, the reader knows how long the gap is. */
	atomic_store_explicit(&record->state, TRACE_STATE(size, kind, 0, number), memory_order_relaxed);
	record->thread = trace_thread_id();
	record->folded = 0;
	record->site = (struct trace_site){0};
	return record;
}

void trace_commit(struct trace_record *record, unsigned int flags)
{
	uint64_t state = atomic_load_explicit(&record->state, memory_order_relaxed);

	flags |= TRACE_COMMITTED | (trace_in_handler() ? TRACE_IN_HANDLER : 0);
	atomic_store_explicit(&record->state, state | (uint64_t)flags << 40, memory_order_release);
}

void trace_sync(uint64_t now)
{
	uint64_t due = atomic_load_explicit(&ring.next_sync, memory_order_relaxed), period = ring.sync_period;
	struct trace_record *record;
	struct trace_clock clock;

	if (now < due || !atomic_compare_exchange_strong(&ring.next_sync, &due, now + 2 * period))
		return;
	if (period < ring.longest_period)
		ring.sync_period = 2 * period;
	record = trace_reserve(TRACE_CLOCK, 0, 1);
	if (!record)
		return;
	clock = clock_now();
	record->start = 0;
	record->end = clock.ticks;
	record->words[0] = clock.nanoseconds;
	trace_commit(record, 0);
}

void trace_unseen(const char *text)
{
	struct trace_call call = {.number = 0};

	if (!trace_on())
		return;
	trace_put_string(&call, text);
	trace_note(TRACE_UNSEEN, &call);
}

void trace_note(enum trace_kind kind, const struct trace_call *call)
{
	struct trace_record *record = trace_reserve(kind, 0, call->count);

	if (!record)
		return;
	record->site = call->site;
	record->start = record->end = trace_ticks();
	memcpy(record->words, call->words, call->count * sizeof(uint64_t));
	trace_commit(record, 0);
}
