#include "soft_cm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "soft_device.h"
#include "soft_fabric.h"

#define MAX_RETRIES 15

/* No lock: each thread has its own. */
static _Thread_local struct soft_cm *current;

struct soft_cm *soft_cm_current(void)
{
	return current;
}

void soft_cm_select(struct soft_cm *cm)
{
	current = cm;
}

int soft_cm_create(struct soft_fabric *fabric, struct soft_device *device, struct soft_cm **out)
{
	struct soft_cm *cm = calloc(1, sizeof(*cm));
	pthread_condattr_t monotonic;
	int result = -ENOMEM;

	if (!cm)
		return -ENOMEM;
	cm->fabric = fabric;
	cm->device = device;
	cm->last_message = &cm->first_message;
	cm->last_destroyed = &cm->destroyed;
	if (soft_table_init(&cm->ids, 1, 1 << 22, (uint32_t)soft_fabric_random(fabric)))
		goto free_cm;
	result = soft_cm_open_device(cm);
	if (result)
		goto destroy_ids;
	result = soft_cm_wire_create(cm, &cm->wire);
	if (result)
		goto close_device;
	pthread_mutex_init(&cm->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&cm->acknowledged, &monotonic);
	pthread_condattr_destroy(&monotonic);
	*out = cm;
	return 0;

close_device:
	soft_cm_close_devices(cm);
destroy_ids:
	soft_table_destroy(&cm->ids);
free_cm:
	free(cm);
	return result;
}

void soft_cm_destroy(struct soft_cm *cm)
{
	struct soft_cm_message *message;
	struct soft_id *id;

	soft_cm_wire_destroy(cm->wire);
	while ((message = cm->first_message)) {
		cm->first_message = message->next;
		free(message);
	}
	while ((id = cm->destroyed)) {
		cm->destroyed = id->destroyed_next;
		free(id);
	}
	if (current == cm)
		current = NULL;
	soft_cm_close_devices(cm);
	soft_table_destroy(&cm->ids);
	pthread_cond_destroy(&cm->acknowledged);
	pthread_mutex_destroy(&cm->lock);
	free(cm);
}

uint64_t soft_cm_time(unsigned int code)
{
	return SOFT_MILLISECOND << (code > 8 ? code - 8 : 0);
}

void soft_cm_prepare(struct soft_id *id, struct soft_cm_message *message,
		     enum soft_cm_attribute attribute)
{
	*message = (struct soft_cm_message){
		.attribute = attribute,
		.local = id->local,
		.remote = id->remote,
		.guid = id->cm->device->guid,
		.port_space = id->rdma.ps,
		.source = id->rdma.route.addr.src_storage,
		.destination = id->rdma.route.addr.dst_storage,
	};
}

void soft_cm_set_private_data(struct soft_cm_message *message, const void *data, uint8_t length,
			      uint8_t field)
{
	if (length)
		memcpy(message->private_data, data, length);
	message->private_data_len = field;
}

void soft_cm_send(struct soft_cm *cm, const struct soft_cm_message *message)
{
	/* A healthy fabric has nothing to ask of each message. */
	if (soft_faults_active(&cm->fabric->faults))
		soft_cm_wire_carry(cm, message);
	else
		soft_cm_deliver(cm, message);
}

void soft_cm_deliver(struct soft_cm *cm, const struct soft_cm_message *message)
{
	struct soft_cm_message *copy = malloc(sizeof(*copy));

	if (!copy)
		return;
	*copy = *message;
	copy->next = NULL;
	*cm->last_message = copy;
	cm->last_message = &copy->next;
}

void soft_cm_send_request(struct soft_id *id)
{
	id->retries_left = MAX_RETRIES;
	id->request_timeout = id->response_timeout;
	soft_cm_send(id->cm, &id->request);
	/* Without a thread for timers the request is sent once; its loss would then go unnoticed. */
	soft_timer_arm(&id->cm->fabric->timers, &id->timer, id->request_timeout);
}

void soft_cm_answered(struct soft_id *id)
{
	soft_timer_cancel(&id->cm->fabric->timers, &id->timer);
}

void soft_cm_close(struct soft_id *id)
{
	soft_cm_answered(id);
	soft_peers_forget(id);
	id->state = SOFT_ID_CLOSED;
}

