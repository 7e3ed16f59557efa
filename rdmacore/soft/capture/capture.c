#include "soft/capture/capture.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "soft/base/fabric.h"
#include "soft/capture/file.h"
#include "soft/capture/pcapng.h"
#include "soft/wire/datagram.h"
#include "soft/wire/fields.h"
#include "soft/wire/mad.h"

/* Further addresses share the last interface, so that hostile programs do not fill memory and file with interfaces. */
#define INTERFACES 256
#define OUTCOME 160 /* bytes of a text about faults */

struct step {
	uint32_t number; /* 0: none */
	char text[CORE_CAPTURE_TEXT];
};

struct interface {
	union ibv_gid address; /* zero: of another process, and known by its name */
	char name[CORE_CAPTURE_TEXT]; /* "": the address as text */
	char description[2 * SOFT_PCAPNG_TEXT]; /* of another process; "": the address and the label */
	bool written; /* its block is in the file, under that number */
	uint32_t number;
	uint64_t packets, missing;
	struct step step; /* the step that its sender executes */
};

struct soft_capture {
	struct soft_capture_file *file; /* its lock guards the fields below */
	struct soft_clock *clock;
	uint64_t epoch; /* of the clock, in nanoseconds since 1970 */
	char label[SOFT_PCAPNG_TEXT + 1];
	bool finished;
	struct step last; /* the step that began last */
	char faults[SOFT_FAULTS_MAX][CORE_CAPTURE_TEXT]; /* the steps that added the rules */
	struct interface *interfaces;
	uint32_t interface_count;
	struct core_captured noted[CORE_CAPTURED_MAX]; /* packets that were not taken yet */
	uint32_t noted_count;
	uint64_t missed;
};

static void copy_text(char *to, size_t size, const char *from)
{
	snprintf(to, size, "%s", from);
}

int soft_capture_create(struct soft_capture_file *file, struct soft_fabric *fabric, const char *label,
			struct soft_capture **out)
{
	struct soft_capture *capture = calloc(1, sizeof(*capture));

	if (!capture)
		return -ENOMEM;
	capture->interfaces = calloc(INTERFACES, sizeof(*capture->interfaces));
	if (!capture->interfaces) {
		free(capture);
		return -ENOMEM;
	}
	capture->file = file;
	capture->clock = &fabric->clock;
	capture->epoch = soft_clock_epoch(capture->clock);
	copy_text(capture->label, sizeof(capture->label), label);
	*out = capture;
	return 0;
}

void soft_capture_destroy(struct soft_capture *capture)
{
	free(capture->interfaces);
	free(capture);
}

static uint64_t now(const struct soft_capture *capture)
{
	return capture->clock->now(capture->clock) + capture->epoch;
}

/* --- interfaces ----------------------------------------------------------------------------------- */

static void write_address(const union ibv_gid *address, char *text, size_t size)
{
	bool mapped = soft_gid_is_ipv4(address);

	if (!inet_ntop(mapped ? AF_INET : AF_INET6, address->raw + (mapped ? 12 : 0), text, (socklen_t)size))
		text[0] = '\0';
}

/* name: of an interface of another process, which has no address here; otherwise NULL. */
static struct interface *find_interface(struct soft_capture *capture, const union ibv_gid *address, const char *name)
{
	struct interface *interface;

	for (uint32_t index = 0; index < capture->interface_count; index++) {
		interface = &capture->interfaces[index];
		if (!memcmp(&interface->address, address, sizeof(*address)) && (!name || !strcmp(interface->name, name)))
			return interface;
	}
	if (capture->interface_count == INTERFACES)
		return &capture->interfaces[INTERFACES - 1];
	interface = &capture->interfaces[capture->interface_count++];
	interface->address = *address;
	if (capture->interface_count == INTERFACES)
		copy_text(interface->name, sizeof(interface->name), "others");
	return interface;
}

static struct interface *interface_of(struct soft_capture *capture, const union ibv_gid *address)
{
	return find_interface(capture, address, NULL);
}

static struct interface *interface_elsewhere(struct soft_capture *capture, const char *name, const char *description)
{
	static const union ibv_gid unspecified;
	struct interface *interface = find_interface(capture, &unspecified, name);

	if (!interface->name[0]) {
		copy_text(interface->name, sizeof(interface->name), name);
		copy_text(interface->description, sizeof(interface->description), description);
	}
	return interface;
}

void soft_capture_name(struct soft_capture *capture, const union ibv_gid *address, const char *name)
{
	struct interface *interface;
	size_t length;

	soft_capture_file_lock(capture->file);
	interface = interface_of(capture, address);
	length = strlen(interface->name);
	snprintf(interface->name + length, sizeof(interface->name) - length, "%s%s", length ? ", " : "", name);
	soft_capture_file_unlock(capture->file);
}

