#include "soft/objects/ah.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "soft/objects/context.h"
#include "soft/objects/device.h"
#include "soft/objects/multicast.h"
#include "soft/objects/pd.h"
#include "soft/wire/datagram.h"

/* The bytes between IP header and payload, and after the payload. */
#define DATAGRAM_OVERHEAD (SOFT_UDP_HEADER + SOFT_WIRE_BTH + SOFT_WIRE_DETH + SOFT_WIRE_ICRC)
#define IPV4_OFFSET (SOFT_GRH - SOFT_IPV4_HEADER)

void soft_ah_header(const struct soft_ah *ah, uint32_t payload, bool immediate, uint8_t header[SOFT_GRH])
{
	/* The payload is padded to words of 4 bytes. */
	uint32_t length = DATAGRAM_OVERHEAD + (immediate ? SOFT_WIRE_IMMEDIATE : 0) + ((payload + 3) & ~3u);

	memcpy(header, ah->header, SOFT_GRH);
	soft_ip_finish(header, length);
}

int soft_ah_check(const struct soft_device *device, const struct ibv_ah_attr *attr)
{
	const union ibv_gid *to = &attr->grh.dgid;
	static const uint8_t any[4];
	bool ipv4 = soft_gid_is_ipv4(to);

	/* Every path of a RoCE port has a GRH (ibv_create_ah(3)). */
	if (!attr->is_global || attr->port_num != SOFT_PORT)
		return EINVAL;
	if (attr->grh.sgid_index >= soft_gid_count(&device->gid_table))
		return ENODATA;
	if (soft_gid_is_multicast(to))
		return 0;
	if (ipv4 != soft_gid_is_ipv4(&device->gid_table.gids[attr->grh.sgid_index]) ||
	    IN6_IS_ADDR_UNSPECIFIED((const struct in6_addr *)(const void *)to))
		return EINVAL;
	return ipv4 && !memcmp(&to->raw[12], any, sizeof(any)) ? ENODEV : 0;
}

struct ibv_ah *soft_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	struct soft_device *device = soft_device(pd->context->device);
	int error = soft_context_is_removed(pd->context) ? EIO : soft_ah_check(device, attr);
	struct soft_ah *ah;

	if (error) {
		errno = error;
		return NULL;
	}
	ah = malloc(sizeof(*ah));
	if (!ah)
		return NULL;
	*ah = (struct soft_ah){
		.ibv = {.context = pd->context, .pd = pd},
		.references = 1,
		.attr = *attr,
		.source = device->gid_table.gids[attr->grh.sgid_index],
	};
	soft_ip_make(ah->header, &ah->attr.grh, &ah->source);
	atomic_fetch_add(&soft_pd(pd)->users, 1);
	return &ah->ibv;
}

int soft_destroy_ah(struct ibv_ah *ah)
{
	atomic_fetch_sub(&soft_pd(ah->pd)->users, 1);
	soft_ah_release(soft_ah(ah));
	return 0;
}

void soft_ah_hold(struct soft_ah *ah)
{
	atomic_fetch_add_explicit(&ah->references, 1, memory_order_relaxed);
}

void soft_ah_release(struct soft_ah *ah)
{
	if (atomic_fetch_sub_explicit(&ah->references, 1, memory_order_acq_rel) == 1)
		free(ah);
}

int soft_init_ah_from_wc(struct ibv_context *context, uint8_t port, struct ibv_wc *wc,
			 struct ibv_grh *grh, struct ibv_ah_attr *attr)
{
	const uint8_t *header = (const uint8_t *)grh;
	union ibv_gid own;

	*attr = (struct ibv_ah_attr){.port_num = port, .sl = wc->sl, .is_global = 1};
	if (port != SOFT_PORT || !(wc->wc_flags & IBV_WC_GRH)) {
		errno = EINVAL;
		return -1;
	}
	if (header[0] >> 4 == 6) {
		memcpy(attr->grh.dgid.raw, &header[8], 16);
		memcpy(own.raw, &header[24], 16);
		attr->grh.hop_limit = header[7];
		attr->grh.traffic_class = (uint8_t)(header[0] << 4 | header[1] >> 4);
		attr->grh.flow_label = (uint32_t)(header[1] & 0xf) << 16 | (uint32_t)header[2] << 8 |
				       header[3];
	} else if (header[IPV4_OFFSET] >> 4 == 4) {
		soft_gid_from_ipv4(&attr->grh.dgid, &header[IPV4_OFFSET + 12]);
		soft_gid_from_ipv4(&own, &header[IPV4_OFFSET + 16]);
		attr->grh.hop_limit = header[IPV4_OFFSET + 8];
		attr->grh.traffic_class = header[IPV4_OFFSET + 1];
	} else {
		errno = EINVAL;
		return -1;
	}
	/* For a multicast group: a source GID of its address family. */
	attr->grh.sgid_index = soft_gid_find(&soft_device(context->device)->gid_table, &own);
	return 0;
}

struct ibv_ah *soft_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc, struct ibv_grh *grh,
				      uint8_t port)
{
	struct ibv_ah_attr attr;

	if (soft_init_ah_from_wc(pd->context, port, wc, grh, &attr))
		return NULL;
	return soft_create_ah(pd, &attr);
}
