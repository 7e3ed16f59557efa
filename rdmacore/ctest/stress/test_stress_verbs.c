/*
 * Sixteen ends, connected in pairs, execute random operations while each resets, destroys or fails its queue pair,
 * deregisters memory, or loses its device. Sent messages arrive once, in order and complete; each request completes
 * once and in order; no completion comes without its event; nothing is left.
 */
#include <fcntl.h>
#include <poll.h>

#include "core/core.h"
#include "ctest/stress/stress.h"
#include "ctest/support/bare.h"
#include "ctest/support/check.h"
#include "soft/base/lock.h"

#define PAIRS 8
#define DEPTH 16 /* of each queue; a power of two */
#define SLOT 512 /* the longest message */
#define MOST_MESSAGES 300
#define RECEIVE (UINT64_C(1) << 40) /* in the wr_id of receives */
#define RIGHTS (BENCH_ACCESS | IBV_ACCESS_MW_BIND)

/* Parts of the end's memory. */
enum { RECEIVES, SENDS = DEPTH * SLOT, WINDOW = 2 * DEPTH * SLOT, SOURCE = 3 * DEPTH * SLOT,
       COUNTER = SOURCE + SLOT, SPARE = COUNTER + SLOT, MEMORY = SPARE + SLOT };

/* How an end's part in a life of its pair ends. */
enum act { FINISH, RESET, DESTROY, FAIL, DEREGISTER, ACTS };
enum reading { POLL, EXTENDED, EVENTS, READINGS };

/* A request that has not completed; successful ones complete only if they are signaled. */
struct request {
	enum ibv_wr_opcode opcode;
	bool signaled;
	uint32_t length;
};

struct side {
	struct bare bare;
	struct bench bench; /* whatever is the device's this time */
	struct ibv_comp_channel *channel;
	struct ibv_srq *srq;
	struct ibv_mw *window;
	char memory[MEMORY] __attribute__((aligned(SOFT_CACHE_LINE)));
	bool ready; /* it has all that it needs */
	enum reading reading;
	enum act act;
	uint32_t act_at; /* after so many messages */
	uint32_t key, qp_num; /* of memory and of the queue pair, for the peer */
	uint64_t life_key; /* of what it sends */
	uint32_t messages; /* to send */
	struct request requests[DEPTH];
	uint32_t posted, completed; /* requests */
	uint32_t sent, sent_well; /* messages, which take a receive of the peer; of those the ones known to be there */
	uint32_t receives, received, flushed;
	uint32_t added, added_well; /* to the peer's counter */
	uint32_t unacknowledged;
	bool failed; /* a completion of a request or a receive had an error */
	bool request_failed; /* then the others are flushed; those of receives come at any time */
	bool drained; /* all that completes has completed, and was looked at */
	_Atomic bool finished; /* what it sends has arrived */
	_Atomic bool over; /* its queue pair works no more in this life */
};

/* Two sides, which meet between the phases of a life. */
struct couple {
	struct side sides[2];
	struct stress_meeting meeting;
	bool more;
};

static struct couple couples[PAIRS];

static bool is_removed(const struct side *side)
{
	struct ibv_device_attr attr;

	return side->bench.provider->ibv_query_device(side->bench.context, &attr) == EIO;
}

/* --- a life begins -------------------------------------------------------------------------------- */

static struct ibv_cq *make_cq(struct side *side)
{
	struct core_provider *provider = side->bench.provider;
	struct ibv_cq_init_attr_ex attr = {.cqe = 4 * DEPTH, .wc_flags = IBV_WC_STANDARD_FLAGS};

	if (side->reading == EXTENDED)
		return (struct ibv_cq *)ibv_create_cq_ex(side->bench.context, &attr);
	if (side->reading == EVENTS) {
		side->channel = provider->ibv_create_comp_channel(side->bench.context);
		if (!side->channel)
			return NULL;
		CHECK(!fcntl(side->channel->fd, F_SETFL, O_NONBLOCK));
	}
	return provider->ibv_create_cq(side->bench.context, 4 * DEPTH, side, side->channel, 0);
}

