/*
 * A fuzzer that is guided by coverage and needs only the C compiler. It runs the given files, and for a number of
 * seconds random changes of them. An input that takes a new path through the code is changed further.
 * (fuzz_packets.c has the interface of libFuzzer, for machines where that is installed.)
 *
 *   mutate [--keep FOLDER] [--seed NUMBER] SECONDS FILE...
 *
 * --keep writes inputs with a new path to a folder. The changes depend on the seed, 1 without --seed, so
 * simultaneous runs need one each. If the program crashes, the input is in crash-input, and "mutate 0 crash-input"
 * repeats it.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#include "ctest/support/check.h"
#include "soft/base/random.h"

#define LARGEST 8192
#define FILES 4096
#define PLACES (1 << 18) /* edges between blocks of code, by hash */

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size);

struct input {
	uint8_t bytes[LARGEST];
	size_t size;
};

static struct input corpus[FILES], running;
static size_t count;
static bool reached[PLACES], reached_new;
static struct soft_random random_state = {1};
static const char *keep; /* a folder, or NULL */

static uint64_t below(uint64_t limit)
{
	return soft_random_next(&random_state) % limit;
}

static bool write_file(const char *path, const struct input *input)
{
	FILE *file = fopen(path, "wb");

	if (!file)
		return false;
	fwrite(input->bytes, input->size, 1, file);
	return fclose(file) == 0;
}

/* Called when a sanitizer or a check ends the program. */
static void save_running(void)
{
	if (!running.size || !write_file("crash-input", &running))
		return;
	fprintf(stderr, "the input is in crash-input\n");
}

void __sanitizer_set_death_callback(void (*callback)(void));

/* The compiler inserts a call into each block of the engine (-fsanitize-coverage=trace-pc). */
void __sanitizer_cov_trace_pc(void);

void __sanitizer_cov_trace_pc(void)
{
	static uintptr_t before;
	uintptr_t address = (uintptr_t)__builtin_return_address(0);
	bool *place = &reached[(address ^ before ^ address >> 16) % PLACES];

	/* Shifted, so that the reverse edge is another one. */
	before = address << 1;
	reached_new |= !*place;
	*place = true;
}

/* Keep an input that reaches new code. */
static void run(void)
{
	char path[512];

	reached_new = false;
	LLVMFuzzerTestOneInput(running.bytes, running.size);
	if (!reached_new || count == FILES || !running.size)
		return;
	corpus[count++] = running;
	if (!keep)
		return;
	snprintf(path, sizeof(path), "%s/%04zu", keep, count);
	CHECK(write_file(path, &running));
}

static void read_file(const char *path, struct input *input)
{
	FILE *file = fopen(path, "rb");

	CHECK(file);
	input->size = fread(input->bytes, 1, sizeof(input->bytes), file);
	fclose(file);
}

static void insert(const struct input *from)
{
	size_t length = 1 + below(from->size), start = below(from->size - length + 1);
	size_t place = below(running.size + 1);

	if (running.size + length > LARGEST)
		return;
	memmove(&running.bytes[place + length], &running.bytes[place], running.size - place);
	memcpy(&running.bytes[place], &from->bytes[start], length);
	running.size += length;
}

static void change(void)
{
	static const uint8_t edges[] = {0, 1, 0x7f, 0x80, 0xff};
	size_t place = below(running.size), length;

	switch (below(5)) {
	case 0:
		running.bytes[place] ^= (uint8_t)(1u << below(8));
		break;
	case 1:
		running.bytes[place] = edges[below(sizeof(edges))];
		break;
	case 2:
		running.bytes[place] = (uint8_t)below(256);
		break;
	case 3:
		insert(&corpus[below(count)]);
		break;
	default:
		length = 1 + below(running.size - place);
		if (length == running.size)
			break;
		memmove(&running.bytes[place], &running.bytes[place + length],
			running.size - place - length);
		running.size -= length;
		break;
	}
}

int main(int argc, char **argv)
{
	uint64_t runs = 0;
	size_t given;
	time_t end;

	for (; argc > 2 && argv[1][0] == '-'; argv += 2, argc -= 2) {
		if (!strcmp(argv[1], "--keep"))
			keep = argv[2];
		else if (!strcmp(argv[1], "--seed"))
			random_state = (struct soft_random){strtoull(argv[2], NULL, 10)};
		else
			CHECK(!"an option that there is");
	}
	end = time(NULL) + (argc > 1 ? atoi(argv[1]) : 0);
	CHECK(argc > 2 && argc - 2 <= FILES);
	__sanitizer_set_death_callback(save_running);
	CHECK(!atexit(save_running));
	for (int file = 2; file < argc; file++) {
		read_file(argv[file], &running);
		run();
	}
	given = count;
	for (; count && time(NULL) < end; runs++) {
		running = corpus[below(count)];
		for (uint64_t changes = 1 + below(8); changes; changes--)
			change();
		run();
	}
	running.size = 0;
	printf("%d files, %llu changes of them, of which %zu reached something new: nothing found\n", argc - 2,
	       (unsigned long long)runs, count - given);
	return 0;
}
