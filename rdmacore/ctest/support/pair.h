/* Two connected ends in this process, made through the provider table as a user of librdmacm would. */
#ifndef CTEST_SUPPORT_PAIR_H
#define CTEST_SUPPORT_PAIR_H

#include <stdbool.h>

#include "provider/provider.h"

struct end {
	struct core_provider *provider;
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	struct ibv_cq *cq; /* with one_queue */
	struct ibv_mr *mr;
	char *memory;
	size_t size;
};

struct pair {
	struct core_provider *provider;
	struct rdma_event_channel *channel;
	struct rdma_cm_id *listener;
	struct end server, client;
};

struct pair_options {
	size_t memory; /* bytes registered at each end, with every right */
	uint32_t depth; /* of each queue */
	uint8_t rnr_retry; /* of both ends */
	uint8_t retry;
	bool unsignaled;
	bool one_queue; /* each end has one completion queue for both directions */
	/*
	 * The client sends the server a message of 8 bytes when it is ESTABLISHED and the server is not yet. The clock is
	 * virtual.
	 */
	bool early;
	uint8_t resources; /* responder resources and initiator depth */
};

void pair_connect(struct pair *pair, struct core_provider *provider, uint16_t port,
		  struct pair_options options);
/* Disconnect from the client's side, see both DISCONNECTED, and destroy everything. */
void pair_close(struct pair *pair);
void pair_destroy(struct pair *pair);

struct rdma_event_channel *create_channel(struct core_provider *provider);
void wait_readable(struct rdma_event_channel *channel);
/* The same with a virtual clock: let time pass until there is an event. */
void advance_readable(struct core_provider *provider, struct rdma_event_channel *channel);
/* The next event of the channel must be type; returns it unacknowledged. */
struct rdma_cm_event *expect_event(struct core_provider *provider, struct rdma_event_channel *channel,
				   enum rdma_cm_event_type type);
void expect_and_acknowledge(struct core_provider *provider, struct rdma_event_channel *channel,
			    enum rdma_cm_event_type type);

/*
 * The provider that CTEST_PROVIDER names (soft if unset), and the address of both ends: CTEST_ADDRESS, or 127.0.0.1.
 * CTEST_LINK is udp, or otherwise soft's local link. So the same tests check the embedded provider and a kernel.
 */
struct core_provider *open_provider(void);
/*
 * Whether that is soft, where the two differ or a kernel cannot be tested. exception is the entry of
 * scenarios/conformance/exceptions.yaml that explains it (host/conformance/exceptions_test.go reads both).
 */
bool on_soft(const char *exception);
void close_provider(struct core_provider *provider);
struct sockaddr_storage local_address(uint16_t port);
struct sockaddr_storage ipv4_address(const char *text, uint16_t port);

int post_recv(struct end *end, uint64_t wr_id, size_t offset, uint32_t length);
int post_send(struct end *end, enum ibv_wr_opcode opcode, uint64_t wr_id, size_t offset,
	      uint32_t length, const struct end *peer, size_t peer_offset);
/* Poll until there is a completion. */
struct ibv_wc poll_one(struct ibv_cq *cq);

#endif
