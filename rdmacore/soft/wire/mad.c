#include "soft/wire/mad.h"

#include <string.h>

#include "soft/wire/datagram.h"
#include "soft/wire/fields.h"

/* The common header (IBTA 13.4.3). */
#define BASE_VERSION 1
#define CLASS_COMMUNICATION 7
#define CLASS_VERSION 2
#define METHOD_SEND 3
#define HEADER 24

/* REQ and SIDR REQ: offset of the private data. Clients that connect by IP addresses put an IP header there. */
#define REQ_PRIVATE_DATA 140
#define SIDR_REQ_PRIVATE_DATA 16

/* REJ and SIDR REP: offset of the additional information. */
#define REJ_ADDITIONAL 12
#define SIDR_REP_ADDITIONAL 24

#define NO_LID 0xffff /* an Ethernet port has none */

/* The header before the private data in requests with IP addresses (IBTA A11.3.1). */
#define IP_HEADER 36
#define IP_HEADER_VERSION 0 /* major and minor */
#define IP_HEADER_ADDRESS 16

static uint64_t service_id(const struct soft_cm_message *message)
{
	const struct sockaddr_in *destination = (const void *)&message->destination;

	/* sin_port and sin6_port have the same offset. */
	return (uint64_t)message->port_space << 16 | ntohs(destination->sin_port);
}

static void put_address(uint8_t *cursor, const struct sockaddr_storage *address)
{
	if (address->ss_family == AF_INET)
		memcpy(cursor + IP_HEADER_ADDRESS - 4, &((const struct sockaddr_in *)(const void *)address)->sin_addr,
		       4);
	else if (address->ss_family == AF_INET6)
		memcpy(cursor, &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr,
		       IP_HEADER_ADDRESS);
}

static void put_ip_header(uint8_t *cursor, const struct soft_cm_message *message)
{
	cursor[0] = IP_HEADER_VERSION;
	cursor[1] = message->destination.ss_family == AF_INET6 ? 0x60 : 0x40;
	memcpy(cursor + 2, &((const struct sockaddr_in *)(const void *)&message->source)->sin_port, 2);
	put_address(cursor + 4, &message->source);
	put_address(cursor + 4 + IP_HEADER_ADDRESS, &message->destination);
}

/* Read an address; its port is elsewhere in the message. */
static void get_address(const uint8_t *cursor, bool ipv6, uint16_t port, struct sockaddr_storage *address)
{
	struct sockaddr_in *in4 = (void *)address;
	struct sockaddr_in6 *in6 = (void *)address;

	if (ipv6) {
		in6->sin6_family = AF_INET6;
		in6->sin6_port = htons(port);
		memcpy(&in6->sin6_addr, cursor, IP_HEADER_ADDRESS);
	} else {
		in4->sin_family = AF_INET;
		in4->sin_port = htons(port);
		memcpy(&in4->sin_addr, cursor + IP_HEADER_ADDRESS - 4, 4);
	}
}

static void get_ip_header(const uint8_t *cursor, uint16_t port, struct soft_cm_message *message)
{
	bool ipv6 = cursor[1] == 0x60;

	if (cursor[0] != IP_HEADER_VERSION || (!ipv6 && cursor[1] != 0x40))
		return;
	get_address(cursor + 4, ipv6, (uint16_t)soft_get16(cursor + 2), &message->source);
	get_address(cursor + 4 + IP_HEADER_ADDRESS, ipv6, port, &message->destination);
}

static void address_to_gid(const struct sockaddr_storage *address, uint8_t *cursor)
{
	union ibv_gid gid = {0};

	(void)soft_gid_from_sockaddr(&gid, (const struct sockaddr *)address);
	memcpy(cursor, &gid, sizeof(gid));
}

