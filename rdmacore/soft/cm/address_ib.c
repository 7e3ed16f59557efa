/*
 * Addresses of family AF_IB, as Linux treats them on a RoCE port. They resolve to the device but not to a route: a
 * route needs the network interface, which such an address does not contain (cma_resolve_ib_dev,
 * cma_resolve_iboe_route).
 */
#include "soft/cm/calls.h"

#include <endian.h>
#include <errno.h>
#include <infiniband/ib.h>
#include <string.h>

#include "soft/base/refusal.h"
#include "soft/objects/device.h"

#define PORT_SPACE_MASK UINT64_C(0xffffffffffff0000) /* RDMA_IB_IP_PS_MASK */

static struct sockaddr_ib *ib(const struct sockaddr *address)
{
	return (struct sockaddr_ib *)(uintptr_t)address;
}

int soft_address_ib_check(const struct soft_id *id, const struct sockaddr *address)
{
	uint64_t mask = be64toh(ib(address)->sib_sid_mask) & PORT_SPACE_MASK;
	uint64_t service = be64toh(ib(address)->sib_sid) & mask;

	soft_mutex_expect(&id->cm->lock);
	if (!soft_address_is_any(address))
		return soft_refuse(ENODEV, "AF_IB binds to devices of InfiniBand links, and this one is on Ethernet");
	/* cma_select_ib_ps: the service id, masked, must be the port space. */
	if (id->rdma.ps == RDMA_PS_IPOIB || service != (((uint64_t)id->rdma.ps << 16) & mask))
		return EPROTONOSUPPORT;
	return 0;
}

void soft_address_ib_bound(struct soft_id *id)
{
	struct sockaddr_ib *source = ib(&id->addr.src_addr);

	soft_mutex_expect(&id->cm->lock);
	source->sib_sid = htobe64((uint64_t)id->rdma.ps << 16 | id->port);
	source->sib_sid_mask |= htobe64(PORT_SPACE_MASK);
}

int soft_address_ib_resolve(struct soft_id *id)
{
	struct rdma_addr *addr = &id->addr;
	const union ibv_gid *gids = id->cm->device->gid_table.gids;
	struct ib_addr *to = &ib(&addr->dst_addr)->sib_addr;
	int count = (int)soft_gid_count(&id->cm->device->gid_table), found = -1;

	soft_mutex_expect(&id->cm->lock);
	if (soft_device_is_away(id->cm->device))
		return ENODEV;
	if (ib_addr_any(to))
		memcpy(to, &gids[0], sizeof(*to));
	/* The GID itself, else the first one with its subnet prefix (cma_resolve_ib_dev). */
	for (int index = 0; index < count; index++)
		if (!memcmp(to, &gids[index], sizeof(*to)))
			found = index;
	for (int index = 0; index < count && found < 0; index++)
		if (to->sib_addr64[0] == gids[index].global.subnet_prefix)
			found = index;
	if (found < 0)
		return soft_refuse(ENODEV, "no GID of the device has the subnet prefix of that address");
	memcpy(&ib(&addr->src_addr)->sib_addr, &gids[found], sizeof(*to));
	return 0;
}
