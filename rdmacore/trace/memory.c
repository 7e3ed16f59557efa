/*
 * What happens to the memory of requests and regions, for "rdmarun check". "rdmarun record" has the contents of messages
 * recorded (contents.c), which needs to know the memory that can be read.
 *
 * A request that sends gets a sum of its memory when it is posted. When its completion is polled, and before the program
 * knows of it, the sum is taken again. If it differs, the program has changed memory that was being sent. An unsignaled
 * request is complete when a signaled one behind it is.
 *
 * free(3), munmap(2) and their kin are recorded when they have memory of a region. Its memory is not read any more then.
 */
#include "trace.h"

#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define REGIONS 4096 /* those of further regions are not watched */
#define BUCKETS 1024
#define SUMS 4 /* segments of a request that are watched */
#define SENDS (1u << 14) /* outstanding requests of a queue pair that are watched */
/* Of longer memory one line of each page counts. */
#define WHOLE (64u << 10)
#define PAGE 4096u
#define LINE 64u

struct region {
	const struct ibv_mr *mr; /* NULL: unused */
	const struct ibv_context *context;
	uintptr_t start, end;
	uint32_t key, next; /* index of the next one of the same bucket, plus 1 */
	uint32_t generation;
	bool readable; /* addresses of requests are those of the program, and none was unmapped */
	bool gone; /* recorded as freed or unmapped */
};

struct sum {
	uintptr_t address;
	uint32_t length, region, generation;
	uint64_t value;
};

/* A request that was posted. */
struct sent {
	uint64_t wr_id, number;
	bool signaled;
	bool reads; /* an RDMA READ; its sums have no value */
	uint32_t sums;
	struct sum list[SUMS];
};

struct sends {
	struct sends *next;
	const struct ibv_context *context;
	uint32_t qp_num;
	bool known; /* the program has created it by a call that says whether all requests are signaled */
	bool all_signaled;
	uint64_t posted;
	uint32_t count, room;
	struct sent *list; /* in the order of the posts */
};

static struct {
	bool on;
	bool contents; /* contents are recorded; else changes of memory are */
	pthread_mutex_t lock; /* guards the rest */
	_Atomic uintptr_t lowest, highest; /* of all regions; lowest only falls, highest only rises */
	struct region regions[REGIONS];
	uint32_t used; /* regions up to the last one */
	uint32_t by_key[BUCKETS]; /* index of a region, plus 1 */
	struct sends *by_number[BUCKETS];
} memory = {.lock = PTHREAD_MUTEX_INITIALIZER, .lowest = UINTPTR_MAX};

/* Whether this thread is in a function of this file. The allocator, or a signal handler, must not wait for the lock. */
static __thread bool inside;

void trace_memory_watch(bool contents)
{
	memory.on = true;
	memory.contents = contents;
}

bool trace_memory_is_watched(void)
{
	return memory.on;
}

bool trace_contents_are_recorded(void)
{
	return memory.contents;
}

void trace_memory_forget_lock(void)
{
	pthread_mutex_init(&memory.lock, NULL);
	inside = false;
}

static bool enter(void)
{
	if (!memory.on || inside)
		return false;
	inside = true;
	pthread_mutex_lock(&memory.lock);
	return true;
}

static void leave(void)
{
	pthread_mutex_unlock(&memory.lock);
	inside = false;
}

/* --- regions ------------------------------------------------------------------------------------------- */

static uint32_t *bucket_of(uint32_t key)
{
	return &memory.by_key[(key ^ key >> 8) % BUCKETS];
}

void trace_region_add(const struct ibv_mr *mr, uint64_t iova, unsigned int access)
{
	uintptr_t start = (uintptr_t)mr->addr, end = start + mr->length;
	bool whole = !start && end == UINTPTR_MAX; /* on demand, for all addresses */
	struct region *region = memory.regions;
	uint32_t *bucket;

	if (!enter())
		return;
	while (region < memory.regions + memory.used && region->mr)
		region++;
	if (region < memory.regions + REGIONS && end > start && !whole) {
		if (region == memory.regions + memory.used)
			memory.used++;
		bucket = bucket_of(mr->lkey);
		*region = (struct region){
			.mr = mr, .context = mr->context, .start = start, .end = end, .key = mr->lkey, .next = *bucket,
			.generation = region->generation + 1,
			.readable = iova == start && !(access & IBV_ACCESS_ZERO_BASED),
		};
		*bucket = (uint32_t)(region - memory.regions) + 1;
		if (start < memory.lowest)
			memory.lowest = start;
		if (end > memory.highest)
			memory.highest = end;
	}
	leave();
}

