/*
 * The codec with packets of other implementations: testdata/rxe-rxe.pcap has the traffic of two kernel rdma_rxe
 * devices (rping, rdma_client, udaddy, a rejected connection, pingpong, atomics). Each packet is decoded and encoded
 * again to the same bytes, and its ICRC is computed again; so is each message of connection management.
 */
#include "ctest/support/check.h"
#include "soft/wire/datagram.h"
#include "soft/wire/fields.h"
#include "soft/wire/mad.h"

#define ETHERNET 14
#define IPV4 20
#define UDP 8
#define PACKETS 153 /* RoCE packets of the capture */
#define MANAGEMENT 29 /* of them, messages of connection management */
#define LARGEST 2048

static const char *capture_path(char *path, size_t size)
{
	const char *slash = strrchr(__FILE__, '/');

	snprintf(path, size, "%.*s/testdata/rxe-rxe.pcap", (int)(slash - __FILE__), __FILE__);
	return path;
}

/* The next RoCE datagram from its IPv4 header on; 0 at the end of the file. */
static size_t next_datagram(FILE *file, uint8_t *datagram)
{
	static const uint8_t port[2] = {SOFT_WIRE_PORT >> 8, SOFT_WIRE_PORT & 0xff};
	uint8_t frame[LARGEST];
	uint32_t record[4]; /* seconds, microseconds, bytes here, bytes on the wire */

	while (fread(record, sizeof(record), 1, file) == 1) {
		CHECK(record[2] == record[3] && record[2] <= sizeof(frame));
		CHECK(fread(frame, record[2], 1, file) == 1);
		if (frame[12] != 0x08 || frame[13] != 0 || frame[ETHERNET + 9] != 17 ||
		    memcmp(&frame[ETHERNET + IPV4 + 2], port, sizeof(port)) != 0)
			continue;
		memcpy(datagram, frame + ETHERNET, record[2] - ETHERNET);
		return (size_t)datagram[2] << 8 | datagram[3];
	}
	return 0;
}

/* The identification is found again that a socket would not show. */
static void check_identification(uint8_t *datagram, size_t length)
{
	uint16_t was = (uint16_t)soft_get16(&datagram[4]), found;
	uint8_t *packet = datagram + IPV4 + UDP;
	size_t without = length - IPV4 - UDP - SOFT_WIRE_ICRC;
	struct soft_icrc_headers headers;
	struct soft_endpoint from, to;

	soft_gid_from_ipv4(&from.address, &datagram[12]);
	soft_gid_from_ipv4(&to.address, &datagram[16]);
	from.port = (uint16_t)soft_get16(&datagram[IPV4]);
	to.port = (uint16_t)soft_get16(&datagram[IPV4 + 2]);
	soft_icrc_headers_make(&headers, &from, &to);
	CHECK(soft_icrc_of_packet(&headers, was, packet, without) == soft_icrc_get(packet + without));
	for (uint32_t guess = 0; guess < 65536; guess += 4369) {
		CHECK(soft_icrc_identify(&headers, (uint16_t)guess, packet, without, &found));
		CHECK(found == was);
	}
	/* One that was damaged has none. */
	packet[without + 3] ^= 1;
	CHECK(!soft_icrc_identify(&headers, 0, packet, without, &found));
	packet[without + 3] ^= 1;
}

/* For packets of each length: each bit of the length is a factor of its own. */
static void test_identification_of_lengths(void)
{
	static const struct soft_endpoint from = {.address.raw = {[10] = 0xff, 0xff, 192, 0, 2, 1}, .port = 4791};
	static const struct soft_endpoint to = {.address.raw = {[10] = 0xff, 0xff, 192, 0, 2, 2}, .port = 4791};
	static uint8_t packet[65507];
	struct soft_icrc_headers headers;

	soft_icrc_headers_make(&headers, &from, &to);
	for (size_t index = 0; index < sizeof(packet); index++)
		packet[index] = (uint8_t)(index * 7);
	for (size_t length = SOFT_WIRE_BTH; length <= sizeof(packet) - SOFT_WIRE_ICRC; length += length < 4200 ? 1 : 997) {
		uint16_t was = (uint16_t)(length * 40503u), found;
		uint8_t kept[SOFT_WIRE_ICRC];

		memcpy(kept, packet + length, sizeof(kept));
		soft_icrc_put(packet + length, soft_icrc_of_packet(&headers, was, packet, length));
		CHECK(soft_icrc_identify(&headers, 0, packet, length, &found) && found == was);
		memcpy(packet + length, kept, sizeof(kept));
	}
}

