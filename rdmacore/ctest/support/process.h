/* Open providers that act as processes: they share only the names of sockets, and each test has its own fabric. */
#ifndef CTEST_SUPPORT_PROCESS_H
#define CTEST_SUPPORT_PROCESS_H

#include "core/core.h"
#include "ctest/support/pair.h"

struct soft_ipc;

/* With a channel of its own. */
struct process {
	struct core_provider *provider;
	struct rdma_event_channel *channel;
};

/* The name of the test's fabric. */
const char *process_fabric(void);
struct core_provider *process_open(const char *fabric, uint64_t seed);
struct process process_start(uint64_t seed);
/* In that fabric, on the link udp. */
struct process process_start_with(const char *fabric, struct core_options options);
void process_end(struct process *process);
/* As if it were killed: its connections end without a message, and no process can connect to it. */
void process_kill(struct process *process);
struct soft_ipc *process_ipc(struct core_provider *provider);

/* Wait until it has no connection to another. */
void process_wait_alone(struct process *process);

struct rdma_cm_id *process_id(struct process *process, enum rdma_port_space port_space);
/* Bound and listening. */
struct rdma_cm_id *process_listen(struct process *process, uint16_t port);
/* With an address and a route to that port. */
struct rdma_cm_id *process_resolve(struct process *process, enum rdma_port_space port_space, uint16_t port);
/* With its request sent, which has usual_param and the private data "hello". */
struct rdma_cm_id *process_connect(struct process *process, uint16_t port);
/* Read that request. */
struct rdma_cm_id *process_request(struct process *process);
/* The same in another port space than RDMA_PS_TCP. */
struct rdma_cm_id *process_listen_in(struct process *process, enum rdma_port_space port_space, uint16_t port);
struct rdma_cm_id *process_connect_in(struct process *process, enum rdma_port_space port_space, uint16_t port);
struct rdma_cm_id *process_request_in(struct process *process, enum rdma_port_space port_space);
/* Without a queue pair; the private data is "welcome". */
void process_accept(struct process *process, struct rdma_cm_id *child);
void process_destroy(struct process *process, struct rdma_cm_id *id);
void process_expect(struct process *process, enum rdma_cm_event_type type, int status);

#endif
