/* The examples of guests/languages in C: EXAMPLE server PORT, or EXAMPLE client PORT ADDRESS COUNT. */
#include "example.h"

#define WASI(name) __attribute__((import_module("wasi_snapshot_preview1"), import_name(#name)))

struct iovec {
	const char *text;
	uint32_t length;
};

WASI(args_sizes_get) int wasi_args_sizes_get(uint32_t *count, uint32_t *size);
WASI(args_get) int wasi_args_get(char **args, char *texts);
WASI(fd_write) int wasi_fd_write(int fd, const struct iovec *iov, int count, uint32_t *written);
WASI(proc_exit) _Noreturn void wasi_proc_exit(int code);

const int64_t wait_limit = 10000000000;

enum { longest = 16 }; /* arguments */

static uint32_t length_of(const char *text)
{
	uint32_t length = 0;

	while (text[length])
		length++;
	return length;
}

static void write_text(int fd, const char *text, uint32_t length)
{
	struct iovec iov = {text, length};
	uint32_t written;

	wasi_fd_write(fd, &iov, 1, &written);
}

void print(const char *first, ...)
{
	__builtin_va_list rest;

	__builtin_va_start(rest, first);
	for (const char *text = first; text; text = __builtin_va_arg(rest, const char *))
		write_text(1, text, length_of(text));
	__builtin_va_end(rest);
	write_text(1, "\n", 1);
}

static _Noreturn void fail(const char *why, uint32_t length)
{
	write_text(2, why, length);
	write_text(2, "\n", 1);
	wasi_proc_exit(1);
}

rdmarun_handle must(int32_t result)
{
	char text[256];

	if (result >= 0)
		return (rdmarun_handle)result;
	fail(text, (uint32_t)rdmarun_error_text(text, sizeof(text)));
}

void expect(int holds, const char *what)
{
	if (!holds)
		fail(what, length_of(what));
}

const char *decimal(uint32_t number, char *text)
{
	uint32_t length = 1;

	for (uint32_t rest = number; rest >= 10; rest /= 10)
		length++;
	text[length] = 0;
	for (; length > 0; number /= 10)
		text[--length] = (char)('0' + number % 10);
	return text;
}

static uint32_t number_in(const char *text)
{
	uint32_t number = 0;

	for (; *text >= '0' && *text <= '9'; text++)
		number = number * 10 + (uint32_t)(*text - '0');
	return number;
}

static int is(const char *text, const char *other)
{
	return length_of(text) == length_of(other) && !memcmp(text, other, length_of(text));
}

void *memcpy(void *to, const void *from, unsigned long length)
{
	for (unsigned long i = 0; i < length; i++)
		((char *)to)[i] = ((const char *)from)[i];
	return to;
}

int memcmp(const void *a, const void *b, unsigned long length)
{
	const unsigned char *x = a, *y = b;

	for (; length && *x == *y; length--)
		x++, y++;
	return length ? *x - *y : 0;
}

__attribute__((export_name("_start"))) void start(void)
{
	static const struct {
		const char *example, *side;
		void (*run)(const struct options *options);
	} table[] = {
		{"pingpong", "server", pingpong_serve},   {"pingpong", "client", pingpong_ask},
		{"kv", "server", kv_serve},               {"kv", "client", kv_ask},
		{"negotiate", "server", negotiate_serve}, {"negotiate", "client", negotiate_ask},
	};
	static char *args[longest], texts[1024];
	struct options options = {0};
	uint32_t count, size;

	expect(!wasi_args_sizes_get(&count, &size) && count >= 4 && count <= longest && size <= sizeof(texts) &&
		       !wasi_args_get(args, texts),
	       "EXAMPLE server PORT, or EXAMPLE client PORT ADDRESS COUNT");
	options.port = (uint16_t)number_in(args[3]);
	options.address = count > 4 ? args[4] : "";
	options.count = count > 5 ? number_in(args[5]) : 100;
	for (uint32_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (is(args[1], table[i].example) && is(args[2], table[i].side)) {
			table[i].run(&options);
			wasi_proc_exit(0);
		}
	expect(0, "pingpong, kv or negotiate; server or client");
}
