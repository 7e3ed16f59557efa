/*
 * Connection management of the soft provider, in the two parts that the kernel and librdmacm are:
 * the communication manager, which exchanges REQ, REP, RTU, REJ, MRA, DREQ and DREP between ids (IBTA
 * 12.9), and the rdma_cm id on top, which moves queue pairs and reports events.
 *
 * Messages are queued and delivered one after another with cm.lock held; a handler that answers
 * queues its answer, so no id ever calls into another one.
 */
#ifndef SOFT_CM_H
#define SOFT_CM_H

#include <stdbool.h>

#include <netinet/in.h>
#include <rdma/rdma_cma.h>

#include "soft_event_queue.h"
#include "soft_lock.h"
#include "soft_table.h"
#include "soft_timer.h"

/* Usable private data (IBTA 12.7; the REQ of an IP port space starts with a 36-byte IP header). */
#define SOFT_REQ_PRIVATE_DATA 56
#define SOFT_REQ_PRIVATE_DATA_IB 92
#define SOFT_REP_PRIVATE_DATA 196
#define SOFT_REJ_PRIVATE_DATA 148
#define SOFT_MAX_PRIVATE_DATA 224 /* of any message */

#define SOFT_CM_ACK_TIMEOUT 19 /* what Linux puts in a RoCE connection: 2.1 s */
#define SOFT_MAX_BACKLOG 1024 /* net.rdma_ucm.max_backlog */

/* Attribute ids of the messages (IBTA 12.6). */
enum soft_cm_attribute {
	SOFT_CM_REQ = 0x10,
	SOFT_CM_MRA = 0x11,
	SOFT_CM_REJ = 0x12,
	SOFT_CM_REP = 0x13,
	SOFT_CM_RTU = 0x14,
	SOFT_CM_DREQ = 0x15,
	SOFT_CM_DREP = 0x16,
};

/* Reasons of a REJ (IBTA 12.6.7.2). */
enum soft_cm_reason {
	SOFT_REJ_TIMEOUT = 4,
	SOFT_REJ_INVALID_SERVICE_ID = 8,
	SOFT_REJ_CONSUMER_DEFINED = 28,
};

/* A decoded CM message.  local is the sender's communication id. */
struct soft_cm_message {
	struct soft_cm_message *next;
	enum soft_cm_attribute attribute;
	uint32_t local, remote;
	uint32_t qp_num;
	uint32_t starting_psn; /* what its receiver must begin to send with */
	uint32_t reason;
	int port_space;
	uint8_t responder_resources, initiator_depth;
	uint8_t flow_control, retry_count, rnr_retry_count, srq;
	uint8_t ack_timeout, service_timeout;
	struct sockaddr_storage source, destination;
	uint8_t private_data_len; /* the whole field: a receiver cannot know what was sent */
	uint8_t private_data[SOFT_MAX_PRIVATE_DATA];
};

enum soft_id_state {
	SOFT_ID_IDLE,
	SOFT_ID_BOUND,
	SOFT_ID_ADDR_RESOLVED,
	SOFT_ID_ROUTE_RESOLVED,
	SOFT_ID_LISTEN,
	SOFT_ID_REQ_SENT,
	SOFT_ID_REQ_RECEIVED,
	SOFT_ID_REP_SENT,
	SOFT_ID_REP_RECEIVED,
	SOFT_ID_ESTABLISHED,
	SOFT_ID_DREQ_SENT,
	SOFT_ID_DREQ_RECEIVED,
	SOFT_ID_TIMEWAIT,
	SOFT_ID_CLOSED, /* rejected, unreachable or past timewait: only destroy is left */
};

struct soft_event_channel {
	struct rdma_event_channel rdma;
	struct soft_cm *cm;
	struct soft_event_queue queue;
};

struct soft_id;

/* An event between the communication manager and rdma_ack_cm_event. */
struct soft_cm_event {
	struct rdma_cm_event rdma;
	struct soft_event_node node;
	struct soft_id *owner; /* whose count of reported events it raises: for a request, the listener */
	struct soft_cm_event *next; /* owner's events that were not read yet */
	uint8_t private_data[SOFT_MAX_PRIVATE_DATA];
};

/* Everything below is guarded by cm.lock. */
struct soft_id {
	struct rdma_cm_id rdma;
	struct soft_cm *cm;
	enum soft_id_state state;
	uint32_t events_reported, events_acknowledged;
	struct soft_cm_event *unread;

	struct soft_id *port_next; /* port_space bucket */
	uint16_t port; /* host order; 0 while it holds none of its own */
	bool device_bound;

	int backlog;
	int requests; /* CONNECT_REQUESTs not read yet */

	uint32_t local, remote; /* communication ids */
	uint32_t remote_qp_num;
	uint32_t send_psn, receive_psn;
	uint8_t responder_resources, initiator_depth;
	uint8_t retry_count, rnr_retry_count;
	uint8_t ack_timeout;

	struct soft_timer timer; /* resends request until it is answered, or ends timewait */
	struct soft_cm_message request; /* REQ, REP or DREQ that waits for an answer */
	unsigned int retries_left;
};

#define SOFT_PORT_BUCKETS 1024

struct soft_cm {
	pthread_mutex_t lock;
	pthread_cond_t acknowledged;
	struct soft_fabric *fabric;
	struct soft_device *device;
	struct ibv_context *context; /* the one librdmacm would have opened */
	struct ibv_pd *default_pd; /* while ids are bound to the device */
	unsigned int default_pd_users;
	struct soft_table ids; /* by communication id */
	struct soft_cm_message *first_message, **last_message;
	struct soft_id *ports[SOFT_PORT_BUCKETS];
};

