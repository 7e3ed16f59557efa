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

#include <infiniband/ib.h>
#include <infiniband/sa.h>
#include <netinet/in.h>
#include <rdma/rdma_cma.h>

#include "soft_event_queue.h"
#include "soft_lock.h"
#include "soft_table.h"
#include "soft_timer.h"

/* Usable private data (IBTA 12.7; the REQ of an IP port space starts with a 36-byte IP header). */
#define SOFT_REQ_PRIVATE_DATA 56
#define SOFT_REP_PRIVATE_DATA 196
#define SOFT_REJ_PRIVATE_DATA 148
#define SOFT_SIDR_REQ_PRIVATE_DATA 180
#define SOFT_SIDR_REP_PRIVATE_DATA 136
#define SOFT_MAX_PRIVATE_DATA 224 /* of any message */

#define SOFT_CM_ACK_TIMEOUT 19 /* what Linux puts in a RoCE connection: 2.1 s */
#define SOFT_CM_RESPONSE_CODE 20 /* what Linux allows a peer for its answer: 4.1 s */
#define SOFT_MAX_BACKLOG 1024 /* net.rdma_ucm.max_backlog */

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

/* Events that came with rdma-core 60, after the headers that this is built with. */
enum {
	SOFT_CM_EVENT_ADDRINFO_RESOLVED = 16,
	SOFT_CM_EVENT_ADDRINFO_ERROR = 17,
	SOFT_CM_EVENT_USER = 18,
};

enum soft_id_state {
	SOFT_ID_IDLE,
	SOFT_ID_BOUND,
	SOFT_ID_ADDR_QUERY, /* the question was lost or is late (faults) */
	SOFT_ID_ADDR_RESOLVED,
	SOFT_ID_ROUTE_QUERY,
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
	SOFT_ID_SIDR_SENT,
	SOFT_ID_SIDR_RECEIVED,
	SOFT_ID_RESOLVED_UD, /* UD: the answer came, or was given */
	SOFT_ID_CLOSED, /* rejected, unreachable or past timewait: only destroy is left */
	SOFT_ID_REMOVED, /* its device is gone: the same */
	SOFT_ID_DESTROYED,
};

struct soft_event_channel {
	struct rdma_event_channel rdma;
	struct soft_cm *cm;
	struct soft_event_queue queue;
	struct soft_id *ids; /* linked by channel_next; under cm.lock */
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
	bool sync; /* rdma.channel is its own, and calls wait for their events */
	bool disconnected; /* DISCONNECTED was reported, which happens once */
	bool unaccepted; /* a child before its rdma_accept */
	bool connect_error; /* the user read CONNECT_ERROR; there is no more to hear of the connection */
	uint32_t events_reported, events_acknowledged;
	struct soft_cm_event *unread, **last_unread;
	struct soft_id *channel_next, **channel_link; /* soft_event_channel.ids */
	struct soft_id *destroyed_next; /* soft_cm.destroyed */

	struct soft_id *port_next; /* port_space bucket */
	uint16_t port; /* host order; 0 while it holds none of its own */
	struct soft_cm_device *device; /* that it is bound to */
	uint32_t hardware_address; /* soft_cm.hardware_address when it came to its address */
	bool reuse_address, only_family, only_family_set; /* rdma_set_option */
	uint8_t type_of_service;

	int backlog;
	int requests; /* CONNECT_REQUESTs not read yet */

	uint32_t local, remote; /* communication ids */
	uint64_t remote_guid;
	uint32_t local_qp_num, remote_qp_num;
	struct soft_id *remote_id_next, *remote_qp_next; /* soft_peers buckets */
	bool in_remote_ids, in_remote_qps;
	uint32_t send_psn, receive_psn;
	uint8_t responder_resources, initiator_depth;
	uint8_t retry_count, rnr_retry_count;
	uint8_t ack_timeout; /* RDMA_OPTION_ID_ACK_TIMEOUT */
	bool ack_timeout_set;
	uint8_t path_timeout; /* of the path: code of the time for a way there and back */
	uint32_t qkey;
	struct ibv_ece local_ece, remote_ece;

