/*
 * A network namespace with lo down, as "ip netns add" creates them: without 127.0.0.1, other hosts are still reached.
 */
#include <stdlib.h>
#include <unistd.h>

#include "ctest/support/check.h"
#include "ctest/support/cm.h"
#include "ctest/support/network.h"

int main(void)
{
	struct core_options options = {.link = CORE_LINK_UDP};
	struct core_provider *provider;
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	char why[512] = "";

	if (!network_of_own())
		return 0;
	CHECK(!system("ip address flush dev lo && ip link set lo down"));
	snprintf(options.fabric, sizeof(options.fabric), "no-loopback-%d", getpid());
	CHECK(!core_open("soft", &options, &provider, why, sizeof(why)));
	channel = create_channel(provider);
	CHECK(!provider->rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
	CHECK(!provider->rdma_destroy_id(id));
	provider->rdma_destroy_event_channel(channel);
	close_provider(provider);
	return 0;
}