/* Decoded, and encoded to the same bytes. */
static void check_management(const uint8_t *mad, bool *seen)
{
	struct soft_cm_message message;
	uint8_t again[SOFT_MAD], wrong[SOFT_MAD];

	CHECK(soft_mad_decode(mad, &message));
	soft_mad_encode(&message, again);
	CHECK(!memcmp(mad, again, SOFT_MAD));
	seen[message.attribute] = true;
	/* Class, versions and method; an attribute that there is not. */
	for (size_t byte = 0; byte < 4; byte++) {
		memcpy(wrong, mad, SOFT_MAD);
		wrong[byte] ^= 0x40;
		CHECK(!soft_mad_decode(wrong, &message));
	}
	memcpy(wrong, mad, SOFT_MAD);
	wrong[17] = 0x35;
	CHECK(!soft_mad_decode(wrong, &message));
}

static void check_packet(uint8_t *datagram, size_t length, bool *seen, struct soft_packet *decoded)
{
	uint8_t *bytes = datagram + IPV4 + UDP, again[LARGEST];
	size_t packet_length = length - IPV4 - UDP;
	struct soft_packet packet;

	CHECK(soft_wire_decode(bytes, packet_length, &packet));
	CHECK(soft_wire_length(&packet) == packet_length);
	CHECK(soft_wire_encode(&packet, again) == packet_length - SOFT_WIRE_ICRC);
	CHECK(!memcmp(again, bytes, packet_length - SOFT_WIRE_ICRC));
	CHECK(soft_icrc(datagram, length - SOFT_WIRE_ICRC) ==
	      soft_icrc_get(datagram + length - SOFT_WIRE_ICRC));
	soft_icrc_put(again, soft_icrc(datagram, length - SOFT_WIRE_ICRC));
	CHECK(!memcmp(again, datagram + length - SOFT_WIRE_ICRC, SOFT_WIRE_ICRC));
	check_identification(datagram, length);
	seen[packet.opcode] = true;

	/* Whatever is changed on the way is seen, but for what a router may change. */
	for (size_t byte = IPV4 + UDP; byte < length - SOFT_WIRE_ICRC; byte++) {
		bool variant = byte == IPV4 + UDP + 4;

		datagram[byte] ^= 0x10;
		CHECK((soft_icrc(datagram, length - SOFT_WIRE_ICRC) ==
		       soft_icrc_get(datagram + length - SOFT_WIRE_ICRC)) == variant);
		datagram[byte] ^= 0x10;
	}
	/* No end that is too early is read behind. */
	for (size_t cut = 0; cut < packet_length; cut++) {
		uint8_t *exact = malloc(cut + 1);

		CHECK(exact);
		memcpy(exact, bytes, cut);
		if (soft_wire_decode(exact, cut, &packet))
			CHECK(packet.num_segments == 0 ||
			      (uint8_t *)packet.segments[0].address + packet.segments[0].length <=
				      exact + cut);
		free(exact);
	}
	CHECK(soft_wire_decode(bytes, packet_length, decoded));
}

