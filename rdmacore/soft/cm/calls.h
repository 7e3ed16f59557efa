/*
 * The functions of the communication manager, in call order: each file calls only those further down, and at the end
 * those of soft/cm/id.h.  cm.lock is held unless a comment says otherwise, and the functions assert it.
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

/* --- network.c: the networks of the host go and come ----------------------------------------------- */

/*
 * From now on contexts hear GID_CHANGE, PORT_ERR and PORT_ACTIVE, and ids DEVICE_REMOVAL, when addresses and interfaces of the
 * host change, if other hosts are reached over them.  Needs no lock.  -ENOMEM, or the errno of a descriptor.
 */
int soft_cm_watch_network(struct soft_cm *cm);
/* The same, no more. */
void soft_cm_close_network(struct soft_cm *cm);

/* --- removal.c: the device goes and comes back, or the program ends; takes cm.lock ------------------------------------- */

/* The interfaces of some addresses have vanished, and ids with those addresses hear DEVICE_REMOVAL. */
void soft_cm_remove_interfaces(struct soft_cm *cm);
/* The device goes, and its ids hear DEVICE_REMOVAL.  -EBUSY when it is away already. */
int soft_cm_remove_device(struct soft_cm *cm);
/*
 * The program ends with its provider open: ids whose peers are on other hosts leave them, as the kernel's do when their process
 * ends.  Those of other processes of this host hear of it from this one's kernel (soft/cm/arrival.c).
 */
void soft_cm_leave_hosts(struct soft_cm *cm);
/* A new one of its name and addresses comes.  *told: ids that heard of the removal.  -ENOENT: it is not away; -ENOMEM. */
int soft_cm_return_device(struct soft_cm *cm, uint32_t *notified);
/*
 * The network interface gets another hardware address and ids hear ADDR_CHANGE, as after the failover of a bond.
 * -EBUSY when it has another already.
 */
int soft_cm_change_address(struct soft_cm *cm);
/* It gets its own again; ids that came in between hear of that.  *told: ids that heard of either.  -ENOENT. */
int soft_cm_restore_address(struct soft_cm *cm, uint32_t *notified);

/* --- hosts.c: messages from other hosts ----------------------------------------------------------- */

/* Needs no lock, before ids are there.  -ENOMEM, or an errno of a descriptor. */
int soft_cm_open_inbox(struct soft_cm *cm);
/* Its messages are no longer looked at.  No lock is held. */
void soft_cm_stop_inbox(struct soft_cm *cm);
/* The same, once it was stopped and nothing uses it. */
void soft_cm_close_inbox(struct soft_cm *cm);

/* --- arrival.c: other processes ------------------------------------------------------------------ */

/* Of the fabric's poller; takes cm.lock. */
void soft_cm_ready(struct soft_source *source, uint32_t events);
/* A message from elsewhere: receive it as the faults between the ends want it.  Its sender has judged it by its own. */
void soft_cm_arrived(struct soft_cm *cm, const struct soft_cm_message *message);
/* soft_ipc.receive */
void soft_cm_arrive(struct soft_ipc *ipc, struct soft_cm_message *message);
/* soft_ipc.lost: ids whose peer's process has died hear what its kernel would have sent. */
void soft_cm_peer_died(struct soft_ipc *ipc, struct soft_ipc_peer *peer);

/* --- finish.c: the end of every operation on ids -------------------------------------------------- */

/*
 * Deliver the messages that are queued, and give the kernel those for other processes.  Releases cm.lock for a while if one is
 * to be refused.
 */
void soft_cm_flush(struct soft_cm *cm);
/* Deliver them, then release cm.lock. */
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
 * The id that a REQ or SIDR REQ makes, not reported yet.  NULL with *listener when the backlog is full or there is no
 * memory; *listener is NULL when nothing listens there.
 */
struct soft_id *soft_cm_request_child(struct soft_cm *cm, const struct soft_cm_message *request,
				      struct soft_id **listener);