static inline struct soft_id *soft_id(struct rdma_cm_id *id)
{
	return (struct soft_id *)id;
}

int soft_cm_create(struct soft_fabric *fabric, struct soft_device *device, struct soft_cm **cm);
void soft_cm_destroy(struct soft_cm *cm);
/*
 * The communication manager that librdmacm's functions without any argument mean for the calling
 * thread: the one it selected last.
 */
struct soft_cm *soft_cm_current(void);
void soft_cm_select(struct soft_cm *cm);

/* soft_cm.c: sending; cm.lock is held */
/* A message from id to its peer, not sent yet. */
void soft_cm_prepare(struct soft_id *id, struct soft_cm_message *message,
		     enum soft_cm_attribute attribute);
void soft_cm_set_private_data(struct soft_cm_message *message, const void *data, uint8_t length,
			      uint8_t field);
/* Queue a copy; a message that cannot be queued for want of memory is lost, as on a wire. */
void soft_cm_send(struct soft_cm *cm, const struct soft_cm_message *message);
/* Queue id->request, and queue it again every response timeout until soft_cm_answered. */
void soft_cm_send_request(struct soft_id *id);
void soft_cm_answered(struct soft_id *id);
void soft_cm_reject(struct soft_id *id, uint32_t reason, const void *private_data, uint8_t length);
void soft_cm_enter_timewait(struct soft_id *id);
void soft_cm_expire(struct soft_timer *timer);
/* Send a message that says no more than which connection it is about, and wait for no answer. */
void soft_cm_send_plain(struct soft_id *id, enum soft_cm_attribute attribute);
/* Deliver what is queued, then release cm.lock. */
void soft_cm_unlock(struct soft_cm *cm);
/* The same at the end of an operation: its errno value becomes librdmacm's 0, or -1 and errno. */
int soft_cm_finish(struct soft_cm *cm, int error);

/* soft_cm_receive.c: one message arrives; cm.lock is held */
void soft_cm_receive(struct soft_cm *cm, const struct soft_cm_message *message);

/* soft_port_space.c; cm.lock is held; 0 or a positive errno */
int soft_port_bind(struct soft_id *id, const struct sockaddr *address);
void soft_port_release(struct soft_id *id);
struct soft_id *soft_port_find_listener(struct soft_cm *cm, int port_space,
					const struct sockaddr *destination);
bool soft_address_is_any(const struct sockaddr *address);
bool soft_address_is_local(const struct soft_cm *cm, const struct sockaddr *address);
void soft_address_to_gid(const struct sockaddr *address, union ibv_gid *gid);
socklen_t soft_address_length(const struct sockaddr *address);
/* Host byte order. */
uint16_t soft_address_port(const struct sockaddr *address);
void soft_address_set_port(struct sockaddr *address, uint16_t port);

/* soft_id.c */
/* A new id with no port and no device; NULL and errno ENOMEM. */
struct soft_id *soft_id_alloc(struct soft_cm *cm, struct soft_event_channel *channel, void *context,
			      enum rdma_port_space port_space);
/* Bind to the device: verbs, port_num and the default PD become valid.  cm.lock is held.  -ENOMEM. */
int soft_id_bind_device(struct soft_id *id);
/* Leave the connection and free id; cm.lock is held, is released meanwhile, and is held again after. */
void soft_id_free(struct soft_id *id);
int soft_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context,
		   enum rdma_port_space port_space);
int soft_destroy_id(struct rdma_cm_id *id);
int soft_bind_addr(struct rdma_cm_id *id, struct sockaddr *address);
int soft_resolve_addr(struct rdma_cm_id *id, struct sockaddr *source, struct sockaddr *destination,
		      int timeout_ms);
int soft_resolve_route(struct rdma_cm_id *id, int timeout_ms);
int soft_listen(struct rdma_cm_id *id, int backlog);
__be16 soft_get_src_port(struct rdma_cm_id *id);
__be16 soft_get_dst_port(struct rdma_cm_id *id);
struct ibv_context **soft_get_devices(int *count);
void soft_free_devices(struct ibv_context **list);

/* soft_connect.c */
int soft_connect(struct rdma_cm_id *id, struct rdma_conn_param *param);
int soft_accept(struct rdma_cm_id *id, struct rdma_conn_param *param);
int soft_reject(struct rdma_cm_id *id, const void *private_data, uint8_t private_data_len);
int soft_establish(struct rdma_cm_id *id);
int soft_disconnect(struct rdma_cm_id *id);

/* soft_id_qp.c */
int soft_id_create_qp(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
void soft_id_destroy_qp(struct rdma_cm_id *id);
int soft_init_qp_attr(struct rdma_cm_id *id, struct ibv_qp_attr *attr, int *mask);
/* INIT with the negotiated rights, RTR and RTS.  cm.lock is held.  0 or a positive errno. */
int soft_id_connect_qp(struct soft_id *id);
void soft_id_fail_qp(struct soft_id *id);

/* soft_event_channel.c */
struct rdma_event_channel *soft_create_event_channel(void);
void soft_destroy_event_channel(struct rdma_event_channel *channel);
int soft_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **event);
int soft_ack_cm_event(struct rdma_cm_event *event);
/*
 * Report an event about id, with the parameters of message where there is one.  owner: see
 * soft_cm_event.  False when there is no memory: then the cause must be as if it had not arrived.
 */
bool soft_cm_report(struct soft_id *owner, struct soft_id *id, enum rdma_cm_event_type type,
		    int status, const struct soft_cm_message *message);
/* Drop what owner has not read; requested children among it are freed with it.  cm.lock is held. */
void soft_cm_drop_unread(struct soft_id *owner);

#endif