	struct ibv_sa_path_rec path; /* rdma.route.path_rec once there is a route */
	struct soft_timer timer; /* resends request until it is answered, ends timewait or a query */
	uint64_t response_timeout; /* nanoseconds */
	uint64_t request_timeout; /* of request: the same, unless the peer asked for more (MRA) */
	struct soft_cm_message request; /* REQ, REP, DREQ or SIDR REQ that waits for an answer */
	unsigned int retries_left;
	bool answer_comes; /* to a query; else its time just runs out */

	struct ibv_qp_init_attr *endpoint_attr; /* rdma_create_ep: of the queue pairs of children */
	void *connect_prefix; /* ai_connect: goes before the private data of the first rdma_connect */
	uint8_t connect_prefix_len;
	struct rdma_addrinfo *info; /* rdma_resolve_addrinfo */
	struct soft_join *joins;
};

#define SOFT_PORT_BUCKETS 32768
#define SOFT_PEER_BUCKETS 32768
#define SOFT_DESTROYED_KEPT 64

/* The device as librdmacm has it open; one that was removed stays, for the ids that are bound to it. */
struct soft_cm_device {
	struct soft_cm_device *earlier;
	struct ibv_context *context;
	struct ibv_pd *default_pd; /* while ids are bound to it */
	unsigned int default_pd_users;
};

