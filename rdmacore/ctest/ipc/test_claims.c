/* Ports that another process has: bind and listen fail as on one host (cma_check_port of Linux). */
#include <arpa/inet.h>
#include <pthread.h>

#include "ctest/support/check.h"
#include "ctest/support/cm.h"
#include "ctest/support/process.h"

#define PORT 7471
#define RACES 200

static struct process first, second;

static struct sockaddr_storage ip_address(const char *text, uint16_t port)
{
	struct sockaddr_storage storage = {0};
	struct sockaddr_in *in4 = (void *)&storage;
	struct sockaddr_in6 *in6 = (void *)&storage;

	in4->sin_port = htons(port); /* sin6_port is in the same place */
	if (strchr(text, ':')) {
		in6->sin6_family = AF_INET6;
		CHECK(inet_pton(AF_INET6, text, &in6->sin6_addr) == 1);
	} else {
		in4->sin_family = AF_INET;
		CHECK(inet_pton(AF_INET, text, &in4->sin_addr) == 1);
	}
	return storage;
}

struct wish {
	const char *address;
	int reuse, only_family; /* options; only_family -1: not set */
};

/* 0, or the errno of rdma_bind_addr. */
static int bind_as(struct process *process, struct rdma_cm_id *id, const struct wish *wish)
{
	struct sockaddr_storage address = ip_address(wish->address, PORT);
	struct core_provider *provider = process->provider;
	int reuse = wish->reuse, only_family = wish->only_family;

	CHECK(!provider->rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &reuse, sizeof(reuse)));
	if (only_family >= 0)
		CHECK(!provider->rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &only_family,
						 sizeof(only_family)));
	return provider->rdma_bind_addr(id, (struct sockaddr *)&address) ? errno : 0;
}

static void test_two(const struct wish *held, const struct wish *wanted, int error)
{
	/* Between processes, and within one. */
	for (int same = 0; same < 2; same++) {
		struct process *other = same ? &first : &second;
		struct rdma_cm_id *a = process_id(&first, RDMA_PS_TCP), *b = process_id(other, RDMA_PS_TCP);
		int result;

		CHECK(!bind_as(&first, a, held));
		result = bind_as(other, b, wanted);
		if (result != error)
			fprintf(stderr, "%s after %s: %s\n", wanted->address, held->address, strerror(result));
		CHECK(result == error);
		/* A released port is free. */
		process_destroy(&first, a);
		if (error)
			CHECK(!bind_as(other, b, wanted));
		process_destroy(other, b);
	}
}

static void test_conflicts(void)
{
	static const struct {
		struct wish held, wanted;
		int error;
	} cases[] = {
		{{"127.0.0.1", 0, -1}, {"127.0.0.1", 0, -1}, EADDRINUSE},
		{{"127.0.0.1", 0, -1}, {"127.0.0.2", 0, -1}, 0},
		{{"127.0.0.1", 0, -1}, {"0.0.0.0", 0, -1}, EADDRNOTAVAIL},
		{{"0.0.0.0", 0, -1}, {"127.0.0.1", 0, -1}, EADDRNOTAVAIL},
		{{"0.0.0.0", 0, -1}, {"0.0.0.0", 0, -1}, EADDRNOTAVAIL},
		{{"::", 0, -1}, {"127.0.0.1", 0, -1}, EADDRNOTAVAIL},
		{{"::", 0, -1}, {"0.0.0.0", 0, -1}, EADDRNOTAVAIL},
		{{"::", 0, 1}, {"0.0.0.0", 0, -1}, 0},
		{{"::", 0, 1}, {"::1", 0, 1}, EADDRNOTAVAIL},
		{{"::1", 0, 1}, {"127.0.0.1", 0, -1}, 0},
		{{"::1", 0, -1}, {"0.0.0.0", 0, -1}, EADDRNOTAVAIL},
		{{"::1", 0, -1}, {"::1", 0, 1}, EADDRINUSE},
		{{"127.0.0.1", 1, -1}, {"127.0.0.1", 1, -1}, 0},
		{{"127.0.0.1", 1, -1}, {"127.0.0.1", 0, -1}, EADDRINUSE},
		{{"127.0.0.1", 0, -1}, {"127.0.0.1", 1, -1}, EADDRINUSE},
		{{"0.0.0.0", 1, -1}, {"127.0.0.1", 1, -1}, 0},
	};

	for (size_t index = 0; index < sizeof(cases) / sizeof(cases[0]); index++)
		test_two(&cases[index].held, &cases[index].wanted, cases[index].error);
}

/* An id that shares a port cannot listen while others have it; a listener no longer shares it. */
static void test_listening_on_a_shared_port(void)
{
	const struct wish shared = {"127.0.0.1", 1, -1};
	struct rdma_cm_id *a = process_id(&first, RDMA_PS_TCP), *b = process_id(&second, RDMA_PS_TCP);

	CHECK(!bind_as(&first, a, &shared) && !bind_as(&second, b, &shared));
	REFUSED(first.provider->rdma_listen(a, 0), EADDRINUSE);
	process_destroy(&second, b);
	CHECK(!first.provider->rdma_listen(a, 0));
	b = process_id(&second, RDMA_PS_TCP);
	CHECK(bind_as(&second, b, &shared) == EADDRINUSE);
	process_destroy(&second, b);
	b = process_connect(&second, PORT);
	process_destroy(&first, process_request(&first));
	process_destroy(&second, b);
	process_destroy(&first, a);
}

