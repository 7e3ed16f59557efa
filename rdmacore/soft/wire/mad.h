/*
 * Messages of connection management: their fields (IBTA 12.6, 12.11) and the management datagrams that carry them,
 * 256 bytes to queue pair 1 (IBTA 13.4, 16.7). Within a process the fields are passed as they are.
 */
#ifndef SOFT_WIRE_MAD_H
#define SOFT_WIRE_MAD_H

#include <infiniband/verbs.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#define SOFT_MAD 256 /* bytes */
#define SOFT_GSI_QUEUE_PAIR 1 /* the queue pair of management datagrams (IBTA 13.5.1) */
#define SOFT_GSI_QUEUE_KEY 0x80010000u /* its queue key (IBTA 13.5.3.2) */

/* Usable private data (IBTA 12.7; the REQ of an IP port space starts with a 36-byte IP header). */
#define SOFT_REQ_PRIVATE_DATA 56
#define SOFT_MRA_PRIVATE_DATA 222
#define SOFT_REP_PRIVATE_DATA 196
#define SOFT_RTU_PRIVATE_DATA 224
#define SOFT_REJ_PRIVATE_DATA 148
#define SOFT_DREQ_PRIVATE_DATA 220
#define SOFT_DREP_PRIVATE_DATA 224
#define SOFT_SIDR_REQ_PRIVATE_DATA 180
#define SOFT_SIDR_REP_PRIVATE_DATA 136
#define SOFT_MAX_PRIVATE_DATA 224 /* of any message */
#define SOFT_MAX_ADDITIONAL 72 /* bytes of additional information in a REJ */

/*
 * Attribute ids of the messages (IBTA 12.6), and two numbers for the queries that precede them. Ids never send
 * queries to each other, but a fault rule that names one can lose or delay it.
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
	SOFT_CM_PATH_RECORD = 0x35, /* the query of rdma_resolve_route (IBTA 15.2.5.16) */
	SOFT_CM_ARP = 0x806, /* the query of rdma_resolve_addr, by its EtherType */
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

/* The message that a REJ or an MRA answers (IBTA 12.6.7, 12.6.6). */
enum soft_cm_answered {
	SOFT_ANSWERED_REQ = 0,
	SOFT_ANSWERED_REP = 1,
	SOFT_ANSWERED_NONE = 2, /* none came: a REJ (timeout) */
};

/* Transport service types (IBTA 12.6.5, table 99). */
enum soft_cm_transport {
	SOFT_TRANSPORT_RC = 0,
	SOFT_TRANSPORT_UC = 1,
	SOFT_TRANSPORT_EXTENDED = 3, /* XRC and others, which another field distinguishes */
};

/* The path that a REQ proposes, without its ends. */
struct soft_cm_path {
	uint32_t flow_label;
	uint8_t traffic_class, hop_limit, service_level;
	uint8_t rate; /* enum ibv_rate; 0: not set */
	uint8_t mtu; /* enum ibv_mtu */
	bool subnet_local;
};

struct soft_ipc_peer;

/* A message. local is the sender's communication id. */
struct soft_cm_message {
	struct soft_cm_message *next;
	struct soft_ipc_peer *peer_process; /* the process that it goes to or came from; NULL: this one */
	bool between_hosts; /* it goes to or came from another host */
	bool arrived; /* it came from another process or host */
	bool recorded; /* captured with the effect of a fault */
	/*
	 * REQ and SIDR REQ without a listener here: the kernel's list of sockets was read for it; its port has
	 * listeners.
	 */
	bool looked, served;
	enum soft_cm_attribute attribute;
	enum soft_cm_answered answered; /* REJ, MRA */
	uint64_t transaction; /* the same in a request and its answer */
	uint32_t local, remote;
	uint64_t guid; /* REQ, REP, REJ: the sender's device, host byte order */
	uint32_t qp_num; /* the sender's; DREQ: the receiver's */
	uint32_t qkey; /* SIDR REP */
	uint32_t starting_psn; /* the first PSN that its receiver must send */
	uint32_t reason; /* REJ: enum soft_cm_reason; SIDR REP: enum soft_sidr_status */
	struct ibv_ece ece; /* REQ, REP */
	int port_space; /* REQ, SIDR REQ and REP: together with the port of destination, the service id */
	enum soft_cm_transport transport; /* REQ */
	struct soft_cm_path path; /* REQ */
	uint8_t responder_resources, initiator_depth;
	uint8_t flow_control, retry_count, rnr_retry_count, srq;
	uint8_t ack_timeout; /* REQ: code; REP: the device's delay */
	uint8_t service_timeout; /* MRA: code */
	uint8_t remote_response_timeout, local_response_timeout, max_cm_retries; /* REQ: codes, and a count */
	/* REQ, SIDR REQ: of their IP header (IBTA A11.3). AF_UNSPEC: none, or unreadable. */
	struct sockaddr_storage source, destination;
	uint8_t additional_len; /* REJ, SIDR REP */
	uint8_t additional[SOFT_MAX_ADDITIONAL];
	uint8_t private_data_len; /* length of the whole field: the receiver cannot know how much was sent */
	uint8_t private_data[SOFT_MAX_PRIVATE_DATA];
};

/* Encode a message that ids send to each other, which is neither an ARP nor a PATH_RECORD. */
void soft_mad_encode(const struct soft_cm_message *message, uint8_t mad[SOFT_MAD]);
/*
 * Decode a received message, any byte of which may be wrong. False if it must be dropped: its class, version or
 * method is not that of connection management, or its attribute is unknown.
 */
bool soft_mad_decode(const uint8_t mad[SOFT_MAD], struct soft_cm_message *message);
/*
 * The communication id of the receiver, without decoding the rest. False for requests, which contain a service id,
 * and for messages that must be dropped.
 */
bool soft_mad_receiver(const uint8_t mad[SOFT_MAD], uint32_t *id);

#endif
