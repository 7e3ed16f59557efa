/*
 * Any process on the machine can connect to a listener's socket and send any bytes. test_forged RECORDS SEED sends
 * that many records with random changes from that seed.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "ctest/support/check.h"
#include "ctest/support/cm.h"
#include "ctest/support/process.h"
#include "soft/base/random.h"
#include "soft/cm/calls.h"
#include "soft/host.h"
#include "soft/ipc/ipc.h"

#define PORT 7471
#define FORGED 20000

static struct process server, client;
static struct rdma_cm_id *listener;

/* A socket that is connected to the listener, as any process can make it. */
static int stranger(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int length = snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1, "rdmarun/%s/106/%u/4/127.0.0.1",
			      process_fabric(), PORT);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);

	CHECK(fd >= 0);
	CHECK(!connect(fd, (struct sockaddr *)&address,
		       (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length)));
	return fd;
}

static struct soft_cm_message request(uint32_t local, uint32_t qp_num)
{
	struct soft_cm_message message = {
		.attribute = SOFT_CM_REQ, .local = local, .guid = 1, .qp_num = qp_num, .port_space = RDMA_PS_TCP,
		.source = local_address(40000), .destination = local_address(PORT),
	};

	return message;
}

/* Whether the server has closed the connection. */
static bool is_closed(int fd)
{
	uint8_t record[SOFT_RECORD_MAX];
	ssize_t length;

	do
		length = recv(fd, record, sizeof(record), 0);
	while (length > 0);
	return length == 0 || errno == ECONNRESET;
}

/* The server has read all that fd sent: it answers a DREQ whatever it is about. */
static void let_it_read(int fd)
{
	struct soft_cm_message dreq = request(0xabcdef, 0), answer;
	uint8_t record[SOFT_RECORD_MAX];
	uint64_t instance;

	dreq.attribute = SOFT_CM_DREQ;
	CHECK(send(fd, record, soft_record_encode(&dreq, 1, record), 0) > 0);
	do {
		ssize_t length = recv(fd, record, sizeof(record), 0);

		CHECK(length > 0 && soft_record_decode(record, (size_t)length, &instance, &answer) == SOFT_RECORD_MESSAGE);
	} while (answer.attribute != SOFT_CM_DREP || answer.remote != 0xabcdef);
}

/* The server has read to the end what strangers sent before they closed. */
static void let_them_go(void)
{
	struct soft_ipc *ipc = process_ipc(server.provider);
	uint32_t count;
	int last = stranger();

	let_it_read(last); /* the earlier connection is accepted */
	CHECK(!close(last));
	for (int attempt = 0; attempt < 20000; attempt++) {
		soft_mutex_lock(ipc->lock);
		count = ipc->peer_count;
		soft_mutex_unlock(ipc->lock);
		if (count <= 1) /* the client's */
			return;
		usleep(1000);
	}
	CHECK(!"connections that do not end");
}

/* It still serves other clients. */
static void expect_service(void)
{
	struct rdma_cm_id *id = process_connect(&client, PORT), *child = process_request(&server);

	CHECK(!server.provider->rdma_reject(child, NULL, 0));
	process_expect(&client, RDMA_CM_EVENT_REJECTED, 28);
	process_destroy(&server, child);
	process_destroy(&client, id);
}

/* Read and refuse what strangers requested: so many requests. */
static uint32_t drain(void)
{
	struct rdma_cm_event *event;
	uint32_t count = 0;
	int flags = fcntl(server.channel->fd, F_GETFL);

	CHECK(!fcntl(server.channel->fd, F_SETFL, flags | O_NONBLOCK));
	while (!server.provider->rdma_get_cm_event(server.channel, &event)) {
		struct rdma_cm_id *id = event->event == RDMA_CM_EVENT_CONNECT_REQUEST ? event->id : NULL;

		CHECK(!server.provider->rdma_ack_cm_event(event));
		count += id != NULL;
		if (id)
			process_destroy(&server, id);
	}
	CHECK(errno == EAGAIN && !fcntl(server.channel->fd, F_SETFL, flags));
	return count;
}

