/*
 * The functions of the communication manager, in call order. Each file calls only those further down, and finally
 * those of soft/cm/id.h. cm.lock is held unless a comment says otherwise, and the functions assert it.
 */
#ifndef SOFT_CM_CALLS_H
#define SOFT_CM_CALLS_H

#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "soft/cm/cm.h"
#include "soft/cm/id.h"

struct soft_device;
struct soft_ipc;
struct soft_source;

/* --- network.c: changes of the host's networks ------------------------------------------------------ */

/*
 * Watch the addresses and interfaces of the host, if the link reaches other hosts. When they change, contexts get
 * GID_CHANGE, PORT_ERR and PORT_ACTIVE, and ids DEVICE_REMOVAL. Needs no lock. -ENOMEM, or a negative errno of a
 * descriptor.
 */
int soft_cm_watch_network(struct soft_cm *cm);
/* Stop watching. */
void soft_cm_close_network(struct soft_cm *cm);

/* --- removal.c: the device is removed and returns, or the program ends; takes cm.lock ---------------- */

/* The interfaces of some addresses have vanished: ids with those addresses get DEVICE_REMOVAL. */
void soft_cm_remove_interfaces(struct soft_cm *cm);
/* Remove the device: its ids get DEVICE_REMOVAL. -EBUSY if it is removed already. */
int soft_cm_remove_device(struct soft_cm *cm);
/*
 * The program ends with its provider open. Ids with peers on other hosts disconnect, as the kernel's do when their
 * process ends. Peers in other processes of this host learn of it when the kernel closes the sockets of this one
 * (soft/cm/arrival.c).
 */
void soft_cm_leave_hosts(struct soft_cm *cm);
/*
 * A device of the same name and addresses returns. *notified: ids that got DEVICE_REMOVAL. -ENOENT: none was removed;
 * -ENOMEM.
 */
int soft_cm_return_device(struct soft_cm *cm, uint32_t *notified);
/*
 * Change the hardware address of the network interface: ids get ADDR_CHANGE, as after the failover of a bond. -EBUSY
 * if it is changed already.
 */
int soft_cm_change_address(struct soft_cm *cm);
/*
 * Restore the hardware address. Ids that were bound in between get ADDR_CHANGE. *notified: ids that got either
 * event. -ENOENT.
 */
int soft_cm_restore_address(struct soft_cm *cm, uint32_t *notified);

/* --- hosts.c: messages from other hosts ----------------------------------------------------------- */

/* Needs no lock; called before there are ids. -ENOMEM, or a negative errno of a descriptor. */
int soft_cm_open_inbox(struct soft_cm *cm);
/* Read no more messages. No lock is held. */
void soft_cm_stop_inbox(struct soft_cm *cm);
/* Free the inbox, which is stopped and unused. */
void soft_cm_close_inbox(struct soft_cm *cm);

/* --- arrival.c: other processes ------------------------------------------------------------------ */

/* Callback of the fabric's poller; takes cm.lock. */
void soft_cm_ready(struct soft_source *source, uint32_t events);
/*
 * Receive a message of another process or host, subject to the faults between the ends. Its sender has applied its
 * own faults.
 */
void soft_cm_arrived(struct soft_cm *cm, const struct soft_cm_message *message);
/* soft_ipc.receive */
void soft_cm_arrive(struct soft_ipc *ipc, struct soft_cm_message *message);
/* soft_ipc.lost: after the end of a peer's process, its ids get the message that its kernel would have sent. */
void soft_cm_peer_died(struct soft_ipc *ipc, struct soft_ipc_peer *peer);

/* --- finish.c: the end of every operation on ids -------------------------------------------------- */

/*
 * Deliver the queued messages, and send those for other processes. Releases cm.lock for a while if a request is to
 * be rejected.
 */
void soft_cm_flush(struct soft_cm *cm);
/* soft_cm_flush, then release cm.lock. */
void soft_cm_unlock(struct soft_cm *cm);
/* soft_cm_unlock at the end of a function of librdmacm: 0, or -1 with error as errno. */
int soft_cm_finish(struct soft_cm *cm, int error);

/* --- receive.c: a message arrives ----------------------------------------------------------------- */

void soft_cm_receive(struct soft_cm *cm, const struct soft_cm_message *message);

/* --- sidr_receive.c: the same for SIDR REQ and SIDR REP ------------------------------------------- */

void soft_sidr_receive_request(struct soft_cm *cm, const struct soft_cm_message *message);
void soft_sidr_receive_reply(struct soft_id *id, const struct soft_cm_message *message);