void trace_region_remove(const struct ibv_mr *mr)
{
	if (!enter())
		return;
	for (uint32_t *at = bucket_of(mr->lkey); *at; at = &memory.regions[*at - 1].next) {
		struct region *region = &memory.regions[*at - 1];

		if (region->mr == mr) {
			*at = region->next;
			region->mr = NULL;
			break;
		}
	}
	leave();
}

/* The region of a key that contains the memory and can be read; NULL: there is none. */
static struct region *region_of(const struct ibv_context *context, uint32_t key, uintptr_t address, uint32_t length)
{
	for (uint32_t at = *bucket_of(key); at; at = memory.regions[at - 1].next) {
		struct region *region = &memory.regions[at - 1];

		if (region->key == key && region->context == context)
			return region->readable && address >= region->start && address < region->end &&
			       length <= region->end - address ? region : NULL;
	}
	return NULL;
}

/* --- sums ---------------------------------------------------------------------------------------------- */

#define PRIME UINT64_C(0x9e3779b97f4a7c15)

static uint64_t add_to(uint64_t sum, const unsigned char *at, size_t length)
{
	uint64_t word;

	for (; length >= sizeof(word); at += sizeof(word), length -= sizeof(word)) {
		memcpy(&word, at, sizeof(word));
		sum = ((sum << 5 | sum >> 59) ^ word) * PRIME;
	}
	word = 0;
	memcpy(&word, at, length);
	return ((sum << 5 | sum >> 59) ^ word) * PRIME;
}

static uint64_t sum_of(uintptr_t address, uint32_t length)
{
	const unsigned char *at = (const unsigned char *)address;
	uint64_t sum = 0;

	if (length <= WHOLE)
		return add_to(sum, at, length);
	for (uint32_t offset = 0; offset + LINE < length; offset += PAGE)
		sum = add_to(sum, at + offset, LINE);
	return add_to(sum, at + length - LINE, LINE);
}

static struct sends **sends_of(const struct ibv_context *context, uint32_t qp_num)
{
	struct sends **at = &memory.by_number[qp_num % BUCKETS];

	while (*at && ((*at)->qp_num != qp_num || (*at)->context != context))
		at = &(*at)->next;
	return at;
}

/* The caller holds the lock. */
static struct sends *sends_make(const struct ibv_qp *qp)
{
	struct sends **at = sends_of(qp->context, qp->qp_num);

	if (!*at) {
		*at = calloc(1, sizeof(**at));
		if (*at)
			**at = (struct sends){.context = qp->context, .qp_num = qp->qp_num};
	}
	return *at;
}

void trace_sends_add(const struct ibv_qp *qp, bool all_signaled)
{
	struct sends *sends;

	if (!enter())
		return;
	sends = sends_make(qp);
	if (sends) {
		sends->known = true;
		sends->all_signaled = all_signaled;
	}
	leave();
}

void trace_sends_remove(const struct ibv_qp *qp)
{
	struct sends **at, *sends;

	if (!qp || !enter())
		return;
	at = sends_of(qp->context, qp->qp_num);
	sends = *at;
	if (sends) {
		*at = sends->next;
		free(sends->list);
		free(sends);
	}
	leave();
}

/* Room for one more; NULL: there is none. */
static struct sent *sends_grow(struct sends *sends)
{
	if (sends->count == sends->room) {
		uint32_t room = sends->room ? 2 * sends->room : 16;
		struct sent *list = room <= SENDS ? realloc(sends->list, room * sizeof(*list)) : NULL;

		if (!list)
			return NULL;
		sends->list = list;
		sends->room = room;
	}
	return &sends->list[sends->count++];
}

static bool sends_memory(const struct ibv_send_wr *wr)
{
	switch (wr->opcode) {
	case IBV_WR_SEND:
	case IBV_WR_SEND_WITH_IMM:
	case IBV_WR_SEND_WITH_INV:
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		return true;
	default:
		return false;
	}
}

static bool reads_memory(const struct ibv_send_wr *wr)
{
	return sends_memory(wr) && !(wr->send_flags & IBV_SEND_INLINE);
}