/* Write the interface's block, unless it is written; false if there is no room for it. */
static bool write_interface(struct soft_capture *capture, struct interface *interface)
{
	char address[INET6_ADDRSTRLEN], description[2 * SOFT_PCAPNG_TEXT];
	uint8_t *cursor;

	if (interface->written)
		return true;
	cursor = soft_capture_file_begin(capture->file, SOFT_PCAPNG_OVERHEAD);
	if (!cursor || interface->written) /* another thread has written it meanwhile */
		return interface->written;
	write_address(&interface->address, address, sizeof(address));
	if (interface->description[0])
		copy_text(description, sizeof(description), interface->description);
	else
		snprintf(description, sizeof(description), "%s%s%s", address, capture->label[0] ? ", " : "", capture->label);
	soft_capture_file_end(capture->file,
			      soft_pcapng_interface(cursor, interface->name[0] ? interface->name : address, description,
						    soft_capture_file_snap_length(capture->file)));
	interface->number = soft_capture_file_add_interface(capture->file);
	interface->written = true;
	return true;
}

void soft_capture_finish(struct soft_capture *capture)
{
	soft_capture_file_lock(capture->file);
	for (uint32_t index = 0; index < capture->interface_count && !capture->finished; index++) {
		struct interface *interface = &capture->interfaces[index];
		uint8_t *cursor = NULL;

		if (interface->written)
			cursor = soft_capture_file_begin(capture->file, SOFT_PCAPNG_OVERHEAD);
		if (cursor)
			soft_capture_file_end(capture->file,
					      soft_pcapng_statistics(cursor, interface->number, now(capture),
								     interface->packets, interface->missing));
	}
	capture->finished = true;
	soft_capture_file_unlock(capture->file);
}

/* --- steps and faults ----------------------------------------------------------------------------- */

void soft_capture_step(struct soft_capture *capture, const union ibv_gid *address, uint32_t number, const char *text)
{
	static const union ibv_gid unspecified;
	struct step step = {.number = text[0] ? number : 0};

	copy_text(step.text, sizeof(step.text), text);
	soft_capture_file_lock(capture->file);
	if (memcmp(address, &unspecified, sizeof(unspecified)) != 0)
		interface_of(capture, address)->step = step;
	if (step.number)
		capture->last = step;
	soft_capture_file_unlock(capture->file);
}

void soft_capture_fault(struct soft_capture *capture, int rule)
{
	soft_capture_file_lock(capture->file);
	copy_text(capture->faults[rule], sizeof(capture->faults[rule]), capture->last.text);
	soft_capture_file_unlock(capture->file);
}

/* "lost, delayed by fault 1 (drops.yaml:12 fault)" */
static void describe_outcome(const struct soft_capture *capture, const struct soft_capture_outcome *outcome,
			     char text[OUTCOME])
{
	const struct {
		bool done;
		const char *word;
	} actions[] = {
		{outcome->fault_result.lose, "lost"},
		{outcome->fault_result.delay, "delayed"},
		{outcome->fault_result.duplicate, "sent twice"},
		{outcome->fault_result.reorder, "held back to be reordered"},
		{outcome->fault_result.corrupt, "changed by a bit"},
	};
	size_t length = 0;
	const char *between = "";

	text[0] = '\0';
	if (outcome->unreachable) {
		snprintf(text, OUTCOME, "it has no receiver");
		return;
	}
	for (size_t action = 0; action < sizeof(actions) / sizeof(actions[0]); action++) {
		if (!actions[action].done)
			continue;
		length += (size_t)snprintf(text + length, OUTCOME - length, "%s%s", between, actions[action].word);
		between = ", ";
	}
	between = " by fault";
	for (int rule = 0; rule < SOFT_FAULTS_MAX && length < OUTCOME; rule++) {
		const char *step = capture->faults[rule];

		if (!(outcome->fault_result.rules >> rule & 1))
			continue;
		length += (size_t)snprintf(text + length, OUTCOME - length, step[0] ? "%s %d (%s)" : "%s %d", between,
					   rule + 1,
					   step);
		between = ",";
	}
}

/* --- packets -------------------------------------------------------------------------------------- */

