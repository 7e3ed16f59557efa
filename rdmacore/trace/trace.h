/*
 * The library of "rdmarun trace". It is preloaded in front of libibverbs and librdmacm, be they the system's or soft's,
 * and defines their functions. Each calls the next function of its name, and writes a record.
 *
 * Most functions are generated from host/trace/calls/calls.txt (calls.gen.c). Those with structure are written by hand.
 */
#ifndef TRACE_TRACE_H
#define TRACE_TRACE_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include "trace/calls.gen.h"
#include "trace/ring.h"

/* verbs.h defines macros of these names; the library defines the functions. */
#undef ibv_get_device_list
#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

#define TRACE_EXPORT __attribute__((visibility("default")))
/* Where the program calls the function that this is in. */
#define TRACE_SITE \
	trace_site(__builtin_extract_return_addr(__builtin_return_address(0)), __builtin_frame_address(0))
#define TRACE_WORDS 480 /* of a control call */
#define TRACE_BATCH_WORDS 400 /* of the requests between ibv_wr_start and ibv_wr_complete */
#define TRACE_REQUESTS 32 /* of a list that are recorded */
#define TRACE_SEGMENTS 8 /* of a request that are recorded */
#define TRACE_COMPLETIONS 64 /* in a record of a poll; further ones are in records that follow */
#define TRACE_COMPLETION_WORDS 5
#define TRACE_POLL_WORDS 3 /* before the completions of a poll */
#define TRACE_BYTES 256 /* of a string or private data that are recorded */

/* What each thread has of its own. */
struct trace_thread {
	uint32_t id; /* 0: not known yet */
	uint32_t depth; /* of traced calls within each other */
	uintptr_t stack_start, stack_end; /* 0: not known yet; the same: not known to the C library */
	uintptr_t handler; /* the frame of the signal handler that it is in; 0: none */
	/* Empty polls since the last record. */
	const void *polled; /* the queue */
	uint64_t polls, polls_start;
	uint16_t polls_call;
	/* Requests since ibv_wr_start. */
	struct {
		uint64_t start;
		uint32_t count; /* words */
		uint32_t requests, recorded;
		uint32_t segments; /* the word where the last request counts its segments; 0: it is not recorded */
		uint64_t words[TRACE_BATCH_WORDS];
	} batch;
	/* Completions since ibv_start_poll. */
	struct {
		uint64_t start;
		uint64_t empty; /* polls before it */
		uint32_t count; /* all of them */
		uint64_t words[TRACE_COMPLETIONS * TRACE_COMPLETION_WORDS];
	} taken;
};

extern __thread struct trace_thread trace_self;

/* A control call that is under way, on the stack of its thread. */
struct trace_call {
	uint16_t number;
	bool on, nested, truncated;
	uint32_t count;
	uint64_t start;
	struct trace_site site;
	uint64_t words[TRACE_WORDS];
};

/* ring.c */
bool trace_on(void); /* whether this process has a ring; opens it */
uint64_t trace_ticks(void);
uint32_t trace_thread_id(void);
/* Room for a record with that many words; NULL: there is none, and the record counts as lost. */
struct trace_record *trace_reserve(enum trace_kind kind, uint16_t number, uint32_t words);
void trace_commit(struct trace_record *record, unsigned int flags);
void trace_sync(uint64_t now); /* write a pair of times, if one is due */
void trace_unseen(const char *text);
void trace_note(enum trace_kind kind, const struct trace_call *call); /* write a record that is about no call */

/* call.c */
void trace_begin(struct trace_call *call, uint16_t number, struct trace_site site);
void trace_enter(struct trace_call *call); /* the arguments are complete */
/* The call has returned; errno becomes the one of the call again. */
void trace_end(struct trace_call *call, int64_t result);
void trace_put(struct trace_call *call, uint64_t word);
void trace_put_string(struct trace_call *call, const char *text);
void trace_put_bytes(struct trace_call *call, const void *bytes, size_t length);
void trace_put_sockaddr(struct trace_call *call, const struct sockaddr *address);
void trace_put_gid(struct trace_call *call, const union ibv_gid *gid);
void trace_polls_flush(void); /* write a record of the folded polls of this thread */

/* handler.c: signal handlers. They are watched from trace_handlers_watch on. */
void trace_handlers_watch(void);
bool trace_in_handler(void); /* whether this thread is in one */

