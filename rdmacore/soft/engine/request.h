/* The packet that is made of a request; requester.lock is held. */
#ifndef SOFT_ENGINE_REQUEST_H
#define SOFT_ENGINE_REQUEST_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

struct soft_packet;
struct soft_qp;
struct soft_send_wqe;

/* Resolve the request's own memory.  False: some key, range or right is wrong. */
bool soft_request_translate(struct soft_qp *qp, struct soft_send_wqe *wqe, uint32_t access,
			    struct soft_packet *packet);
/* The packet of the request; IBV_WC_SUCCESS, or why it cannot be sent. */
enum ibv_wc_status soft_request_build(struct soft_qp *qp, struct soft_send_wqe *wqe,
				      struct soft_packet *packet);

#endif
