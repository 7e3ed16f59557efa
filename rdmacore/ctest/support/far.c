#include "ctest/support/far.h"

#include <arpa/inet.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "ctest/support/check.h"
#include "soft/base/lock.h"
#include "soft/host.h"
#include "soft/objects/device.h"
#include "soft/wire/datagram.h"

#define SENT_MAX 131072

const uint8_t far_own_ip[4] = {192, 0, 2, 77}, far_everybody[4] = {255, 255, 255, 255};

static struct {
	pthread_mutex_t lock;
	uint8_t mads[SENT_MAX][SOFT_MAD];
	union ibv_gid to[SENT_MAX];
	_Atomic uint32_t count;
	_Atomic uint32_t answers; /* the IPv4 address of who does */
} sent = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct soft_management *management_of(struct process *process)
{
	return &((struct soft_host *)process->provider->host)->device->management;
}

/* As cm_issue_drep of Linux does. */
static void answer_dreq(struct soft_management *management, const union ibv_gid *from, const union ibv_gid *to,
			const struct soft_cm_message *dreq)
{
	struct soft_cm_message drep = {
		.attribute = SOFT_CM_DREP, .transaction = dreq->transaction, .local = dreq->remote, .remote = dreq->local,
	};
	uint8_t mad[SOFT_MAD];

	soft_mad_encode(&drep, mad);
	management->receive(management, to, from, mad);
}

/* A DREQ for a connection that there is not. */
static bool is_answered(const union ibv_gid *to, const struct soft_cm_message *message)
{
	uint32_t who = atomic_load(&sent.answers), everybody;

	memcpy(&everybody, far_everybody, 4);
	return message->attribute == SOFT_CM_DREQ && !message->remote && (who == everybody || !memcmp(to->raw + 12, &who, 4));
}

static void note(struct soft_management *management, const union ibv_gid *from, const union ibv_gid *to, const uint8_t *mad,
		 bool record)
{
	struct soft_cm_message message;
	union ibv_gid own;
	uint32_t index;

	(void)record;
	soft_gid_from_ipv4(&own, far_own_ip);
	CHECK(!memcmp(from, &own, sizeof(own)) && memcmp(to, &own, sizeof(own)));
	pthread_mutex_lock(&sent.lock); /* one of each process may send */
	index = atomic_load(&sent.count);
	CHECK(index < SENT_MAX);
	memcpy(sent.mads[index], mad, SOFT_MAD);
	sent.to[index] = *to;
	atomic_store(&sent.count, index + 1);
	pthread_mutex_unlock(&sent.lock);
	if (soft_mad_decode(mad, &message) && is_answered(to, &message))
		answer_dreq(management, from, to, &message);
}

static int open_nothing(struct soft_management *management, const union ibv_gid *address)
{
	(void)management;
	(void)address;
	return 0;
}

struct process far_start(uint64_t seed)
{
	struct process process = process_start(seed);
	struct soft_gid_table *table = &((struct soft_host *)process.provider->host)->device->gid_table;
	uint32_t count = soft_gid_count(table);

	management_of(&process)->send = note;
	management_of(&process)->open = open_nothing;
	soft_gid_from_ipv4(&table->gids[count], far_own_ip);
	atomic_store(&table->count, count + 1);
	return process;
}

struct soft_cm *far_cm(struct process *process)
{
	return ((struct soft_host *)process->provider->host)->cm;
}

uint32_t far_sent_count(void)
{
	return atomic_load(&sent.count);
}

struct soft_cm_message far_sent(uint32_t index)
{
	struct soft_cm_message message;

	CHECK(index < far_sent_count() && index < SENT_MAX);
	CHECK(soft_mad_decode(sent.mads[index], &message));
	return message;
}

const uint8_t *far_sent_to(uint32_t index)
{
	return sent.to[index].raw;
}

void far_forget(void)
{
	atomic_store(&sent.count, 0);
}

void far_answer_dreqs(const uint8_t ip[4])
{
	uint32_t address = 0;

	if (ip)
		memcpy(&address, ip, 4);
	atomic_store(&sent.answers, address);
}

uint16_t far_port(void)
{
	return (uint16_t)(20001 + getpid() % 20000 * 2);
}

struct sockaddr_storage far_address(const uint8_t ip[4], uint16_t port)
{
	struct sockaddr_storage address = {.ss_family = AF_INET};
	struct sockaddr_in *in4 = (void *)&address;

	memcpy(&in4->sin_addr, ip, 4);
	in4->sin_port = htons(port);
	return address;
}

struct soft_cm_message far_request(const uint8_t ip[4], uint32_t id, uint16_t port)
{
	return (struct soft_cm_message){
		.attribute = SOFT_CM_REQ, .transaction = 77, .local = id, .guid = FAR_GUID, .qp_num = (id + 17) & 0xffffff,
		.starting_psn = 5, .port_space = RDMA_PS_TCP, .path = {.mtu = IBV_MTU_1024}, .responder_resources = 1,
		.initiator_depth = 1, .source = far_address(ip, 1000), .destination = far_address(far_own_ip, port),
	};
}

void far_arrive(struct process *process, const uint8_t ip[4], const struct soft_cm_message *message)
{
	union ibv_gid from, to;
	uint8_t mad[SOFT_MAD];

	soft_gid_from_ipv4(&from, ip);
	soft_gid_from_ipv4(&to, far_own_ip);
	soft_mad_encode(message, mad);
	management_of(process)->receive(management_of(process), &from, &to, mad);
}

struct rdma_cm_id *far_listen(struct process *process, uint16_t port)
{
	struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = htons(port)};
	struct rdma_cm_id *id = process_id(process, RDMA_PS_TCP);

	CHECK(!process->provider->rdma_bind_addr(id, (struct sockaddr *)&any));
	CHECK(!process->provider->rdma_listen(id, 0));
	return id;
}