/* Note what a report shows of the packet. */
static void note(struct soft_capture *capture, const struct interface *interface, const struct step *step,
		 const uint8_t *datagram, size_t length, const struct soft_pcapng_packet *about)
{
	struct core_captured *noted = &capture->noted[capture->noted_count];
	struct soft_packet packet;
	uint8_t header[SOFT_GRH];
	union ibv_gid from, to;
	size_t udp;

	if (capture->noted_count == CORE_CAPTURED_MAX) {
		capture->missed++;
		return;
	}
	udp = soft_ip_parse(datagram, length, header, &from, &to);
	if (!udp || !soft_wire_decode((uint8_t *)datagram + udp + SOFT_UDP_HEADER, length - udp - SOFT_UDP_HEADER, &packet))
		return;
	*noted = (struct core_captured){
		.time = about->time,
		.step = step->number,
		.inbound = about->inbound,
		.opcode = packet.opcode,
		.psn = packet.psn,
		.length = (uint32_t)packet.length,
		.destination = packet.destination,
	};
	if (packet.opcode == SOFT_ACKNOWLEDGE)
		noted->syndrome = packet.syndrome;
	/* The length of a request to read is that of what it asks for. */
	if (packet.opcode == (SOFT_UNRELIABLE_DATAGRAM | SOFT_SEND_ONLY) && packet.destination == SOFT_GSI_QUEUE_PAIR &&
	    packet.length == SOFT_MAD)
		noted->attribute = (uint16_t)soft_get16((const uint8_t *)packet.segments[0].address + 16);
	memcpy(noted->from, from.raw, sizeof(noted->from));
	memcpy(noted->to, to.raw, sizeof(noted->to));
	copy_text(noted->fault_result, sizeof(noted->fault_result), about->comments[1]);
	if (interface->description[0])
		copy_text(noted->interface, sizeof(noted->interface), interface->name);
	capture->noted_count++;
}

uint32_t soft_capture_take(struct soft_capture *capture, struct core_captured *packets, uint32_t count, uint64_t *missed)
{
	soft_capture_file_lock(capture->file);
	if (count > capture->noted_count)
		count = capture->noted_count;
	memcpy(packets, capture->noted, count * sizeof(*packets));
	*missed = capture->missed + capture->noted_count - count;
	capture->noted_count = 0;
	capture->missed = 0;
	soft_capture_file_unlock(capture->file);
	return count;
}

static bool write_packet(struct soft_capture *capture, struct interface *interface, const uint8_t *datagram,
			 struct soft_pcapng_packet *packet)
{
	uint8_t *cursor;

	if (!write_interface(capture, interface))
		return false;
	cursor = soft_capture_file_begin(capture->file, SOFT_PCAPNG_OVERHEAD + packet->captured);
	if (!cursor)
		return false;
	packet->interface = interface->number;
	memcpy(cursor + SOFT_PCAPNG_PACKET, datagram, packet->captured);
	soft_capture_file_end(capture->file, soft_pcapng_packet(cursor, packet));
	return true;
}

/* Write the packet of length bytes at datagram, and note it. */
static void add(struct soft_capture *capture, struct interface *interface, const uint8_t *datagram, size_t length,
		struct soft_pcapng_packet *packet)
{
	const struct step *step = interface->step.number ? &interface->step : &capture->last;

	packet->comments[0] = step->text;
	interface->packets++;
	note(capture, interface, step, datagram, length, packet);
	if (!write_packet(capture, interface, datagram, packet)) {
		interface->missing++;
		soft_capture_file_miss(capture->file);
	}
}

void soft_capture_datagram(struct soft_capture *capture, const uint8_t *datagram, size_t length, const union ibv_gid *at,
			   bool inbound, const struct soft_capture_outcome *outcome)
{
	struct soft_pcapng_packet packet;
	char text[OUTCOME];

	soft_capture_file_lock(capture->file);
	describe_outcome(capture, outcome, text);
	packet = (struct soft_pcapng_packet){
		.time = now(capture),
		.length = (uint32_t)length,
		.captured = soft_capture_file_keeps(capture->file, (uint32_t)length),
		.inbound = inbound,
		.comments = {NULL, text},
	};
	add(capture, interface_of(capture, at), datagram, length, &packet);
	soft_capture_file_unlock(capture->file);
}

void soft_capture_add(struct soft_capture *capture, const struct core_capture_packet *from)
{
	struct soft_pcapng_packet packet = {
		.time = from->time,
		.length = from->length,
		.captured = soft_capture_file_keeps(capture->file, from->captured),
		.inbound = from->inbound,
		.comments = {NULL, from->fault_result},
	};

	soft_capture_file_lock(capture->file);
	add(capture, interface_elsewhere(capture, from->interface, from->description), from->bytes, from->captured, &packet);
	soft_capture_file_unlock(capture->file);
}
