/*
 * The provider table: every librdmacm and libibverbs function that rdmarun uses, under its own name
 * and with exactly its own prototype, so that the man pages are the manual of this table.
 *
 * A provider leaves an entry NULL when it lacks the function; callers answer ENOSYS and say the name.
 * The inline verbs (ibv_post_send, ibv_poll_cq, ibv_req_notify_cq, ...) are not here: they go through
 * ibv_context.ops, which every provider fills, so the data path never asks whose object it has.
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

/* verbs.h wraps these in macros of the same name; the table needs the functions themselves. */
#undef ibv_get_device_list
#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

/*
 * Newer than the headers that rdmarun is built with may be (rdma-core 60); declared as in their man pages,
 * which is the same declaration again where the headers have them.
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

/* The kinds of object whose live number a provider counts; a run ends with all of them at zero. */
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

/* What carries messages between queue pairs of soft. */
enum core_link {
	CORE_LINK_LOCAL, /* each is copied at once, whole, from memory to memory */
	CORE_LINK_PACKETS, /* in packets of the path MTU that take time, and may be lost each by itself */
	CORE_LINK_UDP, /* in such packets over UDP, also between processes */
};

#define CORE_LINK_PACKETS_DELAY 1000 /* nanoseconds of a packet on CORE_LINK_PACKETS: a cable of 200 m */

#define CORE_FABRIC_MAX 32 /* letters of a fabric's name */

struct soft_capture_file;

/* How a provider is opened; all zero is the usual. */
struct core_options {
	enum core_link link;
	/*
	 * CORE_LINK_UDP: ids connect to those of all processes whose fabric has this name, of letters, digits, '.', '_' and '-'.
	 * "": to none, and nobody else's ports are of concern.
	 */
	char fabric[CORE_FABRIC_MAX + 1];
	bool shared; /* with processes of every user of this host; else of this user and root */
	bool virtual_clock; /* time stands still until core_clock_advance moves it */
	bool seeded; /* random numbers from seed, so that a run repeats; else from the system */
	uint64_t seed;
	struct soft_capture_file *capture; /* where it writes its packets (core_capture_open); NULL: nowhere */
	const char *capture_label; /* what the file says of its interfaces */
	/*
	 * CORE_LINK_UDP: a descriptor for lines of what was dropped because it was damaged, forged or too much, one a second at most; it is
	 * never waited for.  0: for nobody.
	 */
	int notices;
	const char *notice_prefix; /* of each line, a constant; NULL: none */
};

/* A pcapng file. */
struct core_capture_options {
	const char *path;
	const char *application; /* what the file says has written it */
	uint32_t snap_length; /* bytes of a packet that are kept, from its IP header on; 0: all */
	/* nanoseconds to wait for the reader of a pipe; CORE_CAPTURE_READER_TIMEOUT is for people */
	uint64_t reader_timeout;
};

struct core_capture_result {
	int error; /* why nothing was written from some packet on, an errno; 0: nothing failed */
	uint64_t packets; /* in the file */
	uint64_t missing; /* not in it: after an error, or because who takes the file's bytes was too slow */
};

#define CORE_CAPTURE_READER_TIMEOUT UINT64_C(10000000000)
#define CORE_CAPTURE_TEXT 192 /* bytes of a name or a step, with the 0 at its end */
#define CORE_CAPTURED_MAX 256 /* packets that are noted until they are taken */

/* What is noted of a packet, for reports. */
struct core_captured {
	uint64_t time; /* as in the file */
	uint32_t step; /* its number; 0: none */
	uint32_t psn;
	uint32_t length; /* of its payload; of a READ or a FLUSH what it asks for */
	uint32_t destination; /* queue pair number */
	uint8_t opcode; /* of its BTH */
	uint8_t syndrome; /* of an acknowledgement */
	uint16_t attribute; /* of a message of connection management (IBTA 12.6); 0: it is none */
	uint8_t from[16], to[16]; /* addresses, as GIDs */
	char fate[CORE_CAPTURE_TEXT]; /* what faults did to it; "": nothing */
};

/* An IP address and port in one flat struct; family is AF_INET, AF_INET6 or 0 for "none". */
struct core_address {
	uint16_t family;
	uint16_t port; /* host byte order */
	uint32_t scope_id; /* IPv6 only */
	uint8_t ip[16]; /* network byte order; IPv4 uses the first four */
};

/* NULL when address->family is 0 (librdmacm takes NULL for "any"), else storage filled. */
struct sockaddr *core_address_to_sockaddr(const struct core_address *address,
					  struct sockaddr_storage *storage);
void core_address_from_sockaddr(struct core_address *address, const struct sockaddr *sockaddr);

enum core_fault_traffic {
	CORE_FAULT_DATA = 1, /* requests and responses of queue pairs */
	CORE_FAULT_CM = 2, /* connection management messages */
};