struct soft_cm {
	pthread_mutex_t lock;
	pthread_cond_t acknowledged;
	struct soft_fabric *fabric;
	struct soft_device *device;
	struct soft_cm_device *opened; /* the newest: of the ids that are bound from now on */
	uint32_t hardware_address; /* of the network interface: 0, or 1 while it has another */
	uint32_t told_removal, told_address; /* ids, of what is so now */
	struct soft_table ids; /* by communication id */
	struct soft_cm_message *first_message, **last_message;
	struct soft_cm_wire *wire; /* messages that faults hold back */
	struct soft_id *ports[SOFT_PORT_BUCKETS];
	struct soft_id *remote_ids[SOFT_PEER_BUCKETS], *remote_qps[SOFT_PEER_BUCKETS];
	/* The ids destroyed last, kept for a while so that their use is an error and not a crash. */
	struct soft_id *destroyed, **last_destroyed;
	unsigned int num_destroyed;
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
/*
 * Times of the communication manager are codes (4.096 us * 2^code), which Linux takes as powers of two
 * milliseconds (drivers/infiniband/core/cm.c); in nanoseconds.
 */
uint64_t soft_cm_time(unsigned int code);
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
/* Refuse the peer, and go where that leads from id's state. */
void soft_cm_reject(struct soft_id *id, uint32_t reason, const void *private_data, uint8_t length);
void soft_cm_enter_timewait(struct soft_id *id);
/* There is no connection any more, and no timer. */
void soft_cm_close(struct soft_id *id);
/* Both ends of a connection hear DISCONNECTED once, whatever ends it. */
bool soft_cm_report_disconnected(struct soft_id *id, int status);
void soft_cm_expire(struct soft_timer *timer);
/* Send a message that says no more than which connection it is about, and wait for no answer. */
void soft_cm_send_plain(struct soft_id *id, enum soft_cm_attribute attribute);
/* Send the DREQ of an established connection; it is sent again until it is answered. */
void soft_cm_send_dreq(struct soft_id *id);
/* Deliver what is queued. */
void soft_cm_flush(struct soft_cm *cm);
/* Deliver what is queued, then release cm.lock. */
void soft_cm_unlock(struct soft_cm *cm);
/* The same at the end of an operation: its errno value becomes librdmacm's 0, or -1 and errno. */
int soft_cm_finish(struct soft_cm *cm, int error);

/* soft_cm_wire.c: messages that faults delay, double and overtake; cm.lock is held */
int soft_cm_wire_create(struct soft_cm *cm, struct soft_cm_wire **wire);
void soft_cm_wire_destroy(struct soft_cm_wire *wire);
/* Pass message on as the faults between its ends want: soft_cm_deliver, now, later, twice or never. */
void soft_cm_wire_carry(struct soft_cm *cm, const struct soft_cm_message *message);
/* soft_cm.c: queue a copy for delivery at the next soft_cm_unlock. */
void soft_cm_deliver(struct soft_cm *cm, const struct soft_cm_message *message);

/* soft_cm_receive.c: one message arrives; cm.lock is held */
/*
 * The child that a REQ or SIDR REQ makes, not reported yet; NULL when its listener's backlog is full, or
 * for want of memory; *listener is NULL when there is none.
 */
struct soft_id *soft_cm_request_child(struct soft_cm *cm, const struct soft_cm_message *request,
				      struct soft_id **listener);
/* Whether the port that request is for has a listener, if only for other addresses. */
bool soft_cm_is_served(struct soft_cm *cm, const struct soft_cm_message *request);
void soft_cm_receive(struct soft_cm *cm, const struct soft_cm_message *message);

/* soft_sidr.c: resolution of UD services (IBTA 12.11); cm.lock is held */
/* Send the SIDR REQ that stands in id->request. */
void soft_sidr_request(struct soft_id *id);
/* 0 or a positive errno. */
int soft_sidr_reply(struct soft_id *id, enum soft_sidr_status status,
		    const struct rdma_conn_param *param);
void soft_sidr_receive_request(struct soft_cm *cm, const struct soft_cm_message *message);
void soft_sidr_receive_reply(struct soft_id *id, const struct soft_cm_message *message);
bool soft_id_is_ud(const struct soft_id *id);

/* soft_peers.c: connections by what their remote ends go by, to tell copies and stale ones; cm.lock is held */
/* The connection that has that remote communication id already, else NULL and id now has it. */
struct soft_id *soft_peers_claim_id(struct soft_id *id);
struct soft_id *soft_peers_claim_qp(struct soft_id *id);
struct soft_id *soft_peers_find_id(struct soft_cm *cm, uint64_t guid, uint32_t remote);
void soft_peers_forget(struct soft_id *id);

/* soft_port_space.c; cm.lock is held; 0 or a positive errno */
int soft_port_bind(struct soft_id *id, const struct sockaddr *address);
/* Whether id may listen on the port it shares: reuse is for those who do not listen. */
int soft_port_listen(struct soft_id *id);
void soft_port_release(struct soft_id *id);
struct soft_id *soft_port_find_listener(struct soft_cm *cm, int port_space,
					const struct sockaddr *destination);
/* Whether anyone listens on that port, if only for other addresses. */
bool soft_port_has_listener(struct soft_cm *cm, int port_space, uint16_t port);

/* soft_address.c */
/* AF_INET, AF_INET6 or AF_IB; NULL is none. */
bool soft_address_is_known(const struct sockaddr *address);
bool soft_address_is_ip(const struct sockaddr *address);
bool soft_address_is_any(const struct sockaddr *address);
bool soft_address_is_multicast(const struct sockaddr *address);
/* Of 192.0.2.0/24 (RFC 5737), the network beside an embedded host in which nobody else is. */
bool soft_address_is_absent_neighbour(const struct sockaddr *address);
bool soft_address_is_same(const struct sockaddr *a, const struct sockaddr *b);
bool soft_address_is_local(const struct soft_cm *cm, const struct sockaddr *address);
void soft_address_to_gid(const struct sockaddr *address, union ibv_gid *gid);
socklen_t soft_address_length(const struct sockaddr *address);
/* Host byte order. */
uint16_t soft_address_port(const struct sockaddr *address);
void soft_address_set_port(struct sockaddr *address, uint16_t port);
/* Fill in the device's own address of the family that address has. */
void soft_address_of_device(struct sockaddr *address);
/* soft_address_ib.c; cm.lock is held; 0 or a positive errno */
/* Whether id may be bound to that address of family AF_IB. */
int soft_address_ib_check(const struct soft_id *id, const struct sockaddr *address);
/* It was: the service id of its source tells its port. */
void soft_address_ib_bound(struct soft_id *id);
/* Choose the source towards id's destination. */
int soft_address_ib_resolve(struct soft_id *id);
/* The address vector towards id's peer. */
void soft_id_ah_attr(const struct soft_id *id, struct ibv_ah_attr *attr);

/* soft_cm_device.c */
/* The device as it is now becomes cm->opened.  -ENOMEM, or why a descriptor could not be had. */
int soft_cm_open_device(struct soft_cm *cm);
void soft_cm_close_devices(struct soft_cm *cm);
/* Bind to the device: verbs, port_num and the default PD become valid.  cm.lock is held.  -ENOMEM, -ENODEV. */
int soft_id_bind_device(struct soft_id *id);
void soft_id_unbind_device(struct soft_id *id);
/* The device goes away, and its ids hear DEVICE_REMOVAL.  -EBUSY when it is away already. */
int soft_cm_remove_device(struct soft_cm *cm);
/* A new device of the same name and addresses; *told ids had heard.  -ENOENT when it is not away; -ENOMEM. */
int soft_cm_return_device(struct soft_cm *cm, uint32_t *told);
/*
 * The network interface has another hardware address, and ids hear ADDR_CHANGE, as after the failover of a
 * bond.  -EBUSY when it has already.
 */
int soft_cm_change_address(struct soft_cm *cm);
/* It has its own again, which those hear who came meanwhile; *told is how many heard of both.  -ENOENT. */
int soft_cm_restore_address(struct soft_cm *cm, uint32_t *told);

/* soft_id.c */
/*
 * id with cm.lock held; NULL and errno EINVAL for NULL and for an id that was destroyed (which librdmacm
 * would follow into freed memory), ENXIO for one whose device was removed.
 */
struct soft_id *soft_id_lock(struct rdma_cm_id *id);
/* The same, also of an id whose device was removed. */
struct soft_id *soft_id_lock_any(struct rdma_cm_id *id);
/* A new id with no port and no device; NULL and errno ENOMEM.  cm.lock is held. */
struct soft_id *soft_id_alloc(struct soft_cm *cm, struct soft_event_channel *channel, void *context,
			      enum rdma_port_space port_space);
/* Put id on a channel, or on none; cm.lock is held. */
void soft_id_set_channel(struct soft_id *id, struct soft_event_channel *channel);
/* Tell the peer that this end goes, by the state of the connection; cm.lock is held. */
void soft_id_leave(struct soft_id *id);
/* Leave the connection and free id; cm.lock is held, is released meanwhile, and is held again after. */
void soft_id_free(struct soft_id *id);
/* Wait, within bounds, until every event of id was acknowledged: 0 or EBUSY.  cm.lock is held. */
int soft_id_wait_acknowledged(struct soft_id *id);
int soft_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context,
		   enum rdma_port_space port_space);
