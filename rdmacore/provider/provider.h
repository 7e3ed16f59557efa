/*
 * The provider table: each librdmacm and libibverbs function that rdmarun uses, under its own name and with its own
 * prototype. So the man pages document this table.
 *
 * If a provider lacks a function, its entry is NULL; callers return ENOSYS and name it. The inline verbs
 * (ibv_post_send, ibv_poll_cq, ibv_req_notify_cq, ...) are not here. They use ibv_context.ops, which each provider
 * sets, so the data path never checks which provider an object belongs to.
 */
#ifndef PROVIDER_PROVIDER_H
#define PROVIDER_PROVIDER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#include "provider/ah_table.h"
#include "provider/legal.h"
#include "provider/tally.h"

/* verbs.h defines macros of these names; the table needs the functions. */
#undef ibv_get_device_list
#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

/*
 * Newer than the headers that rdmarun is built with may be (rdma-core 60). Declared as in their man pages, which
 * repeats the declaration of newer headers.
 */
int rdma_resolve_addrinfo(struct rdma_cm_id *id, const char *node, const char *service,
			  const struct rdma_addrinfo *hints);
int rdma_query_addrinfo(struct rdma_cm_id *id, struct rdma_addrinfo **info);
int rdma_write_cm_event(struct rdma_cm_id *id, enum rdma_cm_event_type event, int status,
			uint64_t arg);

#define CORE_RDMACM_FUNCTIONS(ENTRY)                                                               \
	ENTRY(rdma_create_event_channel)                                                           \
	ENTRY(rdma_destroy_event_channel)                                                          \
	ENTRY(rdma_create_id)                                                                      \
	ENTRY(rdma_create_ep)                                                                      \
	ENTRY(rdma_destroy_ep)                                                                     \
	ENTRY(rdma_destroy_id)                                                                     \
	ENTRY(rdma_bind_addr)                                                                      \
	ENTRY(rdma_resolve_addr)                                                                   \
	ENTRY(rdma_resolve_route)                                                                  \
	ENTRY(rdma_create_qp)                                                                      \
	ENTRY(rdma_create_qp_ex)                                                                   \
	ENTRY(rdma_destroy_qp)                                                                     \
	ENTRY(rdma_connect)                                                                        \
	ENTRY(rdma_establish)                                                                      \
	ENTRY(rdma_listen)                                                                         \
	ENTRY(rdma_get_request)                                                                    \
	ENTRY(rdma_accept)                                                                         \
	ENTRY(rdma_reject)                                                                         \
	ENTRY(rdma_reject_ece)                                                                     \
	ENTRY(rdma_notify)                                                                         \
	ENTRY(rdma_disconnect)                                                                     \
	ENTRY(rdma_join_multicast)                                                                 \
	ENTRY(rdma_join_multicast_ex)                                                              \
	ENTRY(rdma_leave_multicast)                                                                \
	ENTRY(rdma_get_cm_event)                                                                   \
	ENTRY(rdma_ack_cm_event)                                                                   \
	ENTRY(rdma_get_src_port)                                                                   \
	ENTRY(rdma_get_dst_port)                                                                   \
	ENTRY(rdma_get_devices)                                                                    \
	ENTRY(rdma_free_devices)                                                                   \
	ENTRY(rdma_set_option)                                                                     \
	ENTRY(rdma_migrate_id)                                                                     \
	ENTRY(rdma_getaddrinfo)                                                                    \
	ENTRY(rdma_freeaddrinfo)                                                                   \
	ENTRY(rdma_init_qp_attr)                                                                   \
	ENTRY(rdma_set_local_ece)                                                                  \
	ENTRY(rdma_get_remote_ece)                                                                 \
	ENTRY(rdma_resolve_addrinfo)                                                               \
	ENTRY(rdma_query_addrinfo)                                                                 \
	ENTRY(rdma_write_cm_event)                                                                 \
	ENTRY(rdma_create_srq)                                                                     \
	ENTRY(rdma_create_srq_ex)                                                                  \
	ENTRY(rdma_destroy_srq)

