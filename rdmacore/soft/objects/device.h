/* A soft device: one port, a GID for each address of the host, memory keys and numbers of queue pairs. */
#ifndef SOFT_OBJECTS_DEVICE_H
#define SOFT_OBJECTS_DEVICE_H

#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "provider/provider.h"
#include "soft/base/mutex.h"
#include "soft/base/table.h"
#include "soft/objects/context.h"
#include "soft/objects/gid.h"
#include "soft/objects/mr_table.h"
#include "soft/objects/multicast.h"

#define SOFT_VENDOR_ID 0xffffff /* the OUI of no company, like rdma_rxe; programs read 0 as "unknown" */
#define SOFT_PORT 1
#define SOFT_DEVICE_MEMORY (UINT64_C(1) << 20) /* of the device itself (ibv_alloc_dm(3)); adapters have about as much */
#define SOFT_DEVICE_MEMORY_ALIGNMENT 20 /* log2 of the largest alignment in bytes */
#define SOFT_ACK_DELAY 15 /* local CA ACK delay as a time code, like rdma_rxe (RXE_LOCAL_CA_ACK_DELAY) */

struct soft_fabric;
struct soft_late_writes;
struct soft_legal;
struct soft_link;
struct soft_xrc_domain;

/*
 * Counters of a device: all errors, and packets on links that have packets. Kernel drivers show such counters in
 * sysfs (hw_counters), each by its own names.
 */
enum soft_counter {
	SOFT_COUNT_SENT, /* packets */
	SOFT_COUNT_RECEIVED, /* packets that arrived intact */
	SOFT_COUNT_ICRC, /* packets with a wrong ICRC */
	SOFT_COUNT_DUPLICATE, /* repeated requests */
	SOFT_COUNT_GAP, /* sequence NAKs sent: one for each gap */
	SOFT_COUNT_OUT_OF_SEQUENCE, /* requests after a gap */
	SOFT_COUNT_RNR_SENT,
	SOFT_COUNT_RNR_RECEIVED, /* RNR NAKs after which a retry was left */
	SOFT_COUNT_SEQUENCE_NAK, /* received */
	SOFT_COUNT_ACK_TIMEOUT,
	SOFT_COUNT_RETRY, /* after a NAK, a gap in the responses, or a timeout */
	SOFT_COUNT_RETRY_EXCEEDED,
	SOFT_COUNT_RNR_RETRY_EXCEEDED,
	SOFT_COUNTERS
};

/*
 * How a device receives packets that come through descriptors. A thread waits for them. A thread that polls an
 * empty completion queue receives them itself, which is faster, and a thread that is about to sleep calls sleep.
 *
 * An acknowledgement may wait for the next poll, but flush_acks sends it before a message of the connection manager,
 * as an adapter would have. Conversely, a message of the peer's connection manager may arrive before the peer's
 * earlier packets. An adapter would have received them by then; catch_up receives them.
 */
struct soft_progress {
	/* Called with no lock held but cq.polling. */
	void (*poll)(struct soft_progress *progress);
	void (*sleep)(struct soft_progress *progress);
	void (*flush_acks)(struct soft_progress *progress);
	void (*catch_up)(struct soft_progress *progress);
};

/*
 * Management datagrams of queue pair 1 (IBTA 13.5), SOFT_MAD bytes each, between the communication manager and a link
 * that reaches other hosts.
 */
struct soft_management {
	/*
	 * Set by the link: numbers of communication ids by which messages of other hosts find this process. NULL:
	 * any number will do.
	 */
	struct soft_table_block_source *block_source;
	/* Set by the link: receive at that address; NULL: at each address. 0 or a positive errno. */
	int (*open)(struct soft_management *management, const union ibv_gid *address);
	/* Set by the link: let other processes of the user receive the messages of other hosts from now on. */
	void (*leave)(struct soft_management *management);
	/*
	 * Set by the link. NULL: it reaches no other hosts. The sender repeats lost messages. record: write to the
	 * fabric's capture.
	 */
	void (*send)(struct soft_management *management, const union ibv_gid *from, const union ibv_gid *to,
		     const uint8_t *mad, bool record);
	/*
	 * Set by the receiver. Called with locks of the link held, so it must not wait. mad is unchecked. NULL: no
	 * receiver.
	 */
	void (*receive)(struct soft_management *management, const union ibv_gid *from, const union ibv_gid *to,
			const uint8_t *mad);
	void *receiver;
};