/* False: the device is away, or has just gone. */
static bool make(struct stress_thread *thread, struct side *side)
{
	struct core_provider *provider = thread->stress->provider;
	struct ibv_srq_init_attr shared = {.attr = {.max_wr = DEPTH, .max_sge = 1}};
	struct ibv_qp_init_attr attr = {.cap = {DEPTH, DEPTH, 1, 1, 0}, .qp_type = IBV_QPT_RC};
	struct ibv_context **list = provider->rdma_get_devices(NULL);

	*side = (struct side){.bench.provider = provider, .bare.bench = &side->bench};
	if (!list)
		return false;
	side->bench.context = list[0];
	provider->rdma_free_devices(list);
	side->reading = (enum reading)stress_below(thread, READINGS);
	side->act = stress_below(thread, 2) ? FINISH : (enum act)stress_below(thread, ACTS);
	side->messages = stress_below(thread, MOST_MESSAGES);
	side->act_at = stress_below(thread, MOST_MESSAGES);
	side->life_key = soft_random_next(&thread->random);
	stress_fill(side->memory + SOURCE, SLOT, side->life_key);
	side->bench.mtu = IBV_MTU_1024;
	if (provider->ibv_query_gid(side->bench.context, 1, 0, &side->bench.gid) ||
	    !(side->bench.pd = provider->ibv_alloc_pd(side->bench.context)) ||
	    !(side->bench.mr = provider->ibv_reg_mr(side->bench.pd, side->memory, MEMORY, RIGHTS)) ||
	    !(side->window = ibv_alloc_mw(side->bench.pd, IBV_MW_TYPE_1)) || !(side->bare.cq = make_cq(side)))
		return false;
	if (!stress_below(thread, 3) && !(side->srq = provider->ibv_create_srq(side->bench.pd, &shared)))
		return false;
	attr.srq = side->srq;
	attr.send_cq = attr.recv_cq = side->bare.cq;
	side->bare.qp = provider->ibv_create_qp(side->bench.pd, &attr);
	if (!side->bare.qp)
		return false;
	side->bench.memory = side->memory;
	side->key = side->bench.mr->rkey;
	side->qp_num = side->bare.qp->qp_num;
	return true;
}

/* The same as bare_connect, for one side, which may lose its device meanwhile. */
static bool connect_to(struct side *side, const struct side *peer)
{
	struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT, .port_num = 1,
				   .qp_access_flags = BENCH_ACCESS & ~IBV_ACCESS_LOCAL_WRITE};
	struct ibv_qp_attr receive = {.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .rq_psn = 100,
				      .dest_qp_num = peer->qp_num, .max_dest_rd_atomic = 4,
				      .min_rnr_timer = 1,
				      .ah_attr = {.is_global = 1, .port_num = 1,
						  .grh = {.dgid = side->bench.gid, .hop_limit = 64}}};
	struct ibv_qp_attr send = {.qp_state = IBV_QPS_RTS, .sq_psn = 100, .timeout = 11, .retry_cnt = 2,
				   .rnr_retry = 7, .max_rd_atomic = 4};

	return !bare_modify(&side->bare, init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) &&
	       !bare_modify(&side->bare, receive,
			    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				    IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) &&
	       !bare_modify(&side->bare, send,
			    IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				    IBV_QP_MAX_QP_RD_ATOMIC);
}

/* --- work ----------------------------------------------------------------------------------------- */

/* Each receive is as long as the longest message. */
static bool post_receive(struct side *side)
{
	size_t slot = RECEIVES + side->receives % DEPTH * SLOT;
	uint64_t wr_id = RECEIVE | side->receives;
	int error = side->srq ? srq_recv(&side->bench, side->srq, wr_id, slot, SLOT) :
				bare_recv(&side->bare, wr_id, slot, SLOT);

	CHECK(!error || error == EIO);
	side->receives += !error;
	return !error;
}

static uint64_t message_key(const struct side *from, uint32_t message)
{
	return from->life_key + 1 + message;
}