static void test_capture(void)
{
	static const uint8_t opcodes[] = {
		SOFT_SEND_FIRST, SOFT_SEND_MIDDLE, SOFT_SEND_LAST, SOFT_SEND_ONLY,
		SOFT_RDMA_WRITE_ONLY, SOFT_RDMA_READ_REQUEST, SOFT_RDMA_READ_RESPONSE_ONLY,
		SOFT_ACKNOWLEDGE, SOFT_ATOMIC_ACKNOWLEDGE, SOFT_FETCH_ADD,
		SOFT_UNRELIABLE_DATAGRAM | SOFT_SEND_ONLY,
		SOFT_UNRELIABLE_DATAGRAM | SOFT_SEND_ONLY_IMMEDIATE,
	};
	uint8_t datagram[LARGEST], header[24];
	static const enum soft_cm_attribute attributes[] = {
		SOFT_CM_REQ, SOFT_CM_REJ, SOFT_CM_REP, SOFT_CM_RTU, SOFT_CM_DREQ, SOFT_CM_DREP,
		SOFT_CM_SIDR_REQ, SOFT_CM_SIDR_REP,
	};
	bool seen[256] = {0}, seen_attributes[256] = {0};
	struct soft_packet packet;
	char path[512];
	FILE *file = fopen(capture_path(path, sizeof(path)), "rb");
	size_t length;
	int packets = 0, management = 0;

	CHECK(file);
	CHECK(fread(header, sizeof(header), 1, file) == 1);
	for (; (length = next_datagram(file, datagram)); packets++) {
		check_packet(datagram, length, seen, &packet);
		if (packet.destination != SOFT_GSI_QUEUE_PAIR)
			continue;
		CHECK(packet.queue_key == SOFT_GSI_QUEUE_KEY && packet.length == SOFT_MAD);
		check_management(packet.segments[0].address, seen_attributes);
		management++;
	}
	CHECK(packets == PACKETS && management == MANAGEMENT);
	for (size_t row = 0; row < sizeof(attributes) / sizeof(attributes[0]); row++)
		CHECK(seen_attributes[attributes[row]]);
	for (size_t row = 0; row < sizeof(opcodes); row++)
		CHECK(seen[opcodes[row]]);
	fclose(file);
}

