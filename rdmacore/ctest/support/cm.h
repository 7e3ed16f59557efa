/* Steps that tests of connection management share, each for either provider. */
#ifndef CTEST_SUPPORT_CM_H
#define CTEST_SUPPORT_CM_H

#include "core/core.h"
#include "ctest/support/pair.h"

/* A listener and a client, without queue pairs, on a channel each. The listener has read the client's request. */
struct setup {
	struct core_provider *provider;
	struct rdma_event_channel *passive, *active;
	struct rdma_cm_id *listener, *client, *child;
	uint32_t qp_num; /* the client's */
};

struct rdma_conn_param usual_param(void);
struct rdma_cm_id *resolved_client(struct core_provider *provider,
				   struct rdma_event_channel *channel, uint16_t port);
struct setup requested(struct core_provider *provider, uint16_t port);
/* The same with its request unread. */
struct setup connecting(struct core_provider *provider, uint16_t port);
/* Read the request. */
void take_request(struct setup *setup);
int accept_request(struct setup *setup);
/* Without queue pairs: CONNECT_RESPONSE, rdma_establish, ESTABLISHED at the passive side only. */
void establish(struct setup *setup);
void finish(struct setup *setup);
void destroy_id(struct setup *setup, struct rdma_cm_id **id);

void expect_status(struct setup *setup, struct rdma_event_channel *channel,
		   enum rdma_cm_event_type type, int status);
void expect_silence(struct rdma_event_channel *channel);
/* The call fails with -1 and that errno. */
#define REFUSED(call, error) CHECK((errno = 0, (call)) == -1 && errno == (error))

#endif