static bool takes_receive(enum ibv_wr_opcode opcode)
{
	return opcode == IBV_WR_SEND || opcode == IBV_WR_SEND_WITH_IMM || opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

static bool post_bind(struct side *side)
{
	struct ibv_mw_bind bind = {.wr_id = side->posted, .send_flags = IBV_SEND_SIGNALED};
	int error;

	bind.bind_info = (struct ibv_mw_bind_info){.mr = side->bench.mr, .addr = (uintptr_t)side->memory,
						   .length = SLOT, .mw_access_flags = IBV_ACCESS_REMOTE_WRITE};
	error = ibv_bind_mw(side->bare.qp, side->window, &bind);
	CHECK(!error || error == EIO);
	return !error;
}

static bool post_request(struct stress_thread *thread, struct side *side, const struct side *peer)
{
	static const enum ibv_wr_opcode opcodes[] = {
		IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_SEND, IBV_WR_RDMA_READ,
		IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_RDMA_WRITE, IBV_WR_BIND_MW,
	};
	struct request *request = &side->requests[side->posted % DEPTH];
	enum ibv_wr_opcode opcode = opcodes[stress_below(thread, sizeof(opcodes) / sizeof(opcodes[0]))];
	uint32_t length = 1 + stress_below(thread, SLOT), slot = side->posted % DEPTH * SLOT;
	/* The last request that there is room for is signaled, because its completion makes room. */
	bool signaled = (side->posted + 1) % (DEPTH / 2) == 0 || stress_below(thread, 3);
	struct ibv_sge sge = bench_sge(&side->bench, SENDS + slot, length);
	struct ibv_send_wr wr = bench_wr(opcode, side->posted, &sge);
	int error;

	if (opcode == IBV_WR_BIND_MW && !side->window)
		return true;
	if (opcode == IBV_WR_BIND_MW) {
		*request = (struct request){opcode, true, 0};
		return post_bind(side) && ++side->posted;
	}
	wr.send_flags = signaled ? IBV_SEND_SIGNALED : 0;
	wr.wr.rdma.remote_addr = (uintptr_t)peer->memory + WINDOW + side->sent % DEPTH * SLOT;
	wr.wr.rdma.rkey = peer->key;
	wr.imm_data = side->sent;
	if (takes_receive(opcode) || opcode == IBV_WR_RDMA_WRITE)
		stress_fill(side->memory + SENDS + slot, length, message_key(side, side->sent));
	if (opcode == IBV_WR_RDMA_WRITE) /* where no check reads */
		wr.wr.rdma.remote_addr = (uintptr_t)peer->memory + SPARE;
	if (opcode == IBV_WR_RDMA_READ)
		wr.wr.rdma.remote_addr = (uintptr_t)peer->memory + SOURCE;
	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		sge.length = sizeof(uint64_t);
		wr.wr.atomic.remote_addr = (uintptr_t)peer->memory + COUNTER;
		wr.wr.atomic.rkey = peer->key;
		wr.wr.atomic.compare_add = 1;
	}
	*request = (struct request){opcode, signaled, sge.length};
	error = bare_post(&side->bare, &wr);
	CHECK(!error || error == EIO);
	if (error)
		return false;
	side->posted++;
	side->sent += takes_receive(opcode);
	side->added += opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
	return true;
}

/* That request, and the unsignaled ones before it, have succeeded. */
static void succeeded(struct side *side, const struct side *peer, uint32_t number)
{
	for (; side->completed != number + 1; side->completed++) {
		const struct request *request = &side->requests[side->completed % DEPTH];

		CHECK(side->completed == number || !request->signaled);
		side->sent_well += takes_receive(request->opcode);
		side->added_well += request->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
		if (request->opcode == IBV_WR_RDMA_READ)
			CHECK(stress_check(side->memory + SENDS + side->completed % DEPTH * SLOT, request->length,
					   peer->life_key));
	}
}