/* --- child.c: ids made by requests ---------------------------------------------------------------- */

/*
 * The id that a REQ or SIDR REQ creates; its event is not reported yet. NULL with *listener if the backlog is full
 * or there is no memory; *listener is NULL if no id listens there.
 */
struct soft_id *soft_cm_request_child(struct soft_cm *cm, const struct soft_cm_message *request,
				      struct soft_id **listener);
/* Whether the port of the request has a listener, at this or another address. */
bool soft_cm_is_served(struct soft_cm *cm, const struct soft_cm_message *request);
/*
 * Whether a request of this process without a listener here is deferred (soft_cm.deferred_requests) until the kernel's
 * list of sockets is read. The reason of its REJ depends on other processes. soft_cm_flush receives it again then.
 */
bool soft_cm_defer_refusal(struct soft_cm *cm, const struct soft_cm_message *request);
/*
 * Whether there is room for one more request. For a request of another host, the oldest one may be ended. Releases
 * cm.lock for a while then.
 */
bool soft_cm_make_room(struct soft_cm *cm, const struct soft_cm_message *request);
/* Free a child without a reported event. */
void soft_cm_free_unreported(struct soft_id *child);

/* --- id_free.c: ids end --------------------------------------------------------------------------- */

/* Send the peer what the state of the connection requires, and close the id. */
void soft_id_leave(struct soft_id *id);
/* Drop the events that owner has not read. Children of requests among them are freed. */
void soft_id_drop_unread(struct soft_id *owner);
/* Leave the connection and free id, with its channel if it is synchronous. Releases cm.lock for a while. */
void soft_id_free(struct soft_id *id);
/*
 * The channel is destroyed. Ids on it lose their connections, as on Linux when its descriptor is closed, and can
 * only be destroyed. Releases cm.lock for a while.
 */
void soft_id_leave_channel(struct soft_event_channel *channel);

/* --- join.c: multicast groups of ids -------------------------------------------------------------- */

/* 0 or a positive errno; MULTICAST_JOIN follows. */
int soft_join_add(struct soft_id *id, const struct sockaddr *address, bool send_only, void *context);
int soft_join_remove(struct soft_id *id, const struct sockaddr *address);
/* The user reads MULTICAST_JOIN: attach the id's queue pair, or turn the event into MULTICAST_ERROR. */
void soft_join_apply(struct soft_id *id, struct rdma_cm_event *event);
/* The id's queue pair is destroyed and leaves every group. The id stays in them. */
void soft_joins_detach(struct soft_id *id);
/* Leave every group. */
void soft_joins_free(struct soft_id *id);

/* --- sidr.c: datagram services (IBTA 12.11) ------------------------------------------------------- */

/* Send the SIDR REQ in id->request. */
void soft_sidr_request(struct soft_id *id);
/* 0 or a positive errno. */
int soft_sidr_reply(struct soft_id *id, enum soft_sidr_status status, const struct rdma_conn_param *param);

/* --- report.c: events that were not read yet ------------------------------------------------------ */

/*
 * Report an event about id to owner (struct soft_cm_event), with the parameters of message unless it is NULL. False
 * without memory or without a channel: the caller must then undo the cause.
 */
bool soft_cm_report(struct soft_id *owner, struct soft_id *id, enum rdma_cm_event_type type, int status,
		    const struct soft_cm_message *message);
/* A group was joined (status 0) or joining failed. */
bool soft_cm_report_multicast(struct soft_id *id, int status, const struct rdma_ud_param *param);
/* Withdraw an unread event of soft_cm_report_multicast, by its param.private_data (ucma_cleanup_mc_events of Linux). */
void soft_cm_forget_multicast(struct soft_id *id, const void *private_data);
/* RDMA_CM_EVENT_USER (rdma_write_cm_event(3)). */
bool soft_cm_report_user(struct soft_id *id, int status, uint64_t argument);
/* Report DISCONNECTED, which each end of a connection gets once. */
bool soft_cm_report_disconnected(struct soft_id *id, int status);
/* Take the oldest event of a channel for its user; NULL if there is none. */
struct soft_cm_event *soft_cm_take_event(struct soft_event_channel *channel);
/* Withdraw an event that was not read. The caller frees it. */
void soft_cm_withdraw_event(struct soft_cm_event *event);
/* Take an event that owner has not read; NULL if there is none. */
struct soft_cm_event *soft_cm_take_unread(struct soft_id *owner);
/* Move the events that owner has not read to another channel. */
void soft_cm_move_unread(struct soft_id *owner, struct soft_event_channel *to);

