/* A soft device: one port, a GID for each address of the host, the memory keys and the numbers of queue pairs. */
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

#define SOFT_VENDOR_ID 0xffffff /* no company's OUI, as rdma_rxe has it; 0 is taken for "unknown" */
#define SOFT_PORT 1
#define SOFT_DEVICE_MEMORY (UINT64_C(1) << 20) /* of the device itself (ibv_alloc_dm(3)); adapters have as little */
#define SOFT_DEVICE_MEMORY_ALIGNMENT 20 /* at most; log2 of bytes */
#define SOFT_ACK_DELAY 15 /* local CA ACK delay, a time code as rdma_rxe has it (RXE_LOCAL_CA_ACK_DELAY) */

struct soft_fabric;
struct soft_link;
struct soft_xrc_domain;

/*
 * What a device counts: of what goes wrong everything, and packets on links that have them.  Kernel drivers show such
 * counters in sysfs (hw_counters), each by names of its own.
 */
enum soft_counter {
	SOFT_COUNT_SENT, /* packets */
	SOFT_COUNT_RECEIVED, /* packets that arrived whole */
	SOFT_COUNT_ICRC, /* packets with a wrong ICRC */
	SOFT_COUNT_DUPLICATE, /* requests that came before */
	SOFT_COUNT_GAP, /* sequence NAKs sent: one a gap */
	SOFT_COUNT_OUT_OF_SEQUENCE, /* requests behind a gap */
	SOFT_COUNT_RNR_SENT,
	SOFT_COUNT_RNR_RECEIVED, /* RNR NAKs that were not the last allowed */
	SOFT_COUNT_SEQUENCE_NAK, /* received */
	SOFT_COUNT_ACK_TIMEOUT,
	SOFT_COUNT_RETRY, /* for a NAK, a gap in the answers or want of one */
	SOFT_COUNT_RETRY_EXCEEDED,
	SOFT_COUNT_RNR_RETRY_EXCEEDED,
	SOFT_COUNTERS
};

/*
 * A device whose packets come through descriptors has a thread that waits for them.  Who polls a completion queue, and
 * finds it empty, takes them from the kernel itself, which is sooner; who will sleep until there is a completion says so.
 * An acknowledgement may wait for the next poll, but not behind what the program says to its peer by the connection manager:
 * an adapter would have sent it long before.  The other way round, what a peer says there takes a shorter way here than its
 * packets, and must not overtake them: an adapter has taken those that came before the end of the connection.
 */
struct soft_progress {
	/* Called with no lock held but cq.polling. */
	void (*poll)(struct soft_progress *progress);
	void (*sleep)(struct soft_progress *progress);
	void (*flush_acks)(struct soft_progress *progress);
	void (*catch_up)(struct soft_progress *progress);
};

/*
 * Management datagrams of queue pair 1 (IBTA 13.5), SOFT_MAD bytes each, between the communication manager and a link that
 * reaches other hosts.
 */
struct soft_management {
	/* The link's: numbers of communication ids by which other hosts' messages find this process.  NULL: any will do. */
	struct soft_table_block_source *block_source;
	/* The link's: take what other hosts send to that address; NULL: to each.  0 or a positive errno. */
	int (*open)(struct soft_management *management, const union ibv_gid *address);
	/* The link's.  NULL: it reaches none.  What is lost is the sender's to repeat.  record: in the fabric's capture. */
	void (*send)(struct soft_management *management, const union ibv_gid *from, const union ibv_gid *to,
		     const uint8_t *mad, bool record);
	/* The receiver's, with locks of the link held: it must not wait.  Any byte of mad may be wrong.  NULL: there is none. */
	void (*receive)(struct soft_management *management, const union ibv_gid *from, const union ibv_gid *to,
			const uint8_t *mad);
	void *receiver;
};

/* As mlx5 has it: a header of UDP, and what is before that. */
enum soft_network {
	SOFT_NETWORK_IPV6 = 8 | 1,
	SOFT_NETWORK_IPV4 = 8 | 2,
};

struct soft_device {
	struct ibv_device ibv;
	struct soft_fabric *fabric;
	struct soft_link *link; /* of the queue pairs made from now on; NULL: the local link */
	struct soft_progress *progress; /* NULL: nothing has to be taken */
	struct soft_management management;
	/*
	 * Completions of datagrams from other processes say in wc.sl what carried them (enum soft_network), which IBTA A17.4.5.1 wants
	 * said and ibv_wc has no field for: mlx5 says it so, and UCX looks at it.  rdma_rxe says nothing.
	 */
	bool network_in_service_level;
	uint64_t guid; /* host byte order */
	/*
	 * The active MTU of the port, and so the longest datagram.  Within a process and its like packets have the length that the
	 * protocol allows; on a network, that of the network, as rdma_rxe has that of its interface.
	 */
	enum ibv_mtu mtu;
	struct soft_gid_table gid_table;
	struct soft_mr_table memory;
	bool on_demand; /* soft_on_demand_is_supported */
	_Atomic uint64_t own_memory_used; /* bytes of SOFT_DEVICE_MEMORY */
	_Atomic uint32_t own_memories; /* ever allocated */
	struct soft_table queue_pairs;
	struct soft_table shared_queues;
	struct soft_multicast multicast;
	_Atomic uint32_t queue_key_violations; /* of the port (IBTA 14.2.5.6) */
	_Atomic uint64_t counters[SOFT_COUNTERS];
	_Atomic bool away; /* it was removed, and is not back yet */
	_Atomic bool port_down; /* all networks of the host went (soft/cm/network.c) */
	struct soft_mutex lock; /* guards contexts and XRC domains */
	LIST_HEAD(, soft_context) contexts; /* those that are open */
	struct soft_xrc_domain *xrc_domains;
};

int soft_device_create(struct soft_fabric *fabric, const char *name, struct soft_device **device);
void soft_device_destroy(struct soft_device *device);

static inline bool soft_device_is_away(const struct soft_device *device)
{
	return atomic_load_explicit(&device->away, memory_order_acquire);
}

/* Whether its link goes to other hosts, by the routes of this one. */
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
/* The counters by the names of rdma_rxe and of mlx5_ib; returns how many, CORE_COUNTERS_MAX at most. */
int soft_device_counters(const struct soft_device *device, struct core_counter *counters);

/* Raise it on each context that is open and not removed. */
void soft_device_raise(struct soft_device *device, enum soft_context_event event);

void soft_device_attributes(const struct soft_device *device, struct ibv_device_attr *attr);
void soft_port_attributes(const struct soft_device *device, struct ibv_port_attr *attr);

static inline struct soft_device *soft_device(struct ibv_device *device)
{
	return (struct soft_device *)device;
}

#endif