int soft_destroy_id(struct rdma_cm_id *id);

/* soft_resolve.c */
int soft_bind_addr(struct rdma_cm_id *id, struct sockaddr *address);
int soft_resolve_addr(struct rdma_cm_id *id, struct sockaddr *source, struct sockaddr *destination,
		      int timeout_ms);
int soft_resolve_route(struct rdma_cm_id *id, int timeout_ms);
/* The answer to a query came, or its time is up; cm.lock is held. */
void soft_resolve_expired(struct soft_id *id);
int soft_listen(struct rdma_cm_id *id, int backlog);
__be16 soft_get_src_port(struct rdma_cm_id *id);
__be16 soft_get_dst_port(struct rdma_cm_id *id);
struct ibv_context **soft_get_devices(int *count);
void soft_free_devices(struct ibv_context **list);

/* soft_sync.c */
/* At the end of a call that raises an event: a synchronous id waits for it (0, or -1 and errno). */
int soft_id_complete(struct rdma_cm_id *id);
/* Acknowledge the event that a synchronous id holds. */
void soft_id_drop_event(struct rdma_cm_id *id);
int soft_get_request(struct rdma_cm_id *listener, struct rdma_cm_id **id);
int soft_migrate_id(struct rdma_cm_id *id, struct rdma_event_channel *channel);

/* soft_endpoint.c */
int soft_create_ep(struct rdma_cm_id **id, struct rdma_addrinfo *info, struct ibv_pd *pd,
		   struct ibv_qp_init_attr *attr);
void soft_destroy_ep(struct rdma_cm_id *id);

/* soft_addrinfo.c */
int soft_getaddrinfo(const char *node, const char *service, const struct rdma_addrinfo *hints,
		     struct rdma_addrinfo **info);
void soft_freeaddrinfo(struct rdma_addrinfo *info);
int soft_resolve_addrinfo(struct rdma_cm_id *id, const char *node, const char *service,
			  const struct rdma_addrinfo *hints);
