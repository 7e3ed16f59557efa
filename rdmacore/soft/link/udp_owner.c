/* Who has the one port that other hosts send to and answer to, as far as any user may know (proc(5), /proc/net/udp). */
#include "soft/link/udp_socket.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "soft/base/refusal.h"

#define LINE 512
#define ADDRESS (32 + 1) /* four words in hexadecimal */

/* As the kernel writes it there: in words of this host's byte order. */
static void write_address(const union ibv_gid *address, char text[ADDRESS])
{
	uint32_t words[4];

	memcpy(words, address->raw, sizeof(words));
	if (soft_gid_is_ipv4(address))
		snprintf(text, ADDRESS, "%08X", words[3]);
	else
		snprintf(text, ADDRESS, "%08X%08X%08X%08X", words[0], words[1], words[2], words[3]);
}

/* Whether the socket of a line has the port, of that address or of any. */
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
	/* A socket of IPv6 may have the ports of IPv4, too: it is of any address then. */
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
	char owner[96];

	describe(address, owner, sizeof(owner));
	return soft_refuse(EADDRINUSE, "UDP port %d of the source address is %s: other hosts, which send there, are reached from another address, or when it is free",
			   SOFT_WIRE_PORT, owner);
}