static void look_at_request(struct side *side, const struct side *peer, const struct ibv_wc *wc)
{
	uint32_t number = (uint32_t)wc->wr_id;

	CHECK(number - side->completed < side->posted - side->completed);
	if (wc->status == IBV_WC_SUCCESS) {
		CHECK(!side->request_failed);
		succeeded(side, peer, number);
		return;
	}
	/* The first failure shows that all requests before it succeeded; the others are flushed one by one. */
	CHECK(!side->request_failed || (wc->status == IBV_WC_WR_FLUSH_ERR && number == side->completed));
	if (number != side->completed)
		succeeded(side, peer, number - 1);
	side->completed++;
	side->request_failed = side->failed = true;
}

static void look_at_receive(struct side *side, const struct side *peer, const struct ibv_wc *wc)
{
	const char *where = side->memory + (wc->opcode == IBV_WC_RECV ? RECEIVES : WINDOW) +
			    side->received % DEPTH * SLOT;

	CHECK((wc->wr_id ^ RECEIVE) == side->received + side->flushed);
	if (wc->status != IBV_WC_SUCCESS) {
		side->failed = true;
		side->flushed++;
		return;
	}
	CHECK(!side->flushed && wc->byte_len <= SLOT);
	CHECK(stress_check(where, wc->byte_len, message_key(peer, side->received)));
	CHECK(!(wc->wc_flags & IBV_WC_WITH_IMM) || wc->imm_data == side->received);
	side->received++;
}

static void look_at(struct side *side, const struct side *peer, const struct ibv_wc *wc)
{
	if (wc->wr_id & RECEIVE)
		look_at_receive(side, peer, wc);
	else
		look_at_request(side, peer, wc);
}

/* --- completions ---------------------------------------------------------------------------------- */

/* Another receive is posted while a completion is shown. */
static int read_extended(struct side *side, const struct side *peer)
{
	struct ibv_cq_ex *cq = (struct ibv_cq_ex *)side->bare.cq;
	struct ibv_poll_cq_attr attr = {0};
	int read = 0;

	if (ibv_start_poll(cq, &attr))
		return 0;
	do {
		struct ibv_wc wc = {.wr_id = cq->wr_id, .status = cq->status, .opcode = ibv_wc_read_opcode(cq),
				    .byte_len = ibv_wc_read_byte_len(cq), .imm_data = ibv_wc_read_imm_data(cq),
				    .wc_flags = ibv_wc_read_wc_flags(cq)};

		look_at(side, peer, &wc);
		if (side->bench.mr && !side->failed && side->receives - side->received < DEPTH)
			post_receive(side);
		read++;
	} while (read < DEPTH && !ibv_next_poll(cq));
	ibv_end_poll(cq);
	return read;
}

static int read_completions(struct side *side, const struct side *peer)
{
	struct ibv_wc wc[4];
	int count;

	if (side->reading == EXTENDED)
		return read_extended(side, peer);
	count = ibv_poll_cq(side->bare.cq, 4, wc);
	CHECK(count >= 0);
	for (int index = 0; index < count; index++)
		look_at(side, peer, &wc[index]);
	return count;
}

static void take_event(struct side *side)
{
	struct core_provider *provider = side->bench.provider;
	struct ibv_cq *cq;
	void *context;

	CHECK(!provider->ibv_get_cq_event(side->channel, &cq, &context));
	CHECK(cq == side->bare.cq && context == side);
	if (++side->unacknowledged < 3)
		return;
	provider->ibv_ack_cq_events(cq, side->unacknowledged);
	side->unacknowledged = 0;
}

/* A completion after arming raises an event. */
static void sleep_until_event(struct side *side, const struct side *peer)
{
	struct pollfd readable = {.fd = side->channel->fd, .events = POLLIN};

	CHECK(!ibv_req_notify_cq(side->bare.cq, 0));
	if (read_completions(side, peer))
		return;
	if (poll(&readable, 1, 2) == 0) {
		if (!read_completions(side, peer))
			return;
		CHECK(poll(&readable, 1, 60000) == 1);
	}
	take_event(side);
}

