/* Messages of connection management, as their receiver has decoded them (IBTA 12.6, 12.11). */
#ifndef SOFT_CM_MESSAGE_H
#define SOFT_CM_MESSAGE_H

#include <infiniband/verbs.h>
#include <netinet/in.h>
#include <stdint.h>

/* Usable private data (IBTA 12.7; the REQ of an IP port space starts with a 36-byte IP header). */
#define SOFT_REQ_PRIVATE_DATA 56
#define SOFT_REP_PRIVATE_DATA 196
#define SOFT_REJ_PRIVATE_DATA 148
#define SOFT_SIDR_REQ_PRIVATE_DATA 180
#define SOFT_SIDR_REP_PRIVATE_DATA 136
#define SOFT_MAX_PRIVATE_DATA 224 /* of any message */

/*
 * Attribute ids of the messages (IBTA 12.6), and what stands for the questions that come before them:
 * they are never sent between ids, but a fault that names one can lose or delay it.
 */
enum soft_cm_attribute {
	SOFT_CM_REQ = 0x10,
	SOFT_CM_MRA = 0x11,
	SOFT_CM_REJ = 0x12,
	SOFT_CM_REP = 0x13,
	SOFT_CM_RTU = 0x14,
	SOFT_CM_DREQ = 0x15,
	SOFT_CM_DREP = 0x16,
	SOFT_CM_SIDR_REQ = 0x17,
	SOFT_CM_SIDR_REP = 0x18,
	SOFT_CM_PATH_RECORD = 0x35, /* rdma_resolve_route's question (IBTA 15.2.5.16) */
	SOFT_CM_ARP = 0x806, /* rdma_resolve_addr's question, by its EtherType */
};

/* Reasons of a REJ (IBTA 12.6.7.2). */
enum soft_cm_reason {
	SOFT_REJ_TIMEOUT = 4,
	SOFT_REJ_INVALID_SERVICE_ID = 8,
	SOFT_REJ_STALE_CONN = 10,
	SOFT_REJ_CONSUMER_DEFINED = 28,
	SOFT_REJ_VENDOR_OPTION_NOT_SUPPORTED = 35,
};

/* Status of a SIDR REP (IBTA 12.11.2). */
enum soft_sidr_status {
	SOFT_SIDR_SUCCESS = 0,
	SOFT_SIDR_UNSUPPORTED = 1,
	SOFT_SIDR_REJECT = 2,
};

/* A decoded CM message.  local is the sender's communication id. */
struct soft_cm_message {
	struct soft_cm_message *next;
	enum soft_cm_attribute attribute;
	uint32_t local, remote;
	uint64_t guid; /* REQ, REP, REJ: the sender's device, host byte order */
	uint32_t qp_num; /* the sender's; DREQ: the receiver's */
	uint32_t qkey; /* SIDR REP */
	uint32_t starting_psn; /* what its receiver must begin to send with */
	uint32_t reason; /* REJ: enum soft_cm_reason; SIDR REP: enum soft_sidr_status */
	struct ibv_ece ece; /* REQ, REP */
	int port_space;
	uint8_t responder_resources, initiator_depth;
	uint8_t flow_control, retry_count, rnr_retry_count, srq;
	uint8_t ack_timeout, service_timeout;
	struct sockaddr_storage source, destination;
	uint8_t private_data_len; /* the whole field: a receiver cannot know what was sent */
	uint8_t private_data[SOFT_MAX_PRIVATE_DATA];
};

#endif
