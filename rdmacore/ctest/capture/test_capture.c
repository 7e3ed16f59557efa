/*
 * Captures of a run, read back: each packet is a complete RoCE v2 packet on either link. It has a right ICRC and the
 * number that it would have on a wire. Also files that cannot be written, or have no reader.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/core.h"
#include "ctest/support/check.h"
#include "ctest/support/pair.h"
#include "ctest/support/pcapng.h"
#include "soft/capture/capture.h"
#include "soft/host.h"
#include "soft/wire/address.h"
#include "soft/wire/datagram.h"
#include "soft/wire/fields.h"
#include "soft/wire/mad.h"

#define MEMORY (1 << 20)
#define PORT 7471
#define LONG 10000 /* three packets of any MTU that rdma_cm chooses here */

static char path[] = "/tmp/test_capture.XXXXXX";

/* The address of both ends of a pair. */
static struct core_address own_address(void)
{
	struct sockaddr_storage local = local_address(0);
	struct core_address address;

	core_address_from_sockaddr(&address, (struct sockaddr *)&local);
	return address;
}

static struct soft_capture_file *open_capture(const char *file, uint32_t snap_length)
{
	struct core_capture_options options = {.path = file, .application = "test", .snap_length = snap_length};
	struct soft_capture_file *capture;

	CHECK(!core_capture_open(&options, &capture));
	return capture;
}

static struct core_provider *open_captured(struct soft_capture_file *capture, enum core_link link)
{
	struct core_options options = {.link = link, .capture = capture, .capture_label = "label"};
	struct core_provider *provider;
	char why[64];

	CHECK(!core_open("soft", &options, &provider, why, sizeof(why)));
	return provider;
}

static void connect_pair(struct pair *pair, struct core_provider *provider, uint16_t port)
{
	pair_connect(pair, provider, port,
		     (struct pair_options){.memory = MEMORY, .depth = 16, .rnr_retry = 7, .retry = 7, .resources = 4});
	for (int byte = 0; byte < MEMORY; byte++)
		pair->client.memory[byte] = (char)(byte * 7 + (byte >> 8));
}

static void transfer(struct pair *pair, enum ibv_wr_opcode opcode, uint32_t length)
{
	CHECK(!post_send(&pair->client, opcode, 1, 0, length, &pair->server, 0));
	CHECK(poll_one(pair->client.id->send_cq).status == IBV_WC_SUCCESS);
}

/* Each packet is one; *management: how many of them are messages of connection management. */
static void decode_all(const struct pcapng *pcapng, struct soft_packet *packets, uint32_t *management)
{
	*management = 0;
	for (uint32_t index = 0; index < pcapng->count; index++) {
		uint8_t *datagram = pcapng->packets[index].bytes, header[SOFT_GRH];
		size_t length = pcapng->packets[index].length, udp;
		union ibv_gid from, to;
		struct soft_cm_message message;

		CHECK(pcapng->packets[index].captured == length);
		CHECK(ip_is_whole(datagram));
		udp = soft_ip_parse(datagram, length, header, &from, &to);
		CHECK(udp && soft_udp_port(datagram + udp) == SOFT_WIRE_PORT);
		CHECK(soft_icrc(datagram, length - SOFT_WIRE_ICRC) == soft_icrc_get(datagram + length - SOFT_WIRE_ICRC));
		CHECK(soft_wire_decode(datagram + udp + SOFT_UDP_HEADER, length - udp - SOFT_UDP_HEADER, &packets[index]));
		CHECK(!index || pcapng->packets[index].time >= pcapng->packets[index - 1].time);
		if (packets[index].destination != SOFT_GSI_QUEUE_PAIR)
			continue;
		CHECK(packets[index].source == SOFT_GSI_QUEUE_PAIR && packets[index].queue_key == SOFT_GSI_QUEUE_KEY);
		CHECK(packets[index].length == SOFT_MAD);
		CHECK(soft_mad_decode(packets[index].segments[0].address, &message));
		CHECK((*management)++ || message.attribute == SOFT_CM_REQ);
	}
}

/* The bytes that two ends have sent in that many requests are those of the sender's memory, from its beginning on. */
static void check_payload(const struct soft_packet *packets, uint32_t count, const char *memory, uint64_t length)
{
	uint64_t offset = 0;

	for (uint32_t index = 0; index < count; index++) {
		CHECK(offset + packets[index].length <= length);
		CHECK(!memcmp(packets[index].segments[0].address, memory + offset, packets[index].length));
		offset += packets[index].length;
	}
	CHECK(offset == length);
}

