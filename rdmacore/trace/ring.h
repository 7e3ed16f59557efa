/*
 * The ring of one process, as its memory file has it: a header, then records one after another, which wrap around. The
 * process writes; rdmarun reads. host/trace/ring.go has the same layout, and takes nothing of it for granted.
 *
 * A record is reserved by moving the tail, and is valid once its state has TRACE_COMMITTED. rdmarun fills what it has
 * read with zeros before it moves the head. So the state of a record that nothing has been written to is 0.
 */
#ifndef TRACE_RING_H
#define TRACE_RING_H

#include <stdatomic.h>
#include <stdint.h>

#define TRACE_MAGIC UINT64_C(0x6563617274616d64) /* "dmatrace" */
#define TRACE_VERSION 4
#define TRACE_HEADER_SIZE 4096
#define TRACE_RING_SIZE (4 << 20)
#define TRACE_LINE 128 /* bytes apart so that two writers do not share a line of the cache, or a pair of lines */

/* A pair of times that were read together. */
struct trace_clock {
	uint64_t ticks; /* trace_ticks */
	uint64_t nanoseconds; /* CLOCK_MONOTONIC */
};

struct trace_header {
	uint64_t magic;
	uint32_t version;
	uint32_t table; /* TRACE_TABLE, of the calls that the library knows */
	uint32_t process; /* as the process itself sees it */
	uint32_t parent;
	uint64_t size; /* TRACE_RING_SIZE */
	struct trace_clock clocks[2]; /* some time apart */
	/* What writers change. */
	_Alignas(TRACE_LINE) _Atomic uint64_t tail; /* bytes reserved since the beginning */
	_Atomic uint64_t seen_head; /* head, as a writer has seen it */
	/* What the reader changes. */
	_Alignas(TRACE_LINE) _Atomic uint64_t head; /* bytes read since the beginning */
	_Alignas(TRACE_LINE) _Atomic uint64_t lost; /* calls without room for their record */
	_Atomic uint64_t exits; /* 1: the process ends by itself. Otherwise a signal ends it. */
};

enum trace_kind {
	TRACE_ENTER = 1, /* a control call begins: its arguments */
	TRACE_CALL, /* a control call has returned: its arguments and results */
	TRACE_DATA, /* a data call has returned: arguments and results */
	TRACE_POLLS, /* empty polls, folded: the queue */
	TRACE_CLOCK, /* a pair of times: end, and words[0] in nanoseconds */
	TRACE_UNSEEN, /* something that is not traced: a text */
	TRACE_IMAGE, /* a file that the process has mapped: its base, its first and last address, its path */
	TRACE_FORK, /* the process is about to fork */
};

/* Flags of a record's state. */
#define TRACE_COMMITTED 1u
#define TRACE_NESTED 2u /* one of the two libraries made the call, within another call */
#define TRACE_TRUNCATED 4u /* the end is missing, because the record would be too long */
#define TRACE_IN_HANDLER 8u /* a signal handler has made the call */
#define TRACE_CONTINUES 16u /* the next record of this poll, which its thread writes next, has further completions */

/* The state: size in bytes, kind, flags and number of the call. */
#define TRACE_STATE(size, kind, flags, call) \
	((uint64_t)(size) | (uint64_t)(kind) << 32 | (uint64_t)(flags) << 40 | (uint64_t)(call) << 48)

/*
 * Where a call was made: the address that it returns to, and those that its callers return to, as far as frame pointers
 * lead. Inline verbs are functions of their own in programs that are compiled without optimization. 0: not known.
 */
#define TRACE_FRAMES 3
struct trace_site {
	uint64_t frames[TRACE_FRAMES];
};

struct trace_record {
	_Atomic uint64_t state;
	uint32_t thread;
	int32_t error; /* errno after the call */
	uint64_t start, end; /* ticks */
	int64_t result;
	uint64_t folded; /* empty polls: of TRACE_POLLS, or before this poll */
	struct trace_site site;
	uint64_t words[];
};

#endif
