/*
 * A third host on the network has seen the packets of a connection and forges more, with its own address or
 * another's. Nothing happens that only the peer may cause, and others are served. In the end it forges messages
 * with what only the peer knows, which succeeds: so the others failed because of their contents.
 */
#include <arpa/inet.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ctest/support/check.h"
#include "ctest/support/forge.h"
#include "ctest/support/world.h"
#include "soft/base/random.h"

#define NOBODY_PORT (WORLD_PORT + 5)
#define REFUSALS 2000
#define FLOOD 20000

static struct actor third;
static int raw = -1;

static struct soft_endpoint at(const char *address)
{
	return forge_endpoint(address, SOFT_WIRE_PORT);
}

static void send_message(const char *from, const char *to, const struct soft_cm_message *message)
{
	struct soft_endpoint source = at(from), destination = at(to);
	struct forged forged;

	forge_message(&forged, &source, &destination, message);
	forge_send(raw, &forged);
}

static void send_packet(const char *from, const char *to, const struct soft_packet *packet)
{
	struct soft_endpoint source = at(from), destination = at(to);
	struct forged forged;

	source.port = FORGE_PORT;
	forge_packet(&forged, &source, &destination, packet);
	forge_send(raw, &forged);
}

/* A message as one end of the connection would send it to the other. */
static struct soft_cm_message message_to(bool server, enum soft_cm_attribute attribute)
{
	const struct world_end *from = server ? &world->good : &world->server, *to = server ? &world->server : &world->good;

	return (struct soft_cm_message){
		.attribute = attribute, .transaction = from->transaction, .local = from->local, .remote = to->local, .guid = from->guid,
		.qp_num = attribute == SOFT_CM_DREQ ? to->qp_num : from->qp_num, .reason = SOFT_REJ_CONSUMER_DEFINED,
		.answered = SOFT_ANSWERED_REP, .service_timeout = 20,
	};
}

static struct soft_cm_message request_to(const char *from, uint16_t port, uint32_t id)
{
	return (struct soft_cm_message){
		.attribute = SOFT_CM_REQ, .transaction = id, .local = id, .guid = UINT64_C(0x0200000000abcdef) + id, .qp_num = id & 0xffffff,
		.port_space = RDMA_PS_TCP, .path = {.mtu = IBV_MTU_1024}, .responder_resources = 1, .initiator_depth = 1,
		.source = ipv4_address(from, 1000), .destination = ipv4_address(WORLD_SERVER, port),
	};
}

static const char *end_of(bool server)
{
	return server ? WORLD_SERVER : WORLD_GOOD;
}

/* --- connection management --------------------------------------------------------------------------- */

static void open_socket(void)
{
	raw = forge_socket();
}

/* All numbers are right, and the address is the third host's. */
static void reject_as_third(void)
{
	for (int server = 0; server < 2; server++) {
		struct soft_cm_message rej = message_to(server, SOFT_CM_REJ);

		send_message(WORLD_THIRD, end_of(server), &rej);
		rej.reason = SOFT_REJ_TIMEOUT;
		rej.answered = SOFT_ANSWERED_NONE;
		send_message(WORLD_THIRD, end_of(server), &rej);
		rej.remote = 0; /* which is looked up by GUID and id */
		send_message(WORLD_THIRD, end_of(server), &rej);
	}
}

/* The address is the peer's, and an id is missing or wrong. */
static void reject_without_ids(void)
{
	for (int server = 0; server < 2; server++) {
		const struct soft_cm_message right = message_to(server, SOFT_CM_REJ);
		const char *peer = end_of(!server);

		for (int reason = 0; reason < 2; reason++) {
			struct soft_cm_message rej = right;

			rej.reason = reason ? SOFT_REJ_TIMEOUT : SOFT_REJ_CONSUMER_DEFINED;
			rej.local = 0;
			send_message(peer, end_of(server), &rej);
			rej.local = right.local ^ 1;
			send_message(peer, end_of(server), &rej);
			rej.local = right.local;
			rej.remote ^= 1;
			rej.guid ^= 1;
			send_message(peer, end_of(server), &rej);
		}
	}
}