#define CORE_IBVERBS_FUNCTIONS(ENTRY)                                                              \
	ENTRY(ibv_get_device_list)                                                                 \
	ENTRY(ibv_free_device_list)                                                                \
	ENTRY(ibv_get_device_name)                                                                 \
	ENTRY(ibv_get_device_guid)                                                                 \
	ENTRY(ibv_get_device_index)                                                                \
	ENTRY(ibv_open_device)                                                                     \
	ENTRY(ibv_close_device)                                                                    \
	ENTRY(ibv_query_device)                                                                    \
	ENTRY(ibv_query_port)                                                                      \
	ENTRY(ibv_query_gid)                                                                       \
	ENTRY(_ibv_query_gid_table)                                                                \
	ENTRY(ibv_query_pkey)                                                                      \
	ENTRY(ibv_alloc_pd)                                                                        \
	ENTRY(ibv_dealloc_pd)                                                                      \
	ENTRY(ibv_reg_mr)                                                                          \
	ENTRY(ibv_reg_mr_iova2)                                                                    \
	ENTRY(ibv_dereg_mr)                                                                        \
	ENTRY(ibv_create_comp_channel)                                                             \
	ENTRY(ibv_destroy_comp_channel)                                                            \
	ENTRY(ibv_create_cq)                                                                       \
	ENTRY(ibv_destroy_cq)                                                                      \
	ENTRY(ibv_get_cq_event)                                                                    \
	ENTRY(ibv_ack_cq_events)                                                                   \
	ENTRY(ibv_create_qp)                                                                       \
	ENTRY(ibv_modify_qp)                                                                       \
	ENTRY(ibv_query_qp)                                                                        \
	ENTRY(ibv_set_ece)                                                                         \
	ENTRY(ibv_query_ece)                                                                       \
	ENTRY(ibv_destroy_qp)                                                                      \
	ENTRY(ibv_qp_to_qp_ex)                                                                     \
	ENTRY(_ibv_query_gid_ex)                                                                   \
	ENTRY(ibv_get_pkey_index)                                                                  \
	ENTRY(ibv_resize_cq)                                                                       \
	ENTRY(ibv_reg_mr_iova)                                                                     \
	ENTRY(ibv_rereg_mr)                                                                        \
	ENTRY(ibv_create_ah)                                                                       \
	ENTRY(ibv_create_ah_from_wc)                                                               \
	ENTRY(ibv_init_ah_from_wc)                                                                 \
	ENTRY(ibv_destroy_ah)                                                                      \
	ENTRY(ibv_attach_mcast)                                                                    \
	ENTRY(ibv_detach_mcast)                                                                    \
	ENTRY(ibv_create_srq)                                                                      \
	ENTRY(ibv_modify_srq)                                                                      \
	ENTRY(ibv_query_srq)                                                                       \
	ENTRY(ibv_destroy_srq)                                                                     \
	ENTRY(ibv_get_async_event)                                                                 \
	ENTRY(ibv_ack_async_event)

/* The kinds of objects that a provider counts. At the end of a run all counts are zero. */
enum core_object {
	CORE_EVENT_CHANNEL,
	CORE_ID,
	CORE_PD,
	CORE_MR,
	CORE_COMP_CHANNEL,
	CORE_CQ,
	CORE_QP,
	CORE_SRQ,
	CORE_AH,
	CORE_MW,
	CORE_OBJECT_KINDS
};

/* What transfers messages between queue pairs of soft. */
enum core_link {
	CORE_LINK_LOCAL, /* copies each message at once, from memory to memory */
	CORE_LINK_PACKETS, /* in packets of the path MTU that take time, and may be lost */
	CORE_LINK_UDP, /* in such packets over UDP, also between processes */
};

#define CORE_LINK_PACKETS_DELAY 1000 /* delay of a packet on CORE_LINK_PACKETS in nanoseconds: a cable of 200 m */

#define CORE_FABRIC_MAX 32 /* characters of a fabric's name */

struct soft_capture_file;

/* Options of opening a provider; all zero is the default. */
struct core_options {
	struct core_tally *tally; /* zeros, where it counts from now on; NULL: in memory of its own */
	enum core_link link;
	/*
	 * CORE_LINK_UDP: ids connect to those of all processes with a fabric of this name, which consists of letters,
	 * digits, '.', '_' and '-'. "": to no other process, and ports of other processes do not matter.
	 */
	char fabric[CORE_FABRIC_MAX + 1];
	bool shared; /* connect with processes of all users of this host; otherwise of this user and root */
	bool virtual_clock; /* time advances only by core_clock_advance */
	bool seeded; /* random numbers depend on seed, so that a run repeats; otherwise they are the system's */
	uint64_t seed;
	uint32_t legal; /* choices of legal behaviour that are made now and then, a bit for each (provider/legal.h) */
	uint32_t legal_rates[CORE_LEGAL_CHOICES]; /* each is made once in so many times; 0: the rate of its table */
	uint64_t legal_seed;
	struct soft_capture_file *capture; /* the capture of its packets (core_capture_open); NULL: none */
	const char *capture_label; /* the label of its interfaces in the file */
	/*
	 * CORE_LINK_UDP: a descriptor for lines about dropped packets that were damaged, forged or too many, at most
	 * one a second; writing never waits. 0: no lines.
	 */
	int notices;
	const char *notice_prefix; /* prefix of each line, a constant; NULL: none */
};

