/* Requests of other hosts for ports that a process does not have: they are passed on to the one that has it, or refused. */
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "ctest/support/check.h"
#include "ctest/support/far.h"
#include "soft/base/event_queue.h"
#include "soft/cm/cm.h"
#include "soft/ipc/ipc.h"

#define MANY 800 /* they fit into the queue together */
#define ANSWERS 1024 /* a second, to one host */

static const uint8_t attacker_ip[4] = {198, 51, 100, 66}, good_ip[4] = {198, 51, 100, 9};

/* The next request. */
static struct rdma_cm_id *read_request(struct process *process)
{
	struct rdma_cm_event *event = expect_event(process->provider, process->channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	struct rdma_cm_id *child = event->id;

	CHECK(!process->provider->rdma_ack_cm_event(event));
	return child;
}

static uint32_t sent_to(uint32_t id, uint16_t attribute)
{
	uint32_t found = 0;

	for (uint32_t index = 0; index < far_sent_count(); index++) {
		struct soft_cm_message message = far_sent(index);

		found += message.attribute == attribute && message.remote == id;
	}
	return found;
}

static void flood(struct process *process, uint32_t id, uint16_t port)
{
	for (uint32_t index = 0; index < MANY; index++) {
		struct soft_cm_message req = far_request(attacker_ip, id + index, port);

		far_arrive(process, attacker_ip, &req);
	}
}

/* A host that requests ports without listeners does not use up the REJs for other hosts. */
static void test_by_source(void)
{
	struct process process = far_start(1);
	struct soft_cm_message req = far_request(good_ip, 7, far_port());

	far_forget();
	req.local = 6;
	for (int request = 0; request < 8; request++) { /* alone, so that they are of batches of their own */
		far_arrive(&process, attacker_ip, &req);
		usleep(100);
	}
	req.local = 7;
	flood(&process, 0x1000, far_port());
	far_arrive(&process, good_ip, &req);
	FAR_WAIT(sent_to(7, SOFT_CM_REJ));
	CHECK(far_sent(0).reason == SOFT_REJ_INVALID_SERVICE_ID);
	process_end(&process);
}

/* A host that ends unknown connections does not either: it has its own answers, as many as it may need. */
static void test_answers_by_source(void)
{
	struct process process = far_start(1);
	struct soft_cm *cm = far_cm(&process);
	struct soft_cm_message dreq = {.attribute = SOFT_CM_DREQ, .remote = 0x5000};
	uint64_t began = cm->fabric->wall.now(&cm->fabric->wall), seconds;

	far_forget();
	for (uint32_t batch = 0; batch < 5; batch++) {
		dreq.local = 10;
		for (uint32_t index = 0; index < MANY; index++)
			far_arrive(&process, attacker_ip, &dreq);
		dreq.local = 11 + batch;
		far_arrive(&process, good_ip, &dreq);
		FAR_WAIT(sent_to(11 + batch, SOFT_CM_DREP)); /* and those before it are dealt with */
	}
	seconds = (cm->fabric->wall.now(&cm->fabric->wall) - began) / SOFT_SECOND;
	CHECK(sent_to(10, SOFT_CM_DREP) >= ANSWERS && sent_to(10, SOFT_CM_DREP) <= ANSWERS * (seconds + 2));
	process_end(&process);
}

/* It does not keep requests from their process, either. */
static void test_passed_on(void)
{
	struct process process = far_start(1), other = far_start(2);
	struct rdma_cm_id *listener = far_listen(&other, far_port());
	struct soft_cm_message req = far_request(good_ip, 8, far_port());
	struct rdma_cm_id *child;

	far_forget();
	flood(&process, 0x2000, (uint16_t)(far_port() + 1));
	far_arrive(&process, good_ip, &req);
	child = read_request(&other);
	CHECK(!sent_to(8, SOFT_CM_REJ));
	process_destroy(&other, child);
	process_destroy(&other, listener);
	process_end(&other);
	process_end(&process);
}

static void (*receive)(struct soft_ipc *ipc, struct soft_cm_message *message);
static _Atomic uint32_t received;

static void count(struct soft_ipc *ipc, struct soft_cm_message *message)
{
	bool is_rej = message->attribute == SOFT_CM_REJ;

	receive(ipc, message);
	atomic_fetch_add(&received, is_rej);
}

/* A REJ that takes a request back goes where the request went, and one for no request goes to no other process. */
static void test_taken_back(void)
{
	struct process process = far_start(1), other = far_start(2);
	struct rdma_cm_id *listener = far_listen(&other, far_port()), *child;
	struct soft_cm_message req = far_request(good_ip, 9, far_port()), rej = {.attribute = SOFT_CM_REJ, .guid = FAR_GUID};
	struct rdma_conn_param param = {.qp_num = 0x44, .responder_resources = 1, .initiator_depth = 1};

	receive = process_ipc(other.provider)->receive;
	process_ipc(other.provider)->receive = count;
	far_arrive(&process, good_ip, &req);
	child = read_request(&other);
	for (uint32_t index = 0; index < MANY; index++) {
		rej.local = index % 2 ? 9 : 0x3000 + index;
		rej.reason = index % 4 == 1 ? SOFT_REJ_TIMEOUT : SOFT_REJ_CONSUMER_DEFINED;
		far_arrive(&process, attacker_ip, &rej);
	}
	rej.local = 9;
	rej.reason = SOFT_REJ_TIMEOUT;
	far_arrive(&process, good_ip, &rej);
	FAR_WAIT(atomic_load(&received));
	/* It was the last of them. */
	CHECK(atomic_load(&received) == 1);
	CHECK(other.provider->rdma_accept(child, &param));
	process_destroy(&other, child);
	process_destroy(&other, listener);
	process_end(&other);
	process_end(&process);
}

int main(void)
{
	test_by_source();
	test_answers_by_source();
	test_passed_on();
	test_taken_back();
	return 0;
}