/* --- send.c: sending, and the states that it leads to --------------------------------------------- */

/* Fill in a message from id to its peer. */
void soft_cm_prepare(struct soft_id *id, struct soft_cm_message *message, enum soft_cm_attribute attribute);
/* field: the length of the message's private data field, all of which a receiver gets. Needs no lock. */
void soft_cm_set_private_data(struct soft_cm_message *message, const void *data, uint8_t length, uint8_t field);
/* Queue a copy. Without memory the message is lost, as on a wire. */
void soft_cm_send(struct soft_cm *cm, const struct soft_cm_message *message);
/* Send id->request, and again after every request_timeout until soft_cm_answered. */
void soft_cm_send_request(struct soft_id *id);
void soft_cm_repeat_request(struct soft_id *id);
/*
 * An earlier id found the process, and it no longer has the port: find the process again and send the request there.
 * False: this id has done so already.
 */
bool soft_cm_relocate(struct soft_id *id);
void soft_cm_answered(struct soft_id *id);
/* A message without fields but the ids of the connection. */
void soft_cm_send_plain(struct soft_id *id, enum soft_cm_attribute attribute);
/* The DREQ of an established connection, repeated until it is answered. */
void soft_cm_send_dreq(struct soft_id *id);
/* Send a REJ, and enter TIMEWAIT or close. */
void soft_cm_reject(struct soft_id *id, uint32_t reason, const void *private_data, uint8_t length);
void soft_cm_enter_timewait(struct soft_id *id);
/* End the connection and its timer. */
void soft_cm_close(struct soft_id *id);

/* --- locate.c: the process of an id's peer -------------------------------------------------------- */

/* Find the process, for a request. False: it cannot be found out now, and the request counts as lost. */
bool soft_cm_locate(struct soft_id *id);
/* The same, even if another id has found the process already. */
bool soft_cm_locate_anew(struct soft_id *id);

/* --- half_open.c: requests that are not connections yet -------------------------------------------- */

/* Called before there are ids. */
void soft_half_open_init(struct soft_cm *cm);
/* Whether a request of this host is within the limits of unread ones. */
bool soft_backlog_has_room(struct soft_cm *cm, const struct soft_cm_message *request);
/* more: 1 when the event of the request was reported, -1 when it was read. */
void soft_backlog_count(struct soft_id *child, int more);

enum soft_half_open_room {
	SOFT_HALF_OPEN_FREE,
	SOFT_HALF_OPEN_REPLACE, /* if soft_half_open_oldest makes room */
	SOFT_HALF_OPEN_FULL,
};

enum soft_half_open_room soft_half_open_room(struct soft_cm *cm, const struct soft_cm_message *request);
/* The request to end if there is no room; NULL: the user has read all of them and accepted none. */
struct soft_id *soft_half_open_oldest(struct soft_cm *cm);
/*
 * The oldest accepted request that has not been answered in time, of a host that has SOFT_UNANSWERED_SHARE. A request
 * of another host for the port replaces it. NULL: there is none.
 */
struct soft_id *soft_half_open_unanswered(struct soft_cm *cm, const struct soft_cm_message *request);
/*
 * An unread request in the full backlog of the listener, of a host that has more of them than the request's. Its
 * sender repeats it. NULL: there is none.
 */
struct soft_id *soft_half_open_crowding(struct soft_cm *cm, const struct soft_id *listener, const struct soft_cm_message *request);
/*
 * Whether the peer may get an MRA, which makes it wait. If the request may be replaced, its peer must repeat it
 * instead.
 */
bool soft_half_open_may_wait(const struct soft_id *id);
/* A request created id. Requests of this host are not counted. */
void soft_half_open_enter(struct soft_id *id);
void soft_half_open_reported(struct soft_id *id, struct soft_cm_event *event);
void soft_half_open_read(struct soft_id *id);
void soft_half_open_accepted(struct soft_id *id);
/* The id is a connection now, or ended. Does nothing while its event is unread. */
void soft_half_open_leave(struct soft_id *id);

/* --- gate.c: hosts that have proven that they receive at their address; needs no lock --------------- */