/* image.c: where calls are made, and a record of each file with code that the process has mapped. */
struct trace_site trace_site(const void *returns_to, const void *frame);
void trace_images(void);

/* next.c: the function that the program would have called; one that returns ENOSYS if there is none. */
void *trace_next(uint16_t number);

/* map.c: what belongs to an object of the libraries. Entries are never freed, so that readers need no lock. */
struct trace_map;
extern struct trace_map trace_contexts, trace_builders, trace_queues;
void *trace_map_find(const struct trace_map *map, const void *key);
/* The entry of a key, of size bytes; NULL: no room. The caller holds trace_map_lock until it has published the entry. */
void *trace_map_add(struct trace_map *map, const void *key, size_t size);
void trace_map_publish(struct trace_map *map, const void *key, const void *value);
void trace_map_lock(void);
void trace_map_unlock(void);
void trace_map_forget_lock(void); /* in a forked child */

/* context.c: replace the functions that inline verbs call. */
void trace_adopt_context(struct ibv_context *context);
void trace_adopt_id(struct rdma_cm_id *id);

/* What a context's functions were. */
struct trace_context {
	struct ibv_context_ops ops;
	struct verbs_context extended; /* its function pointers only */
};

struct trace_context *trace_context_of(const struct ibv_context *context);

/* data.c */
bool trace_is_atomic(enum ibv_wr_opcode opcode);
uint32_t trace_request_words(enum ibv_wr_opcode opcode, bool datagram); /* of a send request without its segments */
int trace_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int trace_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
int trace_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
int trace_poll_cq(struct ibv_cq *cq, int entries, struct ibv_wc *wc);
int trace_req_notify_cq(struct ibv_cq *cq, int solicited_only);
/* A poll has found nothing. It is counted, and recorded with what this thread records next. */
void trace_fold_poll(uint16_t number, const void *cq, uint64_t start);
/* How many polls of that queue preceded the one that is recorded now. */
uint64_t trace_take_polls(uint16_t number, const void *cq);

/* A poll that took completions, or failed. */
struct trace_poll {
	uint16_t number;
	const void *cq;
	uint32_t entries;
	int32_t error;
	uint64_t start, end;
	int64_t result;
	uint64_t empty; /* polls before it */
	struct trace_site site;
};

/*
 * Begin a record for count completions of a poll, at most TRACE_COMPLETIONS; NULL if there is no room. before is how many
 * the earlier records of this poll have. The caller writes them behind TRACE_POLL_WORDS, and commits the record: with
 * TRACE_CONTINUES if another one follows.
 */
struct trace_record *trace_begin_completions(const struct trace_poll *poll, uint32_t before, uint32_t count);

/*
 * memory.c: what happens to the memory of requests and regions. Nothing is noted before trace_memory_watch, which is
 * called before the first call is recorded.
 */
void trace_memory_watch(bool contents); /* contents of messages are recorded; else changes of memory */
bool trace_memory_is_watched(void);
bool trace_contents_are_recorded(void);
void trace_memory_forget_lock(void); /* in a forked child */
void trace_region_add(const struct ibv_mr *mr, uint64_t iova, unsigned int access);
void trace_region_remove(const struct ibv_mr *mr);
/* A queue pair, of which all requests are signaled or not. A queue pair of other calls is added by its first post. */
void trace_sends_add(const struct ibv_qp *qp, bool all_signaled);
void trace_sends_remove(const struct ibv_qp *qp);
/* Requests are about to be posted. The number of the first one. */
uint64_t trace_sends_post(const struct ibv_qp *qp, const struct ibv_send_wr *wr);
/* The requests from that number on were not posted. */
void trace_sends_take_back(const struct ibv_qp *qp, uint64_t from);
/* Completions were polled, and the program does not know of them yet. */
void trace_sends_complete(const struct ibv_context *context, const struct ibv_wc *wc, int count, struct trace_site site);

/* contents.c: record what memory of a request contains. number is TRACE_memory_sent or TRACE_memory_read. */
void trace_content(uint16_t number, uint32_t qp_num, uint64_t wr_id, const void *bytes, uint32_t length);

/* builder.c and queue.c: replace the functions of an extended queue pair and of an extended completion queue. */
void trace_adopt_builder(struct ibv_qp_ex *qp);
void trace_adopt_queue(struct ibv_cq_ex *cq, uint64_t fields);

#endif
