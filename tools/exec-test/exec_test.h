/*
 * Programs as others write them: they know only librdmacm and libibverbs, and run under "rdmarun exec".
 * A program ends with 0, or says at which line it found what and ends with 1; what hangs is ended by its
 * own alarm.
 */
#ifndef EXEC_TEST_H
#define EXEC_TEST_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#define PATIENCE 20 /* seconds until SIGALRM ends a program that hangs */

/* What the program cannot go on without, and what it is a test of. */
#define REQUIRE(condition)                                                                         \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: not so: %s (errno %d, %s)\n", __FILE__, __LINE__,  \
				#condition, errno, strerror(errno));                               \
			_exit(1);                                                                  \
		}                                                                                  \
	} while (0)

/* A reliable queue pair that is connected to itself, with all it needs.  It allows its peer everything. */
struct endpoint {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	union ibv_gid gid;
	char memory[4096];
};

void endpoint_open(struct endpoint *endpoint, struct ibv_device *device);
/* The same in two steps: with a peer that may be another. */
void endpoint_make(struct endpoint *endpoint, struct ibv_device *device);
void endpoint_connect(struct endpoint *endpoint, const union ibv_gid *gid, uint32_t qp_num);
/* Posts a request of any kind, which is signaled, or where a message is to go. */
void endpoint_post(struct endpoint *endpoint, struct ibv_send_wr *send);
void endpoint_expect(struct endpoint *endpoint, struct ibv_mr *mr, void *address, size_t length);
/* Waits for so many completions, which must be good. */
void endpoint_complete(struct endpoint *endpoint, int count);
/* Sends itself a message, and looks at what arrived. */
void endpoint_transfer(struct endpoint *endpoint);
void endpoint_close(struct endpoint *endpoint);

/* The first device of the list. */
struct ibv_device *first_device(struct ibv_device ***list);

#endif
