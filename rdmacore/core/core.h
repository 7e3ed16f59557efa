/*
 * The C core for the Go API: one call for each operation and flat structs without nested pointers. The result is 0, a
 * count or a negative errno. Nothing here blocks: Go waits for the file descriptors of event and completion channels,
 * or polls in bounded slices.
 */
#ifndef CORE_CORE_H
#define CORE_CORE_H

#include <stdbool.h>
#include <stdint.h>

#include "provider/provider.h"

/* --- open.c ------------------------------------------------------------------------------------- */

/*
 * Open the provider of that name ("soft", "verbs"). -ENOENT with a sentence in why if there is no such provider or
 * its libraries are missing; -ENOMEM. The caller closes it.
 */
int core_open(const char *name, const struct core_options *options, struct core_provider **provider,
	      char *why, size_t why_size);
/*
 * -EBUSY while the provider has objects. A core_getaddrinfo for which core_hold was called may continue afterwards,
 * because it may wait for name servers much longer than its caller.
 */
int core_close(struct core_provider *provider);
/* Keep the table of functions and its libraries after core_close, until core_release. */
void core_hold(struct core_provider *provider);
void core_release(struct core_provider *provider);
long core_live(struct core_provider *provider, enum core_object kind);

/* Nanoseconds on the provider's virtual clock. */
uint64_t core_clock_now(struct core_provider *provider);
/*
 * Advance a virtual clock to the next timer that is due by limit, and run it: 1. Without such a timer, advance it to
 * limit (UINT64_MAX: not at all): 0. -EOPNOTSUPP without a virtual clock.
 */
int core_clock_advance(struct core_provider *provider, uint64_t limit);

/*
 * Read the counters of the provider's device. Returns how many, CORE_COUNTERS_MAX at most; -EOPNOTSUPP if the kernel
 * counts.
 */
int core_counters(struct core_provider *provider, struct core_counter *counters);

/* The number of the new rule; -EINVAL, -ENOSPC; -EBUSY if it is active already; -EOPNOTSUPP without faults. */
int core_fault_add(struct core_provider *provider, const struct core_fault *fault);
/* Remove a rule. *lost: how many messages, or ids, it was applied to. -ENOENT. */
int core_fault_remove(struct core_provider *provider, int rule, uint32_t *lost);

/*
 * Why the last call of this thread failed, in a sentence that is valid until the next call; "" if the errno says all.
 * Only for calls since core_forget_refusal.
 */
const char *core_refusal(struct core_provider *provider);
void core_forget_refusal(struct core_provider *provider);

/* --- capture.c ---------------------------------------------------------------------------------- */

/*
 * A pcapng file for packets of soft providers that are opened with it (core_options.capture). A negative errno;
 * -ENXIO: the pipe has no reader.
 */
int core_capture_open(const struct core_capture_options *options, struct soft_capture_file **file);
/* All providers that were opened with it are closed. Waits for the reader while it makes progress. */
void core_capture_close(struct soft_capture_file *file, struct core_capture_result *result);

/* Set the name of the address's interface, before its first packet. A second name is added to the first. */
void core_capture_name(struct core_provider *provider, const struct core_address *address, const char *name);
/*
 * Set the step of the sender with that address, which becomes the comment of its packets; "" ends it. Packets of
 * other senders belong to the step that began last. No address: a step without a sender.
 */
void core_capture_step(struct core_provider *provider, const struct core_address *address, uint32_t number, const char *text);
/* Write and note a packet that another process has captured. */
void core_capture_add(struct core_provider *provider, const struct core_capture_packet *packet);
/* Take what was noted of packets since the last call, at most count; *missed: how many more there were. */
uint32_t core_captured(struct core_provider *provider, struct core_captured *packets, uint32_t count, uint64_t *missed);

/* --- channel.c, cm.c ---------------------------------------------------------------------------- */

/* rdma_conn_param in both directions, with its private data inline (rdma_connect(3), rdma_accept(3)). */
struct core_conn_param {
	uint8_t responder_resources;
	uint8_t initiator_depth;
	uint8_t flow_control;
	uint8_t retry_count;
	uint8_t rnr_retry_count;
	uint8_t srq;
	uint8_t private_data_len; /* 255 at most */
	uint8_t reserved;
	uint32_t qp_num;
	uint8_t private_data[256];
};

