/* Acknowledgements that wait for the end of a pass over what has come. */
#include "soft/udp/internal.h"

#include "soft/base/fabric.h"
#include "soft/objects/qp.h"

bool soft_udp_queue_ack(struct soft_link *link, struct soft_qp *qp)
{
	struct soft_udp *udp = soft_udp_of(link);

	soft_lock_expect(&udp->receiving);
	if (udp->ack_queue_count == SOFT_UDP_ACK_QUEUE)
		return false;
	soft_qp_hold(qp);
	udp->ack_queue[udp->ack_queue_count++] = qp;
	return true;
}

static void release_receiver(struct soft_udp *udp)
{
	if (udp->receiver)
		soft_qp_release(udp->receiver);
	udp->receiver = NULL;
}

void soft_udp_acknowledge(struct soft_udp *udp)
{
	soft_lock_expect(&udp->receiving);
	release_receiver(udp);
	for (uint32_t index = 0; index < udp->ack_queue_count; index++) {
		soft_link_acknowledge(udp->ack_queue[index]);
		soft_qp_release(udp->ack_queue[index]);
	}
	udp->ack_queue_count = udp->acks_delayed = 0;
}

void soft_udp_drop_acks(struct soft_udp *udp)
{
	for (uint32_t index = 0; index < udp->ack_queue_count; index++)
		soft_qp_release(udp->ack_queue[index]);
	udp->ack_queue_count = udp->acks_delayed = 0;
	release_receiver(udp);
}
