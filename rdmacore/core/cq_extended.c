/* Completion queues of ibv_create_cq_ex(3): completions are read field by field, with time stamps. */
#include "core/call.h"

/*
 * Until rdma-core 55 (PR 1512 there) librxe counts a completion twice if ibv_next_poll finds no more and ibv_end_poll
 * follows, and returns the whole ring again. Until 59 it also unlocks twice (PR 1617). Its version cannot be found
 * out. So with rdma_rxe each completion has its own ibv_start_poll. The vendor is RXE_VENDOR_ID of its kernel module.
 */
static bool next_poll_works(struct core_provider *provider, struct ibv_context *context)
{
	struct ibv_device_attr attr;

	return !provider->libraries[1] || core_query_device(provider, context, &attr) || attr.vendor_id != 0xffffff;
}

int core_create_cq_ex(struct core_provider *provider, struct ibv_context *context, int entries,
		      struct ibv_comp_channel *channel, uint64_t wc_flags, struct ibv_cq **cq, bool *next_poll)
{
	struct ibv_cq_init_attr_ex attr = {.cqe = (uint32_t)entries, .channel = channel, .wc_flags = wc_flags};
	struct ibv_cq_ex *extended = ibv_create_cq_ex(context, &attr);

	if (!extended)
		return core_errno();
	*next_poll = next_poll_works(provider, context);
	*cq = ibv_cq_ex_to_cq(extended);
	core_count(provider, CORE_CQ, 1);
	return 0;
}

/* A field may be read only if the queue was created with its flag; for failures only these few may be read. */
static void read_completion(struct ibv_cq_ex *cq, uint64_t wc_flags, struct ibv_wc *wc)
{
	*wc = (struct ibv_wc){
		.wr_id = cq->wr_id,
		.status = cq->status,
		.vendor_err = ibv_wc_read_vendor_err(cq),
	};
	if (wc_flags & IBV_WC_EX_WITH_QP_NUM)
		wc->qp_num = ibv_wc_read_qp_num(cq);
	if (wc->status != IBV_WC_SUCCESS)
		return;
	wc->opcode = ibv_wc_read_opcode(cq);
	wc->wc_flags = ibv_wc_read_wc_flags(cq);
	if (wc_flags & IBV_WC_EX_WITH_BYTE_LEN)
		wc->byte_len = ibv_wc_read_byte_len(cq);
	/* The invalidated key has the same offset. */
	if (wc_flags & IBV_WC_EX_WITH_IMM && wc->wc_flags & (IBV_WC_WITH_IMM | IBV_WC_WITH_INV))
		wc->imm_data = ibv_wc_read_imm_data(cq);
	if (wc_flags & IBV_WC_EX_WITH_SRC_QP)
		wc->src_qp = ibv_wc_read_src_qp(cq);
	if (wc_flags & IBV_WC_EX_WITH_SLID)
		wc->slid = (uint16_t)ibv_wc_read_slid(cq);
	if (wc_flags & IBV_WC_EX_WITH_SL)
		wc->sl = ibv_wc_read_sl(cq);
	if (wc_flags & IBV_WC_EX_WITH_DLID_PATH_BITS)
		wc->dlid_path_bits = ibv_wc_read_dlid_path_bits(cq);
}

static void read_time(struct ibv_cq_ex *cq, uint64_t wc_flags, struct core_wc_time *time)
{
	*time = (struct core_wc_time){0};
	if (cq->status != IBV_WC_SUCCESS)
		return;
	if (wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP)
		time->raw = ibv_wc_read_completion_ts(cq);
	if (wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)
		time->wallclock = ibv_wc_read_completion_wallclock_ns(cq);
}

/* One ibv_start_poll and what ibv_next_poll finds, up to max: how many, or a negative errno. */
static int poll_once(struct ibv_cq_ex *cq, uint64_t wc_flags, int max, struct ibv_wc *wc, struct core_wc_time *times)
{
	struct ibv_poll_cq_attr attr = {0};
	int count = 0, result = ibv_start_poll(cq, &attr);

	if (result == ENOENT)
		return 0;
	if (result)
		return result > 0 ? -result : -EIO; /* and no ibv_end_poll(3) */
	do {
		read_completion(cq, wc_flags, &wc[count]);
		if (times)
			read_time(cq, wc_flags, &times[count]);
		count++;
	} while (count < max && !ibv_next_poll(cq)); /* the next poll reports a failure */
	ibv_end_poll(cq);
	return count;
}

int core_poll_cq_ex(struct ibv_cq *cq, uint64_t wc_flags, bool next_poll, int max, struct ibv_wc *wc,
		    struct core_wc_time *times, uint32_t attempts)
{
	struct ibv_cq_ex *extended = (struct ibv_cq_ex *)cq; /* the reverse of ibv_cq_ex_to_cq */
	int count, more;

	if (max <= 0)
		return max ? -EINVAL : 0;
	while (!(count = poll_once(extended, wc_flags, next_poll ? max : 1, wc, times))) {
		if (attempts <= 1)
			return 0;
		attempts--;
		core_pause();
	}
	if (count < 0 || next_poll)
		return count;
	for (; count < max; count += more) {
		more = poll_once(extended, wc_flags, 1, wc + count, times ? times + count : NULL);
		if (more <= 0) /* the next poll reports a failure */
			break;
	}
	return count;
}
