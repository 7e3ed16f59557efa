/*
 * Synchronous ids. librdmacm waits inside a call for the event that ends it, by reading the id's own channel. Here
 * that channel does not block. So the call returns EAGAIN, the caller waits for the descriptor, and core_complete
 * handles the event like librdmacm.
 */
#include <string.h>

#include "core/call.h"

int core_create_sync_id(struct core_provider *provider, int port_space, struct rdma_cm_id **id)
{
	int result;

	/* A provider without rdma_get_request has no synchronous ids. */
	CORE_NEEDS(provider->rdma_create_id && provider->rdma_destroy_id && provider->rdma_get_request);
	core_select(provider);
	result = core_rdma_result(provider->rdma_create_id(NULL, id, NULL,
							   (enum rdma_port_space)port_space));
	if (result)
		return result;
	result = core_set_nonblocking((*id)->channel->fd);
	if (result) {
		provider->rdma_destroy_id(*id);
		return result;
	}
	core_count(provider, CORE_ID, 1);
	return 0;
}

/* The errno that librdmacm's synchronous functions derive from an event. */
static int event_result(const struct rdma_cm_event *event)
{
	if (!event->status)
		return 0;
	if (event->event == RDMA_CM_EVENT_REJECTED)
		return -ECONNREFUSED;
	return event->status < 0 ? event->status : -event->status;
}

static int acknowledge(struct core_provider *provider, struct rdma_cm_id *id)
{
	struct rdma_cm_event *event = id->event;

	if (!event)
		return 0;
	id->event = NULL;
	return core_rdma_result(provider->rdma_ack_cm_event(event));
}

/*
 * librdmacm keeps a request that it could not complete, or that ended another call of the listener, as the listener's
 * event, and forgets its child.
 */
void core_forget_request(struct core_provider *provider, struct rdma_cm_id *listener)
{
	struct rdma_cm_event *event = listener->event;

	if (!event || event->event != RDMA_CM_EVENT_CONNECT_REQUEST || event->listen_id != listener)
		return;
	provider->rdma_destroy_id(event->id);
	acknowledge(provider, listener);
}

int core_complete(struct core_provider *provider, struct rdma_cm_id *id)
{
	struct rdma_cm_event *event;
	int result;

	result = core_read_event(provider, id->channel, &event);
	if (result)
		return result;
	/* The old event is kept until there is a new one, so that an interrupted wait loses nothing. */
	result = acknowledge(provider, id);
	id->event = event;
	if (!result)
		result = event_result(event);
	core_forget_request(provider, id);
	return result;
}

int core_sync_event(struct rdma_cm_id *id, struct core_event *event)
{
	if (!id->event)
		return -ENOENT;
	core_copy_event(event, id->event);
	return 0;
}

int core_get_request(struct core_provider *provider, struct rdma_cm_id *listener,
		     struct rdma_cm_id **child)
{
	int result;

	CORE_NEEDS(provider->rdma_get_request && provider->rdma_destroy_id);
	result = core_rdma_result(provider->rdma_get_request(listener, child));
	if (result == -EAGAIN)
		return result;
	if (result)
		goto destroy_child;
	result = core_set_nonblocking((*child)->channel->fd);
	if (result) {
		provider->rdma_destroy_id(*child);
		return result;
	}
	core_count(provider, CORE_ID, 1);
	return 0;

destroy_child:
	core_forget_request(provider, listener);
	return result;
}

int core_migrate_id(struct core_provider *provider, struct rdma_cm_id *id,
		    struct rdma_event_channel *channel)
{
	int result;

	CORE_NEEDS(provider->rdma_migrate_id);
	result = core_rdma_result(provider->rdma_migrate_id(id, channel));
	if (result || channel)
		return result;
	return core_set_nonblocking(id->channel->fd);
}

bool core_holds_request(const struct rdma_cm_id *id)
{
	return id->event && id->event->event == RDMA_CM_EVENT_CONNECT_REQUEST && id->event->id == id;
}