/* A pcapng file. */
struct core_capture_options {
	const char *path; /* NULL: descriptor is used */
	int descriptor; /* a pipe or stream socket that does not block, which open owns; negative: the errno that open returns */
	const char *application; /* the program that writes it, as the file says */
	uint32_t snap_length; /* bytes that are kept of a packet, from its IP header on; 0: all */
	/* nanoseconds to wait for the reader of a pipe; CORE_CAPTURE_READER_TIMEOUT is for interactive use */
	uint64_t reader_timeout;
};

struct core_capture_result {
	int error; /* the errno after which nothing was written; 0: none */
	uint64_t packets; /* in the file */
	uint64_t missing; /* not in the file: after an error, or because the reader was too slow */
};

#define CORE_CAPTURE_READER_TIMEOUT UINT64_C(10000000000) /* 10 s, to start a reader by hand */
#define CORE_CAPTURE_TEXT 192 /* bytes of a name or a step, with the NUL at its end */
#define CORE_CAPTURED_MAX 256 /* packets that are stored until they are taken */

/* What is stored of a packet, for reports. */
struct core_captured {
	uint64_t time; /* as in the file */
	uint32_t step; /* its number; 0: none */
	uint32_t psn;
	uint32_t length; /* of its payload, or of the range of a READ or a FLUSH */
	uint32_t destination; /* queue pair number */
	uint8_t opcode; /* of its BTH */
	uint8_t syndrome; /* of an acknowledgement */
	uint16_t attribute; /* of a message of connection management (IBTA 12.6); 0: it is no such message */
	uint8_t from[16], to[16]; /* addresses, as GIDs */
	char fault_result[CORE_CAPTURE_TEXT]; /* the effect of faults; "": none */
	char interface[CORE_CAPTURE_TEXT]; /* where another process captured it (core_capture_add); "": this one did */
	bool inbound; /* it came to the interface */
};

/* A packet that another process has captured. */
struct core_capture_packet {
	const char *interface; /* a name that is the interface's alone */
	const char *description; /* of the interface; used before its first packet only */
	uint64_t time; /* nanoseconds since 1970 */
	const uint8_t *bytes; /* from its IP header on */
	uint32_t captured; /* how many bytes there are */
	uint32_t length; /* of the packet */
	bool inbound; /* it came to the interface */
	const char *fault_result; /* the effect of faults; "": none */
};

/* An IP address and port in one flat struct; family is AF_INET, AF_INET6 or 0 for "none". */
struct core_address {
	uint16_t family;
	uint16_t port; /* host byte order */
	uint32_t scope_id; /* IPv6 only */
	uint8_t ip[16]; /* network byte order; IPv4 uses the first four */
};

/* NULL if address->family is 0 (librdmacm takes NULL for "any"), otherwise storage. */
struct sockaddr *core_address_to_sockaddr(const struct core_address *address,
					  struct sockaddr_storage *storage);
void core_address_from_sockaddr(struct core_address *address, const struct sockaddr *sockaddr);

enum core_fault_traffic {
	CORE_FAULT_DATA = 1, /* requests and responses of queue pairs */
	CORE_FAULT_CM = 2, /* connection management messages */
};

enum core_fault_action {
	CORE_FAULT_LOSE,
	/* For messages of connection management, and for packets on CORE_LINK_PACKETS: */
	CORE_FAULT_DELAY,
	CORE_FAULT_DUPLICATE, /* the copy comes after delay */
	/* delayed until another message of the flow has passed, or delay (default 100 ms; packets: 20 us) */
	CORE_FAULT_REORDER,
	CORE_FAULT_CORRUPT, /* one bit is flipped; packets only */
	/*
	 * Faults of the device, without other fields; each at most once at a time. They are applied to the ids that
	 * get events (rdma_get_cm_event(3), DEVICE_REMOVAL and ADDR_CHANGE).
	 */
	CORE_FAULT_REMOVE_DEVICE = 0x100, /* removing the rule returns a new device of that name */
	CORE_FAULT_CHANGE_ADDRESS, /* of its network interface, as by a bond's failover */
};