/* Layouts from IBTA 9.3 to 9.6 that the capture does not contain. */
static void test_layouts(void)
{
	static const struct {
		struct soft_packet packet;
		uint8_t bytes[48];
		size_t length; /* without the ICRC */
	} rows[] = {
		{{.opcode = SOFT_RDMA_WRITE_FIRST, .solicited = true, .migrated = true,
		  .partition = 0xffff, .destination = 0x123456, .psn = 0xabcdef,
		  .remote_address = 0x0102030405060708, .rkey = 0x11223344, .message_length = 0x10000},
		 {6, 0xc0, 0xff, 0xff, 0, 0x12, 0x34, 0x56, 0, 0xab, 0xcd, 0xef, 1, 2, 3, 4, 5, 6, 7, 8,
		  0x11, 0x22, 0x33, 0x44, 0, 1, 0, 0}, 28},
		{{.opcode = SOFT_RDMA_READ_RESPONSE_LAST, .migrated = true, .partition = 0x7fff,
		  .congestion = 0x80, .destination = 1, .psn = 2, .syndrome = SOFT_ACK, .msn = 0x30201},
		 {15, 0x40, 0x7f, 0xff, 0x80, 0, 0, 1, 0, 0, 0, 2, 0x1f, 3, 2, 1}, 16},
		{{.opcode = SOFT_COMPARE_SWAP, .acknowledge = true, .partition = 0xffff,
		  .destination = 0xffffff, .psn = 0, .remote_address = 1, .rkey = 2, .operand = 3,
		  .compare = 4, .length = 8},
		 {19, 0, 0xff, 0xff, 0, 0xff, 0xff, 0xff, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2,
		  0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 4}, 40},
		{{.opcode = SOFT_FLUSH, .partition = 0xffff, .acknowledge = true, .placement = 3,
		  .selectivity = 1, .remote_address = 1, .rkey = 2, .length = 3},
		 {28, 0, 0xff, 0xff, 0, 0, 0, 0, 0x80, 0, 0, 0, 0, 0, 0, 0x13, 0, 0, 0, 0, 0, 0, 0, 1,
		  0, 0, 0, 2, 0, 0, 0, 3}, 32},
		{{.opcode = SOFT_SEND_ONLY_INVALIDATE, .partition = 0xffff, .immediate = 0xa1b2c3d4},
		 {23, 0, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0xa1, 0xb2, 0xc3, 0xd4}, 16},
		/* Annex A14: the XRCETH is before the other headers of a request, and an answer has none. */
		{{.opcode = SOFT_SEND_ONLY_INVALIDATE, .xrc = true, .shared_queue = 0x123456, .partition = 0xffff,
		  .immediate = 0xa1b2c3d4},
		 {0xb7, 0, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x12, 0x34, 0x56, 0xa1, 0xb2, 0xc3, 0xd4}, 20},
		{{.opcode = SOFT_RDMA_READ_REQUEST, .xrc = true, .shared_queue = 0xffffff, .partition = 0xffff,
		  .remote_address = 1, .rkey = 2, .length = 3},
		 {0xac, 0, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 1,
		  0, 0, 0, 2, 0, 0, 0, 3}, 32},
		{{.opcode = SOFT_RDMA_WRITE_MIDDLE, .xrc = true, .shared_queue = 7, .partition = 0xffff},
		 {0xa7, 0, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7}, 16},
		{{.opcode = SOFT_ACKNOWLEDGE, .xrc = true, .partition = 0xffff, .psn = 2, .syndrome = SOFT_ACK, .msn = 1},
		 {0xb1, 0, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 2, 0x1f, 0, 0, 1}, 16},
	};

	for (size_t row = 0; row < sizeof(rows) / sizeof(rows[0]); row++) {
		uint8_t bytes[SOFT_WIRE_OVERHEAD] = {0}, again[SOFT_WIRE_OVERHEAD];
		struct soft_packet packet;

		CHECK(soft_wire_length(&rows[row].packet) == rows[row].length + SOFT_WIRE_ICRC);
		CHECK(soft_wire_encode(&rows[row].packet, bytes) == rows[row].length);
		CHECK(!memcmp(bytes, rows[row].bytes, rows[row].length));
		CHECK(soft_wire_decode(bytes, rows[row].length + SOFT_WIRE_ICRC, &packet));
		CHECK(packet.xrc == rows[row].packet.xrc && packet.opcode == rows[row].packet.opcode);
		CHECK(soft_wire_encode(&packet, again) == rows[row].length);
		CHECK(!memcmp(bytes, again, rows[row].length));
	}
}

