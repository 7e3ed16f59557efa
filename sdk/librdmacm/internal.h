/*
 * What the files of this library share: who waits for what, the objects behind rdma-core's structs, and numbers of errors.
 */
#ifndef LIBRDMACM_INTERNAL_H
#define LIBRDMACM_INTERNAL_H

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include "rdma.h"

#define CONTAINER(pointer, type, member) ((type *)((char *)(pointer) - offsetof(type, member)))

/* ---- errors.c: the host has Linux's numbers, negated; WASI has others ---- */

int errno_of(int32_t result);
/* As librdmacm's functions say it: 0, or -1 and errno. */
int cm_result(int32_t result);
/* As those of libibverbs do: 0 or errno. */
int verbs_result(int32_t result);

/* ---- wait.c ---- */

/*
 * What one thread waits for. ready() looks without waiting, and may take what it finds. Another thread of the guest
 * ends a wait without entries. One with entries is checked when the host finds something for one of them.
 */
struct wait {
	bool (*ready)(void *object);
	void *object;
	struct rdmarun_poll_entry *entries;
	uint32_t count;
	int64_t deadline; /* on the run's clock, in nanoseconds; -1: never */
	bool local;       /* ready() may change by another thread, although there are entries */
	enum { RESTART_BY_FLAGS, RESTART_ALWAYS, RESTART_NEVER } restart; /* when a handler of a signal ran */
};

int64_t clock_now(void);
/* Returns 0 when ready() returns true, else ETIMEDOUT, or EINTR when a handler ran; -1: no limit.  A program that is
 * stopped meanwhile ends here, unless it handles SIGTERM; one that goes on gets ECANCELED. */
int wait_for(struct wait *wait, int64_t timeout_ns);
/* The same for one object of the host's. */
int wait_for_handle(bool (*ready)(void *), void *object, rdmarun_handle handle, uint32_t events, int64_t timeout_ns);
/* Lets other threads and other guests go on; for programs that spin. */
void give_way(void);

/* The program's main without arguments, or wasi-libc's caller of one that has them. */
int __main_void(void);

/* Set by threads.c, in programs that make threads: what else may go on, and how. */
struct other_threads {
	/* Appends what the others wait for; returns the new count, and the earliest deadline. */
	uint32_t (*gather)(struct rdmarun_poll_entry *entries, uint32_t count, uint32_t room, int64_t *deadline);
	/* Sets them to what the host found. */
	void (*scatter)(const struct rdmarun_poll_entry *entries, uint32_t first);
	bool (*runnable)(void);
	/* Whether this thread is the one that runs handlers of signals. */
	bool (*handles_signals)(void);
	/* Lets them run until wait may have ended. */
	void (*run)(struct wait *wait);
};
extern const struct other_threads *other_threads;

/* Set by signals.c, in programs that handle signals or have timers. */
struct signals {
	/* When the next timer runs out; -1: never. */
	int64_t (*deadline)(void);
	/* Whether a signal waits that is not blocked. */
	bool (*due)(void);
	/* Runs handlers: true if one ran; *restart: the interrupted call must be repeated. */
	bool (*deliver)(bool *restart);
	/* Runs the handler of SIGTERM, if there is one. */
	bool (*terminate)(void);
};
extern const struct signals *signals;

/* ---- descriptors.c: numbers of files that only this library knows ---- */

enum { FIRST_DESCRIPTOR = 100 };
struct descriptor {
	void *object;
	/* What poll would wait for; returns the number of entries, at most room. */
	uint32_t (*entries)(void *object, short events, struct rdmarun_poll_entry *entries, uint32_t room);
	/* What it is ready for, POLLIN and its like, by what the library holds itself. */
	short (*ready)(void *object);
	/* When that changes by time; -1: never. */
	int64_t (*deadline)(void *object);
	ssize_t (*read)(void *object, void *data, size_t size, bool nonblock);
	ssize_t (*write)(void *object, const void *data, size_t size, bool nonblock);
	void (*close)(void *object);
	bool nonblock;
	bool local; /* ready() changes by other threads */
};