/* A malformed record ends the connection. */
static void test_no_records(void)
{
	struct soft_cm_message req = request(5, 6);
	uint8_t good[SOFT_RECORD_MAX], bad[2 * SOFT_RECORD_MAX] = {0};
	static const struct {
		size_t at; /* a byte that is flipped */
		size_t length;
	} cases[] = {
		{0, SOFT_RECORD_MAX}, {4, SOFT_RECORD_MAX}, {5, SOFT_RECORD_MAX}, {6, SOFT_RECORD_MAX},
		{16, SOFT_RECORD_MAX}, {17, SOFT_RECORD_MAX}, {24, SOFT_RECORD_MAX}, {40, SOFT_RECORD_MAX},
		{64, SOFT_RECORD_MAX}, {65, SOFT_RECORD_MAX}, {67, SOFT_RECORD_MAX}, {80, SOFT_RECORD_MAX},
		{sizeof(bad) - 1, 1}, {sizeof(bad) - 1, SOFT_RECORD_HEADER}, {sizeof(bad) - 1, SOFT_RECORD_MAX - 1},
		{sizeof(bad) - 1, SOFT_RECORD_MAX + 1}, {sizeof(bad) - 1, sizeof(bad)},
	};

	soft_record_encode(&req, 1, good);
	for (size_t index = 0; index < sizeof(cases) / sizeof(cases[0]); index++) {
		int fd = stranger();

		memcpy(bad, good, sizeof(good));
		bad[cases[index].at] ^= 0xff;
		CHECK(send(fd, bad, cases[index].length, 0) == (ssize_t)cases[index].length);
		CHECK(is_closed(fd));
		CHECK(!close(fd));
	}
	/* A connection cannot act for two. */
	for (uint64_t instance = 1; instance <= 2; instance++) {
		int fd = stranger();

		CHECK(send(fd, good, soft_record_encode(&req, instance, good), 0) > 0);
		CHECK(send(fd, good, soft_record_encode(&req, 3, good), 0) > 0);
		CHECK(is_closed(fd));
		CHECK(!close(fd));
	}
	let_them_go();
	(void)drain();
	expect_service();
}

/* Addresses that are not the machine's. */
static void test_foreign_addresses(void)
{
	struct soft_ipc *ipc = process_ipc(server.provider);
	uint64_t before = ipc->counts.invalid;
	struct soft_cm_message req = request(7, 8);
	uint8_t record[SOFT_RECORD_MAX];
	int fd = stranger();

	((struct sockaddr_in *)(void *)&req.source)->sin_addr.s_addr = htonl(0x08080808);
	CHECK(send(fd, record, soft_record_encode(&req, 1, record), 0) > 0);
	req = request(7, 8);
	((struct sockaddr_in *)(void *)&req.destination)->sin_addr.s_addr = htonl(0x08080808);
	CHECK(send(fd, record, soft_record_encode(&req, 1, record), 0) > 0);
	let_it_read(fd);
	soft_mutex_lock(ipc->lock);
	CHECK(ipc->counts.invalid == before + 2);
	soft_mutex_unlock(ipc->lock);
	expect_silence(server.channel);
	CHECK(!close(fd));
}