/* A WRITE, a READ and a WRITE: the number of a packet is one more than that of the packet before it, across requests. */
static void check_data(const struct soft_packet *packets, uint32_t count, const char *memory)
{
	const struct soft_packet *first = packets, *acknowledge = first + 3, *read = first + 4, *last = first + 8;

	CHECK(count == 10);
	CHECK(first[0].opcode == SOFT_RDMA_WRITE_FIRST && first[1].opcode == SOFT_RDMA_WRITE_MIDDLE &&
	      first[2].opcode == SOFT_RDMA_WRITE_LAST);
	CHECK(!first[0].acknowledge && first[2].acknowledge && first[0].message_length == LONG);
	check_payload(first, 3, memory, LONG);
	CHECK(acknowledge->opcode == SOFT_ACKNOWLEDGE && acknowledge->syndrome == SOFT_ACK && acknowledge->msn == 1);
	CHECK(read->opcode == SOFT_RDMA_READ_REQUEST && read->length == LONG);
	CHECK(read[1].opcode == SOFT_RDMA_READ_RESPONSE_FIRST && read[2].opcode == SOFT_RDMA_READ_RESPONSE_MIDDLE &&
	      read[3].opcode == SOFT_RDMA_READ_RESPONSE_LAST);
	check_payload(read + 1, 3, memory, LONG);
	CHECK(last->opcode == SOFT_RDMA_WRITE_ONLY && last->length == 8 && last[1].opcode == SOFT_ACKNOWLEDGE);
	for (int index = 1; index < 3; index++) {
		CHECK(first[index].psn == ((first->psn + (uint32_t)index) & SOFT_PSN_MASK));
		CHECK(read[1 + index].psn == ((read->psn + (uint32_t)index) & SOFT_PSN_MASK));
	}
	CHECK(acknowledge->psn == first[2].psn);
	CHECK(read->psn == ((first->psn + 3) & SOFT_PSN_MASK) && read[1].psn == read->psn);
	CHECK(last->psn == ((read->psn + 3) & SOFT_PSN_MASK) && last[1].psn == last->psn);
}

/* Both links show the same packets of the same messages. */
static void test_packets(enum core_link link)
{
	struct soft_capture_file *capture = open_capture(path, 0);
	struct core_provider *provider = open_captured(capture, link);
	struct core_address address = own_address();
	struct core_capture_result result;
	struct soft_packet packets[64];
	struct pcapng pcapng;
	struct pair pair;
	uint32_t management, before;
	char memory[LONG];

	core_capture_name(provider, &address, "client");
	core_capture_name(provider, &address, "server");
	connect_pair(&pair, provider, PORT);
	memcpy(memory, pair.client.memory, sizeof(memory));
	transfer(&pair, IBV_WR_RDMA_WRITE, LONG);
	transfer(&pair, IBV_WR_RDMA_READ, LONG);
	transfer(&pair, IBV_WR_RDMA_WRITE, 8);
	pair_close(&pair);
	close_provider(provider);
	core_capture_close(capture, &result);
	CHECK(!result.error && !result.missing);

	pcapng_read(&pcapng, path, false);
	CHECK(pcapng.count == result.packets && pcapng.count < 64);
	CHECK(pcapng.interface_count == 1 && !strcmp(pcapng.interfaces[0].name, "client, server"));
	CHECK(pcapng.interfaces[0].counted == pcapng.count && !pcapng.interfaces[0].missing);
	decode_all(&pcapng, packets, &management);
	CHECK(management >= 5); /* REQ, REP, RTU, DREQ, DREP; MRAs */
	for (before = 0; packets[before].destination == SOFT_GSI_QUEUE_PAIR;)
		before++;
	check_data(packets + before, 10, memory);
	CHECK(packets[before + 10].destination == SOFT_GSI_QUEUE_PAIR);
	pcapng_free(&pcapng);
}