/*
 * A copy of one CM event (rdma_get_cm_event(3)). The peer of a datagram id (in ESTABLISHED and MULTICAST_JOIN) is
 * conn.qp_num, qkey and ah_attr.
 */
struct core_event {
	struct rdma_cm_id *id; /* CONNECT_REQUEST: the new child */
	struct rdma_cm_id *listen_id; /* CONNECT_REQUEST only */
	int32_t type; /* enum rdma_cm_event_type */
	int32_t status; /* 0, a negative errno or a positive transport reason */
	struct core_conn_param conn;
	struct ibv_ah_attr ah_attr;
	uint32_t qkey;
	uint32_t datagram; /* ah_attr and qkey are set */
	uint64_t arg; /* MULTICAST_*: the context of the join; USER: the argument */
	struct rdma_cm_event *held; /* the caller passes it to core_ack_event; NULL: acknowledged already */
};

/* The channel's descriptor, which the channel owns, becomes non-blocking; it is returned in *fd. */
int core_create_event_channel(struct core_provider *provider, struct rdma_event_channel **channel,
			      int *fd);
/* -EBUSY is not detected: destroy the ids first (rdma_create_event_channel(3)). */
int core_destroy_event_channel(struct core_provider *provider, struct rdma_event_channel *channel);
/* -EAGAIN if there is no event. It is acknowledged at once, unless hold is set: then the caller acknowledges it. */
int core_get_event(struct core_provider *provider, struct rdma_event_channel *channel, bool hold,
		   struct core_event *event);
int core_ack_event(struct core_provider *provider, struct rdma_cm_event *held);

int core_create_id(struct core_provider *provider, struct rdma_event_channel *channel,
		   int port_space, struct rdma_cm_id **id);
/* Counts a child that core_get_event returned as live; its owner destroys it with core_destroy_id. */
int core_destroy_id(struct core_provider *provider, struct rdma_cm_id *id);
int core_bind_addr(struct core_provider *provider, struct rdma_cm_id *id,
		   const struct core_address *address);
/* source may have family 0. */
int core_resolve_addr(struct core_provider *provider, struct rdma_cm_id *id,
		      const struct core_address *source, const struct core_address *destination,
		      int timeout_ms);
int core_resolve_route(struct core_provider *provider, struct rdma_cm_id *id, int timeout_ms);
int core_listen(struct core_provider *provider, struct rdma_cm_id *id, int backlog);
/* param NULL: librdmacm's defaults. */
int core_connect(struct core_provider *provider, struct rdma_cm_id *id,
		 const struct core_conn_param *param);
int core_accept(struct core_provider *provider, struct rdma_cm_id *id,
		const struct core_conn_param *param);
int core_reject(struct core_provider *provider, struct rdma_cm_id *id, const void *private_data,
		uint8_t private_data_len);
int core_establish(struct core_provider *provider, struct rdma_cm_id *id);
int core_disconnect(struct core_provider *provider, struct rdma_cm_id *id);
/* reason 35, VENDOR_OPTION_NOT_SUPPORTED (rdma_reject_ece(3)). */
int core_reject_ece(struct core_provider *provider, struct rdma_cm_id *id, const void *private_data,
		    uint8_t private_data_len);
int core_notify(struct core_provider *provider, struct rdma_cm_id *id, int event);
int core_set_local_ece(struct core_provider *provider, struct rdma_cm_id *id,
		       const struct ibv_ece *ece);
int core_get_remote_ece(struct core_provider *provider, struct rdma_cm_id *id, struct ibv_ece *ece);
int core_write_event(struct core_provider *provider, struct rdma_cm_id *id, int type, int status,
		     uint64_t arg);
void core_local_address(struct rdma_cm_id *id, struct core_address *address);
void core_peer_address(struct rdma_cm_id *id, struct core_address *address);
/* Host byte order; 0 if there is none. */
uint16_t core_src_port(struct core_provider *provider, struct rdma_cm_id *id);
uint16_t core_dst_port(struct core_provider *provider, struct rdma_cm_id *id);

/* --- option.c ----------------------------------------------------------------------------------- */

/* rdma_set_option(3). The size of the value is checked. */
int core_set_option(struct core_provider *provider, struct rdma_cm_id *id, int level, int option,
		    const void *value, size_t length);
