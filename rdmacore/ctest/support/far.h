/*
 * Other hosts, which a test simulates: it passes management datagrams to a provider like the link udp, and reads its
 * answers.
 */
#ifndef CTEST_SUPPORT_FAR_H
#define CTEST_SUPPORT_FAR_H

#include "ctest/support/process.h"
#include "soft/wire/mad.h"

struct soft_cm;

#define FAR_GUID UINT64_C(0x0200000000abcdef)

/* An address of this host for other hosts: 192.0.2.77. */
extern const uint8_t far_own_ip[4];
/* For far_answer_dreqs: all hosts. */
extern const uint8_t far_everybody[4];

/* A process with that address. Nothing that it sends to other hosts leaves the machine. */
struct process far_start(uint64_t seed);
/* What processes sent to other hosts since the last far_forget, oldest first. */
uint32_t far_sent_count(void);
struct soft_cm_message far_sent(uint32_t index);
/* Its destination: a GID. */
const uint8_t *far_sent_to(uint32_t index);
void far_forget(void);
/* From now on the host of that address answers a DREQ for a connection that it does not have; NULL: none does. */
void far_answer_dreqs(const uint8_t ip[4]);
struct soft_cm *far_cm(struct process *process);

/* A port that no other run of a test has, with the next one: to other hosts all fabrics of a user are one. */
uint16_t far_port(void);
/* A socket address of IPv4. */
struct sockaddr_storage far_address(const uint8_t ip[4], uint16_t port);
/* A REQ for port from that address. */
struct soft_cm_message far_request(const uint8_t ip[4], uint32_t id, uint16_t port);
/* It arrives from that address. */
void far_arrive(struct process *process, const uint8_t ip[4], const struct soft_cm_message *message);
/* A listener on any address, so that other hosts reach it. */
struct rdma_cm_id *far_listen(struct process *process, uint16_t port);
/* Wait until condition is true. */
#define FAR_WAIT(condition)                                                                        \
	do {                                                                                       \
		for (int far_waited = 0; !(condition); far_waited++) {                             \
			CHECK(far_waited < 20000);                                                 \
			usleep(1000);                                                              \
		}                                                                                  \
	} while (0)

#endif
