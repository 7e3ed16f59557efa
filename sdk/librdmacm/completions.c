/* Completion queues, and the channels of their events. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include "internal.h"

static struct cq *cqs;

static rdmarun_handle handle_of(void *channel) { return CONTAINER(channel, struct comp_channel, base)->handle; }

static uint32_t channel_entries(void *object, short events, struct rdmarun_poll_entry *entries, uint32_t room)
{
	if (!(events & POLLIN) || !room)
		return 0;
	if (handle_of(object)) {
		*entries = (struct rdmarun_poll_entry){.handle = handle_of(object), .events = RDMARUN_POLL_IN};
		return 1;
	}
	for (struct cq *cq = cqs; cq; cq = cq->next)
		if (cq->base.channel == object) {
			*entries = (struct rdmarun_poll_entry){.handle = cq->base.handle, .events = RDMARUN_POLL_PRI};
			return 1;
		}
	return 0;
}

static short has_fired(void *object)
{
	for (struct cq *cq = cqs; cq; cq = cq->next)
		if (cq->base.channel == object && cq->fired)
			return POLLIN;
	return 0;
}

struct ibv_comp_channel *new_comp_channel(rdmarun_handle handle)
{
	struct comp_channel *channel = calloc(1, sizeof(*channel));
	struct descriptor descriptor = {.object = channel ? &channel->base : NULL, .entries = channel_entries, .ready = has_fired};

	if (!channel)
		return NULL;
	channel->handle = handle;
	channel->base.context = device_context();
	channel->base.fd = new_descriptor(&descriptor);
	if (channel->base.fd < 0) {
		free(channel);
		return NULL;
	}
	return &channel->base;
}

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
	int32_t handle = rdmarun_create_comp_channel(0);
	struct ibv_comp_channel *channel = cm_result(handle) ? NULL : new_comp_channel((rdmarun_handle)handle);

	(void)context;
	if (!channel && handle > 0)
		rdmarun_destroy_comp_channel((rdmarun_handle)handle);
	return channel;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	if (channel->refcnt)
		return EBUSY;
	if (handle_of(channel))
		rdmarun_destroy_comp_channel(handle_of(channel));
	free_descriptor(channel->fd);
	free(CONTAINER(channel, struct comp_channel, base));
	return 0;
}

struct cq *wrap_cq(rdmarun_handle handle, struct ibv_comp_channel *channel, void *context, int cqe)
{
	struct cq *cq = calloc(1, sizeof(*cq));

	if (!cq)
		return NULL;
	cq->base.handle = handle;
	cq->base.context = device_context();
	cq->base.channel = channel;
	cq->base.cq_context = context;
	cq->base.cqe = cqe;
	if (channel)
		channel->refcnt++;
	cq->next = cqs;
	cqs = cq;
	note_object(handle, &cq->base);
	return cq;
}

void forget_cq(struct ibv_cq *which)
{
	struct cq *cq = CONTAINER(which, struct cq, base), **at = &cqs;

	while (*at != cq)
		at = &(*at)->next;
	*at = cq->next;
	forget_object(which);
	if (which->channel)
		which->channel->refcnt--;
	free(cq);
}

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context, struct ibv_comp_channel *channel, int vector)
{
	int32_t handle = rdmarun_create_cq(channel ? handle_of(channel) : 0, (uint32_t)cqe);
	struct cq *cq;

	(void)context, (void)vector;
	if (cm_result(handle))
		return NULL;
	cq = wrap_cq((rdmarun_handle)handle, channel, cq_context, cqe);
	return cq ? &cq->base : NULL;
}

int ibv_destroy_cq(struct ibv_cq *cq)
{
	int error = verbs_result(rdmarun_destroy_cq(cq->handle));

	if (!error)
		forget_cq(cq);
	return error;
}

int ibv_resize_cq(struct ibv_cq *cq, int cqe)
{
	int error = verbs_result(rdmarun_resize_cq(cq->handle, (uint32_t)cqe));

	if (!error)
		cq->cqe = cqe;
	return error;
}

_Static_assert(sizeof(struct ibv_wc) == sizeof(struct rdmarun_wc), "a completion is the host's, byte for byte");

int poll_completions(struct ibv_cq *cq, int count, struct ibv_wc *wc)
{
	enum { SPINS = 64 };
	static unsigned empty;
	int32_t found = rdmarun_poll_cq(cq->handle, (struct rdmarun_wc *)wc, (uint32_t)count);

	if ((found == 0 && ++empty % SPINS == 0) || (signals && signals->due())) /* who spins has to let others run */
		give_way();
	return found;
}

int request_notification(struct ibv_cq *cq, int solicited_only)
{
	return verbs_result(rdmarun_req_notify(cq->handle, (uint32_t)solicited_only));
}

/* Takes an event that is there, unless one was taken before. */
static bool look_at_channel(void *channel)
{
	int32_t which = has_fired(channel) || !handle_of(channel) ? 0 : rdmarun_wait_cq_event(handle_of(channel), 0);

	for (struct cq *cq = cqs; cq; cq = cq->next)
		if (cq->base.channel == channel && !cq->fired)
			cq->fired = handle_of(channel) ? which == (int32_t)cq->base.handle : rdmarun_wait_cq_event(cq->base.handle, 0) >= 0;
	return has_fired(channel);
}

int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **which, void **context)
{
	struct rdmarun_poll_entry entry;
	struct descriptor *descriptor = descriptor_of(channel->fd);
	bool nonblock = descriptor && descriptor->nonblock;
	struct wait wait = {.ready = look_at_channel, .object = channel, .entries = &entry};
	int ended;

	wait.count = channel_entries(channel, POLLIN, &entry, 1);
	ended = wait_for(&wait, nonblock ? 0 : -1);
	if (ended) {
		errno = nonblock ? EAGAIN : ended;
		return -1;
	}
	for (struct cq *cq = cqs; cq; cq = cq->next)
		if (cq->base.channel == channel && cq->fired) {
			cq->fired = false;
			*which = &cq->base;
			*context = cq->base.cq_context;
			return 0;
		}
	return -1;
}

/* The host was notified when the event was taken. */
void ibv_ack_cq_events(struct ibv_cq *cq, unsigned count)
{
	(void)cq, (void)count;
}