/* The path record of rdma_resolve_route, in the form of RDMA_OPTION_IB_PATH; -ENOENT before that. */
int core_route_path(struct rdma_cm_id *id, struct ibv_path_data *path);

/* --- sync.c ------------------------------------------------------------------------------------- */

/*
 * Synchronous ids (rdma_create_id(3) without a channel). Their channel becomes non-blocking. So a call in which
 * librdmacm would wait returns -EAGAIN, and the caller then waits for the descriptor until core_complete returns
 * something else.
 */
int core_create_sync_id(struct core_provider *provider, int port_space, struct rdma_cm_id **id);
/*
 * The end of a call that returned -EAGAIN. Acknowledges the event in id->event, stores the next one there, and returns
 * its status like librdmacm: -ECONNREFUSED for REJECTED, otherwise the errno of the status. -EAGAIN while there is no
 * event.
 */
int core_complete(struct core_provider *provider, struct rdma_cm_id *id);
/* After a call other than core_get_request that a request ended: destroy its child, which no other call returns. */
void core_forget_request(struct core_provider *provider, struct rdma_cm_id *listener);
/* A copy of id->event; -ENOENT if there is none. */
int core_sync_event(struct rdma_cm_id *id, struct core_event *event);
/*
 * The next request of a synchronous listener and its child. The child is synchronous and has no QP. -EAGAIN while
 * there is none, -EINVAL for another event. The request is the child's id->event.
 */
int core_get_request(struct core_provider *provider, struct rdma_cm_id *listener,
		     struct rdma_cm_id **child);
/*
 * channel NULL makes the id synchronous. The caller ensures that no event of the id is held, because librdmacm waits
 * for those.
 */
int core_migrate_id(struct core_provider *provider, struct rdma_cm_id *id,
		    struct rdma_event_channel *channel);
/* id->event is the request that created the id: its listener cannot be destroyed meanwhile. */
bool core_holds_request(const struct rdma_cm_id *id);

/* --- multicast.c -------------------------------------------------------------------------------- */

/* join_flags: enum rdma_cm_mc_join_flags; context is arg in the group's events. */
int core_join_multicast(struct core_provider *provider, struct rdma_cm_id *id,
			const struct core_address *group, uint64_t context);
int core_join_multicast_ex(struct core_provider *provider, struct rdma_cm_id *id,
			   const struct core_address *group, uint32_t join_flags, uint64_t context);
int core_leave_multicast(struct core_provider *provider, struct rdma_cm_id *id,
			 const struct core_address *group);
/* For a datagram QP without an id; ids do this themselves. gid: of a group; RoCE ignores lid. */
int core_attach_mcast(struct core_provider *provider, struct ibv_qp *qp, const union ibv_gid *gid,
		      uint16_t lid);
int core_detach_mcast(struct core_provider *provider, struct ibv_qp *qp, const union ibv_gid *gid,
		      uint16_t lid);

/* --- addrinfo.c --------------------------------------------------------------------------------- */

/* One rdma_addrinfo; as hints, only the first four fields and the addresses count. */
struct core_addrinfo {
	int32_t flags;
	int32_t family;
	int32_t qp_type;
	int32_t port_space;
	struct core_address source, destination;
	char source_name[256], destination_name[256]; /* canonical names, "" without one */
	uint32_t route_len, connect_len;
	uint8_t route[4 * 72]; /* struct ibv_path_data[] */
	uint8_t connect[256];
};

/*
 * rdma_getaddrinfo(3): blocks for name servers and ibacm. Fills in up to max results and returns their number;
 * -errno; or an EAI_* code of getaddrinfo(3) in *eai with -EINVAL. node, service and hints may be NULL.
 */
int core_getaddrinfo(struct core_provider *provider, const char *node, const char *service,
		     const struct core_addrinfo *hints, struct core_addrinfo *results, int max,
		     int *eai);
/* rdma_resolve_addrinfo(3), rdma_query_addrinfo(3). */
int core_resolve_addrinfo(struct core_provider *provider, struct rdma_cm_id *id, const char *node,
			  const char *service, const struct core_addrinfo *hints);
int core_query_addrinfo(struct core_provider *provider, struct rdma_cm_id *id,
			struct core_addrinfo *results, int max);

/* --- qp.c --------------------------------------------------------------------------------------- */

