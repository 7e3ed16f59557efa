/*
 * Processes on two hosts, with two devices each, that start and end. Each device is opened on the link udp, listens
 * and connects to others. It is closed while messages, READs and faults are in flight. Meanwhile an address of one
 * host is added and removed. Packets to a device that is being closed must not access freed memory, and neither must
 * those of it that faults delay. Debug builds and sanitizers check it. No descriptor stays open.
 *
 * Called with a seed and a number of seconds, like the other stress programs. The interleaving of processes is not
 * repeatable.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include "core/core.h"
#include "ctest/support/actor.h"
#include "ctest/support/check.h"
#include "soft/base/clock.h"
#include "soft/base/random.h"

#define HOSTS 2
#define ACTORS 4 /* processes */
#define DEVICES 2 /* of one process */
#define PORT 7500
#define PORTS 3
#define IDS 24 /* of one device */
#define BYTES 4096 /* of a message: several packets */
#define RECEIVES 8 /* of one queue pair */
#define READ_BYTES (1 << 18) /* of a READ: more than one burst of answers */
#define USUAL_SECONDS 2
#define TIMEOUT_S 120 /* seconds over the time; a loaded machine is slow */
#define NOBODY 65534

static const char *const addresses[] = {"127.0.0.1", "192.0.2.1", "192.0.2.2", "192.0.2.50"}; /* the last comes and goes */
static uint64_t seed = 1;
static unsigned int seconds = USUAL_SECONDS;
static int silence; /* a descriptor that takes what is written to it */

/* Memory of a peer that may be read, in the private data of REQ and REP. */
struct window {
	uint64_t address;
	uint32_t rkey; /* 0: there is none */
};

struct life {
	struct soft_random random;
	struct core_provider *provider;
	struct rdma_event_channel *channel;
	struct rdma_cm_id *ids[IDS];
	struct window windows[IDS]; /* of the peers of ids */
	unsigned int count;
	struct ibv_mr *mr; /* of memory, in the domain of owner, which the other ids share */
	struct rdma_cm_id *owner;
	uint32_t received; /* messages in memory that may be received */
	struct {
		char sent[READ_BYTES]; /* which peers read as well */
		char received[IDS * RECEIVES][BYTES], read[READ_BYTES];
	} memory;
	uint64_t rounds, connected;
};

static uint64_t now(void)
{
	struct soft_clock wall;

	soft_clock_wall(&wall);
	return wall.now(&wall);
}

static uint32_t below(struct life *life, uint32_t limit)
{
	return (uint32_t)(soft_random_next(&life->random) % limit);
}

static struct sockaddr_in any_address(struct life *life)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)(PORT + below(life, PORTS)))};

	CHECK(inet_pton(AF_INET, addresses[below(life, 4)], &address.sin_addr) == 1);
	return address;
}

static void add_fault(struct life *life)
{
	struct core_fault of_device = {.action = below(life, 2) ? CORE_FAULT_REMOVE_DEVICE : CORE_FAULT_CHANGE_ADDRESS};

	static const enum core_fault_action actions[] = {CORE_FAULT_LOSE, CORE_FAULT_DELAY, CORE_FAULT_DUPLICATE, CORE_FAULT_REORDER};
	struct sockaddr_in from = any_address(life), to = any_address(life);
	struct core_fault fault = {
		.traffic = below(life, 2) ? CORE_FAULT_CM : CORE_FAULT_DATA,
		.action = actions[below(life, 4)],
		.probability = 1000000 / (1 + below(life, 3)),
		.delay = below(life, 40) * SOFT_MILLISECOND,
	};

	if (!below(life, 16)) {
		(void)core_fault_add(life->provider, &of_device); /* not a second time */
		return;
	}
	if (fault.action == CORE_FAULT_LOSE)
		fault.probability /= 8;
	core_address_from_sockaddr(&fault.from, (struct sockaddr *)&from);
	core_address_from_sockaddr(&fault.to, (struct sockaddr *)&to);
	(void)core_fault_add(life->provider, &fault); /* not with one of no sense */
}

static void keep(struct life *life, struct rdma_cm_id *id)
{
	life->windows[life->count] = (struct window){0};
	id->context = &life->windows[life->count];
	life->ids[life->count++] = id;
}

static struct rdma_cm_id *add_id(struct life *life, enum rdma_port_space space)
{
	struct rdma_cm_id *id;

	if (life->count == IDS || life->provider->rdma_create_id(life->channel, &id, NULL, space))
		return NULL;
	keep(life, id);
	return id;
}

static void listen_somewhere(struct life *life)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)(PORT + below(life, PORTS)))};
	struct rdma_cm_id *id = add_id(life, below(life, 4) ? RDMA_PS_TCP : RDMA_PS_UDP);

	if (id && !life->provider->rdma_bind_addr(id, (struct sockaddr *)&address)) /* else another has it */
		(void)life->provider->rdma_listen(id, 8);
}