void soft_cm_reject(struct soft_id *id, uint32_t reason, const void *private_data, uint8_t length)
{
	struct soft_cm_message message;
	bool accepted = id->state == SOFT_ID_REP_SENT;

	soft_cm_prepare(id, &message, SOFT_CM_REJ);
	message.reason = reason;
	soft_cm_set_private_data(&message, private_data, length, SOFT_REJ_PRIVATE_DATA);
	soft_cm_send(id->cm, &message);
	/* What the peer may have taken for a connection is remembered for a while, as on Linux. */
	if (accepted)
		soft_cm_enter_timewait(id);
	else
		soft_cm_close(id);
}

void soft_cm_enter_timewait(struct soft_id *id)
{
	soft_peers_forget(id);
	id->state = SOFT_ID_TIMEWAIT;
	soft_timer_arm(&id->cm->fabric->timers, &id->timer, soft_cm_time(id->path_timeout));
}

bool soft_cm_report_disconnected(struct soft_id *id, int status)
{
	if (id->disconnected)
		return true;
	id->disconnected = soft_cm_report(id, id, RDMA_CM_EVENT_DISCONNECTED, status, NULL);
	return id->disconnected;
}

/* The request was sent for the last time and nobody answered. */
static void give_up(struct soft_id *id)
{
	switch (id->state) {
	case SOFT_ID_REQ_SENT:
	case SOFT_ID_REP_SENT:
	case SOFT_ID_SIDR_SENT:
		soft_cm_close(id);
		soft_cm_report(id, id, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT, NULL);
		break;
	case SOFT_ID_DREQ_SENT:
		soft_cm_enter_timewait(id);
		soft_cm_report_disconnected(id, -ETIMEDOUT);
		break;
	default:
		break;
	}
}

static void resend(struct soft_id *id)
{
	if (id->retries_left-- == 0) {
		give_up(id);
		return;
	}
	soft_cm_send(id->cm, &id->request);
	soft_timer_arm(&id->cm->fabric->timers, &id->timer, id->request_timeout);
}

void soft_cm_expire(struct soft_timer *timer)
{
	struct soft_id *id = soft_container_of(timer, struct soft_id, timer);
	struct soft_cm *cm = id->cm;

	pthread_mutex_lock(&cm->lock);
	/* It may have been armed anew, by whoever had the lock, after it expired. */
	if (!soft_timer_is_armed(&cm->fabric->timers, timer)) {
		switch (id->state) {
		case SOFT_ID_ADDR_QUERY:
		case SOFT_ID_ROUTE_QUERY:
			soft_resolve_expired(id);
			break;
		case SOFT_ID_TIMEWAIT:
			soft_cm_close(id);
			/* The end of a connection's end: one that was refused had none (cma_ib_handler). */
			if (id->disconnected)
				soft_cm_report(id, id, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0, NULL);
			break;
		case SOFT_ID_REQ_SENT:
		case SOFT_ID_REP_SENT:
		case SOFT_ID_DREQ_SENT:
		case SOFT_ID_SIDR_SENT:
			resend(id);
			break;
		default:
			break;
		}
	}
	soft_cm_unlock(cm);
}

void soft_cm_send_dreq(struct soft_id *id)
{
	soft_cm_prepare(id, &id->request, SOFT_CM_DREQ);
	id->request.qp_num = id->remote_qp_num;
	id->state = SOFT_ID_DREQ_SENT;
	soft_cm_send_request(id);
}

void soft_cm_send_plain(struct soft_id *id, enum soft_cm_attribute attribute)
{
	struct soft_cm_message message;

	soft_cm_prepare(id, &message, attribute);
	soft_cm_send(id->cm, &message);
}

void soft_cm_flush(struct soft_cm *cm)
{
	struct soft_cm_message *message;

	while ((message = cm->first_message)) {
		cm->first_message = message->next;
		if (!cm->first_message)
			cm->last_message = &cm->first_message;
		soft_cm_receive(cm, message);
		free(message);
	}
}

void soft_cm_unlock(struct soft_cm *cm)
{
	soft_cm_flush(cm);
	pthread_mutex_unlock(&cm->lock);
}

int soft_cm_finish(struct soft_cm *cm, int error)
{
	soft_cm_unlock(cm);
	if (!error)
		return 0;
	errno = error;
	return -1;
}