/* -ENOMEM. */
int soft_gate_open(struct soft_cm *cm);
void soft_gate_close(struct soft_cm *cm);
/* Send nothing to other hosts any more; cm.lock is held. */
void soft_gate_stop_mad_tx(struct soft_cm *cm);
/* source: of soft_address_source. */
bool soft_gate_is_proven(struct soft_cm *cm, uint64_t source);
/* Whether requests of unproven hosts are kept back. local: an id of this process, even a closed one. */
void soft_gate_set_required(struct soft_cm *cm, bool required, uint32_t local);
/*
 * Whether a message of another host is handled here: a request is kept and its host asked, or it answers that
 * question.
 */
bool soft_gate_keeps(struct soft_cm *cm, const struct soft_cm_message *message);
/* Whether a DREQ of another host for an unknown connection may be answered; the answer is counted. */
bool soft_gate_may_answer(struct soft_cm *cm, const struct soft_cm_message *dreq);
/* The next request of a host that has answered. */
bool soft_gate_take(struct soft_cm *cm, struct soft_cm_message *request);

/* --- budget.c: what is sent to other hosts ---------------------------------------------------------- */

struct soft_budget_limits {
	uint64_t time; /* nanoseconds after which counts are reset */
	uint32_t total; /* of all sources; UINT32_MAX: no limit */
	uint16_t of_source; /* and at most as many as are left for all sources */
};

/* Whether one more message may be sent to that host, which is counted; otherwise the user gets a notice. */
bool soft_budget_take(struct soft_cm *cm, struct soft_budget *budget, const struct soft_budget_limits *limits,
		      const union ibv_gid *to);

/* --- held.c: messages that faults delay, reorder, duplicate or lose ----------------------------------- */

/* Capture the message and apply faults; then it is delivered now, later, twice or never. */
void soft_cm_carry(struct soft_cm *cm, const struct soft_cm_message *message);
/* Deliver the message after that time, in nanoseconds. */
void soft_cm_hold(struct soft_cm *cm, const struct soft_cm_message *message, uint64_t delay);
/* Deliver messages at the end of their delay, and arm held_timer for the next one. */
void soft_cm_release_held(struct soft_cm *cm);
/* Drop all messages that faults delay. */
void soft_cm_forget_held(struct soft_cm *cm);

/* --- delivery.c: messages go to this process, another one, or another host ---------------------- */

/*
 * Queue a copy for delivery at the next soft_cm_unlock, or send it to its process or host. Without memory it is
 * lost, as on a wire.
 */
void soft_cm_deliver(struct soft_cm *cm, const struct soft_cm_message *message);
/* Send to another host at once. gate.asking may be held instead of cm.lock. */
void soft_cm_send_to_host(struct soft_device *device, const struct soft_cm_message *message);
/* The next message, which the caller frees by soft_cm_free_message; NULL if there is none. */
struct soft_cm_message *soft_cm_take_message(struct soft_cm *cm);
void soft_cm_free_message(struct soft_cm_message *message);

/* --- path.c: the path to the peer ----------------------------------------------------------------- */

/* The GIDs of both ends, once the addresses are known (struct rdma_ib_addr). */
void soft_id_set_gids(struct soft_id *id);
/* The path record, and the timeouts that depend on it. */
void soft_id_set_path(struct soft_id *id);
/* The same, with a packet lifetime of that code (IBTA 15.2.5.16). */
void soft_id_set_path_of_lifetime(struct soft_id *id, uint8_t lifetime);
/* The path of a child: what its request says. */
void soft_id_set_path_of_request(struct soft_id *id, const struct soft_cm_message *request);
/* The route as librdmacm shows it after the user has queried it. */
void soft_id_show_path(struct soft_id *id);
/* The address vector of id's peer. */
void soft_id_ah_attr(const struct soft_id *id, struct ibv_ah_attr *attr);

/* --- ports.c: port spaces; 0 or a positive errno -------------------------------------------------- */

int soft_port_bind(struct soft_id *id, const struct sockaddr *address);
/* Whether id may listen on a shared port. A listener no longer shares it (rdma_listen of Linux). */
int soft_port_listen(struct soft_id *id);
void soft_port_release(struct soft_id *id);
struct soft_id *soft_port_find_listener(struct soft_cm *cm, int port_space, const struct sockaddr *destination);
/* Whether an id listens on the port, at any address. */
bool soft_port_has_listener(struct soft_cm *cm, int port_space, uint16_t port);

/* --- peers.c: connections by the id and the queue pair of their remote end ------------------------ */

