#include "soft/wire/datagram.h"

#include <string.h>

#include "soft/wire/fields.h"

/* The extended headers of an operation, in their order on the wire (IBTA 9.2.1, table 38). */
enum header {
	RETH = 1,
	ATOMIC_ETH = 2,
	AETH = 4,
	ATOMIC_ACK_ETH = 8,
	IMMEDIATE = 16, /* or IETH: both have four bytes */
	PAYLOAD = 32,
	KNOWN = 64,
	UNRELIABLE = 128, /* UC has the operation, too */
	FETH = 256,
	XRC_ETH = 512, /* not in the table: each request of an extended connection has it */
};

#define XRC_ETH_LENGTH 4

#define FETH_LENGTH 4
#define RETH_LENGTH 16
#define ATOMIC_ETH_LENGTH 28
#define AETH_LENGTH 4
#define ATOMIC_ACK_ETH_LENGTH 8

static const uint16_t operations[SOFT_OPERATION + 1] = {
	[SOFT_SEND_FIRST] = KNOWN | UNRELIABLE | PAYLOAD,
	[SOFT_SEND_MIDDLE] = KNOWN | UNRELIABLE | PAYLOAD,
	[SOFT_SEND_LAST] = KNOWN | UNRELIABLE | PAYLOAD,
	[SOFT_SEND_LAST_IMMEDIATE] = KNOWN | UNRELIABLE | IMMEDIATE | PAYLOAD,
	[SOFT_SEND_ONLY] = KNOWN | UNRELIABLE | PAYLOAD,
	[SOFT_SEND_ONLY_IMMEDIATE] = KNOWN | UNRELIABLE | IMMEDIATE | PAYLOAD,
	[SOFT_RDMA_WRITE_FIRST] = KNOWN | UNRELIABLE | RETH | PAYLOAD,
	[SOFT_RDMA_WRITE_MIDDLE] = KNOWN | UNRELIABLE | PAYLOAD,
	[SOFT_RDMA_WRITE_LAST] = KNOWN | UNRELIABLE | PAYLOAD,
	[SOFT_RDMA_WRITE_LAST_IMMEDIATE] = KNOWN | UNRELIABLE | IMMEDIATE | PAYLOAD,
	[SOFT_RDMA_WRITE_ONLY] = KNOWN | UNRELIABLE | RETH | PAYLOAD,
	[SOFT_RDMA_WRITE_ONLY_IMMEDIATE] = KNOWN | UNRELIABLE | RETH | IMMEDIATE | PAYLOAD,
	[SOFT_RDMA_READ_REQUEST] = KNOWN | RETH,
	[SOFT_RDMA_READ_RESPONSE_FIRST] = KNOWN | AETH | PAYLOAD,
	[SOFT_RDMA_READ_RESPONSE_MIDDLE] = KNOWN | PAYLOAD,
	[SOFT_RDMA_READ_RESPONSE_LAST] = KNOWN | AETH | PAYLOAD,
	[SOFT_RDMA_READ_RESPONSE_ONLY] = KNOWN | AETH | PAYLOAD,
	[SOFT_ACKNOWLEDGE] = KNOWN | AETH,
	[SOFT_ATOMIC_ACKNOWLEDGE] = KNOWN | AETH | ATOMIC_ACK_ETH,
	[SOFT_COMPARE_SWAP] = KNOWN | ATOMIC_ETH,
	[SOFT_FETCH_ADD] = KNOWN | ATOMIC_ETH,
	[SOFT_SEND_LAST_INVALIDATE] = KNOWN | IMMEDIATE | PAYLOAD,
	[SOFT_SEND_ONLY_INVALIDATE] = KNOWN | IMMEDIATE | PAYLOAD,
	[SOFT_FLUSH] = KNOWN | FETH | RETH,
	[SOFT_ATOMIC_WRITE] = KNOWN | RETH | PAYLOAD,
};

/* 0 for an unknown opcode. opcode: as on the wire. */
static uint16_t headers_of(uint8_t opcode)
{
	uint8_t operation = opcode & SOFT_OPERATION;

	switch (opcode & SOFT_SERVICE) {
	case SOFT_RELIABLE_CONNECTION:
		return operations[operation];
	case SOFT_WIRE_EXTENDED:
		return operations[operation] && !soft_operation_is_answer(operation) ? operations[operation] | XRC_ETH :
										       operations[operation];
	case SOFT_UNRELIABLE_CONNECTION:
		return operations[operation] & UNRELIABLE ? operations[operation] : 0;
	case SOFT_UNRELIABLE_DATAGRAM:
		return operation == SOFT_SEND_ONLY || operation == SOFT_SEND_ONLY_IMMEDIATE ?
			       operations[operation] :
			       0;
	default:
		return 0;
	}
}

