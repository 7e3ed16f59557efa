/*
 * A store of keys and values: the server puts what it is sent into a table, which clients read by RDMA READ, without it.
 * A slot has a version, even when the slot is whole and 0 when it is empty.
 */
#include "example.h"

enum { slots = 64, key_size = 24, value_size = 32 };

struct entry {
	char key[key_size];
	char value[value_size];
};

struct slot {
	uint64_t version;
	struct entry entry;
};

/* The private data of the server's acceptance. */
struct ticket {
	uint64_t address;
	uint32_t rkey, slots;
};

static struct slot table[slots], found;
static struct entry message;
static uint32_t answer;
static const uint32_t full = 0xffffffff;

/* Where the search for a key begins (FNV-1a). */
static uint32_t first_slot(const char *key)
{
	uint32_t hash = 0x811c9dc5;

	for (int i = 0; i < key_size; i++)
		hash = (hash ^ (uint8_t)key[i]) * 0x01000193;
	return hash % slots;
}

/* Puts an entry into the table; which slot it has. */
static uint32_t put(const struct entry *entry)
{
	for (uint32_t step = 0; step < slots; step++) {
		uint32_t at = (first_slot(entry->key) + step) % slots;
		struct slot *slot = &table[at];
		uint64_t version = slot->version;

		if (version && memcmp(slot->entry.key, entry->key, key_size))
			continue;
		__atomic_store_n(&slot->version, version + 1, __ATOMIC_RELEASE); /* odd while it changes */
		slot->entry = *entry;
		__atomic_store_n(&slot->version, version + 2, __ATOMIC_RELEASE);
		return at;
	}
	return full;
}

void kv_serve(const struct options *options)
{
	struct rdmarun_mr shared, in, out;
	struct rdmarun_conn_param param;
	struct ticket ticket;
	struct connection c;
	uint32_t puts;

	take_request(&c, listen_at(&c, options), -1);
	memcpy(&puts, c.event.param.private_data, sizeof(puts));
	shared = registered(&c, table, sizeof(table), RDMARUN_ACCESS_LOCAL_WRITE | RDMARUN_ACCESS_REMOTE_READ);
	in = registered(&c, &message, sizeof(message), RDMARUN_ACCESS_LOCAL_WRITE);
	out = registered(&c, &answer, sizeof(answer), 0);
	must(rdmarun_post_recv_one(c.qp, 0, &message, sizeof(message), &in));
	ticket = (struct ticket){shared.addr, shared.rkey, slots};
	param = parameters(&ticket, sizeof(ticket));
	must(rdmarun_accept(c.ep, &param));
	wait_for(&c, RDMARUN_EVENT_ESTABLISHED);
	for (; puts; puts--) {
		complete(c.receives);
		answer = put(&message);
		must(rdmarun_post_recv_one(c.qp, 0, &message, sizeof(message), &in));
		must(rdmarun_post_send_one(c.qp, 0, &answer, sizeof(answer), &out));
		complete(c.sends);
	}
	hung_up(&c);
}

/* A word and a number, as a key or a value of that size, padded with zeros. */
static void name(char *to, uint32_t size, const char *word, uint32_t number)
{
	char digits[11];
	uint32_t at = 0;

	decimal(number, digits);
	for (; *word; word++)
		to[at++] = *word;
	for (const char *digit = digits; *digit; digit++)
		to[at++] = *digit;
	while (at < size)
		to[at++] = 0;
}

/* Reads the slot of a key from the server's table to found; 0 when no client has put it. */
static int get(const struct connection *c, const struct ticket *ticket, const struct rdmarun_mr *mr, const char *key)
{
	uint32_t at = first_slot(key);

	for (uint32_t step = 0; step < slots; step++) {
		must(rdmarun_post_read_one(c->qp, 0, &found, sizeof(found), mr, ticket->address + at * sizeof(found),
					   ticket->rkey));
		complete(c->sends);
		if (found.version % 2)
			continue; /* it changes just now */
		if (!found.version)
			return 0;
		if (!memcmp(found.entry.key, key, key_size))
			return 1;
		at = (at + 1) % slots;
	}
	return 0;
}

void kv_ask(const struct options *options)
{
	struct rdmarun_conn_param param = parameters(&options->count, sizeof(options->count));
	char key[key_size], value[value_size], text[11];
	struct rdmarun_mr in, out, slot;
	struct ticket ticket;
	struct connection c;

	dial(&c, options);
	must(rdmarun_connect(c.ep, &param));
	wait_for(&c, RDMARUN_EVENT_ESTABLISHED);
	memcpy(&ticket, c.event.param.private_data, sizeof(ticket));
	expect(ticket.slots == slots, "the server's table has another size");
	out = registered(&c, &message, sizeof(message), 0);
	in = registered(&c, &answer, sizeof(answer), RDMARUN_ACCESS_LOCAL_WRITE);
	slot = registered(&c, &found, sizeof(found), RDMARUN_ACCESS_LOCAL_WRITE);
	for (uint32_t i = 0; i < options->count; i++) {
		name(message.key, key_size, "key-", i);
		name(message.value, value_size, "value-", i);
		must(rdmarun_post_recv_one(c.qp, 0, &answer, sizeof(answer), &in));
		must(rdmarun_post_send_one(c.qp, 0, &message, sizeof(message), &out));
		complete(c.sends);
		complete(c.receives);
		expect(answer != full, "the table is full");
	}
	for (uint32_t i = 0; i < options->count; i++) {
		name(key, key_size, "key-", i);
		name(value, value_size, "value-", i);
		expect(get(&c, &ticket, &slot, key) && !memcmp(found.entry.value, value, value_size), "a key has another value");
	}
	name(key, key_size, "missing-", 0);
	expect(!get(&c, &ticket, &slot, key), "a key that no client has put is there");
	print("kv: ", decimal(options->count, text), " keys put and read back", (char *)0);
	hang_up(&c);
}