static void disconnect_as_third(void)
{
	for (int server = 0; server < 2; server++) {
		struct soft_cm_message dreq = message_to(server, SOFT_CM_DREQ), drep = message_to(server, SOFT_CM_DREP);

		send_message(WORLD_THIRD, end_of(server), &dreq);
		send_message(WORLD_THIRD, end_of(server), &drep);
	}
}

static void disconnect_without_ids(void)
{
	for (int server = 0; server < 2; server++) {
		const struct soft_cm_message right = message_to(server, SOFT_CM_DREQ);
		struct soft_cm_message dreq = right;

		dreq.local = 0;
		send_message(end_of(!server), end_of(server), &dreq);
		dreq.local = right.local ^ 1;
		send_message(end_of(!server), end_of(server), &dreq);
		dreq = right;
		dreq.qp_num ^= 1;
		send_message(end_of(!server), end_of(server), &dreq);
	}
}

static void answer_as_third(void)
{
	static const enum soft_cm_attribute attributes[] = {SOFT_CM_REP, SOFT_CM_RTU, SOFT_CM_MRA, SOFT_CM_SIDR_REP};

	for (int server = 0; server < 2; server++)
		for (size_t index = 0; index < sizeof(attributes) / sizeof(attributes[0]); index++) {
			struct soft_cm_message answer = message_to(server, attributes[index]);

			send_message(WORLD_THIRD, end_of(server), &answer);
		}
}

/*
 * GUID, queue pair and id of a host with a connection: from that host, after a restart, this request would end the
 * old one.
 */
static void request_as_third(void)
{
	struct soft_cm_message req = request_to(WORLD_THIRD, WORLD_PORT, world->good.local);

	req.guid = world->good.guid;
	req.qp_num = world->good.qp_num;
	req.transaction = world->good.transaction;
	send_message(WORLD_THIRD, WORLD_SERVER, &req);
	req.local ^= 1;
	send_message(WORLD_THIRD, WORLD_SERVER, &req);
}

/* The addresses in a request are not those of its packet; they are the server's; they are unspecified. */
static void request_as_others(void)
{
	struct soft_cm_message req = request_to(WORLD_GOOD, WORLD_PORT, 77);

	req.guid = world->good.guid;
	req.qp_num = world->good.qp_num;
	send_message(WORLD_THIRD, WORLD_SERVER, &req);
	req = request_to(WORLD_SERVER, WORLD_PORT, 78);
	send_message(WORLD_SERVER, WORLD_SERVER, &req);
	req = request_to(WORLD_SECOND, WORLD_PORT, 79);
	send_message(WORLD_SECOND, WORLD_SERVER, &req);
	req = request_to("127.0.0.1", WORLD_PORT, 80);
	send_message("127.0.0.1", WORLD_SERVER, &req);
}

/* --- packets of a connection -------------------------------------------------------------------------- */

static struct soft_packet write_packet(char *byte)
{
	return (struct soft_packet){
		.opcode = SOFT_RELIABLE_CONNECTION | SOFT_RDMA_WRITE_ONLY, .partition = SOFT_WIRE_PARTITION, .acknowledge = true,
		.destination = world->server.qp_num, .psn = world->server.psn, .rkey = world->rkey, .message_length = 1, .length = 1,
		.remote_address = world->address + WORLD_OPEN, .num_segments = 1, .segments = {{byte, 1}},
	};
}

static void write_from_elsewhere(void)
{
	struct soft_packet packet = write_packet((char[1]){1});

	send_packet(WORLD_THIRD, WORLD_SERVER, &packet);
	send_packet(WORLD_SECOND, WORLD_SERVER, &packet);
	send_packet("198.51.100.9", WORLD_SERVER, &packet);
}

/* From the peer's address, to another of the host than the connection has. */
static void write_to_elsewhere(void)
{
	struct soft_packet packet = write_packet((char[1]){2});

	send_packet(WORLD_GOOD, WORLD_SECOND, &packet);
}

