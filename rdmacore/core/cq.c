/* Completion queues and completion channels. */
#include "core/call.h"

int core_create_comp_channel(struct core_provider *provider, struct ibv_context *context,
			     struct ibv_comp_channel **channel, int *fd)
{
	struct ibv_comp_channel *created;
	int result;

	CORE_NEEDS(provider->ibv_create_comp_channel && provider->ibv_destroy_comp_channel);
	created = provider->ibv_create_comp_channel(context);
	if (!created)
		return core_errno();
	result = core_set_nonblocking(created->fd);
	if (result)
		goto destroy_channel;
	core_count(provider, CORE_COMP_CHANNEL, 1);
	*channel = created;
	*fd = created->fd;
	return 0;

destroy_channel:
	provider->ibv_destroy_comp_channel(created);
	return result;
}

int core_destroy_comp_channel(struct core_provider *provider, struct ibv_comp_channel *channel)
{
	int result = core_verbs_result(provider->ibv_destroy_comp_channel(channel));

	if (!result)
		core_count(provider, CORE_COMP_CHANNEL, -1);
	return result;
}

int core_create_cq(struct core_provider *provider, struct ibv_context *context, int entries,
		   struct ibv_comp_channel *channel, struct ibv_cq **cq)
{
	CORE_NEEDS(provider->ibv_create_cq);
	*cq = provider->ibv_create_cq(context, entries, NULL, channel, 0);
	if (!*cq)
		return core_errno();
	core_count(provider, CORE_CQ, 1);
	return 0;
}

int core_destroy_cq(struct core_provider *provider, struct ibv_cq *cq)
{
	int result;

	CORE_NEEDS(provider->ibv_destroy_cq);
	result = core_verbs_result(provider->ibv_destroy_cq(cq));
	if (!result)
		core_count(provider, CORE_CQ, -1);
	return result;
}

int core_resize_cq(struct core_provider *provider, struct ibv_cq *cq, int entries)
{
	CORE_NEEDS(provider->ibv_resize_cq);
	return core_verbs_result(provider->ibv_resize_cq(cq, entries));
}

int core_moderate_cq(struct ibv_cq *cq, uint16_t count, uint16_t period)
{
	struct ibv_modify_cq_attr attr = {.attr_mask = IBV_CQ_ATTR_MODERATE, .moderate = {count, period}};

	return core_verbs_result(ibv_modify_cq(cq, &attr));
}

int core_req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	return core_verbs_result(ibv_req_notify_cq(cq, solicited_only));
}

int core_get_cq_event(struct core_provider *provider, struct ibv_comp_channel *channel,
		      struct ibv_cq **cq)
{
	void *context;

	CORE_NEEDS(provider->ibv_get_cq_event && provider->ibv_ack_cq_events);
	while (provider->ibv_get_cq_event(channel, cq, &context))
		if (errno != EINTR)
			return core_errno();
	provider->ibv_ack_cq_events(*cq, 1);
	return 0;
}

int core_poll_cq(struct ibv_cq *cq, int max, struct ibv_wc *wc, uint32_t attempts)
{
	for (;;) {
		int count = ibv_poll_cq(cq, max, wc);

		if (count > 0)
			return count;
		if (count < 0) /* "negative on failure", which is not an errno (ibv_poll_cq(3)) */
			return -EIO;
		if (attempts <= 1)
			return 0;
		attempts--;
		core_pause();
	}
}
