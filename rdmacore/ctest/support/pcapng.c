#include "ctest/support/pcapng.h"

#include "ctest/support/check.h"

enum { INTERFACE = 1, STATISTICS = 5, PACKET = 6, SECTION = 0x0a0d0d0a };
enum { COMMENT = 1, NAME = 2, FLAGS = 2, COUNTED = 4, MISSING = 5, RESOLUTION = 9 };

static uint32_t get32(const uint8_t *place)
{
	uint32_t value;

	memcpy(&value, place, sizeof(value));
	return value;
}

static uint16_t get16(const uint8_t *place)
{
	uint16_t value;

	memcpy(&value, place, sizeof(value));
	return value;
}

static void get_text(char *text, const uint8_t *value, size_t length)
{
	CHECK(length < PCAPNG_TEXT);
	memcpy(text, value, length);
	text[length] = '\0';
}

/* The option at *place, which is moved behind it; false at the end of the options, which must be that of the block. */
static bool next_option(const uint8_t **place, const uint8_t *end, uint16_t *option, const uint8_t **value, size_t *length)
{
	CHECK(*place + 4 <= end);
	*option = get16(*place);
	*length = get16(*place + 2);
	*value = *place + 4;
	*place = *value + ((*length + 3) & ~(size_t)3);
	CHECK(*place <= end && (*option || (!*length && *place == end)));
	return *option;
}

static void read_interface(struct pcapng *pcapng, const uint8_t *place, const uint8_t *end)
{
	struct pcapng_interface *interface = &pcapng->interfaces[pcapng->interface_count++];
	const uint8_t *value;
	uint16_t option;
	size_t length;

	CHECK(pcapng->interface_count <= PCAPNG_INTERFACES);
	CHECK(get16(place) == 101); /* LINKTYPE_RAW */
	interface->snap_length = get32(place + 4);
	place += 8;
	while (next_option(&place, end, &option, &value, &length)) {
		if (option == NAME)
			get_text(interface->name, value, length);
		else if (option == RESOLUTION)
			CHECK(length == 1 && *value == 9);
	}
	CHECK(interface->name[0]);
}

static void read_packet(struct pcapng *pcapng, uint8_t *place, const uint8_t *end)
{
	struct pcapng_packet *packet = &pcapng->packets[pcapng->count++];
	const uint8_t *next, *value;
	uint16_t option;
	size_t length;
	int comments = 0;

	*packet = (struct pcapng_packet){.interface = get32(place),
					 .time = (uint64_t)get32(place + 4) << 32 | get32(place + 8),
					 .captured = get32(place + 12), .length = get32(place + 16), .bytes = place + 20};
	CHECK(packet->interface < pcapng->interface_count);
	CHECK(packet->captured <= packet->length);
	pcapng->interfaces[packet->interface].packets++;
	next = packet->bytes + ((packet->captured + 3) & ~3u);
	CHECK(next <= end);
	while (next_option(&next, end, &option, &value, &length)) {
		if (option == COMMENT)
			get_text(packet->comments[comments++], value, length);
		else
			CHECK(option == FLAGS && length == 4);
		CHECK(comments <= PCAPNG_COMMENTS);
	}
}

static void read_statistics(struct pcapng *pcapng, const uint8_t *place, const uint8_t *end)
{
	struct pcapng_interface *interface = &pcapng->interfaces[get32(place)];
	const uint8_t *value;
	uint16_t option;
	size_t length;

	CHECK(get32(place) < pcapng->interface_count && !interface->has_statistics);
	interface->has_statistics = true;
	place += 12;
	while (next_option(&place, end, &option, &value, &length)) {
		CHECK(length == 8);
		memcpy(option == COUNTED ? &interface->counted : &interface->missing, value, length);
		CHECK(option == COUNTED || option == MISSING);
	}
}

static void read_file(struct pcapng *pcapng, const char *path)
{
	FILE *file = fopen(path, "rb");
	size_t room = 1 << 20, got;

	CHECK(file);
	CHECK((pcapng->file = malloc(room)));
	while ((got = fread(pcapng->file + pcapng->size, 1, room - pcapng->size, file))) {
		pcapng->size += got;
		if (pcapng->size == room)
			CHECK((pcapng->file = realloc(pcapng->file, room *= 2)));
	}
	CHECK(!fclose(file));
}

void pcapng_read(struct pcapng *pcapng, const char *path, bool cut)
{
	size_t place = 0;

	*pcapng = (struct pcapng){0};
	read_file(pcapng, path);
	CHECK((pcapng->packets = calloc(pcapng->size / 32 + 1, sizeof(*pcapng->packets))));
	while (place < pcapng->size) {
		uint8_t *block = pcapng->file + place, *begin = block + 8, *end;
		uint32_t kind, length;

		if (cut && (pcapng->size - place < 12 || pcapng->size - place < get32(block + 4)))
			break;
		CHECK(pcapng->size - place >= 12);
		kind = get32(block);
		length = get32(block + 4);
		CHECK(length >= 12 && length % 4 == 0 && length <= pcapng->size - place);
		end = block + length - 4;
		CHECK(get32(end) == length);
		CHECK((kind == SECTION) == (place == 0));
		if (kind == SECTION)
			CHECK(get32(begin) == 0x1a2b3c4d);
		else if (kind == INTERFACE)
			read_interface(pcapng, begin, end);
		else if (kind == PACKET)
			read_packet(pcapng, begin, end);
		else if (kind == STATISTICS)
			read_statistics(pcapng, begin, end);
		else
			CHECK(!"a block that is not known");
		place += length;
	}
}

uint32_t pcapng_find(const struct pcapng *pcapng, const char *name)
{
	uint32_t index = 0;

	while (index < pcapng->interface_count && strcmp(pcapng->interfaces[index].name, name) != 0)
		index++;
	CHECK(index < pcapng->interface_count);
	return index;
}

void pcapng_free(struct pcapng *pcapng)
{
	free(pcapng->packets);
	free(pcapng->file);
}

bool ip_is_whole(const uint8_t *datagram)
{
	uint32_t sum = 0;

	for (int word = 0; word < 20; word += 2)
		sum += (uint32_t)datagram[word] << 8 | datagram[word + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	return datagram[0] != 0x45 || (sum & 0xffff) + (sum >> 16) == 0xffff;
}