/* Values of mlx5: UDP over IPv4 or IPv6. */
enum soft_network {
	SOFT_NETWORK_IPV6 = 8 | 1,
	SOFT_NETWORK_IPV4 = 8 | 2,
};

struct soft_device {
	struct ibv_device ibv;
	struct soft_fabric *fabric;
	struct soft_legal *legal; /* of the fabric; NULL: no choice is ever made */
	struct soft_link *link; /* of queue pairs that are created from now on; NULL: the local link */
	struct soft_progress *progress; /* NULL: the link needs no receiving */
	struct soft_management management;
	/*
	 * In completions of datagrams from other processes, wc.sl contains the network type (enum soft_network).
	 * IBTA A17.4.5.1 requires the type, and ibv_wc has no field for it. mlx5 reports it in wc.sl, and UCX reads
	 * it there. rdma_rxe does not report it.
	 */
	bool network_in_service_level;
	uint64_t guid; /* host byte order */
	/*
	 * The active MTU of the port, which is the longest datagram. Between processes of this host it is the
	 * largest that the protocol allows. On a network it is that of the network, as for rdma_rxe.
	 */
	enum ibv_mtu mtu;
	struct soft_gid_table gid_table;
	struct soft_mr_table memory;
	struct soft_late_writes *late_writes; /* NULL: there are none, without legal choices */
	bool on_demand; /* soft_on_demand_is_supported */
	_Atomic uint64_t own_memory_used; /* bytes of SOFT_DEVICE_MEMORY */
	_Atomic uint32_t own_memories; /* how many were allocated so far */
	struct soft_table queue_pairs;
	struct soft_table shared_queues;
	struct soft_multicast multicast;
	_Atomic uint32_t queue_key_violations; /* of the port (IBTA 14.2.5.6) */
	_Atomic uint64_t *counters; /* SOFT_COUNTERS numbers, of the fabric's tally */
	_Atomic bool away; /* it was removed and has not returned */
	_Atomic bool port_down; /* no network of the host is left (soft/cm/network.c) */
	struct soft_mutex lock; /* guards contexts and XRC domains */
	LIST_HEAD(, soft_context) contexts; /* the open ones */
	struct soft_xrc_domain *xrc_domains;
};

int soft_device_create(struct soft_fabric *fabric, const char *name, struct soft_device **device);
void soft_device_destroy(struct soft_device *device);

static inline bool soft_device_is_away(const struct soft_device *device)
{
	return atomic_load_explicit(&device->away, memory_order_acquire);
}

/* Whether its link reaches other hosts, by the routes of this host. */
static inline bool soft_device_reaches_hosts(const struct soft_device *device)
{
	return device->management.send;
}
/* Whether packets to that GID arrive at this device: any address of 127.0.0.0/8, and those in the table. */
static inline bool soft_device_owns(const struct soft_device *device, const union ibv_gid *gid)
{
	return soft_gid_table_has(&device->gid_table, gid);
}

static inline void soft_count(struct soft_device *device, enum soft_counter counter)
{
	atomic_fetch_add_explicit(&device->counters[counter], 1, memory_order_relaxed);
}
/* Fill in the counters, by the names of rdma_rxe and of mlx5_ib. Returns how many, CORE_COUNTERS_MAX at most. */
int soft_device_counters(const struct soft_device *device, struct core_counter *counters);

/* Raise it on each open context that is not removed. */
void soft_device_raise(struct soft_device *device, enum soft_context_event event);

void soft_device_attributes(const struct soft_device *device, struct ibv_device_attr *attr);
void soft_port_attributes(const struct soft_device *device, struct ibv_port_attr *attr);

static inline struct soft_device *soft_device(struct ibv_device *device)
{
	return (struct soft_device *)device;
}

#endif