/* Messages that the capture has none of, and all fields of a message at their largest: IBTA 12.6 and annex A11. */
static void test_messages(void)
{
	struct soft_cm_message req = {
		.attribute = SOFT_CM_REQ,
		.transaction = 0x0102030405060708,
		.local = 0x11121314,
		.guid = 0x2122232425262728,
		.qp_num = 0x313233,
		.starting_psn = 0x414243,
		.ece = {.vendor_id = 0x515253, .options = 0x61626364},
		.port_space = 0x0106,
		.transport = SOFT_TRANSPORT_UC,
		.path = {.flow_label = 0xfffff, .traffic_class = 0x71, .hop_limit = 0x72, .service_level = 15,
			 .rate = 63, .mtu = IBV_MTU_4096, .subnet_local = true},
		.responder_resources = 0x81,
		.initiator_depth = 0x82,
		.flow_control = 1,
		.retry_count = 7,
		.rnr_retry_count = 6,
		.srq = 1,
		.ack_timeout = 31,
		.remote_response_timeout = 30,
		.local_response_timeout = 29,
		.max_cm_retries = 14,
		.private_data_len = SOFT_REQ_PRIVATE_DATA,
	}, got;
	struct soft_cm_message mra = {.attribute = SOFT_CM_MRA, .answered = SOFT_ANSWERED_REP, .service_timeout = 24,
				      .local = 1, .remote = 2, .private_data_len = SOFT_MRA_PRIVATE_DATA};
	struct sockaddr_in6 *source = (void *)&req.source, *destination = (void *)&req.destination;
	uint8_t mad[SOFT_MAD], again[SOFT_MAD], *fields = mad + 24;

	*source = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = htons(0x9192), .sin6_addr = {{{0x20, 1}}}};
	*destination = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = htons(0x1d2f),
					     .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	memset(req.private_data, 0xa5, SOFT_REQ_PRIVATE_DATA);
	soft_mad_encode(&req, mad);
	CHECK(soft_get64(fields + 8) == 0x01061d2f && soft_get32(fields + 88) == 0xfffff03f);
	CHECK(fields[43] == (30 << 3 | 1 << 1 | 1) && fields[51] == (14 << 4 | 1 << 3));
	CHECK(fields[140] == 0 && fields[141] == 0x60 && fields[SOFT_MAD - 24 - 1] == 0xa5);
	CHECK(fields[56] == 0x20 && fields[72 + 15] == 1); /* the GIDs */
	CHECK(soft_mad_decode(mad, &got));
	CHECK(!memcmp(&got, &req, sizeof(got)));

	/* Without a readable IP header there are no addresses. */
	fields[141] = 0x50;
	CHECK(soft_mad_decode(mad, &got));
	CHECK(got.source.ss_family == AF_UNSPEC && got.destination.ss_family == AF_UNSPEC);

	soft_mad_encode(&mra, mad);
	CHECK(fields[8] == 0x40 && fields[9] == 24 << 3);
	CHECK(soft_mad_decode(mad, &got));
	CHECK(!memcmp(&got, &mra, sizeof(got)));

	/* A REJ that announces more additional information than there is room for. */
	soft_mad_encode(&(struct soft_cm_message){.attribute = SOFT_CM_REJ, .reason = SOFT_REJ_STALE_CONN}, mad);
	fields[9] = 0xff;
	CHECK(soft_mad_decode(mad, &got) && got.additional_len == SOFT_MAX_ADDITIONAL);
	soft_mad_encode(&got, again);
	CHECK(again[24 + 9] == SOFT_MAX_ADDITIONAL << 1);
}

static void test_refused(void)
{
	static const uint8_t opcodes[] = {0x15, 0x18, 0x1f, 0x20 | SOFT_RDMA_READ_REQUEST,
					  0x20 | SOFT_SEND_ONLY_INVALIDATE, 0x60 | SOFT_SEND_FIRST,
					  0x40, 0x81, 0xff, 0xb5, 0xb8, 0x84, 0xc4};
	uint8_t bytes[64] = {[1] = 0, [2] = 0xff, [3] = 0xff};
	struct soft_packet packet;

	for (size_t row = 0; row < sizeof(opcodes); row++) {
		packet.xrc = (opcodes[row] & SOFT_SERVICE) == SOFT_WIRE_EXTENDED;
		packet.opcode = bytes[0] = opcodes[row];
		CHECK(!soft_wire_decode(bytes, sizeof(bytes), &packet));
		CHECK(soft_wire_length(&packet) == 0);
	}
	bytes[0] = SOFT_SEND_ONLY;
	CHECK(soft_wire_decode(bytes, sizeof(bytes), &packet));
	bytes[1] = 0x01; /* a header version that there is not */
	CHECK(!soft_wire_decode(bytes, sizeof(bytes), &packet));
	bytes[1] = 0x30; /* more padding than payload */
	CHECK(!soft_wire_decode(bytes, SOFT_WIRE_BTH + SOFT_WIRE_ICRC, &packet));
	bytes[0] = SOFT_ACKNOWLEDGE; /* has no payload */
	bytes[1] = 0;
	CHECK(soft_wire_decode(bytes, SOFT_WIRE_BTH + 4 + SOFT_WIRE_ICRC, &packet));
	CHECK(!soft_wire_decode(bytes, SOFT_WIRE_BTH + 8 + SOFT_WIRE_ICRC, &packet));
}

