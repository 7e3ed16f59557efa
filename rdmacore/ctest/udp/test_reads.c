/*
 * On the link udp a long READ is answered in parts: other work goes between them, and requests behind it wait. Counted in
 * packets, not timed.
 */
#include <stdatomic.h>
#include <string.h>

#include "ctest/support/bare.h"
#include "ctest/support/check.h"
#include "ctest/support/sides.h"
#include "ctest/support/udp_counts.h"
#include "soft/engine/segment.h"
#include "soft/host.h"
#include "soft/udp/udp.h"
#include "soft/udp/internal.h"
#include "soft/objects/qp.h"

#define ROOM 16
#define PACKETS 200 /* of an answer */
#define BEHIND 8 /* requests */
#define BACK (BENCH_MEMORY / 2) /* where what comes back goes */

/* Packets that the responder has sent. */
static struct {
	void (*send)(struct soft_link *link, struct soft_burst *burst, struct soft_qp *qp, const struct soft_packet *packet,
		     uint8_t *bytes, size_t length);
	struct soft_qp *reader, *other; /* the responders of the READ and of the other connection */
	_Atomic uint32_t answers; /* packets of the READ's answer */
	_Atomic uint32_t at_other, at_own; /* those before the first acknowledgement of either connection; or 0 */
} seen;

static void count(struct soft_link *link, struct soft_burst *burst, struct soft_qp *qp, const struct soft_packet *packet,
		  uint8_t *bytes, size_t length)
{
	uint32_t none = 0, answers = atomic_load(&seen.answers);

	if (packet->opcode != SOFT_ACKNOWLEDGE)
		atomic_store(&seen.answers, answers + 1);
	else if (qp == seen.other)
		atomic_compare_exchange_strong(&seen.at_other, &none, answers + 1);
	else if (qp == seen.reader)
		atomic_compare_exchange_strong(&seen.at_own, &none, answers + 1);
	seen.send(link, burst, qp, packet, bytes, length);
}

static struct soft_udp *responder_of(struct sides *sides)
{
	return sides_host(sides, 1)->udp;
}

/* Its own requests are no longer than half of its buffer; a device's may be as long as a message. */
static void open_sides(struct sides *sides, uint32_t room)
{
	sides_open(sides, IBV_QPT_RC);
	soft_qp(sides->ends[0].qp)->segmentation->read_limit = PACKETS;
	bare_hold(&responder_of(sides)->receiving);
	responder_of(sides)->reads.room = responder_of(sides)->link.read_room = room;
}

static void test_between(void)
{
	struct bare other[2];
	struct soft_udp *udp;
	struct sides sides;
	struct ibv_sge sge;
	struct ibv_send_wr wr;
	uint32_t length;

	open_sides(&sides, ROOM);
	udp = responder_of(&sides);
	bare_let_go(&udp->receiving);
	for (int side = 0; side < 2; side++)
		bare_create(&other[side], &sides.benches[side], IBV_QPT_RC, NULL);
	bare_connect(&other[0], &other[1]);
	CHECK(!bare_recv(&other[1], 5, BACK + BEHIND, 64));
	for (uint64_t request = 0; request < BEHIND; request++)
		CHECK(!bare_recv(&sides.ends[1], 10 + request, BACK + request, 1));
	length = (PACKETS - 1) * soft_qp(sides.ends[0].qp)->segmentation->mtu + 1;
	CHECK(length <= BACK);
	sides_fill(sides.benches[1].memory, length, 3);
	memset(sides.benches[0].memory, 0, length);

	bare_hold(&udp->receiving);
	seen.reader = soft_qp(sides.ends[1].qp);
	seen.other = soft_qp(other[1].qp);
	seen.send = udp->link.send;
	udp->link.send = count;
	sides_post(&sides, IBV_WR_RDMA_READ, length);
	sge = bench_sge(&sides.benches[0], BACK, 1);
	for (uint64_t request = 0; request < BEHIND; request++) {
		wr = bench_wr(IBV_WR_SEND, 20 + request, &sge);
		CHECK(!bare_post(&sides.ends[0], &wr));
	}
	wr = bench_wr(IBV_WR_SEND, 4, &sge);
	CHECK(!bare_post(&other[0], &wr));
	bare_let_go(&udp->receiving);

	expect_wc(&other[0], 4, IBV_WC_SUCCESS);
	expect_wc(&other[1], 5, IBV_WC_SUCCESS);
	expect_wc(&sides.ends[0], 1, IBV_WC_SUCCESS);
	for (uint64_t request = 0; request < BEHIND; request++) {
		expect_wc(&sides.ends[0], 20 + request, IBV_WC_SUCCESS);
		expect_wc(&sides.ends[1], 10 + request, IBV_WC_SUCCESS);
	}
	CHECK(!memcmp(sides.benches[0].memory, sides.benches[1].memory, length));
	CHECK(atomic_load(&seen.answers) >= PACKETS);
	/*
	 * Packets of the other connection after a part or two, and those of the requests behind the READ after all of
	 * it.
	 */
	CHECK(atomic_load(&seen.at_other) && atomic_load(&seen.at_other) <= 4 * ROOM);
	CHECK(atomic_load(&seen.at_own) > PACKETS);
	CHECK(udp_count(udp).dropped == 0);
	bare_hold(&udp->receiving);
	CHECK(!udp->reads.first && !udp->reads.waiting);
	udp->link.send = seen.send;
	bare_let_go(&udp->receiving);
	for (int side = 0; side < 2; side++)
		bare_destroy(&other[side]);
	sides_close(&sides);
}

/* The queue pair goes to ERR, or is destroyed, with most of an answer to give, and requests that wait. */
static void test_end(bool destroyed)
{
	struct soft_udp *udp;
	struct sides sides;
	struct ibv_sge sge;
	struct ibv_send_wr wr;

	open_sides(&sides, 1);
	udp = responder_of(&sides);
	sides_post(&sides, IBV_WR_RDMA_READ, PACKETS * 1024);
	sge = bench_sge(&sides.benches[0], 0, 1);
	wr = bench_wr(IBV_WR_SEND, 2, &sge);
	CHECK(!bare_post(&sides.ends[0], &wr));
	bare_let_go(&udp->receiving);
	if (destroyed) {
		bare_destroy(&sides.ends[1]);
		bare_create(&sides.ends[1], &sides.benches[1], IBV_QPT_RC, NULL);
	} else {
		bare_fail(&sides.ends[1]);
	}
	bare_fail(&sides.ends[0]);
	sides_close(&sides);
}

int main(void)
{
	test_between();
	test_end(false);
	test_end(true);
	return 0;
}