/* Whether the port of the request has a listener, if only for other addresses. */
bool soft_cm_is_served(struct soft_cm *cm, const struct soft_cm_message *request);
/*
 * Whether a request of this process that nobody here listens for waits, as soft_cm.aside, until the kernel's list of sockets was
 * read: what it is refused with depends on the other processes.  soft_cm_flush receives it again then.
 */
bool soft_cm_defer_refusal(struct soft_cm *cm, const struct soft_cm_message *request);
/*
 * Whether there is room for one more request: of other hosts, the oldest may be ended for it.  Releases cm.lock for a while
 * then.
 */
bool soft_cm_make_room(struct soft_cm *cm, const struct soft_cm_message *request);
/* Free a child that its user was not told of. */
void soft_cm_free_unreported(struct soft_id *child);

/* --- id_free.c: ids end --------------------------------------------------------------------------- */

/* Tell the peer, as the state of the connection demands, and close the id. */
void soft_id_leave(struct soft_id *id);
/* Drop the events that owner has not read; children of requests among them are freed. */
void soft_id_drop_unread(struct soft_id *owner);
/* Leave the connection and free id, with its own channel if it has one.  Releases cm.lock for a while. */
void soft_id_free(struct soft_id *id);
/*
 * The channel is destroyed: ids on it lose their connections, as on Linux when its descriptor is closed.  Then they can
 * only be destroyed.  Releases cm.lock for a while.
 */
void soft_id_leave_channel(struct soft_event_channel *channel);

/* --- join.c: multicast groups of ids -------------------------------------------------------------- */

/* 0 or a positive errno; MULTICAST_JOIN follows. */
int soft_join_add(struct soft_id *id, const struct sockaddr *address, bool send_only, void *context);
int soft_join_remove(struct soft_id *id, const struct sockaddr *address);
/* The user reads MULTICAST_JOIN: attach the id's queue pair, or turn the event into MULTICAST_ERROR. */
void soft_join_apply(struct soft_id *id, struct rdma_cm_event *event);
/* The id's queue pair is destroyed: it leaves every group, while the id stays in them. */
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
 * Report an event about id to owner (struct soft_cm_event), with the parameters of message unless it is NULL.  False
 * without memory or without a channel: the cause must then be as if it had not happened.
 */
bool soft_cm_report(struct soft_id *owner, struct soft_id *id, enum rdma_cm_event_type type, int status,
		    const struct soft_cm_message *message);
/* A group was joined (status 0) or not. */
bool soft_cm_report_multicast(struct soft_id *id, int status, const struct rdma_ud_param *param);
/* Take back an unread event of soft_cm_report_multicast, by its param.private_data (ucma_cleanup_mc_events of Linux). */
void soft_cm_forget_multicast(struct soft_id *id, const void *private_data);
/* RDMA_CM_EVENT_USER (rdma_write_cm_event(3)). */
bool soft_cm_report_user(struct soft_id *id, int status, uint64_t argument);
/* Each end of a connection hears DISCONNECTED once, whatever ends it. */
bool soft_cm_report_disconnected(struct soft_id *id, int status);
/* Take the oldest event of a channel, for its user; NULL when there is none. */
struct soft_cm_event *soft_cm_take_event(struct soft_event_channel *channel);
/* Take back an event that was not read, which the caller frees. */
void soft_cm_withdraw_event(struct soft_cm_event *event);
/* Take an event that owner has not read; NULL when there is none. */
struct soft_cm_event *soft_cm_take_unread(struct soft_id *owner);
/* Move the events that owner has not read to another channel. */
void soft_cm_move_unread(struct soft_id *owner, struct soft_event_channel *to);

/* --- send.c: sending, and the states that it leads to --------------------------------------------- */