static void write_with_wrong_numbers(void)
{
	struct soft_packet packet = write_packet((char[1]){3});

	packet.psn = (packet.psn + 5) & SOFT_PSN_MASK;
	send_packet(WORLD_GOOD, WORLD_SERVER, &packet);
	packet.psn = (packet.psn - 100) & SOFT_PSN_MASK;
	send_packet(WORLD_GOOD, WORLD_SERVER, &packet);
	packet.psn = world->server.psn;
	packet.destination ^= 1;
	send_packet(WORLD_GOOD, WORLD_SERVER, &packet);
}

/* To the client, while a request of its own is not answered: of packets that it did not send, or that were acknowledged before. */
static void acknowledge(void)
{
	static const int32_t distances[] = {1, 2, 1000, 1 << 22, 1 << 23, -1, -2, -1000};
	static const uint8_t syndromes[] = {SOFT_ACK, SOFT_NAK_SEQUENCE, SOFT_NAK_REMOTE_ACCESS, SOFT_NAK_INVALID_REQUEST, SOFT_RNR_NAK | 1};
	struct soft_packet packet = {.partition = SOFT_WIRE_PARTITION, .destination = world->good.qp_num};

	*world_forged = 0;
	for (size_t distance = 0; distance < sizeof(distances) / sizeof(distances[0]); distance++) {
		packet.psn = (world->good.psn + (uint32_t)distances[distance]) & SOFT_PSN_MASK;
		for (size_t index = 0; index < sizeof(syndromes); index++) {
			packet.opcode = SOFT_RELIABLE_CONNECTION | SOFT_ACKNOWLEDGE;
			packet.syndrome = syndromes[index];
			packet.msn = world->good.psn + 1;
			send_packet(WORLD_SERVER, WORLD_GOOD, &packet);
			++*world_forged;
		}
		packet.opcode = SOFT_RELIABLE_CONNECTION | SOFT_RDMA_READ_RESPONSE_ONLY;
		packet.syndrome = SOFT_ACK;
		send_packet(WORLD_SERVER, WORLD_GOOD, &packet);
		++*world_forged;
	}
	packet.opcode = SOFT_RELIABLE_CONNECTION | SOFT_ACKNOWLEDGE;
	packet.psn = world->good.psn; /* the right one */
	send_packet(WORLD_THIRD, WORLD_GOOD, &packet);
	send_packet(WORLD_SECOND, WORLD_GOOD, &packet);
	*world_forged += 2;
}

/* The server is stopped, so that the request stays unanswered until it continues. */
static void test_acknowledgements(void)
{
	int status;

	CHECK(!kill(world_server.pid, SIGSTOP) && waitpid(world_server.pid, &status, WUNTRACED) == world_server.pid && WIFSTOPPED(status));
	actor_do(&world_good, world_post_good);
	actor_do(&third, acknowledge);
	actor_do(&world_good, world_await_packets_good);
	CHECK(!kill(world_server.pid, SIGCONT));
	actor_do(&world_good, world_complete_good);
	world_check();
	world_passed("ACKs, NAKs and READ responses outside of the window");
}

/* --- floods ------------------------------------------------------------------------------------------- */

static int answers = -1;
static size_t asked, asked_bytes;

/* Requests to ports without a listener, and messages for unknown connections, sent by the third host itself. */
static void ask_absent_host(void)
{
	struct soft_endpoint own = at(WORLD_THIRD), server = at(WORLD_SERVER);
	struct sockaddr_storage address = ipv4_address(WORLD_THIRD, SOFT_WIRE_PORT);

	answers = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	CHECK(answers >= 0 && !bind(answers, (struct sockaddr *)&address, sizeof(struct sockaddr_in)));
	for (uint32_t id = 1; id <= REFUSALS; id++) {
		struct soft_cm_message messages[2] = {request_to(WORLD_THIRD, NOBODY_PORT, id), message_to(true, SOFT_CM_REP + id % 5)};

		for (int index = 0; index < 2; index++) {
			struct forged forged;

			messages[1].local = messages[1].remote = id;
			forge_message(&forged, &own, &server, &messages[index]);
			forge_send(raw, &forged);
			asked++;
			asked_bytes += forged.length - 28;
		}
	}
}