/* A lost request and its repetition have the same numbers, although longer ones were before them. */
static void test_comments(void)
{
	struct soft_capture_file *capture = open_capture(path, 0);
	struct core_provider *provider = open_captured(capture, CORE_LINK_LOCAL);
	struct core_address address = own_address(), nobody = {0};
	struct core_fault fault = {.from = address, .to = address, .traffic = CORE_FAULT_DATA, .probability = 1000000, .count = 1};
	struct core_captured captured[CORE_CAPTURED_MAX];
	struct core_capture_result result;
	struct soft_packet packets[64];
	struct pcapng pcapng;
	struct pair pair;
	uint32_t management, first, noted;
	uint64_t missed;

	connect_pair(&pair, provider, PORT);
	transfer(&pair, IBV_WR_RDMA_WRITE, LONG);
	first = core_captured(provider, captured, CORE_CAPTURED_MAX, &missed) - 4;
	CHECK(!missed && captured[0].attribute == SOFT_CM_REQ && captured[first].opcode == SOFT_RDMA_WRITE_FIRST);
	core_capture_step(provider, &nobody, 7, "f.yaml:7 fault");
	CHECK(core_fault_add(provider, &fault) == 0);
	core_capture_step(provider, &address, 8, "f.yaml:8 post");
	transfer(&pair, IBV_WR_RDMA_WRITE, LONG);
	core_capture_step(provider, &address, 0, "");
	core_capture_step(provider, &nobody, 9, "f.yaml:9 poll");
	transfer(&pair, IBV_WR_RDMA_WRITE, 8);
	noted = core_captured(provider, captured, CORE_CAPTURED_MAX, &missed);
	CHECK(noted == 9 && !missed);
	for (uint32_t index = 0; index < noted; index++) {
		CHECK(captured[index].step == (index < 7 ? 8 : 9));
		CHECK(!captured[index].fault_result[0] == (index > 2));
	}
	CHECK(captured[6].opcode == SOFT_ACKNOWLEDGE && captured[6].syndrome == SOFT_ACK && !captured[6].length);
	pair_close(&pair);
	close_provider(provider);
	core_capture_close(capture, &result);

	pcapng_read(&pcapng, path, false);
	decode_all(&pcapng, packets, &management);
	for (uint32_t index = first; index < first + 4; index++)
		CHECK(!pcapng.packets[index].comments[0][0]);
	for (uint32_t index = first + 4; index < first + 7; index++) {
		CHECK(!strcmp(pcapng.packets[index].comments[0], "f.yaml:8 post"));
		CHECK(!strcmp(pcapng.packets[index].comments[1], "lost by fault 1 (f.yaml:7 fault)"));
		CHECK(!pcapng.packets[index + 3].comments[1][0]);
		CHECK(packets[index].psn == packets[index + 3].psn && packets[index].opcode == packets[index + 3].opcode);
		CHECK(packets[index].psn == ((packets[index - 4].psn + 3) & SOFT_PSN_MASK));
	}
	CHECK(packets[first + 11].opcode == SOFT_RDMA_WRITE_ONLY);
	CHECK(packets[first + 11].psn == ((packets[first].psn + 6) & SOFT_PSN_MASK));
	CHECK(!strcmp(pcapng.packets[first + 11].comments[0], "f.yaml:9 poll"));
	pcapng_free(&pcapng);
}

static void test_snap_length(void)
{
	struct soft_capture_file *capture = open_capture(path, 64);
	struct core_provider *provider = open_captured(capture, CORE_LINK_LOCAL);
	struct core_capture_result result;
	struct pcapng pcapng;
	struct pair pair;
	bool longer = false;

	connect_pair(&pair, provider, PORT);
	transfer(&pair, IBV_WR_RDMA_WRITE, LONG);
	pair_close(&pair);
	close_provider(provider);
	core_capture_close(capture, &result);
	pcapng_read(&pcapng, path, false);
	CHECK(pcapng.interfaces[0].snap_length == 64);
	for (uint32_t index = 0; index < pcapng.count; index++) {
		uint32_t length = pcapng.packets[index].length;

		CHECK(pcapng.packets[index].captured == (length < 64 ? length : 64));
		longer |= length > 4000;
	}
	CHECK(longer);
	pcapng_free(&pcapng);
}