static void rest(struct stress_thread *thread, struct side *side, const struct side *peer)
{
	if (side->reading == EVENTS)
		sleep_until_event(side, peer);
	else
		stress_pause(thread);
}

/* --- the course of a life ------------------------------------------------------------------------- */

/* Operations of another thread on the same device that are independent of this one. */
static void do_something_else(struct stress_thread *thread, struct side *side)
{
	struct core_provider *provider = side->bench.provider;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct ibv_mr *mr;
	int error;

	switch (stress_below(thread, 60)) {
	case 0:
		mr = provider->ibv_reg_mr(side->bench.pd, side->memory + SPARE, SLOT, RIGHTS);
		if (mr)
			CHECK(!provider->ibv_dereg_mr(mr));
		break;
	case 1:
		error = provider->ibv_resize_cq(side->bare.cq, (int)((4 + stress_below(thread, 8)) * DEPTH));
		CHECK(!error || error == EIO);
		break;
	case 2:
		error = provider->ibv_query_qp(side->bare.qp, &attr, IBV_QP_STATE, &init);
		CHECK(!error || error == EIO);
		break;
	}
}

static bool work_once(struct stress_thread *thread, struct side *side, struct side *peer)
{
	bool busy = false, posts = side->sent < side->messages && side->posted - side->completed < DEPTH;

	while (side->receives - side->received < DEPTH)
		if (!post_receive(side))
			return false;
	if (posts && !post_request(thread, side, peer))
		return false;
	if (!posts || stress_below(thread, 4) == 0)
		busy = read_completions(side, peer);
	do_something_else(thread, side);
	if (side->sent == side->messages && side->completed == side->posted)
		atomic_store(&side->finished, true);
	if (busy || posts) {
		stress_progresses(thread);
		return true;
	}
	rest(thread, side, peer);
	return !is_removed(side); /* then nothing completes any more */
}

/* The last requests may have succeeded unsignaled: one more shows it. */
static bool ask_for_the_last(struct side *side)
{
	const struct request *last = &side->requests[(side->posted - 1) % DEPTH];
	struct ibv_sge sge = bench_sge(&side->bench, SENDS, 0);
	struct ibv_send_wr wr = bench_wr(IBV_WR_RDMA_WRITE, side->posted, &sge);

	if (side->sent != side->messages || side->completed == side->posted || last->signaled ||
	    side->posted - side->completed == DEPTH)
		return true;
	wr.num_sge = 0;
	side->requests[side->posted % DEPTH] = (struct request){IBV_WR_RDMA_WRITE, true, 0};
	if (bare_post(&side->bare, &wr))
		return false;
	side->posted++;
	return true;
}

/* Until the time is over, or another thread has ended. */
static void work(struct stress_thread *thread, struct side *side, struct side *peer)
{
	for (;;) {
		bool peer_over = atomic_load(&peer->over), peer_finished = atomic_load(&peer->finished);

		stress_does(thread, atomic_load(&side->finished) ? "waits for messages of its peer" : "sends");
		if (side->failed || (side->act != FINISH && side->received + side->completed >= side->act_at))
			return;
		if (atomic_load(&side->finished) && peer_finished) {
			while (read_completions(side, peer)) /* all that was sent is there */
				;
			return;
		}
		if (peer_over || !work_once(thread, side, peer) || !ask_for_the_last(side))
			return;
	}
}

static void free_memory(struct side *side)
{
	if (side->window)
		CHECK(!ibv_dealloc_mw(side->window));
	if (side->bench.mr)
		CHECK(!side->bench.provider->ibv_dereg_mr(side->bench.mr));
	side->window = NULL;
	side->bench.mr = NULL;
}

static void destroy_qp(struct side *side)
{
	CHECK(!side->bench.provider->ibv_destroy_qp(side->bare.qp));
	side->bare.qp = NULL;
}

