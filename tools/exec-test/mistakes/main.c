#include "mistakes.h"

struct in_addr own_address;

void none(struct endpoint *e)
{
	for (int i = 0; i < 40; i++)
		endpoint_transfer(e);
}

#define MODE(name) {#name, name},

static const struct {
	const char *name;
	void (*run)(struct endpoint *e);
} modes[] = {
	MODE(none) MODE(long_poll) MODE(connected)
	MODE(device_memory) MODE(null_region) MODE(changed_region) MODE(shared_twice) MODE(killed)
	MISTAKES(MODE)
};

/* mistakes NAME [ADDRESS]; with --list it prints all names. Connections are to the address, which is the host's own. */
int main(int count, char **arguments)
{
	struct ibv_device **list;
	static struct endpoint e;

	alarm(PATIENCE);
	REQUIRE(count == 2 || count == 3);
	REQUIRE(inet_pton(AF_INET, count == 3 ? arguments[2] : "127.0.0.1", &own_address) == 1);
	for (size_t i = 0; i < sizeof(modes) / sizeof(*modes); i++) {
		if (!strcmp(arguments[1], "--list"))
			puts(modes[i].name);
		if (strcmp(arguments[1], modes[i].name))
			continue;
		endpoint_open(&e, first_device(&list));
		modes[i].run(&e);
		if (e.qp)
			REQUIRE(!ibv_destroy_qp(e.qp));
		ibv_dereg_mr(e.mr);
		REQUIRE(!ibv_destroy_cq(e.cq) && !ibv_destroy_comp_channel(e.channel));
		REQUIRE(!ibv_dealloc_pd(e.pd) && !ibv_close_device(e.context));
		ibv_free_device_list(list);
		return 0;
	}
	return strcmp(arguments[1], "--list") ? 1 : 0;
}