/* A full disk is reported once, and the run continues. */
static void test_full(void)
{
	struct soft_capture_file *capture = open_capture("/dev/full", 0);
	struct core_provider *provider = open_captured(capture, CORE_LINK_LOCAL);
	struct core_capture_result result;
	struct pair pair;

	connect_pair(&pair, provider, PORT);
	transfer(&pair, IBV_WR_RDMA_WRITE, MEMORY);
	pair_close(&pair);
	close_provider(provider);
	core_capture_close(capture, &result);
	CHECK(result.error == ENOSPC && !result.packets && result.missing > 256);
}

/* More packets than memory and pipe can take, without a reader: missing ones are counted, and nothing waits forever. */
static void test_stalled(void)
{
	struct soft_capture_file *capture;
	struct core_provider *provider;
	struct core_capture_options options = {.path = path, .application = "test"};
	struct core_capture_result result;
	struct pair pair;
	int reader;

	CHECK(!unlink(path) && !mkfifo(path, 0600));
	CHECK(core_capture_open(&options, &capture) == -ENXIO);
	reader = open(path, O_RDONLY | O_NONBLOCK);
	CHECK(reader >= 0);
	capture = open_capture(path, 0);
	provider = open_captured(capture, CORE_LINK_LOCAL);
	connect_pair(&pair, provider, PORT);
	for (int round = 0; round < 12; round++)
		transfer(&pair, IBV_WR_RDMA_WRITE, MEMORY);
	pair_close(&pair);
	close_provider(provider);
	core_capture_close(capture, &result);
	CHECK(result.error == ETIMEDOUT && result.missing && result.packets + result.missing > 12 * MEMORY / 4096);
	CHECK(!close(reader));

	/* The reader goes away. */
	reader = open(path, O_RDONLY | O_NONBLOCK);
	capture = open_capture(path, 0);
	CHECK(!close(reader));
	provider = open_captured(capture, CORE_LINK_LOCAL);
	connect_pair(&pair, provider, PORT);
	transfer(&pair, IBV_WR_RDMA_WRITE, 8);
	pair_close(&pair);
	close_provider(provider);
	core_capture_close(capture, &result);
	CHECK(result.error == EPIPE && result.missing);
	CHECK(!unlink(path));
}

static void *write_many(void *argument)
{
	struct pair *pair = argument;

	for (int round = 0; round < 200; round++)
		transfer(pair, IBV_WR_RDMA_WRITE, 3000);
	return NULL;
}

/* Two hosts write to one file at once. */
static void test_hosts(void)
{
	struct soft_capture_file *capture = open_capture(path, 0);
	struct core_provider *providers[2];
	struct core_address address = own_address();
	struct core_capture_result result;
	struct pcapng pcapng;
	struct pair pairs[2];
	pthread_t threads[2];

	for (int host = 0; host < 2; host++) {
		providers[host] = open_captured(capture, host ? CORE_LINK_PACKETS : CORE_LINK_LOCAL);
		core_capture_name(providers[host], &address, host ? "b" : "a");
		connect_pair(&pairs[host], providers[host], PORT);
	}
	for (int host = 0; host < 2; host++)
		CHECK(!pthread_create(&threads[host], NULL, write_many, &pairs[host]));
	for (int host = 0; host < 2; host++) {
		CHECK(!pthread_join(threads[host], NULL));
		pair_close(&pairs[host]);
		close_provider(providers[host]);
	}
	core_capture_close(capture, &result);
	CHECK(!result.error && !result.missing);
	pcapng_read(&pcapng, path, false);
	CHECK(pcapng.interface_count == 2 && pcapng.count == result.packets);
	for (uint32_t index = 0; index < 2; index++) {
		CHECK(pcapng.interfaces[index].packets == pcapng.interfaces[index].counted);
		CHECK(pcapng.interfaces[index].packets >= 400);
	}
	CHECK(pcapng_find(&pcapng, "a") != pcapng_find(&pcapng, "b"));
	pcapng_free(&pcapng);
}

/*
 * Any host may request to read as many bytes of queue pair 1 as a management datagram has: there are none in the
 * packet.
 */