/* Everything that was posted completes, unless the device goes. */
static void drain(struct stress_thread *thread, struct side *side, struct side *peer)
{
	if (bare_modify(&side->bare, (struct ibv_qp_attr){.qp_state = IBV_QPS_ERR}, IBV_QP_STATE)) {
		destroy_qp(side);
		return;
	}
	stress_does(thread, "waits for what it had posted to be flushed");
	while (side->completed != side->posted ||
	       (!side->srq && side->received + side->flushed != side->receives))
		if (!read_completions(side, peer)) {
			if (is_removed(side)) {
				destroy_qp(side);
				return;
			}
			stress_pause(thread);
		}
	/* Of a shared queue only completed receives are known. */
	while (read_completions(side, peer))
		CHECK(side->srq);
	side->drained = true;
}

/*
 * Afterwards the queue pair does nothing any more. It is destroyed, because it might still do something while its
 * device is being removed.
 */
static void end_work(struct stress_thread *thread, struct side *side, struct side *peer)
{
	switch (atomic_load(&side->finished) && atomic_load(&peer->finished) ? FINISH : side->act) {
	case RESET:
		if (bare_modify(&side->bare, (struct ibv_qp_attr){.qp_state = IBV_QPS_RESET}, IBV_QP_STATE))
			destroy_qp(side);
		break;
	case DESTROY:
		destroy_qp(side);
		break;
	case DEREGISTER:
		free_memory(side);
		drain(thread, side, peer);
		break;
	default:
		drain(thread, side, peer);
		break;
	}
	atomic_store(&side->over, true);
}

/* One end has received what the other has sent; requests without a known result may or may not have arrived. */
static void compare(const struct side *from, const struct side *to)
{
	uint64_t count;

	memcpy(&count, to->memory + COUNTER, sizeof(count));
	CHECK(count >= from->added_well && count <= from->added);
	CHECK(to->received <= from->sent);
	if (to->drained)
		CHECK(to->received >= from->sent_well);
}

static void unmake(struct side *side)
{
	struct core_provider *provider = side->bench.provider;

	if (side->unacknowledged)
		provider->ibv_ack_cq_events(side->bare.cq, side->unacknowledged);
	if (side->bare.qp)
		CHECK(!provider->ibv_destroy_qp(side->bare.qp));
	if (side->srq)
		CHECK(!provider->ibv_destroy_srq(side->srq));
	if (side->bare.cq)
		CHECK(!provider->ibv_destroy_cq(side->bare.cq));
	if (side->channel)
		CHECK(!provider->ibv_destroy_comp_channel(side->channel));
	free_memory(side);
	if (side->bench.pd)
		CHECK(!provider->ibv_dealloc_pd(side->bench.pd));
}

static void live(struct stress_thread *thread)
{
	struct couple *couple = &couples[thread->number / 2];
	struct side *side = &couple->sides[thread->number % 2], *peer = &couple->sides[1 - thread->number % 2];

	for (;;) {
		if (thread->number % 2 == 0)
			couple->more = stress_goes_on(thread->stress);
		stress_meet(thread, &couple->meeting, "waits for its peer to begin");
		if (!couple->more)
			return;
		side->ready = make(thread, side);
		stress_meet(thread, &couple->meeting, "waits for its peer to be made");
		if (side->ready && peer->ready) {
			if (connect_to(side, peer))
				work(thread, side, peer);
			stress_does(thread, "ends its work");
			end_work(thread, side, peer);
			stress_meet(thread, &couple->meeting, "waits for its peer to end");
			compare(side, peer);
		} else {
			stress_pause(thread);
		}
		stress_meet(thread, &couple->meeting, "waits for its peer to compare");
		stress_does(thread, "destroys what it had");
		unmake(side);
		thread->rounds++;
	}
}

int main(int count, char **arguments)
{
	struct stress stress;

	stress_open(&stress, count, arguments);
	for (unsigned int pair = 0; pair < PAIRS; pair++)
		stress_meeting_init(&couples[pair].meeting);
	for (unsigned int end = 0; end < 2 * PAIRS; end++)
		stress_add(&stress, "end", end, live);
	stress_add(&stress, "remover", 0, stress_remove_device);
	stress_run(&stress);
	stress_close(&stress);
	return 0;
}
