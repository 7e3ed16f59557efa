#include "ctest/support/network.h"

#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include "ctest/support/check.h"

static void write_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	CHECK(file && fputs(text, file) >= 0 && !fclose(file));
}

/* The user keeps its name there; without that it could not configure its network. */
static bool enter(void)
{
	unsigned int user = geteuid(), group = getegid();
	char text[64];

	if (!unshare(CLONE_NEWNET))
		return true;
	if (unshare(CLONE_NEWUSER | CLONE_NEWNET))
		return false;
	write_file("/proc/self/setgroups", "deny");
	snprintf(text, sizeof(text), "0 %u 1", user);
	write_file("/proc/self/uid_map", text);
	snprintf(text, sizeof(text), "0 %u 1", group);
	write_file("/proc/self/gid_map", text);
	return true;
}

bool network_of_own(void)
{
	if (system("command -v ip >/dev/null") || !enter()) {
		fprintf(stderr, "left out: there is no ip(8), or network namespaces are not allowed here\n");
		return false;
	}
	CHECK(!system("ip link set lo up && ip link add near type veth peer name far && "
		      "ip address add " NETWORK_ADDRESS "/24 dev near && ip -6 address add " NETWORK_ADDRESS_6 "/64 dev near nodad && "
		      "ip link set near up && ip link set far up"));
	CHECK(!setenv("CTEST_ADDRESS", NETWORK_ADDRESS, true));
	return true;
}