/* IBTA 12.6.5. cursor is behind the header, as in all functions below. */
static void put_req(const struct soft_cm_message *req, uint8_t *cursor)
{
	const struct soft_cm_path *path = &req->path;
	bool extended = req->transport == SOFT_TRANSPORT_EXTENDED;

	soft_put24(cursor + 5, req->ece.vendor_id);
	soft_put64(cursor + 8, service_id(req));
	soft_put64(cursor + 16, req->guid);
	soft_put24(cursor + 32, req->qp_num);
	cursor[35] = req->responder_resources;
	cursor[39] = req->initiator_depth;
	cursor[43] = (uint8_t)(req->remote_response_timeout << 3 | (req->transport & 3) << 1 |
			      (req->flow_control & 1));
	soft_put24(cursor + 44, req->starting_psn);
	cursor[47] = (uint8_t)(req->local_response_timeout << 3 | (req->retry_count & 7));
	soft_put16(cursor + 48, SOFT_WIRE_PARTITION);
	cursor[50] = (uint8_t)(path->mtu << 4 | (req->rnr_retry_count & 7));
	cursor[51] = (uint8_t)(req->max_cm_retries << 4 | (req->srq & 1) << 3 | extended);
	soft_put16(cursor + 52, NO_LID);
	soft_put16(cursor + 54, NO_LID);
	address_to_gid(&req->source, cursor + 56);
	address_to_gid(&req->destination, cursor + 72);
	soft_put32(cursor + 88, path->flow_label << 12 | (path->rate & 63));
	cursor[92] = path->traffic_class;
	cursor[93] = path->hop_limit;
	cursor[94] = (uint8_t)(path->service_level << 4 | path->subnet_local << 3);
	cursor[95] = (uint8_t)(req->ack_timeout << 3);
	put_ip_header(cursor + REQ_PRIVATE_DATA, req);
}

static void get_req(const uint8_t *cursor, struct soft_cm_message *req)
{
	uint64_t service = soft_get64(cursor + 8);

	req->remote = 0;
	req->ece.vendor_id = soft_get24(cursor + 5);
	req->port_space = (int)(service >> 16 & 0x7fffffff);
	req->guid = soft_get64(cursor + 16);
	req->qp_num = soft_get24(cursor + 32);
	req->responder_resources = cursor[35];
	req->initiator_depth = cursor[39];
	req->remote_response_timeout = cursor[43] >> 3;
	req->transport = cursor[43] >> 1 & 3;
	req->flow_control = cursor[43] & 1;
	req->starting_psn = soft_get24(cursor + 44);
	req->local_response_timeout = cursor[47] >> 3;
	req->retry_count = cursor[47] & 7;
	req->rnr_retry_count = cursor[50] & 7;
	req->max_cm_retries = cursor[51] >> 4;
	req->srq = cursor[51] >> 3 & 1;
	req->path = (struct soft_cm_path){
		.flow_label = soft_get32(cursor + 88) >> 12,
		.rate = cursor[91] & 63,
		.traffic_class = cursor[92],
		.hop_limit = cursor[93],
		.service_level = cursor[94] >> 4,
		.subnet_local = cursor[94] >> 3 & 1,
		.mtu = cursor[50] >> 4,
	};
	req->ack_timeout = cursor[95] >> 3;
	get_ip_header(cursor + REQ_PRIVATE_DATA, (uint16_t)service, req);
}

/* IBTA 12.6.8 */
static void put_rep(const struct soft_cm_message *rep, uint8_t *cursor)
{
	soft_put24(cursor + 12, rep->qp_num);
	cursor[15] = (uint8_t)(rep->ece.vendor_id >> 16);
	cursor[19] = (uint8_t)(rep->ece.vendor_id >> 8);
	soft_put24(cursor + 20, rep->starting_psn);
	cursor[23] = (uint8_t)rep->ece.vendor_id;
	cursor[24] = rep->responder_resources;
	cursor[25] = rep->initiator_depth;
	cursor[26] = (uint8_t)(rep->ack_timeout << 3 | (rep->flow_control & 1));
	cursor[27] = (uint8_t)((rep->rnr_retry_count & 7) << 5 | (rep->srq & 1) << 4);
	soft_put64(cursor + 28, rep->guid);
}

static void get_rep(const uint8_t *cursor, struct soft_cm_message *rep)
{
	rep->qp_num = soft_get24(cursor + 12);
	rep->ece.vendor_id = (uint32_t)cursor[15] << 16 | (uint32_t)cursor[19] << 8 | cursor[23];
	rep->starting_psn = soft_get24(cursor + 20);
	rep->responder_resources = cursor[24];
	rep->initiator_depth = cursor[25];
	rep->ack_timeout = cursor[26] >> 3;
	rep->flow_control = cursor[26] & 1;
	rep->rnr_retry_count = cursor[27] >> 5;
	rep->srq = cursor[27] >> 4 & 1;
	rep->guid = soft_get64(cursor + 28);
}