/* The check value of CRC-32 that every description of it gives. */
static void test_crc(void)
{
	const uint8_t *digits = (const uint8_t *)"123456789";

	CHECK(~soft_crc32(0xffffffff, digits, 9) == 0xcbf43926);
	for (size_t cut = 0; cut <= 9; cut++)
		CHECK(~soft_crc32(soft_crc32(0xffffffff, digits, cut), digits + cut, 9 - cut) ==
		      0xcbf43926);
}

/* A bit at a time, as IEEE 802.3 has it. */
static uint32_t crc_of_bits(uint32_t state, const uint8_t *bytes, size_t length)
{
	for (size_t byte = 0; byte < length; byte++) {
		state ^= bytes[byte];
		for (int bit = 0; bit < 8; bit++)
			state = state >> 1 ^ (0xedb88320u & (0u - (state & 1)));
	}
	return state;
}

/* Every length, at every place in a word, in as many pieces: whichever way it is computed, and copied meanwhile. */
static void test_crc32(void)
{
	uint8_t bytes[1400], copy[sizeof(bytes)];

	for (size_t byte = 0; byte < sizeof(bytes); byte++)
		bytes[byte] = (uint8_t)(byte * byte / 3 + byte);
	for (size_t length = 0; length < sizeof(bytes) - 8; length++) {
		size_t place = length % 8;
		uint32_t state = crc_of_bits(0xffffffff, bytes + place, length);

		CHECK(soft_crc32(0xffffffff, bytes + place, length) == state);
		CHECK(soft_crc32(soft_crc32(0xffffffff, bytes + place, length / 3), bytes + place + length / 3,
				 length - length / 3) == state);
		memset(copy, 0xee, sizeof(copy));
		CHECK(soft_crc32_copy(0xffffffff, copy + 3, bytes + place, length) == state);
		CHECK(!memcmp(copy + 3, bytes + place, length) && copy[2] == 0xee && copy[3 + length] == 0xee);
	}
}

/* Encoding a packet with its ICRC in one step equals two steps, for each length and with its payload in pieces. */
static void test_encode_at_once(void)
{
	struct soft_endpoint from = {.address.raw = {[10] = 0xff, [11] = 0xff, 10, 0, 0, 1}, .port = 61000};
	struct soft_endpoint to = {.address.raw = {0xfe, 0x80, [15] = 2}, .port = SOFT_WIRE_PORT};
	uint8_t payload[SOFT_MTU], once[SOFT_WIRE_OVERHEAD + SOFT_MTU], twice[sizeof(once)];
	struct soft_icrc_headers headers;

	for (size_t byte = 0; byte < sizeof(payload); byte++)
		payload[byte] = (uint8_t)(byte * byte / 5 + byte);
	soft_icrc_headers_make(&headers, &from, &to);
	for (size_t size = 0; size <= sizeof(payload); size += size % 61 + 1) {
		size_t first = size / 3, second = size / 5;
		struct soft_packet packet = {
			.opcode = SOFT_RELIABLE_CONNECTION | SOFT_RDMA_WRITE_ONLY,
			.psn = (uint32_t)size,
			.length = size,
			.num_segments = 3,
			.segments = {{payload, first}, {payload + first, second},
				     {payload + first + second, size - first - second}},
		};
		size_t length = soft_wire_length(&packet), before = soft_wire_encode(&packet, twice);

		CHECK(before + SOFT_WIRE_ICRC == length);
		soft_icrc_put(twice + before, soft_icrc_of_packet(&headers, 7, twice, before));
		soft_icrc_encode(&headers, 7, &packet, once, length);
		CHECK(!memcmp(once, twice, length));
	}
}

int main(void)
{
	test_identification_of_lengths();
	test_crc32();
	test_encode_at_once();
	test_crc();
	test_layouts();
	test_messages();
	test_refused();
	test_capture();
	return 0;
}
