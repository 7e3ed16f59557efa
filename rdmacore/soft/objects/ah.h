/* Address handles, each with the IP header of its datagrams (soft/wire/datagram.h). */
#ifndef SOFT_OBJECTS_AH_H
#define SOFT_OBJECTS_AH_H

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "soft/base/lock.h"
#include "soft/wire/packet.h"

struct soft_device;

struct soft_ah {
	struct ibv_ah ibv;
	_Atomic unsigned int references; /* the owner, and posted requests that use it */
	struct ibv_ah_attr attr;
	union ibv_gid source;
	uint8_t header[SOFT_GRH]; /* lengths and checksum are 0 */
};

static inline struct soft_ah *soft_ah(struct ibv_ah *ah)
{
	return (struct soft_ah *)ah;
}

/*
 * Whether Linux would accept the path (rdma_fill_sgid_attr, rdma_addr_find_l2_eth_by_grh): 0 or an errno. EINVAL
 * without a GRH, for a port that does not exist, for another address family than the source GID's, and for ::. ENODATA
 * for an empty entry of the GID table. ENODEV for 0.0.0.0, which Linux does not route to the device.
 */
int soft_ah_check(const struct soft_device *device, const struct ibv_ah_attr *attr);
/* NULL and errno of soft_ah_check, or ENOMEM. */
struct ibv_ah *soft_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr);
int soft_destroy_ah(struct ibv_ah *ah);
/* The path back to the sender of the datagram of wc: 0, or -1 and errno EINVAL. */
int soft_init_ah_from_wc(struct ibv_context *context, uint8_t port, struct ibv_wc *wc,
			 struct ibv_grh *grh, struct ibv_ah_attr *attr);
struct ibv_ah *soft_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc, struct ibv_grh *grh,
				      uint8_t port);

void soft_ah_hold(struct soft_ah *ah);
void soft_ah_release(struct soft_ah *ah);
/* The header of a datagram with that many bytes of payload. */
void soft_ah_header(const struct soft_ah *ah, uint32_t payload, bool immediate,
		    uint8_t header[SOFT_GRH]);

#endif
