/* Which users have the ports that a device needs, as far as proc(5) shows it (/proc/net/udp). */
#include "soft/udp/internal.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "soft/base/refusal.h"

#define LINE 512
#define ADDRESS (32 + 1) /* four words in hexadecimal */

struct holder {
	unsigned int user, ports;
};

/* As the kernel writes it there: 32-bit words in host byte order. */
static void write_address(const union ibv_gid *address, char text[ADDRESS])
{
	uint32_t words[4];

	memcpy(words, address->raw, sizeof(words));
	if (soft_gid_is_ipv4(address))
		snprintf(text, ADDRESS, "%08X", words[3]);
	else
		snprintf(text, ADDRESS, "%08X%08X%08X%08X", words[0], words[1], words[2], words[3]);
}

/* Whether the socket of a line has the port at that address, or at any. */
static bool is_owner(const char *line, const char *address, unsigned int *user)
{
	char local[ADDRESS];
	unsigned int port;

	/* sl local_address rem_address st tx_queue:rx_queue tr:when retrnsmt uid ... */
	return sscanf(line, "%*s %32[0-9A-F]:%4x %*s %*s %*s %*s %*s %u", local, &port, user) == 3 && port == SOFT_WIRE_PORT &&
	       (!strcmp(local, address) || strspn(local, "0") == strlen(local));
}

static bool find_owner(const char *path, const char *address, unsigned int *user)
{
	FILE *file = fopen(path, "re");
	bool found = false;
	char line[LINE];

	soft_order_expect_none();
	if (!file)
		return false;
	while (!found && fgets(line, sizeof(line), file))
		found = is_owner(line, address, user);
	fclose(file);
	return found;
}

static void describe(const union ibv_gid *address, char *text, size_t size)
{
	char written[ADDRESS];
	unsigned int user;
	bool found;

	write_address(address, written);
	found = soft_gid_is_ipv4(address) && find_owner("/proc/net/udp", written, &user);
	/* An IPv6 socket bound to any address may have the IPv4 port, too. */
	if (!found && !find_owner("/proc/net/udp6", written, &user))
		snprintf(text, size, "another's");
	else if (user == geteuid())
		snprintf(text, size, "another process's of this user (%u), which has no fabric to share it", user);
	else if (!user)
		snprintf(text, size, "root's, or the kernel's own (rdma_rxe)");
	else
		snprintf(text, size, "user %u's", user);
}

int soft_udp_refuse_port(const union ibv_gid *address)
{
	char owner[96], text[INET6_ADDRSTRLEN];
	bool ipv4 = soft_gid_is_ipv4(address);

	describe(address, owner, sizeof(owner));
	inet_ntop(ipv4 ? AF_INET : AF_INET6, ipv4 ? &address->raw[12] : address->raw, text, sizeof(text));
	return soft_refuse(EADDRINUSE, "UDP port %d of %s is %s, and other hosts send there: use another address, or end that program",
			   SOFT_WIRE_PORT, text, owner);
}

#define USERS 8 /* users that a sentence names */

/* Count the ports of the blocks for each user. Further users are not named. */
static size_t count_holders(struct holder holders[USERS])
{
	FILE *file = fopen("/proc/net/udp", "re");
	size_t count = 0;
	char line[LINE];

	soft_order_expect_none();
	while (file && fgets(line, sizeof(line), file)) {
		unsigned int port, user;
		size_t index = 0;

		if (sscanf(line, "%*s %*32[0-9A-F]:%4x %*s %*s %*s %*s %*s %u", &port, &user) != 2 || port < SOFT_UDP_PORTS ||
		    port >= SOFT_UDP_PORTS + SOFT_UDP_BLOCKS)
			continue;
		while (index < count && holders[index].user != user)
			index++;
		if (index == USERS)
			continue;
		if (index == count)
			holders[count++] = (struct holder){user, 0};
		holders[index].ports++;
	}
	if (file)
		fclose(file);
	return count;
}

static void describe_holders(char *sentence, size_t size)
{
	struct holder holders[USERS];
	size_t count = count_holders(holders), length = 0;
	char text[96] = "";

	for (size_t index = 0; index < count && length < sizeof(text); index++)
		length += (size_t)snprintf(text + length, sizeof(text) - length, "%s%u by user %u", index ? ", " : ": ",
					   holders[index].ports, holders[index].user);
	snprintf(sentence, size, "all UDP ports from %d to %d of 127.0.0.1, by which processes find queue pairs, are taken%s: end those programs, or use a network namespace of your own",
			   SOFT_UDP_PORTS, SOFT_UDP_PORTS + SOFT_UDP_BLOCKS - 1, text);
}

int soft_udp_refuse_blocks(void)
{
	return soft_refuse_later(EADDRINUSE, describe_holders);
}