/* Fill in a message from id to its peer. */
void soft_cm_prepare(struct soft_id *id, struct soft_cm_message *message, enum soft_cm_attribute attribute);
/* field: what the message has room for, all of which a receiver sees.  Needs no lock. */
void soft_cm_set_private_data(struct soft_cm_message *message, const void *data, uint8_t length, uint8_t field);
/* Queue a copy.  Without memory the message is lost, as on a wire. */
void soft_cm_send(struct soft_cm *cm, const struct soft_cm_message *message);
/* Send id->request, and again after every request_timeout until soft_cm_answered. */
void soft_cm_send_request(struct soft_id *id);
void soft_cm_repeat_request(struct soft_id *id);
/*
 * The process does not answer for the port any more, and was found by an earlier id: seek who does now, and send to that one.
 * False: this id has sought already.
 */
bool soft_cm_relocate(struct soft_id *id);
void soft_cm_answered(struct soft_id *id);
/* A message that says only which connection it is about. */
void soft_cm_send_plain(struct soft_id *id, enum soft_cm_attribute attribute);
/* The DREQ of an established connection, repeated until it is answered. */
void soft_cm_send_dreq(struct soft_id *id);
/* Send a REJ, and enter TIMEWAIT or close. */
void soft_cm_reject(struct soft_id *id, uint32_t reason, const void *private_data, uint8_t length);
void soft_cm_enter_timewait(struct soft_id *id);
/* There is no connection and no timer any more. */
void soft_cm_close(struct soft_id *id);

/* --- locate.c: the process of an id's peer -------------------------------------------------------- */

/* Find it, for a request.  False: it cannot be found out now, and the request is as if lost. */
bool soft_cm_locate(struct soft_id *id);
/* The same, although another id has found it already. */
bool soft_cm_locate_anew(struct soft_id *id);

/* --- half_open.c: requests that are not connections yet -------------------------------------------- */

/* Before there are ids. */
void soft_half_open_init(struct soft_cm *cm);
/* Whether one more of this host is within the bounds of what is unread. */
bool soft_backlog_has_room(struct soft_cm *cm, const struct soft_cm_message *request);
/* more: 1 when its event was reported, -1 when that was read. */
void soft_backlog_count(struct soft_id *child, int more);

enum soft_half_open_room {
	SOFT_HALF_OPEN_FREE,
	SOFT_HALF_OPEN_REPLACE, /* if soft_half_open_oldest makes room */
	SOFT_HALF_OPEN_FULL,
};

enum soft_half_open_room soft_half_open_room(struct soft_cm *cm, const struct soft_cm_message *request);
/* The one to end when there is no room; NULL: the user has read all of them and accepted none. */
struct soft_id *soft_half_open_oldest(struct soft_cm *cm);
/*
 * Of a host that has SOFT_UNANSWERED_SHARE, an accepted request that nothing has answered in time, and that a request of another
 * host for the port takes the place of; NULL: there is none.
 */
struct soft_id *soft_half_open_unanswered(struct soft_cm *cm, const struct soft_cm_message *request);
/*
 * Of a host that has more than the request's, an unread request in the full backlog of the listener, whose sender repeats it;
 * NULL: there is none.
 */
struct soft_id *soft_half_open_crowding(struct soft_cm *cm, const struct soft_id *listener, const struct soft_cm_message *request);
/* Whether the peer may be told to wait.  One whose request may be replaced is not: it repeats it. */
bool soft_half_open_may_wait(const struct soft_id *id);
/* A request made id; of one on this host nothing is counted. */
void soft_half_open_enter(struct soft_id *id);
void soft_half_open_reported(struct soft_id *id, struct soft_cm_event *event);
void soft_half_open_read(struct soft_id *id);
void soft_half_open_accepted(struct soft_id *id);
/* It is a connection now, or ended.  Does nothing while its event is unread. */
void soft_half_open_leave(struct soft_id *id);

/* --- gate.c: hosts that have shown that they receive what is sent to them; needs no lock ----------- */