/*
 * rdma_create_qp(3). pd NULL: the id's default PD. CQs that attr lacks are created with completion channels of their
 * own. They belong to the id, as id->send_cq and id->recv_cq, and are destroyed by core_destroy_qp. attr is updated
 * with what the provider granted.
 */
int core_create_qp(struct core_provider *provider, struct rdma_cm_id *id, struct ibv_pd *pd,
		   struct ibv_qp_init_attr *attr);
/* Further arguments of rdma_create_qp_ex(3); comp_mask is enum ibv_qp_init_attr_mask. */
struct core_qp_extra {
	uint32_t comp_mask;
	uint32_t create_flags;
	uint64_t send_ops_flags;
	uint32_t source_qpn;
	uint16_t max_tso_header;
	uint16_t reserved;
};

int core_create_qp_ex(struct core_provider *provider, struct rdma_cm_id *id, struct ibv_pd *pd,
		      struct ibv_qp_init_attr *attr, const struct core_qp_extra *extra);
/*
 * rdma_destroy_qp(3). Destroys the CQs that were created with the queue pair, except those of the keep_ flags. Other
 * queue pairs use these. They belong to the caller from then on, with their completion channels. librdmacm forgets the
 * queue pair even if it still exists. soft keeps one that is in use, and all that belongs to it: -EBUSY.
 */
int core_destroy_qp(struct core_provider *provider, struct rdma_cm_id *id, bool keep_send_cq,
		    bool keep_recv_cq);
/* rdma_init_qp_attr(3): what the connection manager would set for attr->qp_state; *mask: which fields. */
int core_init_qp_attr(struct core_provider *provider, struct rdma_cm_id *id,
		      struct ibv_qp_attr *attr, int *mask);
/*
 * ibv_create_qp(3), or with extra ibv_create_qp_ex(3): a queue pair without an id. attr has both queues, and is
 * updated with what the provider granted.
 */
int core_pd_create_qp(struct core_provider *provider, struct ibv_pd *pd, struct ibv_qp_init_attr *attr,
		      const struct core_qp_extra *extra, struct ibv_qp **qp);
int core_pd_destroy_qp(struct core_provider *provider, struct ibv_qp *qp);
int core_modify_qp(struct core_provider *provider, struct ibv_qp *qp, struct ibv_qp_attr *attr,
		   int mask);
int core_query_qp(struct core_provider *provider, struct ibv_qp *qp, struct ibv_qp_attr *attr,
		  int mask, struct ibv_qp_init_attr *init_attr);
/* Vendor options of the queue pair itself (ibv_set_ece(3), ibv_query_ece(3)); -EOPNOTSUPP. */
int core_set_ece(struct core_provider *provider, struct ibv_qp *qp, const struct ibv_ece *ece);
int core_query_ece(struct core_provider *provider, struct ibv_qp *qp, struct ibv_ece *ece);

/* --- memory.c ----------------------------------------------------------------------------------- */

int core_alloc_pd(struct core_provider *provider, struct ibv_context *context, struct ibv_pd **pd);
int core_dealloc_pd(struct core_provider *provider, struct ibv_pd *pd);
int core_reg_mr(struct core_provider *provider, struct ibv_pd *pd, void *address, size_t length,
		int access, struct ibv_mr **mr);
/* The same with the address that work requests use for the first byte. */
int core_reg_mr_iova(struct core_provider *provider, struct ibv_pd *pd, void *address, size_t length,
		     uint64_t iova, int access, struct ibv_mr **mr);
/* The state of a region after core_rereg_mr. */
enum core_rereg {
	CORE_REREG_NEW,
	CORE_REREG_OLD,
	CORE_REREG_UNKNOWN, /* the region can only be deregistered */
};
/*
 * ibv_rereg_mr(3): flags, enum ibv_rereg_mr_flags, selects pd, address and length, and access. The keys may change.
 * After a failure, *outcome is what is left.
 */
int core_rereg_mr(struct core_provider *provider, struct ibv_mr *mr, int flags, struct ibv_pd *pd,
		  void *address, size_t length, int access, enum core_rereg *outcome);
int core_dereg_mr(struct core_provider *provider, struct ibv_mr *mr);

/* type: enum ibv_mw_type. */
int core_alloc_mw(struct core_provider *provider, struct ibv_pd *pd, int type, struct ibv_mw **mw);
int core_dealloc_mw(struct core_provider *provider, struct ibv_mw *mw);