/* A chosen port can be connected to when an id listens on it; port spaces are separate. */
static void test_chosen_ports_and_port_spaces(void)
{
	struct sockaddr_storage any = ip_address("127.0.0.1", 0);
	struct rdma_cm_id *a = process_id(&first, RDMA_PS_TCP), *b;
	struct rdma_cm_id *datagrams = process_listen_in(&second, RDMA_PS_UDP, PORT);
	uint16_t port;

	CHECK(!first.provider->rdma_bind_addr(a, (struct sockaddr *)&any));
	CHECK(!first.provider->rdma_listen(a, 0));
	port = ntohs(first.provider->rdma_get_src_port(a));
	b = process_connect(&second, port);
	process_destroy(&first, process_request(&first));
	process_destroy(&second, b);
	process_destroy(&first, a);
	process_destroy(&first, process_listen(&first, PORT));
	process_destroy(&second, datagrams);
}

/* A listener on any address is found by each, of its families. */
static void test_wildcards(void)
{
	static const struct {
		struct wish held;
		const char *to;
	} cases[] = {
		{{"0.0.0.0", 0, -1}, "127.0.0.3"},
		{{"::", 0, -1}, "127.0.0.1"},
		{{"::", 0, -1}, "::1"},
		{{"::", 0, 1}, "::1"},
	};

	for (size_t index = 0; index < sizeof(cases) / sizeof(cases[0]); index++) {
		struct sockaddr_storage address = ip_address(cases[index].to, PORT);
		struct rdma_cm_id *listener = process_id(&first, RDMA_PS_TCP), *id = process_id(&second, RDMA_PS_TCP);
		struct rdma_conn_param param = usual_param();
		struct core_provider *provider = second.provider;

		param.private_data = "hello";
		param.private_data_len = 5;
		CHECK(!bind_as(&first, listener, &cases[index].held));
		CHECK(!first.provider->rdma_listen(listener, 0));
		CHECK(!provider->rdma_resolve_addr(id, NULL, (struct sockaddr *)&address, 2000));
		process_expect(&second, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
		CHECK(!provider->rdma_resolve_route(id, 2000));
		process_expect(&second, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
		CHECK(!provider->rdma_connect(id, &param));
		process_destroy(&first, process_request(&first));
		process_destroy(&second, id);
		process_destroy(&first, listener);
	}
}

/* --- two threads at once ----------------------------------------------------------------------------- */

static pthread_barrier_t start;

struct racer {
	struct rdma_cm_id *id;
	const char *address;
	int bound, listening; /* 0, or an errno */
};

static void *race(void *argument)
{
	struct racer *racer = argument;
	struct sockaddr_storage address = ip_address(racer->address, PORT);

	pthread_barrier_wait(&start);
	racer->bound = first.provider->rdma_bind_addr(racer->id, (struct sockaddr *)&address) ? errno : 0;
	if (!racer->bound)
		racer->listening = first.provider->rdma_listen(racer->id, 0) ? errno : 0;
	return NULL;
}

/*
 * Binding releases cm.lock while it reads the list of names. Of two ids that want one port, one gets it, and the other
 * gets an error with the reason.
 */
static void test_at_once(const char *address, const char *other, int error)
{
	for (int round = 0; round < RACES; round++) {
		struct racer racers[2] = {{.address = address}, {.address = other}};
		pthread_t threads[2];
		int loser;

		for (int index = 0; index < 2; index++) {
			racers[index].id = process_id(&first, RDMA_PS_TCP);
			CHECK(!pthread_create(&threads[index], NULL, race, &racers[index]));
		}
		for (int index = 0; index < 2; index++)
			CHECK(!pthread_join(threads[index], NULL));
		loser = racers[0].bound ? 0 : 1;
		CHECK(racers[loser].bound == error && !racers[!loser].bound && !racers[!loser].listening);
		for (int index = 0; index < 2; index++)
			process_destroy(&first, racers[index].id);
	}
}

/* An id is bound once, whichever of two threads is first. */
static void test_one_id_at_once(void)
{
	for (int round = 0; round < RACES; round++) {
		struct rdma_cm_id *id = process_id(&first, RDMA_PS_TCP);
		struct sockaddr_storage address = ip_address("127.0.0.1", PORT);
		struct racer racers[2] = {{id, "127.0.0.1", 0, 0}, {id, "127.0.0.1", 0, 0}};
		pthread_t threads[2];

		for (int index = 0; index < 2; index++)
			CHECK(!pthread_create(&threads[index], NULL, race, &racers[index]));
		for (int index = 0; index < 2; index++)
			CHECK(!pthread_join(threads[index], NULL));
		CHECK(!racers[0].bound != !racers[1].bound);
		CHECK(first.provider->rdma_bind_addr(id, (struct sockaddr *)&address) && errno == EINVAL);
		process_destroy(&first, id);
	}
}

int main(void)
{
	first = process_start(1);
	second = process_start(2);
	test_conflicts();
	CHECK(!pthread_barrier_init(&start, NULL, 2));
	test_at_once("127.0.0.1", "127.0.0.1", EADDRINUSE);
	test_at_once("127.0.0.1", "0.0.0.0", EADDRNOTAVAIL);
	test_one_id_at_once();
	test_listening_on_a_shared_port();
	test_chosen_ports_and_port_spaces();
	/* Rejections by the requests that were dropped above are of no interest. */
	second.provider->rdma_destroy_event_channel(second.channel);
	second.channel = create_channel(second.provider);
	test_wildcards();
	process_end(&second);
	process_end(&first);
	return 0;
}
