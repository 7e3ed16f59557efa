/* Control calls: their arguments are collected on the stack, and written when they begin and when they return. */
#include "trace.h"

#include <netinet/in.h>
#include <string.h>

#include <infiniband/ib.h>

static void write_call(const struct trace_call *call, enum trace_kind kind, int64_t result, int error)
{
	struct trace_record *record = trace_reserve(kind, call->number, call->count);

	if (!record)
		return;
	record->start = call->start;
	record->error = error;
	record->result = result;
	record->site = call->site;
	memcpy(record->words, call->words, call->count * sizeof(uint64_t));
	record->end = trace_ticks();
	trace_commit(record, (call->nested ? TRACE_NESTED : 0) | (call->truncated ? TRACE_TRUNCATED : 0));
	trace_sync(record->end);
}

void trace_begin(struct trace_call *call, uint16_t number, struct trace_site site)
{
	call->on = trace_on();
	if (!call->on)
		return;
	trace_polls_flush();
	call->number = number;
	call->site = site;
	call->nested = trace_self.depth++ > 0;
	call->truncated = false;
	call->count = 0;
	call->start = trace_ticks();
}

void trace_enter(struct trace_call *call)
{
	int error = errno;

	/* What a call within a call would add is seen when it returns. */
	if (!call->nested)
		write_call(call, TRACE_ENTER, 0, 0);
	errno = error;
	call->start = trace_ticks();
}

void trace_end(struct trace_call *call, int64_t result)
{
	int error = errno;

	if (!call->on)
		return;
	trace_self.depth--;
	write_call(call, TRACE_CALL, result, error);
	errno = error;
}

void trace_put(struct trace_call *call, uint64_t word)
{
	if (call->count < TRACE_WORDS)
		call->words[call->count++] = word;
	else
		call->truncated = true;
}

void trace_put_bytes(struct trace_call *call, const void *bytes, size_t length)
{
	uint32_t words;

	if (!bytes) {
		trace_put(call, UINT64_MAX);
		return;
	}
	/* The length is the whole one; the reader knows TRACE_BYTES. */
	trace_put(call, length);
	if (length > TRACE_BYTES)
		length = TRACE_BYTES;
	words = (uint32_t)(length + 7) / 8;
	if (call->count + words > TRACE_WORDS) {
		call->truncated = true;
		return;
	}
	if (words)
		call->words[call->count + words - 1] = 0;
	memcpy(&call->words[call->count], bytes, length);
	call->count += words;
}

void trace_put_string(struct trace_call *call, const char *text)
{
	trace_put_bytes(call, text, text ? strnlen(text, TRACE_BYTES) : 0);
}

void trace_put_sockaddr(struct trace_call *call, const struct sockaddr *address)
{
	size_t length = 0;

	if (address) {
		switch (address->sa_family) {
		case AF_INET:
			length = sizeof(struct sockaddr_in);
			break;
		case AF_INET6:
			length = sizeof(struct sockaddr_in6);
			break;
		case AF_IB:
			length = sizeof(struct sockaddr_ib);
			break;
		default:
			length = sizeof(address->sa_family);
		}
	}
	trace_put_bytes(call, address, length);
}

void trace_put_gid(struct trace_call *call, const union ibv_gid *gid)
{
	uint64_t words[2] = {0};

	if (gid)
		memcpy(words, gid, sizeof(words));
	trace_put(call, words[0]);
	trace_put(call, words[1]);
}

void trace_polls_flush(void)
{
	struct trace_record *record;

	if (!trace_self.polls)
		return;
	record = trace_reserve(TRACE_POLLS, trace_self.polls_call, 1);
	if (record) {
		record->start = trace_self.polls_start;
		record->end = trace_ticks();
		record->folded = trace_self.polls;
		record->words[0] = (uintptr_t)trace_self.polled;
		trace_commit(record, 0);
	}
	trace_self.polls = 0;
}