/* What a window gives access to; address is in the region. */
struct core_mw_bind {
	uint64_t wr_id;
	uint64_t address;
	uint64_t length; /* 0: nothing (type 1 only) */
	uint32_t flags; /* enum ibv_send_flags */
	uint32_t access; /* enum ibv_access_flags */
};

/*
 * Post a bind request (ibv_bind_mw(3), ibv_post_send(3)); mw->rkey is the new key from then on. mr is NULL with
 * length 0. A type 2 window is bound by the builder if there is one with that operation. -EINVAL if they are not of
 * one protection domain.
 */
int core_bind_mw(struct ibv_qp *qp, struct ibv_qp_ex *builder, uint64_t operations, struct ibv_mw *mw,
		 struct ibv_mr *mr, const struct core_mw_bind *bind);

/* --- cq.c --------------------------------------------------------------------------------------- */

/* The channel's descriptor becomes non-blocking. */
int core_create_comp_channel(struct core_provider *provider, struct ibv_context *context,
			     struct ibv_comp_channel **channel, int *fd);
int core_destroy_comp_channel(struct core_provider *provider, struct ibv_comp_channel *channel);
int core_create_cq(struct core_provider *provider, struct ibv_context *context, int entries,
		   struct ibv_comp_channel *channel, struct ibv_cq **cq);
int core_destroy_cq(struct core_provider *provider, struct ibv_cq *cq);
/* -EINVAL if it holds more completions than that. */
int core_resize_cq(struct core_provider *provider, struct ibv_cq *cq, int entries);
/* One event for count completions, or for those of that many microseconds; -EOPNOTSUPP. */
int core_moderate_cq(struct ibv_cq *cq, uint16_t count, uint16_t period);
int core_req_notify_cq(struct ibv_cq *cq, int solicited_only);
/* Take and acknowledge one completion event; -EAGAIN if there is none. */
int core_get_cq_event(struct core_provider *provider, struct ibv_comp_channel *channel,
		      struct ibv_cq **cq);
/*
 * Poll up to max completions into wc, at most `attempts` times while the queue is empty, with a pause instruction in
 * between. Returns how many (0 if it stayed empty) or a negative errno. attempts 1 is ibv_poll_cq(3).
 */
int core_poll_cq(struct ibv_cq *cq, int max, struct ibv_wc *wc, uint32_t attempts);

/* --- cq_extended.c ------------------------------------------------------------------------------ */

/*
 * ibv_create_cq_ex(3), with wc_flags of enum ibv_create_cq_wc_flags: a queue for core_poll_cq_ex. Otherwise it is
 * used and destroyed like one of core_create_cq. *next_poll: whether ibv_next_poll works, for core_poll_cq_ex.
 * -EOPNOTSUPP for fields that the device does not have.
 */
int core_create_cq_ex(struct core_provider *provider, struct ibv_context *context, int entries,
		      struct ibv_comp_channel *channel, uint64_t wc_flags, struct ibv_cq **cq, bool *next_poll);

/* When a request completed (ibv_create_cq_ex(3)); 0 if it was not requested, and for failures. */
struct core_wc_time {
	uint64_t raw; /* ticks of the device's clock, see core_query_rt_values */
	uint64_t wallclock; /* nanoseconds since 1970 */
};

/*
 * Like core_poll_cq, by ibv_start_poll, ibv_next_poll and ibv_end_poll. Without next_poll each completion has its
 * own ibv_start_poll. wc_flags: the flags of the queue; fields of other flags are 0. times, which may be NULL, is an
 * array like wc.
 */
int core_poll_cq_ex(struct ibv_cq *cq, uint64_t wc_flags, bool next_poll, int max, struct ibv_wc *wc,
		    struct core_wc_time *times, uint32_t attempts);

/* --- post.c ------------------------------------------------------------------------------------- */

/*
 * Work requests in the flat form in which they enter the core from Go and from guests. Scatter/gather entries are in
 * an array of their own and named by index, so there are no pointers. All enum values are those of verbs.h.
 */
struct core_sge {
	uint64_t address; /* absolute, or a guest's (core_post_send) */
	uint32_t length;
	uint32_t lkey;
};