/* -ENOMEM. */
int soft_gate_open(struct soft_cm *cm);
void soft_gate_close(struct soft_cm *cm);
/* Nothing is sent to other hosts any more; cm.lock is held. */
void soft_gate_stop_mad_tx(struct soft_cm *cm);
/* source: of soft_address_source. */
bool soft_gate_is_proven(struct soft_cm *cm, uint64_t source);
/* Whether requests of hosts that have not shown it are kept from now on.  local: of an id that this process has, or had. */
void soft_gate_set_required(struct soft_cm *cm, bool required, uint32_t local);
/* Whether a message from another host was dealt with: a request is kept and its host asked, or it is the answer to that. */
bool soft_gate_keeps(struct soft_cm *cm, const struct soft_cm_message *message);
/* Whether a DREQ of another host for a connection that there is not may have one more answer, which is counted. */
bool soft_gate_may_answer(struct soft_cm *cm, const struct soft_cm_message *dreq);
/* The next request of a host that has answered. */
bool soft_gate_take(struct soft_cm *cm, struct soft_cm_message *request);

/* --- delivery.c: messages on their way, held back while faults want it ---------------------------- */

/*
 * Queue a copy for delivery at the next soft_cm_unlock, or for the process that it goes to.  Without memory it is lost, as
 * on a wire.
 */
void soft_cm_deliver(struct soft_cm *cm, const struct soft_cm_message *message);
/* To another host, at once.  gate.asking may be held in place of cm.lock. */
void soft_cm_send_to_host(struct soft_device *device, const struct soft_cm_message *message);
/* The next message, for soft_cm_free_message; NULL when there is none. */
struct soft_cm_message *soft_cm_take_message(struct soft_cm *cm);
void soft_cm_free_message(struct soft_cm_message *message);
/* Record the message, and soft_cm_deliver it as the faults between the ends want it: now, later, twice or never. */
void soft_cm_carry(struct soft_cm *cm, const struct soft_cm_message *message);
/* Deliver what is due, and arm held_timer for the next. */
void soft_cm_release_held(struct soft_cm *cm);
/* Drop what is held back. */
void soft_cm_forget_held(struct soft_cm *cm);

/* --- path.c: the path to the peer ----------------------------------------------------------------- */

/* The GIDs of both ends, once the addresses are known (struct rdma_ib_addr). */
void soft_id_set_gids(struct soft_id *id);
/* The path record, and the timeouts that follow from it. */
void soft_id_set_path(struct soft_id *id);
/* With a packet lifetime of that code (IBTA 15.2.5.16). */
void soft_id_set_path_of_lifetime(struct soft_id *id, uint8_t lifetime);
/* For a child: as its request says. */
void soft_id_set_path_of_request(struct soft_id *id, const struct soft_cm_message *request);
/* What librdmacm shows of the route once the user has read of it. */
void soft_id_show_path(struct soft_id *id);
/* The address vector to id's peer. */
void soft_id_ah_attr(const struct soft_id *id, struct ibv_ah_attr *attr);

/* --- ports.c: port spaces; 0 or a positive errno -------------------------------------------------- */

int soft_port_bind(struct soft_id *id, const struct sockaddr *address);
/* Whether id may listen on a port that it shares; a listener shares it no more (rdma_listen of Linux). */
int soft_port_listen(struct soft_id *id);
void soft_port_release(struct soft_id *id);
struct soft_id *soft_port_find_listener(struct soft_cm *cm, int port_space, const struct sockaddr *destination);
/* Whether anything listens on the port, if only for other addresses. */
bool soft_port_has_listener(struct soft_cm *cm, int port_space, uint16_t port);

/* --- peers.c: connections by the id and the queue pair of their remote end ------------------------ */

/* The connection that has id's remote communication id already; NULL, and id has it now. */
struct soft_id *soft_peers_register_id(struct soft_id *id);
/* The same by the remote queue pair. */
struct soft_id *soft_peers_register_qp(struct soft_id *id);
/* The one that a message is from, by its GUID, its local id, and the process or host that sent it. */
struct soft_id *soft_peers_find_id(struct soft_cm *cm, const struct soft_cm_message *message);
void soft_peers_forget(struct soft_id *id);