/* A fault between two addresses (their ports are ignored). */
/* Where a fault applies to messages between processes. Between objects of one process all messages are sent. */
enum core_fault_side {
	CORE_FAULT_EITHER,
	CORE_FAULT_SENT, /* only to what this process sends */
	CORE_FAULT_RECEIVED, /* only to what comes from other processes */
};

struct core_fault {
	struct core_address from, to;
	uint32_t directed; /* only from -> to; otherwise in both directions */
	uint32_t side; /* enum core_fault_side */
	uint32_t traffic; /* enum core_fault_traffic */
	uint32_t attribute; /* CM: only messages of this attribute id (IBTA 12.6); 0: all */
	/*
	 * Data: only packets of these operations, a bit for each lower five bits of the BTH's opcode (IBTA 9.2.1); 0:
	 * all.
	 */
	uint32_t operations;
	uint32_t has_psn; /* data: only packets with a number from psn_first to psn_last, both included */
	uint32_t psn_first, psn_last; /* the numbers wrap: 0xffffff to 1 are three */
	/*
	 * Data: only packets of the message with that number in its queue pair (IBTA 9.7.7: SSN, or MSN of answers);
	 * 0: all.
	 */
	uint32_t message;
	uint32_t action; /* enum core_fault_action */
	uint32_t probability; /* in millionths */
	uint32_t skip; /* how many pass first */
	uint32_t count; /* how many it is applied to at most; 0: no limit */
	uint64_t delay; /* nanoseconds */
};

struct core_provider {
	const char *name; /* "soft" or "verbs" */
	void *libraries[2]; /* verbs: librdmacm and libibverbs as dlopen gave them */
	_Atomic long live[CORE_OBJECT_KINDS];
	_Atomic unsigned holds; /* holders of the table and the libraries: core_open, and core_hold */
	struct core_ah_table address_handles;

	/*
	 * Functions like rdma_get_devices have no handle argument. A provider that can be open more than once sets
	 * here which one the calling thread uses; NULL if there is only one.
	 */
	void (*select)(struct core_provider *provider);
	/* Virtual clocks: see core_clock_now and core_clock_advance. */
	uint64_t (*clock_now)(struct core_provider *provider);
	bool (*clock_advance)(struct core_provider *provider, uint64_t limit);
	/* Writes counters and returns how many, CORE_COUNTERS_MAX at most; NULL if the kernel counts. */
	int (*counters)(struct core_provider *provider, struct core_counter *counters);
	/* Faults: see core_fault_add and core_fault_remove. NULL if there are none. */
	int (*fault_add)(struct core_provider *provider, const struct core_fault *fault);
	int (*fault_remove)(struct core_provider *provider, int rule, uint32_t *lost);
	/* Capture: see core_capture_name, core_capture_step, core_capture_add and core_captured; NULL if there is none. */
	void (*capture_name)(struct core_provider *provider, const struct core_address *address, const char *name);
	void (*capture_step)(struct core_provider *provider, const struct core_address *address, uint32_t number, const char *text);
	void (*capture_add)(struct core_provider *provider, const struct core_capture_packet *packet);
	uint32_t (*captured)(struct core_provider *provider, struct core_captured *packets, uint32_t count, uint64_t *missed);
	/*
	 * Why the last call of this thread failed, in a sentence; "" if the errno says all. NULL if there are no
	 * sentences.
	 */
	const char *(*refusal)(struct core_provider *provider);
	/* Forget the sentence. */
	void (*forget_refusal)(struct core_provider *provider);
	void *host; /* soft: struct soft_host */

#define CORE_ENTRY(function) __typeof__(function) *function;
	CORE_RDMACM_FUNCTIONS(CORE_ENTRY)
	CORE_IBVERBS_FUNCTIONS(CORE_ENTRY)
#undef CORE_ENTRY
};

/* Called before each function of the table that takes no object: selects the provider of this thread. */
static inline void core_select(struct core_provider *provider)
{
	if (provider->select)
		provider->select(provider);
}

/* Between two checks of a spin loop: saves power, and lets the sibling thread use the core. */
static inline void core_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("isb" ::: "memory");
#endif
}

/*
 * Set the table of a provider: 0 or a negative errno. soft fails only without memory or descriptors. verbs fails with
 * ENOENT without its libraries, and with ENOSYS if one lacks a function that rdmarun needs. Then why is a sentence
 * that says what to install.
 */
int soft_provider_open(struct core_provider *provider, const struct core_options *options);
void soft_provider_close(struct core_provider *provider);
int verbs_provider_open(struct core_provider *provider, char *why, size_t why_size);
void verbs_provider_close(struct core_provider *provider);

#endif