static void ask_somebody(struct life *life)
{
	struct sockaddr_in address = any_address(life);
	struct rdma_cm_id *id = add_id(life, below(life, 4) ? RDMA_PS_TCP : RDMA_PS_UDP);

	if (id)
		(void)life->provider->rdma_resolve_addr(id, NULL, (struct sockaddr *)&address, 100);
}

/* Messages in both directions, with contents that are not checked. */
static void make_qp(struct life *life, struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {.cap = {16, 16, 1, 1, 64}, .qp_type = id->ps == RDMA_PS_UDP ? IBV_QPT_UD : IBV_QPT_RC, .sq_sig_all = 1};
	struct ibv_sge sge = {.length = BYTES};
	struct ibv_recv_wr receive = {.sg_list = &sge, .num_sge = 1}, *bad;

	if (id->qp || life->provider->rdma_create_qp(id, NULL, &attr))
		return;
	if (!life->mr) {
		life->mr = life->provider->ibv_reg_mr(id->pd, &life->memory, sizeof(life->memory), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
		life->owner = id;
	}
	if (!life->mr || life->mr->pd != id->pd || !below(life, 4)) /* who sends to it waits */
		return;
	sge.lkey = life->mr->lkey;
	for (int index = 0; index < RECEIVES && life->received < IDS * RECEIVES; index++) {
		sge.addr = (uintptr_t)life->memory.received[life->received++];
		(void)ibv_post_recv(id->qp, &receive, &bad);
	}
}

static void send_some(struct life *life, struct rdma_cm_id *id)
{
	const struct window *window = id->context;
	struct ibv_sge sent = {.addr = (uintptr_t)life->memory.sent, .length = BYTES};
	struct ibv_sge read = {.addr = (uintptr_t)life->memory.read, .length = READ_BYTES};
	struct ibv_send_wr send = {.sg_list = &sent, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad;

	if (!id->qp || id->qp->qp_type != IBV_QPT_RC || !life->mr || life->mr->pd != id->pd)
		return;
	sent.lkey = read.lkey = life->mr->lkey;
	for (uint32_t left = below(life, 12); left; left--) {
		bool reads = window->rkey && !below(life, 3);

		send.sg_list = reads ? &read : &sent;
		send.opcode = reads ? IBV_WR_RDMA_READ : IBV_WR_SEND;
		send.wr.rdma.remote_addr = window->address;
		send.wr.rdma.rkey = window->rkey;
		(void)ibv_post_send(id->qp, &send, &bad);
	}
}

static void poll_some(struct life *life)
{
	struct rdma_cm_id *id = life->count ? life->ids[below(life, life->count)] : NULL;
	struct ibv_wc wc;

	for (uint32_t left = below(life, 2) ? 200 : 0; left && id && id->qp; left--)
		(void)ibv_poll_cq(id->send_cq, 1, &wc);
}

static struct window own_window(struct life *life, struct rdma_cm_id *id)
{
	if (!life->mr || life->mr->pd != id->pd)
		return (struct window){0};
	return (struct window){(uintptr_t)life->memory.sent, life->mr->rkey};
}

static struct rdma_conn_param param_of(const struct window *window)
{
	return (struct rdma_conn_param){.responder_resources = 4, .initiator_depth = 4, .retry_count = 2, .rnr_retry_count = 7,
					.private_data = window, .private_data_len = sizeof(*window)};
}

static void answer(struct life *life, struct rdma_cm_id *id, const struct window *window)
{
	struct rdma_conn_param param;
	struct window own;

	if (life->count == IDS) {
		CHECK(!life->provider->rdma_destroy_id(id));
		return;
	}
	keep(life, id);
	*(struct window *)id->context = *window;
	if (!below(life, 8))
		return; /* it waits */
	make_qp(life, id);
	own = own_window(life, id);
	param = param_of(&own);
	if (!below(life, 8) || !id->qp)
		(void)life->provider->rdma_reject(id, NULL, 0);
	else
		(void)life->provider->rdma_accept(id, &param);
}

static void ask(struct life *life, struct rdma_cm_id *id)
{
	struct rdma_conn_param param;
	struct window own;

	make_qp(life, id);
	own = own_window(life, id);
	param = param_of(&own);
	if (id->qp)
		(void)life->provider->rdma_connect(id, &param);
}

static void take_event(struct life *life)
{
	struct window window = {0};
	struct rdma_cm_event *event;
	enum rdma_cm_event_type type;
	struct rdma_cm_id *id;

	if (life->provider->rdma_get_cm_event(life->channel, &event))
		return;
	type = event->event;
	id = event->id;
	if (id->ps == RDMA_PS_TCP && event->param.conn.private_data_len >= sizeof(window))
		memcpy(&window, event->param.conn.private_data, sizeof(window));
	CHECK(!life->provider->rdma_ack_cm_event(event));
	switch (type) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		(void)life->provider->rdma_resolve_route(id, 100);
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		ask(life, id);
		break;
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		answer(life, id, &window);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		life->connected++;
		if (window.rkey) /* the active side learns it with the answer */
			*(struct window *)id->context = window;
		send_some(life, id);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		(void)life->provider->rdma_disconnect(id);
		break;
	default:
		break;
	}
}

static void end_ids(struct life *life)
{
	struct rdma_cm_id *owner = life->owner;

	while (life->count) {
		uint32_t index = below(life, life->count);
		struct rdma_cm_id *id = life->ids[index];

		if (id == owner && life->count > 1)
			continue;
		if (id == owner && life->mr)
			CHECK(!life->provider->ibv_dereg_mr(life->mr));
		life->ids[index] = life->ids[--life->count];
		if (id->qp)
			life->provider->rdma_destroy_qp(id);
		CHECK(!life->provider->rdma_destroy_id(id));
	}
	life->mr = NULL;
	life->owner = NULL;
	life->received = 0;
}

static void live_once(struct life *life)
{
	struct core_capture_options to_nobody = {.path = "/dev/null", .application = "test_stress_life"};
	struct core_capture_result written;
	struct soft_capture_file *capture = NULL;
	struct core_options options = {.link = CORE_LINK_UDP, .fabric = "stress-life", .notices = silence};
	struct pollfd readable = {.events = POLLIN};
	uint64_t end = now() + below(life, below(life, 2) ? 150 : 600) * SOFT_MILLISECOND; /* others are looked for after 60 to 120 */
	char why[512] = "";

	if (!below(life, 4))
		CHECK(!core_capture_open(&to_nobody, &capture));
	options.capture = capture;
	CHECK(!core_open("soft", &options, &life->provider, why, sizeof(why)));
	core_select(life->provider);
	for (uint32_t left = below(life, 4); left; left--)
		add_fault(life);
	life->channel = life->provider->rdma_create_event_channel();
	CHECK(life->channel && !fcntl(life->channel->fd, F_SETFL, O_NONBLOCK));
	for (uint32_t left = 1 + below(life, 3); left; left--)
		listen_somewhere(life);
	do {
		if (below(life, 2))
			ask_somebody(life);
		poll_some(life);
		readable.fd = life->channel->fd;
		for (int wait = 5; poll(&readable, 1, wait) > 0; wait = 0)
			take_event(life);
	} while (now() < end);
	end_ids(life);
	life->provider->rdma_destroy_event_channel(life->channel);
	CHECK(!core_close(life->provider));
	if (capture)
		core_capture_close(capture, &written);
	life->rounds++;
}

static void *live(void *argument)
{
	struct life *life = argument;
	uint64_t end = now() + seconds * SOFT_SECOND;

	do
		live_once(life);
	while (now() < end);
	return NULL;
}

static int count_descriptors(void)
{
	DIR *folder = opendir("/proc/self/fd");
	int count = 0;

	CHECK(folder);
	while (readdir(folder))
		count++;
	CHECK(!closedir(folder));
	return count;
}

/* In the process of an actor. */
static void act(void)
{
	static struct life lives[DEVICES];
	pthread_t threads[DEVICES];
	uint64_t rounds = 0, connected = 0;
	int descriptors = count_descriptors();

	alarm(seconds + TIMEOUT_S);
	for (unsigned int index = 0; index < DEVICES; index++) {
		lives[index].random.state = seed * 1000003 + (uint64_t)getpid() * DEVICES + index;
		CHECK(!pthread_create(&threads[index], NULL, live, &lives[index]));
	}
	for (unsigned int index = 0; index < DEVICES; index++) {
		CHECK(!pthread_join(threads[index], NULL));
		rounds += lives[index].rounds;
		connected += lives[index].connected;
	}
	printf("process %d: %llu devices, %llu connections\n", getpid(), (unsigned long long)rounds, (unsigned long long)connected);
	fflush(stdout);
	CHECK(rounds && count_descriptors() == descriptors);
}

int main(int count, char **words)
{
	struct actor actors[ACTORS];

	actor_need_root(words);
	if (count > 1)
		seed = strtoull(words[1], NULL, 10);
	if (count > 2)
		seconds = (unsigned int)strtoul(words[2], NULL, 10);
	silence = open("/dev/null", O_WRONLY | O_CLOEXEC);
	CHECK(silence >= 0);
	actor_make_hosts(HOSTS);
	for (int index = 0; index < ACTORS; index++)
		actors[index] = actor_start(index % HOSTS, NOBODY);
	for (int index = 0; index < ACTORS; index++)
		actor_begin(&actors[index], act);
	for (uint64_t end = now() + seconds * SOFT_SECOND; now() < end; poll(NULL, 0, 20))
		actor_configure(0, "ip address add 192.0.2.50/24 dev wire; ip address delete 192.0.2.50/24 dev wire");
	for (int index = 0; index < ACTORS; index++)
		actor_await(&actors[index]);
	for (int index = 0; index < ACTORS; index++)
		actor_end(&actors[index]);
	printf("seed %llu: %d processes in %u s\n", (unsigned long long)seed, ACTORS, seconds);
	return 0;
}
