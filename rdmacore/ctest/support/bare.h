/*
 * Queue pairs made and connected by hand, without a connection manager: what tests of single verbs use.
 * Both ends of a test are in one protection domain of one device, with one completion queue each.
 */
#ifndef CTEST_SUPPORT_BARE_H
#define CTEST_SUPPORT_BARE_H

#include "core/core.h"
#include "ctest/support/pair.h"

struct soft_lock;

struct bench {
	struct core_provider *provider;
	struct ibv_context **contexts;
	struct ibv_context *context; /* the device that has local_address */
	struct ibv_pd *pd;
	union ibv_gid gid;
	uint8_t gid_index;
	enum ibv_mtu mtu;
	struct ibv_mr *mr;
	char *memory;
};

#define BENCH_MEMORY (1 << 20)
#define BENCH_ACCESS                                                                               \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |               \
	 IBV_ACCESS_REMOTE_ATOMIC)
#define BENCH_DEPTH 64
#define BENCH_QKEY 0x11111111

/* One end: a queue pair with a completion queue of its own. */
struct bare {
	struct bench *bench;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
};

void bench_open(struct bench *bench, struct core_provider *provider);
void bench_close(struct bench *bench);

/* In RESET; srq may be NULL. */
void bare_create(struct bare *bare, struct bench *bench, enum ibv_qp_type type, struct ibv_srq *srq);
void bare_destroy(struct bare *bare);
int bare_modify(struct bare *bare, struct ibv_qp_attr attr, int mask);
/* To INIT, RTR and RTS; to is the queue pair at the other end, unused by datagrams. */
void bare_init(struct bare *bare);
void bare_ready_to_receive(struct bare *bare, const struct bare *to);
void bare_ready_to_send(struct bare *bare);
void bare_connect(struct bare *a, struct bare *b);
void bare_fail(struct bare *bare);
enum ibv_qp_state bare_state(const struct bare *bare);

struct ibv_sge bench_sge(const struct bench *bench, size_t offset, uint32_t length);
int bare_recv(struct bare *bare, uint64_t wr_id, size_t offset, uint32_t length);
int srq_recv(struct bench *bench, struct ibv_srq *srq, uint64_t wr_id, size_t offset, uint32_t length);
/* A signaled request with one entry at offset of the shared memory. */
struct ibv_send_wr bench_wr(enum ibv_wr_opcode opcode, uint64_t wr_id, struct ibv_sge *sge);
int bare_post(struct bare *bare, struct ibv_send_wr *wr);
/* The next completion, which must have that wr_id and status. */
struct ibv_wc expect_wc(struct bare *bare, uint64_t wr_id, enum ibv_wc_status status);
void expect_no_wc(struct bare *bare);
/* A request that this type of queue pair does not have: it is not posted, or fails (exceptions.yaml). */
void expect_refused(struct bare *bare, struct ibv_send_wr *wr);
/* A lock as another thread would have it, whatever this one calls meanwhile. */
void bare_hold(struct soft_lock *lock);
void bare_let_go(struct soft_lock *lock);
/* The next async event of the device, acknowledged; it must be of that type. */
struct ibv_async_event expect_async_event(struct bench *bench, enum ibv_event_type type);
void expect_no_async_event(struct bench *bench);

#endif