/* The same under the client's address: the answers to it are dropped. */
static void ask_nobody_as_client(void)
{
	for (uint32_t id = 1; id <= REFUSALS; id++) {
		struct soft_cm_message req = request_to(WORLD_GOOD, NOBODY_PORT, id);

		send_message(WORLD_GOOD, WORLD_SERVER, &req);
	}
}

/* No more answers than messages, and none that is longer. */
static void count_answers(void)
{
	size_t count = 0, bytes = 0;
	uint8_t answer[2048];
	ssize_t length;

	while ((length = recv(answers, answer, sizeof(answer), 0)) >= 0) {
		CHECK((size_t)length <= asked_bytes / asked);
		count++;
		bytes += (size_t)length;
	}
	CHECK(errno == EAGAIN && count && count <= asked && bytes <= asked_bytes);
	CHECK(!close(answers));
}

static void test_refusals(void)
{
	actor_do(&third, ask_absent_host);
	actor_do(&third, ask_nobody_as_client);
	actor_do(&world_good, world_refuse_good);
	actor_do(&third, count_answers);
	world_check();
	world_passed("refusals are no amplifier, and the client has its own");
}

static void flood(void)
{
	struct soft_random random = {.state = 1};

	for (uint32_t id = 1; id <= FLOOD; id++) {
		uint32_t drawn = (uint32_t)soft_random_next(&random);
		char from[32];
		struct soft_cm_message req;

		snprintf(from, sizeof(from), "10.%u.%u.%u", drawn >> 16 & 255, drawn >> 8 & 255, drawn & 255);
		req = request_to(from, WORLD_PORT, id);
		send_message(from, WORLD_SERVER, &req);
	}
}

static void test_flood(void)
{
	actor_begin(&third, flood);
	for (int round = 0; round < 3; round++)
		world_check();
	actor_await(&third);
	world_check();
	world_passed("20,000 requests of hosts that there are not");
}

/* --- what only the peer knows ----------------------------------------------------------------------- */

static void disconnect_as_peer(void)
{
	struct soft_cm_message dreq = message_to(true, SOFT_CM_DREQ);

	send_message(WORLD_GOOD, WORLD_SERVER, &dreq);
}

static void write_as_peer(void)
{
	struct soft_packet packet = write_packet((char[1]){4});

	send_packet(WORLD_GOOD, WORLD_SERVER, &packet);
}

static void test_peer(void)
{
	actor_do(&third, write_as_peer);
	actor_do(&world_server, world_await_write);
	actor_do(&third, disconnect_as_peer);
	for (int waited = 0; !atomic_load(&world->lost); waited++) {
		CHECK(waited < 20000);
		usleep(1000);
	}
	world_passed("the same with all that the peer knows: it is the peer");
}

int main(int count, char **words)
{
	(void)count;
	actor_need_root(words);
	world_open();
	third = actor_start(WORLD_THIRD_HOST, 0);
	actor_do(&third, open_socket);
	world_attack("REJ from the third host's address", &third, reject_as_third);
	world_attack("REJ from the peer's address without its ids", &third, reject_without_ids);
	world_attack("DREQ and DREP from the third host's address", &third, disconnect_as_third);
	world_attack("DREQ from the peer's address without its ids, or for another queue pair", &third, disconnect_without_ids);
	world_attack("REP, RTU, MRA and SIDR REP from the third host's address", &third, answer_as_third);
	world_attack("REQ with the numbers of the peer", &third, request_as_third);
	CHECK(atomic_load(&world->refused));
	world_attack("REQ that says another sender than its packet, or the server itself", &third, request_as_others);
	world_attack("RDMA WRITE from other addresses than the peer's", &third, write_from_elsewhere);
	world_attack("RDMA WRITE to another address than the connection's", &third, write_to_elsewhere);
	world_attack("RDMA WRITE with another PSN or queue pair", &third, write_with_wrong_numbers);
	test_acknowledgements();
	test_refusals();
	test_flood();
	test_peer();
	actor_end(&third);
	world_close();
	return 0;
}