/* The additional information of a REJ. length is what the message says, and may be too long. */
static void get_additional(const uint8_t *cursor, unsigned int length, struct soft_cm_message *message)
{
	message->additional_len = (uint8_t)(length < SOFT_MAX_ADDITIONAL ? length : SOFT_MAX_ADDITIONAL);
	memcpy(message->additional, cursor, message->additional_len);
}

/* IBTA 12.6.7. A REJ (timeout) contains the GUID of its sender's device (cm_format_rej of Linux). */
static void put_rej(const struct soft_cm_message *rej, uint8_t *cursor)
{
	bool late = rej->reason == SOFT_REJ_TIMEOUT;

	cursor[8] = (uint8_t)(rej->answered << 6);
	cursor[9] = (uint8_t)((late ? sizeof(rej->guid) : rej->additional_len) << 1);
	soft_put16(cursor + 10, rej->reason);
	if (late)
		soft_put64(cursor + REJ_ADDITIONAL, rej->guid);
	else
		memcpy(cursor + REJ_ADDITIONAL, rej->additional, rej->additional_len);
}

static void get_rej(const uint8_t *cursor, struct soft_cm_message *rej)
{
	rej->answered = cursor[8] >> 6;
	rej->reason = soft_get16(cursor + 10);
	get_additional(cursor + REJ_ADDITIONAL, cursor[9] >> 1, rej);
	if (rej->reason == SOFT_REJ_TIMEOUT && rej->additional_len >= sizeof(rej->guid))
		rej->guid = soft_get64(cursor + REJ_ADDITIONAL);
}

/* IBTA 12.11.1: the partition key is where other messages have the remote communication id. */
static void put_sidr_req(const struct soft_cm_message *req, uint8_t *cursor)
{
	soft_put32(cursor + 4, SOFT_WIRE_PARTITION << 16);
	soft_put64(cursor + 8, service_id(req));
	put_ip_header(cursor + SIDR_REQ_PRIVATE_DATA, req);
}

static void get_sidr_req(const uint8_t *cursor, struct soft_cm_message *req)
{
	uint64_t service = soft_get64(cursor + 8);

	req->remote = 0;
	req->port_space = (int)(service >> 16 & 0x7fffffff);
	get_ip_header(cursor + SIDR_REQ_PRIVATE_DATA, (uint16_t)service, req);
}

/* IBTA 12.11.2: its only id is the one that the sender of the request has chosen. */
static void put_sidr_rep(const struct soft_cm_message *rep, uint8_t *cursor)
{
	soft_put32(cursor, rep->remote);
	cursor[4] = (uint8_t)rep->reason;
	cursor[5] = rep->additional_len;
	cursor[6] = cursor[7] = 0;
	soft_put24(cursor + 8, rep->qp_num);
	soft_put64(cursor + 12, service_id(rep));
	soft_put32(cursor + 20, rep->qkey);
	memcpy(cursor + SIDR_REP_ADDITIONAL, rep->additional, rep->additional_len);
}

static void get_sidr_rep(const uint8_t *cursor, struct soft_cm_message *rep)
{
	uint64_t service = soft_get64(cursor + 12);

	rep->remote = rep->local;
	rep->local = 0;
	rep->reason = cursor[4];
	rep->qp_num = soft_get24(cursor + 8);
	rep->port_space = (int)(service >> 16 & 0x7fffffff);
	((struct sockaddr_in *)(void *)&rep->destination)->sin_port = htons((uint16_t)service);
	rep->qkey = soft_get32(cursor + 20);
	get_additional(cursor + SIDR_REP_ADDITIONAL, cursor[5], rep);
}

/* IBTA 12.6.6 */
static void put_mra(const struct soft_cm_message *mra, uint8_t *cursor)
{
	cursor[8] = (uint8_t)(mra->answered << 6);
	cursor[9] = (uint8_t)(mra->service_timeout << 3);
}

static void get_mra(const uint8_t *cursor, struct soft_cm_message *mra)
{
	mra->answered = cursor[8] >> 6;
	mra->service_timeout = cursor[9] >> 3;
}

/* IBTA 12.6.10 */
static void put_dreq(const struct soft_cm_message *dreq, uint8_t *cursor)
{
	soft_put24(cursor + 8, dreq->qp_num);
}

static void get_dreq(const uint8_t *cursor, struct soft_cm_message *dreq)
{
	dreq->qp_num = soft_get24(cursor + 8);
}