/* A process that knows the numbers of another's connection can neither end it nor take it over. */
static void test_others_connections(void)
{
	struct rdma_cm_id *id = process_connect(&client, PORT), *child = process_request(&server);
	struct soft_cm_message forged = {.source = local_address(40000), .destination = local_address(PORT)};
	static const enum soft_cm_attribute attributes[] = {SOFT_CM_RTU, SOFT_CM_REJ, SOFT_CM_DREQ, SOFT_CM_DREP};
	uint8_t record[SOFT_RECORD_MAX];
	int fd = stranger();

	process_accept(&server, child);
	process_expect(&client, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
	forged.local = soft_id(child)->remote;
	forged.remote = soft_id(child)->local;
	forged.qp_num = soft_id(child)->local_qp_num;
	forged.reason = SOFT_REJ_CONSUMER_DEFINED;
	for (size_t index = 0; index < sizeof(attributes) / sizeof(attributes[0]); index++) {
		forged.attribute = attributes[index];
		CHECK(send(fd, record, soft_record_encode(&forged, 1, record), 0) > 0);
	}
	/* A request with its numbers is a different request, and makes nothing stale. */
	forged = request(soft_id(child)->remote, soft_id(child)->remote_qp_num);
	forged.guid = soft_id(child)->remote_guid;
	CHECK(send(fd, record, soft_record_encode(&forged, 1, record), 0) > 0);
	let_it_read(fd);
	(void)drain();
	CHECK(!client.provider->rdma_establish(id));
	process_expect(&server, RDMA_CM_EVENT_ESTABLISHED, 0);
	process_destroy(&client, id);
	process_expect(&server, RDMA_CM_EVENT_DISCONNECTED, 0);
	process_destroy(&server, child);
	CHECK(!close(fd));
}

static uint32_t unread(void)
{
	struct soft_cm *cm = ((struct soft_host *)server.provider->host)->cm;
	uint32_t total;

	soft_mutex_lock(&cm->lock);
	total = cm->backlog.total;
	soft_mutex_unlock(&cm->lock);
	return total;
}

/*
 * Unread requests are bounded in bytes, for all connections of a process and all listeners together, and another process gets in:
 * here the server itself.
 */
static void test_backlog(void)
{
	const uint32_t limit = SOFT_BACKLOG_BYTES / (sizeof(struct soft_id) + sizeof(struct soft_cm_event));
	struct rdma_cm_id *second = process_listen(&server, PORT + 1), *own = process_resolve(&server, RDMA_PS_TCP, PORT);
	struct rdma_conn_param param = usual_param();
	uint8_t record[SOFT_RECORD_MAX];
	int fds[4];

	for (uint32_t index = 0; index < 4; index++) {
		fds[index] = stranger();
		for (uint32_t number = index * limit / 6; number < (index + 1) * limit / 6; number++) {
			struct soft_cm_message req = request(number + 1, number + 1);

			req.destination = local_address((uint16_t)(PORT + index % 2));
			CHECK(send(fds[index], record, soft_record_encode(&req, 1, record), 0) > 0);
		}
		let_it_read(fds[index]);
	}
	CHECK(unread() == (limit + 1) / 2);
	CHECK(!server.provider->rdma_connect(own, &param));
	CHECK(unread() == (limit + 1) / 2 + 1);
	CHECK(drain() == (limit + 1) / 2 + 1);
	CHECK(!unread());
	for (uint32_t index = 0; index < 4; index++)
		CHECK(!close(fds[index]));
	let_them_go();
	(void)drain();
	process_destroy(&server, own);
	process_destroy(&server, second);
	expect_service();
}

/* Any byte of any message may be another. */
static void test_forged(long records, uint64_t seed)
{
	struct soft_random random = {.state = seed};
	uint8_t record[SOFT_RECORD_MAX];
	int fd = stranger();

	for (long count = 0; count < records; count++) {
		struct soft_cm_message message = request((uint32_t)count, (uint32_t)count);
		int changes = (int)(soft_random_next(&random) % 4);

		message.attribute = SOFT_CM_REQ + soft_random_next(&random) % (SOFT_CM_SIDR_REP - SOFT_CM_REQ + 1);
		message.remote = (uint32_t)soft_random_next(&random) & 0xffffff;
		message.port_space = soft_random_next(&random) % 2 ? RDMA_PS_TCP : RDMA_PS_UDP;
		soft_record_encode(&message, 1, record);
		while (changes--)
			record[16 + soft_random_next(&random) % (SOFT_RECORD_MAX - 16)] ^= (uint8_t)soft_random_next(&random);
		/* It does not read the answers either: they are dropped when too many wait. */
		if (send(fd, record, sizeof(record), MSG_NOSIGNAL) < 0) {
			CHECK(!close(fd));
			fd = stranger();
		}
		if (count % 64 == 0)
			(void)drain();
	}
	CHECK(!close(fd));
	let_them_go();
	(void)drain();
	expect_service();
}

/* More connections than the limit: idle ones are closed first, and a real one is accepted. */
static void test_too_many(void)
{
	struct soft_ipc *ipc = process_ipc(server.provider);
	uint32_t limit = ipc->peer_limit;
	int fds[200];

	soft_mutex_lock(ipc->lock);
	ipc->peer_limit = 32;
	soft_mutex_unlock(ipc->lock);
	for (int index = 0; index < 200; index++)
		fds[index] = stranger();
	let_it_read(fds[199]); /* then it has accepted them all */
	expect_service();
	soft_mutex_lock(ipc->lock);
	CHECK(ipc->peer_count <= 32 && ipc->counts.refused >= 200 - 32);
	ipc->peer_limit = limit;
	soft_mutex_unlock(ipc->lock);
	for (int index = 0; index < 200; index++)
		CHECK(!close(fds[index]));
}

/* Without descriptors, a connecting process waits until there are some again. */
static void test_no_descriptors(void)
{
	struct rlimit was, none;
	struct rdma_cm_id *id;
	int fd = stranger(), spare;

	let_it_read(fd);
	id = process_id(&client, RDMA_PS_TCP);
	process_destroy(&client, id);
	spare = dup(0);
	CHECK(spare >= 0 && !getrlimit(RLIMIT_NOFILE, &was));
	none = was;
	none.rlim_cur = (rlim_t)spare;
	CHECK(!close(spare));
	CHECK(!close(fd));
	fd = stranger(); /* takes the last one, or the one before */
	CHECK(!setrlimit(RLIMIT_NOFILE, &none));
	usleep(1000);
	CHECK(!setrlimit(RLIMIT_NOFILE, &was));
	let_it_read(fd);
	CHECK(!close(fd));
	expect_service();
}

int main(int argc, char **argv)
{
	server = process_start(1);
	client = process_start(2);
	listener = process_listen(&server, PORT);
	test_no_records();
	test_foreign_addresses();
	test_others_connections();
	test_forged(argc > 1 ? atol(argv[1]) : FORGED, argc > 2 ? strtoull(argv[2], NULL, 0) : 7);
	test_backlog();
	test_too_many();
	test_no_descriptors();
	process_destroy(&server, listener);
	process_end(&client);
	process_end(&server);
	return 0;
}