int soft_query_addrinfo(struct rdma_cm_id *id, struct rdma_addrinfo **info);

/* soft_path.c; cm.lock is held */
/* The GIDs of both ends, once the addresses are known (struct rdma_ib_addr). */
void soft_id_set_gids(struct soft_id *id);
/* The route, and the times of a connection over it. */
void soft_id_set_path(struct soft_id *id);
/* The same, of a route whose packets live that long (code of the time, IBTA 15.2.5.16). */
void soft_id_set_path_of_lifetime(struct soft_id *id, uint8_t lifetime);
/* The same for a child: what the request said of it. */
void soft_id_set_path_of_request(struct soft_id *id);

/* soft_option.c */
int soft_set_option(struct rdma_cm_id *id, int level, int name, void *value, size_t length);

/* soft_connect.c */
int soft_connect(struct rdma_cm_id *id, struct rdma_conn_param *param);
int soft_accept(struct rdma_cm_id *id, struct rdma_conn_param *param);
int soft_establish(struct rdma_cm_id *id);
uint32_t soft_local_qp_num(const struct soft_id *id, const struct rdma_conn_param *param);

/* soft_disconnect.c */
int soft_reject(struct rdma_cm_id *id, const void *private_data, uint8_t private_data_len);
int soft_reject_ece(struct rdma_cm_id *id, const void *private_data, uint8_t private_data_len);
int soft_notify(struct rdma_cm_id *id, enum ibv_event_type event);
int soft_disconnect(struct rdma_cm_id *id);

/* soft_ece.c */
int soft_set_local_ece(struct rdma_cm_id *id, struct ibv_ece *ece);
int soft_get_remote_ece(struct rdma_cm_id *id, struct ibv_ece *ece);

/* soft_id_qp.c */
int soft_id_create_qp(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
int soft_id_create_qp_ex(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *attr);
void soft_id_destroy_qp(struct rdma_cm_id *id);
/* Completion queues with channels of their own, of a size each; 0: none of that kind. */
int soft_id_create_cqs(struct rdma_cm_id *id, uint32_t send_entries, uint32_t recv_entries);
void soft_id_destroy_cqs(struct rdma_cm_id *id);
int soft_init_qp_attr(struct rdma_cm_id *id, struct ibv_qp_attr *attr, int *mask);
/* INIT, with the rights that the connection has now; RTR and RTS.  cm.lock is held.  0 or an errno. */
int soft_id_prepare_qp(struct soft_id *id);
int soft_id_connect_qp(struct soft_id *id);
void soft_id_fail_qp(struct soft_id *id);

/* soft_id_srq.c */
int soft_id_create_srq(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_srq_init_attr *attr);
int soft_id_create_srq_ex(struct rdma_cm_id *id, struct ibv_srq_init_attr_ex *attr);
void soft_id_destroy_srq(struct rdma_cm_id *id);

/* soft_event_channel.c */
struct rdma_event_channel *soft_create_event_channel(void);
/* The same for that cm; NULL and errno. */
struct soft_event_channel *soft_event_channel_create(struct soft_cm *cm);
void soft_destroy_event_channel(struct rdma_event_channel *channel);
int soft_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **event);
int soft_ack_cm_event(struct rdma_cm_event *event);
int soft_write_cm_event(struct rdma_cm_id *id, enum rdma_cm_event_type event, int status,
			uint64_t argument);
/*
 * Report an event about id, with the parameters of message where there is one.  owner: see
 * soft_cm_event.  False when there is no memory: then the cause must be as if it had not arrived.
 */
bool soft_cm_report(struct soft_id *owner, struct soft_id *id, enum rdma_cm_event_type type,
		    int status, const struct soft_cm_message *message);
/* A group was joined (status 0), or why not. */
bool soft_cm_report_multicast(struct soft_id *id, int status, const struct rdma_ud_param *param);
/* Drop what owner has not read; requested children among it are freed with it.  cm.lock is held. */
void soft_cm_drop_unread(struct soft_id *owner);
/* Carry what owner has not read over to another channel; cm.lock is held. */
void soft_cm_move_unread(struct soft_id *owner, struct soft_event_channel *to);

#endif
