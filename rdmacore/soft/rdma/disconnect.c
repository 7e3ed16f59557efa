/* rdma_reject(3), rdma_notify(3), rdma_disconnect(3). */
#include "soft/rdma/rdma.h"

#include <errno.h>

#include "soft/base/refusal.h"
#include "soft/cm/calls.h"

static int reject(struct rdma_cm_id *rdma_id, uint32_t reason, const void *private_data,
		  uint8_t private_data_len)
{
	struct soft_id *id = soft_id_lock(rdma_id);
	uint8_t most;
	int error = 0;

	if (!id)
		return -1;
	most = soft_id_is_ud(id) ? SOFT_SIDR_REP_PRIVATE_DATA : SOFT_REJ_PRIVATE_DATA;
	if (private_data_len > most) {
		error = soft_refuse(EINVAL, "%d bytes of private data do not fit: %d at most",
				    private_data_len, most);
		return soft_cm_finish(id->cm, error);
	}
	switch (id->state) {
	case SOFT_ID_SIDR_RECEIVED: {
		struct rdma_conn_param param = {.private_data = private_data,
						.private_data_len = private_data_len};

		error = soft_sidr_reply(id, SOFT_SIDR_REJECT, &param);
		break;
	}
	case SOFT_ID_REQ_SENT: /* the peer's id is not known yet, so nothing is sent */
		soft_cm_close(id);
		break;
	case SOFT_ID_REQ_RECEIVED:
	case SOFT_ID_REP_SENT:
	case SOFT_ID_REP_RECEIVED:
		soft_cm_reject(id, reason, private_data, private_data_len);
		break;
	default:
		error = soft_refuse(EINVAL, "there is no request to reject");
		break;
	}
	return soft_cm_finish(id->cm, error);
}

int soft_reject(struct rdma_cm_id *id, const void *private_data, uint8_t private_data_len)
{
	return reject(id, SOFT_REJ_CONSUMER_DEFINED, private_data, private_data_len);
}

int soft_reject_ece(struct rdma_cm_id *id, const void *private_data, uint8_t private_data_len)
{
	return reject(id, SOFT_REJ_VENDOR_OPTION_NOT_SUPPORTED, private_data, private_data_len);
}

/* The queue pair received data before the RTU came, which has the same effect. */
static int establish_early(struct soft_id *id)
{
	if (id->state == SOFT_ID_ESTABLISHED)
		return EISCONN;
	if (id->state != SOFT_ID_REP_SENT)
		return soft_refuse(EINVAL, "COMM_EST is of use between rdma_accept and ESTABLISHED");
	if (!soft_cm_report(id, id, RDMA_CM_EVENT_ESTABLISHED, 0, NULL))
		return ENOMEM;
	id->state = SOFT_ID_ESTABLISHED;
	soft_half_open_leave(id);
	soft_cm_answered(id);
	return 0;
}

int soft_notify(struct rdma_cm_id *rdma_id, enum ibv_event_type event)
{
	struct soft_id *id = soft_id_lock(rdma_id);
	int error = EINVAL;

	if (!id)
		return -1;
	if (event == IBV_EVENT_COMM_EST)
		error = establish_early(id);
	else if (event == IBV_EVENT_PATH_MIG && id->state == SOFT_ID_ESTABLISHED)
		error = 0; /* there is only one path */
	return soft_cm_finish(id->cm, error);
}

int soft_disconnect(struct rdma_cm_id *rdma_id)
{
	struct soft_id *id = soft_id_lock_any(rdma_id);
	int error = 0;

	if (!id)
		return -1;
	soft_id_fail_qp(id); /* like librdmacm, before it calls the kernel */
	switch (id->state) {
	case SOFT_ID_IDLE:
	case SOFT_ID_BOUND:
	case SOFT_ID_ADDR_QUERY:
	case SOFT_ID_ADDR_RESOLVED:
	case SOFT_ID_ROUTE_QUERY:
	case SOFT_ID_ROUTE_RESOLVED:
		error = soft_refuse(EINVAL, "there was never a connection");
		break;
	case SOFT_ID_REMOVED: /* librdmacm modifies the queue pair first, which fails with EIO */
		error = soft_refuse(id->rdma.qp ? EIO : ENXIO, "the id's device was removed; destroy the id");
		break;
	case SOFT_ID_ESTABLISHED:
		soft_cm_send_dreq(id);
		break;
	case SOFT_ID_DREQ_RECEIVED:
		soft_cm_send_plain(id, SOFT_CM_DREP);
		soft_cm_enter_timewait(id);
		break;
	default: /* also a listener */
		/* Nothing to end. Linux returns 0. */
		break;
	}
	return soft_cm_finish(id->cm, error) ? -1 : soft_id_complete(rdma_id);
}