enum core_fault_action {
	CORE_FAULT_LOSE,
	/* of connection management messages, and of packets on CORE_LINK_PACKETS: */
	CORE_FAULT_DELAY,
	CORE_FAULT_DUPLICATE, /* the copy comes after delay */
	CORE_FAULT_REORDER, /* held until another message went the same way, or delay (100 ms; packets: 20 us) has passed */
	CORE_FAULT_CORRUPT, /* one bit is another; of packets only */
	/*
	 * Of the device itself, with no other field; each at most once at a time.  What it is done to are
	 * the ids that hear of it (rdma_get_cm_event(3), DEVICE_REMOVAL and ADDR_CHANGE).
	 */
	CORE_FAULT_REMOVE_DEVICE = 0x100, /* a new one of its name comes back */
	CORE_FAULT_CHANGE_ADDRESS, /* the hardware address of its network interface, as a bond's failover does */
};

/* What goes wrong between two addresses (their ports do not matter). */
struct core_fault {
	struct core_address from, to;
	uint32_t directed; /* only from -> to; else both ways */
	uint32_t traffic; /* enum core_fault_traffic */
	uint32_t attribute; /* CM: only messages of this attribute id (IBTA 12.6); 0: all */
	/* Data: only packets of these operations, bits by the lower five of the BTH's opcode (IBTA 9.2.1); 0: all. */
	uint32_t operations;
	uint32_t has_psn; /* data: only packets with a number from psn_first to psn_last, both included */
	uint32_t psn_first, psn_last; /* the numbers wrap: 0xffffff to 1 are three */
	/* Data: only packets of the message with that number in its queue pair (IBTA 9.7.7: SSN, and MSN of answers); 0: all. */
	uint32_t message;
	uint32_t action; /* enum core_fault_action */
	uint32_t probability; /* in millionths */
	uint32_t skip; /* this many pass first */
	uint32_t count; /* it happens to this many at most; 0: no limit */
	uint64_t delay; /* nanoseconds */
};

/* A counter of a device, by the name that the kernel gives it (sysfs, hw_counters). */
struct core_counter {
	const char *name;
	uint64_t value;
};

#define CORE_COUNTERS_MAX 32

struct core_provider {
	const char *name; /* "soft" or "verbs" */
	void *libraries[2]; /* verbs: librdmacm and libibverbs as dlopen gave them */
	_Atomic long live[CORE_OBJECT_KINDS];
	_Atomic unsigned holds; /* of the table and the libraries: core_open's, and those of core_hold */
	struct core_ah_table address_handles;

	/*
	 * Functions like rdma_get_devices take no handle of a kernel.  A provider that can be open more
	 * than once says here which one the calling thread means; NULL where there is only one.
	 */
	void (*select)(struct core_provider *provider);
	/* Virtual clocks: see core_clock_now and core_clock_advance. */
	uint64_t (*clock_now)(struct core_provider *provider);
	bool (*clock_advance)(struct core_provider *provider, uint64_t limit);
	/* How many counters it has written, CORE_COUNTERS_MAX at most; NULL where the kernel counts. */
	int (*counters)(struct core_provider *provider, struct core_counter *counters);
	/* Faults: see core_fault_add and core_fault_remove; NULL where there can be none. */
	int (*fault_add)(struct core_provider *provider, const struct core_fault *fault);
	int (*fault_remove)(struct core_provider *provider, int rule, uint32_t *lost);
	/* Of a capture: see core_capture_name, core_capture_step and core_captured; NULL where there can be none. */
	void (*capture_name)(struct core_provider *provider, const struct core_address *address, const char *name);
	void (*capture_step)(struct core_provider *provider, const struct core_address *address, uint32_t number, const char *text);
	uint32_t (*captured)(struct core_provider *provider, struct core_captured *packets, uint32_t count, uint64_t *missed);
	/*
	 * Why the last call of this thread was refused, beyond its errno, in a sentence; "" when there is no
	 * more to say.  NULL where errno is all there is.
	 */
	const char *(*refusal)(struct core_provider *provider);
	/* There is none, whatever was refused before. */
	void (*forget_refusal)(struct core_provider *provider);
	void *host; /* soft: struct soft_host */

#define CORE_ENTRY(function) __typeof__(function) *function;
	CORE_RDMACM_FUNCTIONS(CORE_ENTRY)
	CORE_IBVERBS_FUNCTIONS(CORE_ENTRY)
#undef CORE_ENTRY
};

/* Before every function of the table that takes no object: which provider this thread means. */
static inline void core_select(struct core_provider *provider)
{
	if (provider->select)
		provider->select(provider);
}

/* Between two looks of a spin loop: saves power, and lets the sibling thread have the core. */
static inline void core_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("isb" ::: "memory");
#endif
}

/*
 * Fill the table of one provider: 0 or a negative errno.  soft fails only without memory or descriptors.  verbs fails
 * with ENOENT without its libraries and with ENOSYS when one lacks a function that rdmarun needs, and writes to why a
 * sentence that says what to install.
 */
int soft_provider_open(struct core_provider *provider, const struct core_options *options);
void soft_provider_close(struct core_provider *provider);
int verbs_provider_open(struct core_provider *provider, char *why, size_t why_size);
void verbs_provider_close(struct core_provider *provider);

#endif