static void test_no_management(void)
{
	struct soft_capture_file *capture = open_capture(path, 0);
	struct core_provider *provider = open_captured(capture, CORE_LINK_LOCAL);
	const struct soft_host *host = provider->host;
	struct sockaddr_storage local = local_address(0);
	struct soft_packet packet = {.opcode = SOFT_RDMA_READ_REQUEST, .destination = SOFT_GSI_QUEUE_PAIR, .length = SOFT_MAD};
	size_t length = soft_wire_length(&packet), before = SOFT_IPV4_HEADER + SOFT_UDP_HEADER;
	uint8_t header[SOFT_GRH], *datagram = malloc(before + length);
	struct ibv_global_route route = {0};
	struct core_captured captured[CORE_CAPTURED_MAX];
	struct core_capture_result result;
	union ibv_gid gid;
	uint64_t missed;

	CHECK(datagram && soft_gid_from_sockaddr(&gid, (struct sockaddr *)&local));
	route.dgid = gid;
	soft_ip_make(header, &route, &gid);
	soft_ip_finish(header, (uint32_t)(SOFT_UDP_HEADER + length));
	memcpy(datagram, header + soft_ip_offset(header), SOFT_IPV4_HEADER);
	soft_udp_make(datagram + SOFT_IPV4_HEADER, SOFT_WIRE_PORT, length);
	soft_wire_encode(&packet, datagram + before);
	soft_capture_datagram(host->fabric.capture, datagram, before + length, &gid, true,
			      &(struct soft_capture_outcome){0});
	CHECK(core_captured(provider, captured, CORE_CAPTURED_MAX, &missed) == 1);
	CHECK(captured[0].opcode == SOFT_RDMA_READ_REQUEST && !captured[0].attribute);
	free(datagram);
	close_provider(provider);
	core_capture_close(capture, &result);
}

/* The other user. */
#define STRANGER 65533

/* The mode of what a capture was written to; 0 if it was refused with that error. */
static mode_t capture_to(const char *file, const char *target, int error)
{
	struct core_capture_options options = {.path = file, .application = "test"};
	struct core_capture_result result;
	struct soft_capture_file *capture = NULL;
	struct stat status = {0};
	int got = core_capture_open(&options, &capture);

	CHECK(got == -error);
	if (got)
		return 0;
	core_capture_close(capture, &result);
	CHECK(!stat(target, &status) && S_ISREG(status.st_mode) && status.st_size > 28);
	return status.st_mode & 0777;
}

/* Files of other users at the path of a capture are never written to. */
static void test_places(void)
{
	char folder[] = "/tmp/test_capture.XXXXXX", file[64], target[64];
	struct stat status;

	CHECK(mkdtemp(folder));
	snprintf(file, sizeof(file), "%s/file", folder);
	snprintf(target, sizeof(target), "%s/target", folder);
	CHECK(capture_to(file, file, 0) == 0600); /* a new file is for this user alone */
	CHECK(capture_to(file, file, 0) == 0600); /* and is truncated */
	CHECK(!link(file, target));
	capture_to(file, file, EMLINK);
	CHECK(!unlink(file));
	CHECK(!symlink("target", file));
	CHECK(capture_to(file, target, 0) == 0600);
	CHECK(!unlink(target));
	CHECK(capture_to(file, target, 0) == 0600); /* the target does not exist */
	if (!geteuid()) {
		CHECK(!truncate(target, 1) && !lchown(file, STRANGER, STRANGER));
		capture_to(file, target, ELOOP);
		CHECK(!stat(target, &status) && status.st_size == 1);
		CHECK(!unlink(target));
		capture_to(file, target, ELOOP);
		CHECK(stat(target, &status) && errno == ENOENT);
		CHECK(!unlink(file) && !mkfifo(file, 0666) && !chown(file, STRANGER, STRANGER));
		capture_to(file, file, EPERM);
		CHECK(!unlink(file) && !close(open(file, O_CREAT | O_WRONLY, 0666)) && !chown(file, STRANGER, STRANGER));
		capture_to(file, file, EPERM);
		CHECK(!stat(file, &status) && !status.st_size);
	}
	unlink(file);
	CHECK(!symlink(file, file));
	capture_to(file, file, ELOOP);
	capture_to(folder, folder, EISDIR);
	CHECK(!unlink(file));
	unlink(target);
	CHECK(!rmdir(folder));
	capture_to(file, file, ENOENT);
}

int main(void)
{
	int file = mkstemp(path);

	CHECK(file >= 0 && !close(file));
	test_places();
	test_packets(CORE_LINK_LOCAL);
	test_packets(CORE_LINK_PACKETS);
	test_comments();
	test_snap_length();
	test_full();
	test_hosts();
	test_no_management();
	test_stalled();
	return 0;
}