/*
 * The memory that a request sends is recorded, of the segments that the record of its post has. Data that is inline needs
 * no region. No device takes so much of it as WHOLE: such a request fails, and its memory may not be there.
 */
static void record_sent(const struct ibv_qp *qp, const struct ibv_send_wr *wr)
{
	bool is_inline = wr->send_flags & IBV_SEND_INLINE;

	for (int i = 0; i < wr->num_sge && i < TRACE_SEGMENTS && sends_memory(wr); i++) {
		const struct ibv_sge *part = &wr->sg_list[i];

		if (part->length && (is_inline ? part->length <= WHOLE :
						 region_of(qp->context, part->lkey, part->addr, part->length) != NULL))
			trace_content(TRACE_memory_sent, qp->qp_num, wr->wr_id, (const void *)(uintptr_t)part->addr,
				      part->length);
	}
}

static void take_sums(struct sent *sent, const struct ibv_context *context, const struct ibv_send_wr *wr)
{
	bool watched = memory.contents ? sent->reads : reads_memory(wr);

	for (int i = 0; i < wr->num_sge && sent->sums < SUMS && watched; i++) {
		const struct ibv_sge *part = &wr->sg_list[i];
		const struct region *region = region_of(context, part->lkey, part->addr, part->length);

		if (region && part->length)
			sent->list[sent->sums++] = (struct sum){
				part->addr, part->length, (uint32_t)(region - memory.regions), region->generation,
				sent->reads ? 0 : sum_of(part->addr, part->length),
			};
	}
}

uint64_t trace_sends_post(const struct ibv_qp *qp, const struct ibv_send_wr *wr)
{
	struct sends *sends;
	uint64_t first;

	if (!enter())
		return 0;
	sends = sends_make(qp);
	first = sends ? sends->posted : 0;
	for (; sends && wr; wr = wr->next) {
		struct sent *sent = sends_grow(sends);
		uint64_t number = sends->posted++;

		if (memory.contents)
			record_sent(qp, wr);
		if (!sent)
			continue;
		*sent = (struct sent){
			.wr_id = wr->wr_id, .number = number,
			.signaled = sends->all_signaled || wr->send_flags & IBV_SEND_SIGNALED,
			.reads = wr->opcode == IBV_WR_RDMA_READ,
		};
		take_sums(sent, qp->context, wr);
	}
	leave();
	return first;
}

static void remove_sent(struct sends *sends, uint32_t from, uint32_t to)
{
	memmove(&sends->list[from], &sends->list[to], (sends->count - to) * sizeof(*sends->list));
	sends->count -= to - from;
}

void trace_sends_take_back(const struct ibv_qp *qp, uint64_t from)
{
	struct sends *sends;

	if (!enter())
		return;
	sends = *sends_of(qp->context, qp->qp_num);
	for (uint32_t i = sends ? sends->count : 0; i > 0 && sends->list[i - 1].number >= from; i--)
		remove_sent(sends, i - 1, i);
	leave();
}

/* Whether the memory can still be read. */
static bool is_there(const struct sum *sum)
{
	const struct region *region = &memory.regions[sum->region];

	return region->mr && region->generation == sum->generation && region->readable;
}

static void record_change(const struct sent *sent, uint32_t qp_num, const struct sum *sum, struct trace_site site)
{
	struct trace_call call;

	trace_begin(&call, TRACE_memory_changed, site);
	if (call.on) {
		trace_put(&call, qp_num);
		trace_put(&call, sent->wr_id);
		trace_put(&call, sum->address);
		trace_put(&call, sum->length);
	}
	trace_end(&call, 0);
}

static void check_sent(const struct sends *sends, const struct sent *sent, struct trace_site site)
{
	for (uint32_t i = 0; i < sent->sums; i++) {
		const struct sum *sum = &sent->list[i];

		if (!is_there(sum))
			continue;
		if (sent->reads)
			trace_content(TRACE_memory_read, sends->qp_num, sent->wr_id, (const void *)sum->address, sum->length);
		else if (sum_of(sum->address, sum->length) != sum->value)
			record_change(sent, sends->qp_num, sum, site);
	}
}

/*
 * The first signaled request of that wr_id is complete, and the unsignaled ones in front of it. Those in front of
 * another signaled one are left to its completion: another thread may have polled it, and its memory is the program's
 * then.
 */