struct core_send_wr {
	uint64_t wr_id;
	uint32_t opcode; /* enum ibv_wr_opcode */
	uint32_t flags; /* enum ibv_send_flags */
	uint32_t first_sge;
	uint32_t num_sge;
	uint32_t imm_data; /* network byte order as on the wire; or the rkey to invalidate */
	uint32_t rkey;
	uint64_t remote_address;
	uint64_t compare_add;
	uint64_t swap;
	uint32_t ah; /* datagrams: the number of the address handle, of the queue pair's PD */
	uint32_t remote_qpn; /* datagrams */
	uint32_t remote_qkey; /* datagrams; with the highest bit set, the queue pair's own */
	uint8_t placement; /* FLUSH: enum ibv_placement_type */
	uint8_t selectivity; /* FLUSH: enum ibv_selectivity_level; a range has the length of the entries */
	uint16_t reserved;
};

struct core_recv_wr {
	uint64_t wr_id;
	uint32_t first_sge;
	uint32_t num_sge;
};

/*
 * Post count work requests. If base is NULL, SGE addresses are absolute. Otherwise they are a guest's, relative to
 * base, like those of its regions (PD.RegMRAt of Go). An SGE index outside [0, num_sges) is -EINVAL. If limit is not
 * 0, an SGE outside [0, limit) is -EFAULT. Both are checked before anything is posted. Returns 0 with *posted ==
 * count, or the negative errno of the first rejected request with *posted requests before it (bad_wr of
 * ibv_post_send(3)). FLUSH is -EOPNOTSUPP, because struct ibv_send_wr has no fields for it; core_build_send posts
 * it.
 */
int core_post_send(struct core_provider *provider, struct ibv_qp *qp, const struct core_send_wr *wrs, uint32_t count,
		   const struct core_sge *sges, uint32_t num_sges, void *base, uint64_t limit,
		   uint32_t *posted);
int core_post_recv(struct ibv_qp *qp, const struct core_recv_wr *wrs, uint32_t count,
		   const struct core_sge *sges, uint32_t num_sges, void *base, uint64_t limit,
		   uint32_t *posted);

/* The same for a shared receive queue. */
int core_post_srq_recv(struct ibv_srq *srq, const struct core_recv_wr *wrs, uint32_t count,
		       const struct core_sge *sges, uint32_t num_sges, void *base, uint64_t limit,
		       uint32_t *posted);

/* --- build.c ------------------------------------------------------------------------------------ */

/*
 * The builders of a queue pair that was created with these send operations (enum ibv_qp_create_send_ops_flags), and
 * in *operations those that it has and core_build_send knows. NULL: none; core_post_send posts to it.
 */
struct ibv_qp_ex *core_qp_builder(const struct core_provider *provider, struct ibv_qp *qp, uint64_t asked,
				  uint64_t *operations);
/*
 * core_post_send by the builders of ibv_wr_post(3). All requests are posted or none: *posted is count or 0.
 * -EOPNOTSUPP for an operation that is not in operations; other errors are the device's, for any of the requests.
 * The value of an ATOMIC_WRITE is read at once from its entries, like inline data.
 */
int core_build_send(struct core_provider *provider, struct ibv_qp_ex *qp, uint64_t operations,
		    const struct core_send_wr *wrs, uint32_t count, const struct core_sge *sges,
		    uint32_t num_sges, void *base, uint64_t limit, uint32_t *posted);
/* The flag of an opcode's builder; 0 for one that core_build_send does not know. */
uint64_t core_build_operation(uint32_t opcode);
/*
 * Posts the requests of ibv_post_send(3) by builders: SEND, RDMA WRITE, both with immediate data, RDMA READ, and
 * atomics. The queue pair is connected and has the operations, and requests have at most CORE_WORK_ENTRIES.
 */
int core_build_linked(struct ibv_qp_ex *qp, const struct ibv_send_wr *wr);
/* Bind a type 2 window in this way; rkey is its new key. */
int core_build_mw(struct ibv_qp_ex *qp, uint64_t operations, struct ibv_mw *mw, uint32_t flags, uint64_t wr_id,
		  uint32_t rkey, const struct ibv_mw_bind_info *info);

/* --- srq.c -------------------------------------------------------------------------------------- */

/* rdma_create_srq(3): pd NULL for the id's. The queue is id->srq; core_id_destroy_srq destroys it. */
int core_id_create_srq(struct core_provider *provider, struct rdma_cm_id *id, struct ibv_pd *pd,
		       struct ibv_srq_init_attr *attr);
