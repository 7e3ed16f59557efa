#include <string.h>
#include <unistd.h>

#include "process.h"

static void add_byte(struct sentence *sentence, char byte)
{
	if (sentence->length + 1 >= sizeof(sentence->text))
		return;
	sentence->text[sentence->length++] = byte;
	sentence->text[sentence->length] = '\0';
}

void sentence_add(struct sentence *sentence, const char *text)
{
	while (*text)
		add_byte(sentence, *text++);
}

void sentence_add_name(struct sentence *sentence, const char *name, size_t length)
{
	for (size_t i = 0; i < length; i++)
		add_byte(sentence, name[i] >= ' ' && name[i] <= '~' ? name[i] : '?');
}

static void add_number(struct sentence *sentence, uint64_t number, unsigned int base)
{
	char digits[20];
	size_t count = 0;

	do {
		digits[count++] = "0123456789abcdef"[number % base];
		number /= base;
	} while (number);
	while (count)
		add_byte(sentence, digits[--count]);
}

void sentence_add_decimal(struct sentence *sentence, uint64_t number)
{
	add_number(sentence, number, 10);
}

void sentence_add_hex(struct sentence *sentence, uint64_t number)
{
	sentence_add(sentence, "0x");
	add_number(sentence, number, 16);
}

void sentence_write(const struct sentence *sentence)
{
	size_t written = 0;

	while (written < sentence->length) {
		ssize_t n = write(STDERR_FILENO, sentence->text + written, sentence->length - written);

		if (n <= 0)
			return;
		written += (size_t)n;
	}
}