/* --- address.c: addresses of ids; the first group needs no lock ----------------------------------- */

/* AF_INET, AF_INET6 or AF_IB; false for NULL. */
bool soft_address_is_known(const struct sockaddr *address);
bool soft_address_is_ip(const struct sockaddr *address);
bool soft_address_is_any(const struct sockaddr *address);
bool soft_address_is_multicast(const struct sockaddr *address);
/* In 192.0.2.0/24 (RFC 5737), which stands for a network where nobody answers. */
bool soft_address_is_absent_neighbour(const struct sockaddr *address);
bool soft_address_is_same(const struct sockaddr *a, const struct sockaddr *b);
/* Whether it is one of the host's, which the device then has a GID for, while there is room. */
bool soft_address_is_local(struct soft_device *device, const struct sockaddr *address);
/* The same, or it once was: the kernel is asked only of what the device has no GID for. */
bool soft_address_was_local(struct soft_device *device, const struct sockaddr *address);
/* Whether it is an address of another host, which the device's link reaches. */
bool soft_address_is_elsewhere(const struct soft_device *device, const struct sockaddr *address);
/*
 * A number that stands for a host, and that nobody can find another address for: a keyed hash.  An IPv6 host has all addresses
 * of its /64, so they are one.
 */
uint64_t soft_address_source(const struct soft_cm *cm, const union ibv_gid *gid);
void soft_address_to_gid(const struct sockaddr *address, union ibv_gid *gid);
socklen_t soft_address_length(const struct sockaddr *address);
/* Host byte order. */
uint16_t soft_address_port(const struct sockaddr *address);
void soft_address_set_port(struct sockaddr *address, uint16_t port);
/* Fill in the device's own address of the family in address. */
void soft_address_of_device(struct sockaddr *address);

/* Whether id may be bound to an address of AF_IB: 0 or a positive errno. */
int soft_address_ib_check(const struct soft_id *id, const struct sockaddr *address);
/* It was bound: its port becomes part of the service id of its source. */
void soft_address_ib_bound(struct soft_id *id);
/* Choose the source for id's destination: 0 or a positive errno. */
int soft_address_ib_resolve(struct soft_id *id);

/* --- neighbour.c: the next host on the way; needs no lock ------------------------------------------ */

/*
 * Whether it is known to the kernel where packets to another host go next; also when that cannot be found out.  If it is not, the
 * kernel asks for it from now on.
 */
bool soft_neighbour_answers(const struct sockaddr *source, const struct sockaddr *destination);

/* --- addrinfo.c: rdma_getaddrinfo(3); needs no lock ----------------------------------------------- */

int soft_getaddrinfo(const char *node, const char *service, const struct rdma_addrinfo *hints,
		     struct rdma_addrinfo **info);
void soft_freeaddrinfo(struct rdma_addrinfo *info);

/* --- device.c: the device under the ids ----------------------------------------------------------- */

/* Open the device as it is now, as cm->opened.  -ENOMEM, or the errno of a descriptor. */
int soft_cm_open_device(struct soft_cm *cm);
/* Needs no lock: every id is gone. */
void soft_cm_close_devices(struct soft_cm *cm);
/*
 * What librdmacm asks the kernel when the user binds or reads an event (ucma_query_addr, ucma_query_gid): the addresses,
 * and of an id on the device its verbs, port_num and default PD.  -ENOMEM, -ENODEV.
 */
int soft_id_query(struct soft_id *id);
void soft_id_unbind_device(struct soft_id *id);
/* The XRC domain of ids of its device whose user gives none (librdmacm's ucma_get_xrcd); NULL and errno. */
struct ibv_xrcd *soft_id_default_xrcd(struct soft_id *id);

/* --- channel.c: event channels; needs no lock ----------------------------------------------------- */

/* NULL and errno. */
struct soft_event_channel *soft_event_channel_create(struct soft_cm *cm);
/* No id is on it any more. */
void soft_event_channel_free(struct soft_event_channel *channel);

#endif