/*
 * Each message: offset and length of the user's private data (IBTA 12.6, 12.11), and the fields after the
 * communication ids, if it has any.
 */
static const struct layout {
	uint8_t private_data, length;
	void (*put)(const struct soft_cm_message *message, uint8_t *cursor);
	void (*get)(const uint8_t *cursor, struct soft_cm_message *message);
} layouts[] = {
	[SOFT_CM_REQ] = {REQ_PRIVATE_DATA + IP_HEADER, SOFT_REQ_PRIVATE_DATA, put_req, get_req},
	[SOFT_CM_MRA] = {10, SOFT_MRA_PRIVATE_DATA, put_mra, get_mra},
	[SOFT_CM_REJ] = {84, SOFT_REJ_PRIVATE_DATA, put_rej, get_rej},
	[SOFT_CM_REP] = {36, SOFT_REP_PRIVATE_DATA, put_rep, get_rep},
	[SOFT_CM_RTU] = {8, SOFT_RTU_PRIVATE_DATA, NULL, NULL},
	[SOFT_CM_DREQ] = {12, SOFT_DREQ_PRIVATE_DATA, put_dreq, get_dreq},
	[SOFT_CM_DREP] = {8, SOFT_DREP_PRIVATE_DATA, NULL, NULL},
	[SOFT_CM_SIDR_REQ] = {SIDR_REQ_PRIVATE_DATA + IP_HEADER, SOFT_SIDR_REQ_PRIVATE_DATA, put_sidr_req, get_sidr_req},
	[SOFT_CM_SIDR_REP] = {96, SOFT_SIDR_REP_PRIVATE_DATA, put_sidr_rep, get_sidr_rep},
};

void soft_mad_encode(const struct soft_cm_message *message, uint8_t mad[SOFT_MAD])
{
	const struct layout *layout = &layouts[message->attribute];
	uint8_t *cursor = mad + HEADER;

	memset(mad, 0, SOFT_MAD);
	mad[0] = BASE_VERSION;
	mad[1] = CLASS_COMMUNICATION;
	mad[2] = CLASS_VERSION;
	mad[3] = METHOD_SEND;
	soft_put64(mad + 8, message->transaction);
	soft_put16(mad + 16, message->attribute);
	soft_put32(mad + 20, message->ece.options); /* 0 in all but REQ and REP */
	soft_put32(cursor, message->local);
	soft_put32(cursor + 4, message->remote);
	if (layout->put)
		layout->put(message, cursor);
	memcpy(cursor + layout->private_data, message->private_data,
	       message->private_data_len < layout->length ? message->private_data_len : layout->length);
}

static bool is_known(uint32_t attribute)
{
	return attribute < sizeof(layouts) / sizeof(layouts[0]) && layouts[attribute].length;
}

/* Whether the attribute is known. */
static bool is_ours(const uint8_t mad[SOFT_MAD])
{
	return mad[0] == BASE_VERSION && mad[1] == CLASS_COMMUNICATION && mad[2] == CLASS_VERSION && mad[3] == METHOD_SEND &&
	       is_known(soft_get16(mad + 16));
}

bool soft_mad_receiver(const uint8_t mad[SOFT_MAD], uint32_t *id)
{
	uint32_t attribute = soft_get16(mad + 16);

	if (!is_ours(mad) || attribute == SOFT_CM_REQ || attribute == SOFT_CM_SIDR_REQ)
		return false;
	*id = soft_get32(mad + HEADER + (attribute == SOFT_CM_SIDR_REP ? 0 : 4));
	return true;
}

bool soft_mad_decode(const uint8_t mad[SOFT_MAD], struct soft_cm_message *message)
{
	const uint8_t *cursor = mad + HEADER;
	uint32_t attribute = soft_get16(mad + 16);
	const struct layout *layout;

	if (!is_ours(mad))
		return false;
	*message = (struct soft_cm_message){
		.attribute = attribute,
		.transaction = soft_get64(mad + 8),
		.local = soft_get32(cursor),
		.remote = soft_get32(cursor + 4),
		.ece.options = soft_get32(mad + 20),
	};
	layout = &layouts[attribute];
	if (layout->get)
		layout->get(cursor, message);
	message->private_data_len = layout->length;
	memcpy(message->private_data, cursor + layout->private_data, layout->length);
	return true;
}
