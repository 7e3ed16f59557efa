/* What is mapped at an address, found without memory or locks of the C library. */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "process.h"

struct lines {
	int descriptor;
	size_t begin, end; /* read but not processed */
	char buffer[1024];
	size_t length;
	char line[512]; /* longer lines are truncated */
};

static bool next_byte(struct lines *lines, char *byte)
{
	if (lines->begin == lines->end) {
		ssize_t n = read(lines->descriptor, lines->buffer, sizeof(lines->buffer));

		if (n <= 0)
			return false;
		lines->begin = 0;
		lines->end = (size_t)n;
	}
	*byte = lines->buffer[lines->begin++];
	return true;
}

static bool next_line(struct lines *lines)
{
	char byte;

	lines->length = 0;
	while (next_byte(lines, &byte)) {
		if (byte == '\n')
			return true;
		if (lines->length < sizeof(lines->line))
			lines->line[lines->length++] = byte;
	}
	return false;
}

static uintptr_t take_hex(const struct lines *lines, size_t *at)
{
	uintptr_t number = 0;

	for (; *at < lines->length; (*at)++) {
		char c = lines->line[*at];

		if (c >= '0' && c <= '9')
			number = number << 4 | (uintptr_t)(c - '0');
		else if (c >= 'a' && c <= 'f')
			number = number << 4 | (uintptr_t)(c - 'a' + 10);
		else
			break;
	}
	return number;
}

/* proc(5): begin-end permissions offset device inode, and blanks before the name. */
static void skip_fields(const struct lines *lines, size_t *at, int count)
{
	while (count-- > 0) {
		while (*at < lines->length && lines->line[*at] != ' ')
			(*at)++;
		while (*at < lines->length && lines->line[*at] == ' ')
			(*at)++;
	}
}

struct range {
	uintptr_t begin, end;
};

static struct range take_range(const struct lines *lines, size_t *at)
{
	struct range range;

	*at = 0;
	range.begin = take_hex(lines, at);
	(*at)++;
	range.end = take_hex(lines, at);
	return range;
}

void mapping_add(struct sentence *sentence, uintptr_t address)
{
	struct lines lines = {.descriptor = open("/proc/self/maps", O_RDONLY | O_CLOEXEC)};
	struct range range;
	uintptr_t base = 0;
	char file[sizeof(lines.line)];
	size_t length = 0, at;

	if (lines.descriptor < 0)
		return;
	while (next_line(&lines)) {
		range = take_range(&lines, &at);
		skip_fields(&lines, &at, 5);
		/* A file is loaded at the beginning of the first of its consecutive mappings. */
		if (lines.length - at != length || memcmp(file, lines.line + at, length)) {
			length = lines.length - at;
			memcpy(file, lines.line + at, length);
			base = range.begin;
		}
		if (address < range.begin || address >= range.end)
			continue;
		if (length == 0)
			break;
		sentence_add(sentence, " in ");
		sentence_add_name(sentence, file, length);
		sentence_add(sentence, "+");
		sentence_add_hex(sentence, address - base);
		break;
	}
	close(lines.descriptor);
}

/* Bounds of a report, which must end even if memory is damaged. */
#define MOST_CODE 256
#define MOST_CALLERS 32
#define LONGEST_STACK ((uintptr_t)32 << 10)

struct memory {
	struct range code[MOST_CODE];
	size_t codes;
	struct range stack;
};

/*
 * The stack is the first readable memory at stack_pointer or above: a stack that overflowed ends below stack_pointer.
 */
static void read_memory(struct memory *memory, uintptr_t stack_pointer)
{
	struct lines lines = {.descriptor = open("/proc/self/maps", O_RDONLY | O_CLOEXEC)};
	struct range range;
	size_t at;

	if (lines.descriptor < 0)
		return;
	while (next_line(&lines)) {
		range = take_range(&lines, &at);
		if (at + 3 >= lines.length)
			continue;
		if (lines.line[at + 3] == 'x' && memory->codes < MOST_CODE)
			memory->code[memory->codes++] = range;
		if (lines.line[at + 1] == 'r' && range.end > stack_pointer && memory->stack.end == 0)
			memory->stack = range;
	}
	close(lines.descriptor);
}

static bool is_code(const struct memory *memory, uintptr_t address)
{
	for (size_t i = 0; i < memory->codes; i++)
		if (address >= memory->code[i].begin && address < memory->code[i].end)
			return true;
	return false;
}

void mapping_add_callers(struct sentence *sentence, uintptr_t stack_pointer)
{
	/* Static, because the stack is small; only the first crashing thread uses it. */
	static struct memory memory;
	uintptr_t at, end;
	int found = 0;

	read_memory(&memory, stack_pointer);
	at = stack_pointer > memory.stack.begin ? stack_pointer : memory.stack.begin;
	at = (at + sizeof(at) - 1) & ~(sizeof(at) - 1);
	end = at + LONGEST_STACK < memory.stack.end ? at + LONGEST_STACK : memory.stack.end;
	for (; at + sizeof(at) <= end && found < MOST_CALLERS; at += sizeof(at)) {
		uintptr_t address;

		memcpy(&address, (const void *)at, sizeof(address));
		if (!is_code(&memory, address))
			continue;
		sentence_add(sentence, "on the stack: ");
		sentence_add_hex(sentence, address);
		mapping_add(sentence, address);
		sentence_add(sentence, "\n");
		found++;
	}
}