/* -EBUSY while a QP uses it. */
int core_id_destroy_srq(struct core_provider *provider, struct rdma_cm_id *id);

/* attr is updated with what the provider granted. */
int core_create_srq(struct core_provider *provider, struct ibv_pd *pd, struct ibv_srq_init_attr *attr,
		    struct ibv_srq **srq);
/* mask: enum ibv_srq_attr_mask. */
int core_modify_srq(struct core_provider *provider, struct ibv_srq *srq, struct ibv_srq_attr *attr,
		    int mask);
int core_query_srq(struct core_provider *provider, struct ibv_srq *srq, struct ibv_srq_attr *attr);
/* -EBUSY while queue pairs use it. */
int core_destroy_srq(struct core_provider *provider, struct ibv_srq *srq);

/* --- ah.c --------------------------------------------------------------------------------------- */

/* *number identifies the handle in core_send_wr.ah and here; it is never 0. */
int core_create_ah(struct core_provider *provider, struct ibv_pd *pd, struct ibv_ah_attr *attr,
		   uint32_t *number);
/* For the sender of the datagram of wc; grh is the beginning of its receive buffer. */
int core_create_ah_from_wc(struct core_provider *provider, struct ibv_pd *pd, struct ibv_wc *wc,
			   struct ibv_grh *grh, uint8_t port, uint32_t *number);
/* ibv_init_ah_from_wc(3): the attributes of such a handle on a port. */
int core_init_ah_from_wc(struct core_provider *provider, struct ibv_context *context, struct ibv_wc *wc,
			 struct ibv_grh *grh, uint8_t port, struct ibv_ah_attr *attr);
/* -EINVAL for a stale number, or one of another PD. */
int core_destroy_ah(struct core_provider *provider, struct ibv_pd *pd, uint32_t number);

/* --- device.c ----------------------------------------------------------------------------------- */

/* rdma_get_devices(3): the contexts that librdmacm uses, so that their PDs fit its ids. */
int core_get_devices(struct core_provider *provider, struct ibv_context ***contexts, int *count);
void core_free_devices(struct core_provider *provider, struct ibv_context **contexts);
int core_query_device(struct core_provider *provider, struct ibv_context *context,
		      struct ibv_device_attr *attr);
/* ibv_query_device_ex(3). If the device has no such call, only orig_attr is set, and the rest is 0. */
int core_query_device_ex(struct core_provider *provider, struct ibv_context *context,
			 struct ibv_device_attr_ex *attr);
/* ibv_query_rt_values_ex(3): the device's clock in its ticks, hca_core_clock kHz. -EOPNOTSUPP. */
int core_query_rt_values(struct ibv_context *context, uint64_t *raw_clock);
/* The kernel's number of the device; -1 if it has none (ibv_get_device_index(3)). */
int core_device_index(struct core_provider *provider, struct ibv_context *context);
/* pkey is in host byte order. */
int core_query_pkey(struct core_provider *provider, struct ibv_context *context, uint8_t port, int index,
		    uint16_t *pkey);
/* The index, or a negative errno. */
int core_get_pkey_index(struct core_provider *provider, struct ibv_context *context, uint8_t port,
			uint16_t pkey);
int core_query_port(struct core_provider *provider, struct ibv_context *context, uint8_t port,
		    struct ibv_port_attr *attr);
/* type is enum ibv_gid_type, or UINT32_MAX if the library does not return it. */
struct core_gid {
	uint8_t raw[16];
	uint32_t index;
	uint32_t port;
	uint32_t type;
	uint32_t netdev_index;
};
/* Fill in up to max entries with the GIDs of all ports; returns their number. */
int core_query_gids(struct core_provider *provider, struct ibv_context *context,
		    struct core_gid *gids, int max);
uint64_t core_device_guid(struct core_provider *provider, struct ibv_context *context); /* host order */
/*
 * The device's async event descriptor, made non-blocking, and its next event, acknowledged (-EAGAIN if there is
 * none). element is the address of the object, or the number of the port.
 */
int core_async_fd(struct ibv_context *context);
int core_get_async_event(struct core_provider *provider, struct ibv_context *context,
			 int *type, uintptr_t *element);

#endif