static uint8_t wire_opcode(const struct soft_packet *packet)
{
	return packet->xrc ? packet->opcode | SOFT_WIRE_EXTENDED : packet->opcode;
}

static bool is_datagram(uint8_t opcode)
{
	return (opcode & SOFT_SERVICE) == SOFT_UNRELIABLE_DATAGRAM;
}

static size_t headers_length(uint8_t opcode, uint16_t headers)
{
	size_t length = SOFT_WIRE_BTH;

	if (is_datagram(opcode))
		length += SOFT_WIRE_DETH;
	if (headers & XRC_ETH)
		length += XRC_ETH_LENGTH;
	if (headers & FETH)
		length += FETH_LENGTH;
	if (headers & RETH)
		length += RETH_LENGTH;
	if (headers & ATOMIC_ETH)
		length += ATOMIC_ETH_LENGTH;
	if (headers & AETH)
		length += AETH_LENGTH;
	if (headers & ATOMIC_ACK_ETH)
		length += ATOMIC_ACK_ETH_LENGTH;
	if (headers & IMMEDIATE)
		length += SOFT_WIRE_IMMEDIATE;
	return length;
}

static uint8_t padding(uint64_t length)
{
	return (uint8_t)(-length & 3);
}

size_t soft_wire_length(const struct soft_packet *packet)
{
	uint16_t headers = headers_of(wire_opcode(packet));
	size_t length = headers_length(packet->opcode, headers);

	if (!headers)
		return 0;
	if (headers & PAYLOAD)
		length += packet->length + padding(packet->length);
	return length + SOFT_WIRE_ICRC;
}

static uint8_t *put_headers(uint8_t *cursor, const struct soft_packet *packet, uint16_t headers)
{
	if (is_datagram(packet->opcode)) {
		cursor = soft_put32(cursor, packet->queue_key);
		*cursor++ = 0;
		cursor = soft_put24(cursor, packet->source);
	}
	if (headers & XRC_ETH)
		cursor = soft_put32(cursor, packet->shared_queue & 0xffffff);
	if (headers & FETH)
		cursor = soft_put32(cursor, (packet->selectivity & 3u) << 4 | (packet->placement & 15u));
	if (headers & RETH) {
		cursor = soft_put64(cursor, packet->remote_address);
		cursor = soft_put32(cursor, packet->rkey);
		cursor = soft_put32(cursor, headers & PAYLOAD ? packet->message_length :
							 (uint32_t)packet->length);
	}
	if (headers & ATOMIC_ETH) {
		cursor = soft_put64(cursor, packet->remote_address);
		cursor = soft_put32(cursor, packet->rkey);
		cursor = soft_put64(cursor, packet->operand);
		cursor = soft_put64(cursor, packet->compare);
	}
	if (headers & AETH) {
		*cursor++ = packet->syndrome;
		cursor = soft_put24(cursor, packet->msn);
	}
	if (headers & ATOMIC_ACK_ETH)
		cursor = soft_put64(cursor, packet->operand);
	if (headers & IMMEDIATE) {
		if (soft_operation_has_immediate(packet->opcode)) {
			/* In the byte order that the user gave (ibv_post_send(3)). */
			memcpy(cursor, &packet->immediate, SOFT_WIRE_IMMEDIATE);
			cursor += SOFT_WIRE_IMMEDIATE;
		} else {
			cursor = soft_put32(cursor, packet->immediate);
		}
	}
	return cursor;
}

size_t soft_wire_encode_headers(const struct soft_packet *packet, uint8_t *bytes)
{
	uint16_t headers = headers_of(wire_opcode(packet));
	uint8_t pad = headers & PAYLOAD ? padding(packet->length) : 0;
	uint8_t *cursor = bytes;

	*cursor++ = wire_opcode(packet);
	*cursor++ = (uint8_t)(packet->solicited << 7 | packet->migrated << 6 | pad << 4);
	*cursor++ = (uint8_t)(packet->partition >> 8);
	*cursor++ = (uint8_t)packet->partition;
	*cursor++ = packet->congestion;
	cursor = soft_put24(cursor, packet->destination);
	*cursor++ = (uint8_t)(packet->acknowledge << 7);
	cursor = soft_put24(cursor, packet->psn);
	return (size_t)(put_headers(cursor, packet, headers) - bytes);
}