int new_descriptor(const struct descriptor *descriptor);
/* NULL, and EBADF, if it is not a number of this library's. */
struct descriptor *descriptor_of(int fd);
void free_descriptor(int fd);
struct pollfd;
/* poll, to the nanosecond; -1: no limit. */
int poll_for(struct pollfd *fds, unsigned count, int64_t timeout_ns);

/* ---- addresses.c ---- */

void address_to_host(struct rdmarun_address *to, const struct sockaddr *from);
/* Returns its length, 0 for none. */
socklen_t address_from_host(struct sockaddr *to, const struct rdmarun_address *from);
/* The role of the name that getaddrinfo returned the address for; NULL: none. */
const char *role_of(const struct rdmarun_address *address);

/* ---- cm: channels.c, ids.c, connections.c ---- */

struct event {
	struct rdma_cm_event base;
	struct rdmarun_cm_event host;
};
struct channel {
	struct rdma_event_channel base;
	rdmarun_handle handle;
};
struct id {
	struct rdma_cm_id base;
	rdmarun_handle handle;
	struct id *next;
	struct event *last; /* base.event of a synchronous id */
};

rdmarun_handle channel_handle(struct rdma_event_channel *channel);
struct id *new_id(rdmarun_handle handle, struct rdma_event_channel *channel, void *context, enum rdma_port_space ps);
struct id *id_of(rdmarun_handle handle);
/* Looks up the addresses, and the device that comes with them. */
void update_id(struct id *id);
/* Writes what the program sees of an event; a request's new id is made. */
void fill_event(struct event *event, struct id *listener);
/* Waits for the end of a synchronous id's call, which began with this result. */
int end_of_call(struct id *id, int32_t result);

/* ---- verbs: device.c, regions.c, completions.c, queues.c, work.c ---- */

/* The handles of the host's are those in rdma-core's structs. */
struct cq {
	struct ibv_cq base;
	bool fired; /* the event of req_notify has been taken from the host, not yet from the channel */
	struct cq *next;
};
struct comp_channel {
	struct ibv_comp_channel base;
	rdmarun_handle handle; /* 0: of one CQ, which came with the QP of an id */
};
struct qp {
	struct ibv_qp base;
	struct ibv_qp_init_attr attr;
	struct id *owner; /* NULL: it was made without an id */
};
struct ah {
	struct ibv_ah base;
	uint32_t number;
};

/* objects.c: rdma-core's structs of QPs, CQs and shared receive queues, by their handles. */
void note_object(rdmarun_handle handle, void *base);
void forget_object(const void *base);
void *object_of(rdmarun_handle handle);

struct ibv_context *device_context(void);
struct ibv_pd *default_pd(void);
enum ibv_mtu mtu_of(uint32_t bytes);
struct ibv_comp_channel *new_comp_channel(rdmarun_handle handle);
struct cq *wrap_cq(rdmarun_handle handle, struct ibv_comp_channel *channel, void *context, int cqe);
void forget_cq(struct ibv_cq *cq);
/* Gives an id the struct of the QP that the host has made for it. */
int adopt_qp(struct id *id, struct ibv_qp_init_attr *attr);
/* Forgets the QP, and the CQs that came with it. */
void forget_qp(struct id *id);
void qp_attr_to_host(struct rdmarun_qp_init_attr *to, const struct ibv_qp_init_attr *from);
void ah_attr_to_host(struct rdmarun_ah_attr *to, const struct ibv_ah_attr *from);
void ah_attr_from_host(struct ibv_ah_attr *to, const struct rdmarun_ah_attr *from);

int poll_completions(struct ibv_cq *cq, int count, struct ibv_wc *wc);
int request_notification(struct ibv_cq *cq, int solicited_only);
int post_sends(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int post_receives(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
int post_shared_receives(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
struct ibv_mw *alloc_window(struct ibv_pd *pd, enum ibv_mw_type type);
int bind_window(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *wish);
int dealloc_window(struct ibv_mw *mw);

#endif
