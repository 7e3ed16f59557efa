/* What is mapped where, without the C library's memory or locks. */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "process.h"

struct lines {
	int descriptor;
	size_t begin, end; /* what is read and not taken yet */
	char buffer[1024];
	size_t length;
	char line[512]; /* what is longer is cut */
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

void mapping_add(struct sentence *sentence, uintptr_t address)
{
	struct lines lines = {.descriptor = open("/proc/self/maps", O_RDONLY | O_CLOEXEC)};
	uintptr_t base = 0, begin, end;
	char file[sizeof(lines.line)];
	size_t length = 0, at;

	if (lines.descriptor < 0)
		return;
	while (next_line(&lines)) {
		at = 0;
		begin = take_hex(&lines, &at);
		at++;
		end = take_hex(&lines, &at);
		skip_fields(&lines, &at, 5);
		/* A file is loaded at the begin of the first of its mappings, which follow one another. */
		if (lines.length - at != length || memcmp(file, lines.line + at, length)) {
			length = lines.length - at;
			memcpy(file, lines.line + at, length);
			base = begin;
		}
		if (address < begin || address >= end)
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
