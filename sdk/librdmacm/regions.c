/* Protection domains, memory regions, and address handles, which belong to such a domain. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "internal.h"

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	struct ibv_pd *pd = calloc(1, sizeof(*pd));
	int32_t handle = rdmarun_alloc_pd(0);

	if (!pd || cm_result(handle)) {
		free(pd);
		return NULL;
	}
	pd->context = context;
	pd->handle = (uint32_t)handle;
	return pd;
}

int ibv_dealloc_pd(struct ibv_pd *pd)
{
	int error = verbs_result(rdmarun_dealloc_pd(pd->handle));

	if (!error)
		free(pd);
	return error;
}

struct ibv_pd *default_pd(void)
{
	static struct ibv_pd *pd;

	if (!pd)
		pd = ibv_alloc_pd(device_context());
	return pd;
}

static struct ibv_mr *wrap_mr(struct ibv_pd *pd, void *start, size_t length, int32_t handle, const struct rdmarun_mr *keys)
{
	struct ibv_mr *mr = calloc(1, sizeof(*mr));

	if (!mr || cm_result(handle)) {
		free(mr);
		return NULL;
	}
	mr->context = pd->context;
	mr->pd = pd;
	mr->addr = start;
	mr->length = length;
	mr->handle = (uint32_t)handle;
	mr->lkey = keys->lkey;
	mr->rkey = keys->rkey;
	return mr;
}

#undef ibv_reg_mr
struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *start, size_t length, int access)
{
	struct rdmarun_mr keys;

	return wrap_mr(pd, start, length, rdmarun_reg_mr(pd->handle, start, length, (uint32_t)access, &keys), &keys);
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *start, size_t length, uint64_t iova, unsigned access)
{
	struct rdmarun_mr keys;

	if (iova == (uintptr_t)start)
		return ibv_reg_mr(pd, start, length, (int)access);
	return wrap_mr(pd, start, length, rdmarun_reg_mr_iova(pd->handle, start, length, (int64_t)iova, access, &keys), &keys);
}

#undef ibv_reg_mr_iova
struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *start, size_t length, uint64_t iova, int access)
{
	return ibv_reg_mr_iova2(pd, start, length, iova, (unsigned)access);
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
	int error = verbs_result(rdmarun_dereg_mr(mr->handle));

	if (!error)
		free(mr);
	return error;
}

void ah_attr_to_host(struct rdmarun_ah_attr *to, const struct ibv_ah_attr *from)
{
	memset(to, 0, sizeof(*to));
	memcpy(to->dgid, from->grh.dgid.raw, sizeof(to->dgid));
	to->flow_label = from->grh.flow_label;
	to->dlid = from->dlid;
	to->sgid_index = from->grh.sgid_index;
	to->hop_limit = from->grh.hop_limit;
	to->traffic_class = from->grh.traffic_class;
	to->sl = from->sl;
	to->src_path_bits = from->src_path_bits;
	to->static_rate = from->static_rate;
	to->is_global = from->is_global;
	to->port_num = from->port_num;
}

void ah_attr_from_host(struct ibv_ah_attr *to, const struct rdmarun_ah_attr *from)
{
	memset(to, 0, sizeof(*to));
	memcpy(to->grh.dgid.raw, from->dgid, sizeof(from->dgid));
	to->grh.flow_label = from->flow_label;
	to->dlid = from->dlid;
	to->grh.sgid_index = from->sgid_index;
	to->grh.hop_limit = from->hop_limit;
	to->grh.traffic_class = from->traffic_class;
	to->sl = from->sl;
	to->src_path_bits = from->src_path_bits;
	to->static_rate = from->static_rate;
	to->is_global = from->is_global;
	to->port_num = from->port_num;
}

static struct ibv_ah *wrap_ah(struct ibv_pd *pd, int32_t handle, const struct rdmarun_ah *host)
{
	struct ah *ah = calloc(1, sizeof(*ah));

	if (!ah || cm_result(handle)) {
		free(ah);
		return NULL;
	}
	ah->base.context = pd->context;
	ah->base.pd = pd;
	ah->base.handle = (uint32_t)handle;
	ah->number = host->number;
	return &ah->base;
}

struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	struct rdmarun_ah_attr host;
	struct rdmarun_ah ah = {0};

	ah_attr_to_host(&host, attr);
	return wrap_ah(pd, rdmarun_create_ah(pd->handle, &host, &ah), &ah);
}

struct ibv_ah *ibv_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc, struct ibv_grh *grh, uint8_t port)
{
	struct rdmarun_ah ah = {0};

	(void)port;
	return wrap_ah(pd, rdmarun_create_ah_from_wc(pd->handle, (const struct rdmarun_wc *)wc, grh, &ah), &ah);
}

int ibv_destroy_ah(struct ibv_ah *ah)
{
	int error = verbs_result(rdmarun_destroy_ah(ah->handle));

	if (!error)
		free(CONTAINER(ah, struct ah, base));
	return error;
}