size_t soft_wire_encode(const struct soft_packet *packet, uint8_t *bytes)
{
	size_t length = soft_wire_length(packet) - SOFT_WIRE_ICRC, before = soft_wire_encode_headers(packet, bytes);
	struct soft_segment payload = {bytes + before, packet->length};

	if (length == before)
		return length;
	/* The GRH of a datagram is not part of the packet. */
	soft_segments_copy(&payload, packet->segments + (packet->header ? 1 : 0), packet->length);
	memset(bytes + before + packet->length, 0, length - before - packet->length);
	return length;
}

/* Read the headers after the BTH; returns where the payload begins. */
static uint8_t *get_headers(uint8_t *cursor, struct soft_packet *packet, uint16_t headers)
{
	if (is_datagram(packet->opcode)) {
		packet->queue_key = soft_get32(cursor);
		packet->source = soft_get24(cursor + 5);
		cursor += SOFT_WIRE_DETH;
	}
	if (headers & XRC_ETH) {
		packet->shared_queue = soft_get24(cursor + 1);
		cursor += XRC_ETH_LENGTH;
	}
	if (headers & FETH) {
		packet->placement = cursor[3] & 15;
		packet->selectivity = cursor[3] >> 4 & 3;
		cursor += FETH_LENGTH;
	}
	if (headers & RETH) {
		packet->remote_address = soft_get64(cursor);
		packet->rkey = soft_get32(cursor + 8);
		packet->message_length = soft_get32(cursor + 12);
		cursor += RETH_LENGTH;
	}
	if (headers & ATOMIC_ETH) {
		packet->remote_address = soft_get64(cursor);
		packet->rkey = soft_get32(cursor + 8);
		packet->operand = soft_get64(cursor + 12);
		packet->compare = soft_get64(cursor + 20);
		cursor += ATOMIC_ETH_LENGTH;
	}
	if (headers & AETH) {
		packet->syndrome = *cursor;
		packet->msn = soft_get24(cursor + 1);
		cursor += AETH_LENGTH;
	}
	if (headers & ATOMIC_ACK_ETH) {
		packet->operand = soft_get64(cursor);
		cursor += ATOMIC_ACK_ETH_LENGTH;
	}
	if (headers & IMMEDIATE) {
		if (soft_operation_has_immediate(packet->opcode))
			memcpy(&packet->immediate, cursor, SOFT_WIRE_IMMEDIATE);
		else
			packet->immediate = soft_get32(cursor);
		cursor += SOFT_WIRE_IMMEDIATE;
	}
	return cursor;
}

bool soft_wire_decode(uint8_t *bytes, size_t length, struct soft_packet *packet)
{
	uint16_t headers, pad;
	size_t before;

	if (length < SOFT_WIRE_BTH + SOFT_WIRE_ICRC)
		return false;
	headers = headers_of(bytes[0]);
	before = headers_length(bytes[0], headers);
	pad = bytes[1] >> 4 & 3;
	/* The header version must be 0 (IBTA 9.6.1.2). */
	if (!headers || bytes[1] & 0xf || length < before + pad + SOFT_WIRE_ICRC)
		return false;
	length -= before + pad + SOFT_WIRE_ICRC;
	if (!(headers & PAYLOAD) && (length || pad))
		return false;
	packet->xrc = (bytes[0] & SOFT_SERVICE) == SOFT_WIRE_EXTENDED;
	packet->opcode = packet->xrc ? bytes[0] & SOFT_OPERATION : bytes[0];
	packet->solicited = bytes[1] >> 7;
	packet->migrated = bytes[1] >> 6 & 1;
	packet->partition = (uint16_t)(bytes[2] << 8 | bytes[3]);
	packet->congestion = bytes[4];
	packet->destination = soft_get24(&bytes[5]);
	packet->acknowledge = bytes[8] >> 7;
	packet->psn = soft_get24(&bytes[9]);
	packet->header = 0;
	packet->service_level = 0;
	packet->source = 0;
	packet->ah = NULL;
	packet->num_segments = length ? 1 : 0;
	packet->segments[0] = (struct soft_segment){get_headers(bytes + SOFT_WIRE_BTH, packet, headers),
						    length};
	packet->length = length;
	if (packet->opcode == SOFT_RDMA_READ_REQUEST || packet->opcode == SOFT_FLUSH)
		packet->length = packet->message_length;
	else if (headers & (ATOMIC_ETH | ATOMIC_ACK_ETH))
		packet->length = sizeof(packet->operand);
	return true;
}