/* Register id by its remote communication id. Returns the connection that has it already, or NULL. */
struct soft_id *soft_peers_register_id(struct soft_id *id);
/* The same by the remote queue pair. */
struct soft_id *soft_peers_register_qp(struct soft_id *id);
/* The connection that sent a message, found by GUID, local id, and the process or host that sent it. */
struct soft_id *soft_peers_find_id(struct soft_cm *cm, const struct soft_cm_message *message);
void soft_peers_forget(struct soft_id *id);

/* --- address.c: addresses of ids; the first group needs no lock ----------------------------------- */

/* AF_INET, AF_INET6 or AF_IB; false for NULL. */
bool soft_address_is_known(const struct sockaddr *address);
bool soft_address_is_ip(const struct sockaddr *address);
bool soft_address_is_any(const struct sockaddr *address);
bool soft_address_is_multicast(const struct sockaddr *address);
/* In 192.0.2.0/24 (RFC 5737), which stands for a network without hosts. */
bool soft_address_is_absent_neighbour(const struct sockaddr *address);
bool soft_address_is_same(const struct sockaddr *a, const struct sockaddr *b);
/* Whether the host has the address. If so, the device gets a GID for it while the table has room. */
bool soft_address_is_local(struct soft_device *device, const struct sockaddr *address);
/* The same, or the host had it before. The kernel is asked only if the device has no GID for it. */
bool soft_address_was_local(struct soft_device *device, const struct sockaddr *address);
/* Whether it is an address of another host, and the link reaches other hosts. */
bool soft_address_is_elsewhere(const struct soft_device *device, const struct sockaddr *address);
/*
 * A keyed hash that stands for a host. The key keeps other hosts from finding addresses with the same value. An
 * IPv6 host can use all addresses of its /64, so these count as one.
 */
uint64_t soft_address_source(const struct soft_cm *cm, const union ibv_gid *gid);
void soft_address_to_gid(const struct sockaddr *address, union ibv_gid *gid);
socklen_t soft_address_length(const struct sockaddr *address);
/* Host byte order. */
uint16_t soft_address_port(const struct sockaddr *address);
void soft_address_set_port(struct sockaddr *address, uint16_t port);
/* Set address to the device's loopback address of its family. */
void soft_address_of_device(struct sockaddr *address);

/* --- address_ib.c: addresses of AF_IB ------------------------------------------------------------ */

/* Whether id may be bound to an address of AF_IB: 0 or a positive errno. */
int soft_address_ib_check(const struct soft_id *id, const struct sockaddr *address);
/* After binding: the port becomes part of the service id of id's source. */
void soft_address_ib_bound(struct soft_id *id);
/* Choose the source for id's destination: 0 or a positive errno. */
int soft_address_ib_resolve(struct soft_id *id);

/* --- neighbour.c: the next hop; needs no lock ------------------------------------------------------- */

/*
 * Whether the kernel knows the hardware address of the next hop to another host, or it cannot be found out. If the
 * kernel does not know it, it starts to resolve it.
 */
bool soft_neighbour_answers(const struct sockaddr *source, const struct sockaddr *destination);

/* --- addrinfo.c: rdma_getaddrinfo(3); needs no lock ----------------------------------------------- */

int soft_getaddrinfo(const char *node, const char *service, const struct rdma_addrinfo *hints,
		     struct rdma_addrinfo **info);
void soft_freeaddrinfo(struct rdma_addrinfo *info);

/* --- device.c: the device under the ids ----------------------------------------------------------- */

/* Open the present device as cm->opened. -ENOMEM, or a negative errno of a descriptor. */
int soft_cm_open_device(struct soft_cm *cm);
/* Needs no lock: there are no ids. */
void soft_cm_close_devices(struct soft_cm *cm);
/*
 * What librdmacm queries when the user binds or reads an event (ucma_query_addr, ucma_query_gid). That is the
 * addresses, and for an id on the device also its verbs, port_num and default PD. -ENOMEM, -ENODEV.
 */
int soft_id_query(struct soft_id *id);
void soft_id_unbind_device(struct soft_id *id);
/* The default XRC domain of ids on its device (ucma_get_xrcd of librdmacm); NULL and errno. */
struct ibv_xrcd *soft_id_default_xrcd(struct soft_id *id);

/* --- channel.c: event channels; needs no lock ----------------------------------------------------- */

/* NULL and errno. */
struct soft_event_channel *soft_event_channel_create(struct soft_cm *cm);
/* The channel has no ids. The second call for a channel does nothing while its memory is kept. */
void soft_event_channel_free(struct soft_event_channel *channel);
/* Free the memory that is kept: cm is about to be destroyed. */
void soft_event_channels_release(struct soft_cm *cm);

#endif