static void complete(struct sends *sends, uint64_t wr_id, struct trace_site site)
{
	uint32_t at = 0, first;

	while (at < sends->count && (sends->list[at].wr_id != wr_id || (sends->known && !sends->list[at].signaled)))
		at++;
	if (at == sends->count)
		return;
	for (first = at; first > 0 && !sends->list[first - 1].signaled; first--)
		;
	for (uint32_t i = sends->known ? first : at; i <= at; i++)
		check_sent(sends, &sends->list[i], site);
	remove_sent(sends, first, at + 1);
}

void trace_sends_complete(const struct ibv_context *context, const struct ibv_wc *wc, int count, struct trace_site site)
{
	if (count <= 0 || !enter())
		return;
	for (int i = 0; i < count; i++) {
		struct sends *sends = *sends_of(context, wc[i].qp_num);

		if (!sends)
			continue;
		if (wc[i].status != IBV_WC_SUCCESS)
			sends->count = 0; /* the queue pair is in ERR; opcode is not valid (ibv_poll_cq(3)) */
		else if (!(wc[i].opcode & IBV_WC_RECV))
			complete(sends, wc[i].wr_id, site);
	}
	leave();
}

/* --- memory that is given back --------------------------------------------------------------------------- */

/* Whether an address may be in a region. */
static bool may_be_registered(uintptr_t start, size_t length)
{
	return memory.on && !inside && start < memory.highest && start + length > memory.lowest;
}

/* The program gives memory back. True: regions have some of it. */
static bool give_back(uintptr_t start, size_t length)
{
	bool found = false;

	if (!enter())
		return false;
	for (struct region *each = memory.regions; each < memory.regions + memory.used; each++) {
		if (!each->mr || start >= each->end || start + length <= each->start)
			continue;
		found |= !each->gone;
		each->gone = true;
		each->readable = false;
	}
	leave();
	return found;
}

static void record_end(uint16_t number, uintptr_t start, size_t length, struct trace_site site)
{
	struct trace_call call;
	int error = errno;

	if (!may_be_registered(start, length) || !give_back(start, length))
		return;
	inside = true; /* the record needs no memory, but what it calls may */
	trace_begin(&call, number, site);
	if (call.on) {
		trace_put(&call, start);
		trace_put(&call, length);
	}
	trace_end(&call, 0);
	inside = false;
	errno = error;
}

/* The next function of that name; NULL within its own search: dlsym(3) may call free. */
static void *next_of(uint16_t number)
{
	static __thread uint16_t searched;
	uint16_t outer = searched;
	void *next;

	if (outer == number)
		return NULL;
	searched = number;
	next = trace_next(number);
	searched = outer;
	return next;
}

TRACE_EXPORT void free(void *pointer)
{
	void (*next)(void *) = (void (*)(void *))next_of(TRACE_free);

	if (pointer && may_be_registered((uintptr_t)pointer, 1))
		record_end(TRACE_free, (uintptr_t)pointer, malloc_usable_size(pointer), TRACE_SITE);
	if (next)
		next(pointer);
}

TRACE_EXPORT void *realloc(void *pointer, size_t size)
{
	void *(*next)(void *, size_t) = (void *(*)(void *, size_t))next_of(TRACE_realloc);
	bool may = pointer && may_be_registered((uintptr_t)pointer, 1);
	uintptr_t was = (uintptr_t)pointer;
	size_t length = may ? malloc_usable_size(pointer) : 0;
	void *result = next ? next(pointer, size) : NULL;

	if (may && result && (uintptr_t)result != was)
		record_end(TRACE_realloc, was, length, TRACE_SITE);
	return result;
}

TRACE_EXPORT int munmap(void *address, size_t length)
{
	int (*next)(void *, size_t) = (int (*)(void *, size_t))next_of(TRACE_munmap);

	record_end(TRACE_munmap, (uintptr_t)address, length, TRACE_SITE);
	return next(address, length);
}

TRACE_EXPORT int mprotect(void *address, size_t length, int protection)
{
	int (*next)(void *, size_t, int) = (int (*)(void *, size_t, int))next_of(TRACE_mprotect);

	if (!(protection & 1)) /* PROT_READ: sums would fail */
		record_end(TRACE_mprotect, (uintptr_t)address, length, TRACE_SITE);
	return next(address, length, protection);
}
