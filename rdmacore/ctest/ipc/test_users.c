/*
 * Other users of the machine: names that they bind get no connections meant for a listener. Unless the fabric is
 * shared, ids connect only to listeners of their own user or root. Each user is a process; all are started before
 * there are threads.
 */
#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "ctest/support/actor.h"
#include "ctest/support/check.h"
#include "ctest/support/cm.h"
#include "ctest/support/process.h"
#include "soft/base/local_name.h"
#include "soft/ipc/ipc.h"

#define PORT 7471
#define ALICE 65533
#define BOB 65534

static char fabric[CORE_FABRIC_MAX + 1];

/* Another user. Its process executes one function each time it is asked. */
struct user {
	struct actor actor;
	void (*act)(void);
};

static struct user user_start(uid_t user, void (*act)(void))
{
	return (struct user){actor_start(ACTOR_HERE, user), act};
}

static void user_act(struct user *user)
{
	actor_do(&user->actor, user->act);
}

static void user_end(struct user *user)
{
	actor_end(&user->actor);
}

static struct process start(bool shared)
{
	return process_start_with(fabric, (struct core_options){.shared = shared});
}

static int bind_to(struct process *process, struct rdma_cm_id *id, const char *text)
{
	struct sockaddr_storage address = ipv4_address(text, PORT);

	return process->provider->rdma_bind_addr(id, (struct sockaddr *)&address) ? errno : 0;
}

static struct rdma_cm_id *listen_on(struct process *process, const char *text)
{
	struct rdma_cm_id *id = process_id(process, RDMA_PS_TCP);

	CHECK(!bind_to(process, id, text) && !process->provider->rdma_listen(id, 0));
	return id;
}

/* --- actions of users ------------------------------------------------------------------------------- */

/* A name, bound by hand. */
static int squat(const char *name)
{
	int fd = soft_local_bind(name);

	CHECK(fd >= 0);
	return fd;
}

static void take_narrower_name(void)
{
	char name[SOFT_LOCAL_NAME];

	snprintf(name, sizeof(name), "rdmarun/%s/106/%u/4/127.0.0.1", fabric, PORT);
	CHECK(!listen(squat(name), 16));
}

/* Like the previous one, but no connection is ever accepted. */
static void fill_narrower_name(void)
{
	char name[SOFT_LOCAL_NAME];
	struct soft_local_trust own = {.user = geteuid()};
	uid_t stranger;
	int fd;

	snprintf(name, sizeof(name), "rdmarun/%s/106/%u/4/127.0.0.1", fabric, PORT);
	CHECK(!listen(squat(name), 0));
	do
		fd = soft_local_connect(name, &own, &stranger);
	while (fd >= 0);
	CHECK(fd == -EAGAIN);
}

/* Names of root's towards other hosts, with and without listening. */
static void take_names_for_hosts(void)
{
	char name[SOFT_LOCAL_NAME];

	for (unsigned int port = PORT; port <= PORT + 1; port++) {
		snprintf(name, sizeof(name), "rdmarun//0/106/%u/4/0.0.0.0", port);
		if (port == PORT)
			CHECK(!listen(squat(name), 16));
		else
			squat(name);
		snprintf(name, sizeof(name), "rdmarun//0/106/%u/46/::", port);
		CHECK(!listen(squat(name), 16));
	}
}

static void take_blocks(void)
{
	char name[SOFT_LOCAL_NAME];

	for (unsigned int block = 0; block < 4096; block++) {
		snprintf(name, sizeof(name), "rdmarun//0/block/%u", block);
		close(soft_local_bind(name));
	}
	for (unsigned int block = 0; block < 900; block++) { /* about as many as the limit of descriptors */
		snprintf(name, sizeof(name), "rdmarun//0/block/%u", block);
		squat(name);
	}
}

static void bind_honestly(void)
{
	struct process process = start(false);
	struct rdma_cm_id *id = process_id(&process, RDMA_PS_TCP);

	core_forget_refusal(process.provider);
	CHECK(bind_to(&process, id, "127.0.0.1") == EADDRNOTAVAIL);
	CHECK(strstr(core_refusal(process.provider), "user 0 has port 7471"));
	process_destroy(&process, id);
	process_end(&process);
}

static void listen_privately(void)
{
	static struct process process;

	process = start(false);
	listen_on(&process, "127.0.0.1");
}

static void listen_shared(void)
{
	static struct process process;

	process = start(true);
	listen_on(&process, "127.0.0.1");
}

static void connect_as(bool shared, bool reaches)
{
	struct process process = start(shared);
	struct rdma_cm_id *id = process_connect(&process, PORT);

	if (!reaches)
		process_expect(&process, RDMA_CM_EVENT_REJECTED, 8);
	process_destroy(&process, id);
	process_end(&process);
}

static void connect_in_vain(void)
{
	connect_as(false, false);
}

/* It waits until its listener has the request: expect_request of the parent. */
static void connect_to_root(void)
{
	struct process process = start(false);
	struct rdma_cm_id *id = process_connect(&process, PORT);

	process_expect(&process, RDMA_CM_EVENT_REJECTED, 28);
	process_destroy(&process, id);
	process_end(&process);
}

/* A connection by hand ends without a byte. */
static void connect_by_hand(void)
{
	struct soft_local_trust all = {.all = true};
	char name[SOFT_LOCAL_NAME], byte;
	uid_t stranger;
	int fd;

	snprintf(name, sizeof(name), "rdmarun/%s/106/%u/4/127.0.0.1", fabric, PORT);
	fd = soft_local_connect(name, &all, &stranger);
	CHECK(fd >= 0);
	while (recv(fd, &byte, 1, 0) < 0)
		CHECK(errno == EAGAIN && !usleep(1000));
	CHECK(recv(fd, &byte, 1, 0) == 0);
	close(fd);
}

/* --- tests ---------------------------------------------------------------------------------------- */

/* Root's client connects to root's listener on any address, although another user has a narrower name. */
static void test_narrower_name(struct user *bob)
{
	struct process server = start(false), client = start(false);
	struct rdma_cm_id *listener = listen_on(&server, "0.0.0.0"), *id, *child;

	user_act(bob);
	id = process_connect(&client, PORT);
	child = process_request(&server);
	process_destroy(&server, child);
	process_destroy(&client, id);
	process_destroy(&server, listener);
	process_end(&client);
	process_end(&server);
	user_end(bob);
}

static void test_stranger_alone(struct user *bob)
{
	user_act(bob);
	connect_as(false, false);
	user_end(bob);
}

static void test_honest_bind(struct user *bob)
{
	struct process server = start(false);
	struct rdma_cm_id *listener = listen_on(&server, "0.0.0.0");

	user_act(bob);
	process_destroy(&server, listener);
	process_end(&server);
	user_end(bob);
}

/* Neither root's clients nor other users' come to a user's listener, whatever they try. */
static void test_private(struct user *alice, struct user *bob, struct user *bob_by_hand)
{
	user_act(alice);
	connect_as(false, false);
	user_act(bob);
	user_act(bob_by_hand);
	user_end(alice);
	user_end(bob);
	user_end(bob_by_hand);
}

static void test_root_serves_all(struct user *bob)
{
	struct process server = start(false);
	struct rdma_cm_id *listener = listen_on(&server, "127.0.0.1"), *child;

	actor_begin(&bob->actor, bob->act);
	child = process_request(&server);
	CHECK(!server.provider->rdma_reject(child, NULL, 0));
	actor_await(&bob->actor);
	process_destroy(&server, child);
	process_destroy(&server, listener);
	process_end(&server);
	user_end(bob);
}

/* In a shared fabric all processes of it can connect to a user's listener, and no others. */
static void test_shared(struct user *alice)
{
	struct process client = start(true);
	struct rdma_cm_id *id;
	struct soft_ipc_peer *peer;
	struct soft_ipc *ipc = process_ipc(client.provider);
	bool found = false;

	user_act(alice);
	id = process_connect(&client, PORT);
	soft_mutex_lock(ipc->lock);
	LIST_FOREACH(peer, &ipc->peers, entry)
		found |= peer->outgoing && peer->user == ALICE;
	soft_mutex_unlock(ipc->lock);
	CHECK(found);
	process_destroy(&client, id);
	process_end(&client);
	connect_as(false, false);
	user_end(alice);
}

/* A user that has taken the names of a listener for other hosts does not hide it. */
static void test_names_for_hosts(struct user *bob)
{
	struct process server, other;

	user_act(bob);
	server = start(false);
	other = start(false);
	for (uint16_t port = PORT; port <= PORT + 1; port++) {
		struct sockaddr_storage any = ipv4_address("0.0.0.0", PORT), to = ipv4_address("192.0.2.1", PORT);
		struct sockaddr_in *destination = (void *)&to;
		struct soft_ipc *ipc = process_ipc(server.provider), *its = process_ipc(other.provider);
		struct soft_claim *claim, *second = NULL;
		struct soft_ipc_port wanted = {RDMA_PS_TCP, port, true};
		struct soft_local_list list;
		uid_t stranger;
		int fd;

		destination->sin_port = htons(port);
		soft_mutex_lock(ipc->lock);
		CHECK(!soft_claim_make(ipc, &wanted, (struct sockaddr *)&any, true, false, &claim));
		CHECK(!soft_claim_listen(claim));
		soft_mutex_unlock(ipc->lock);
		soft_local_list_read(&list, &ipc->fabric->without_users);
		soft_mutex_lock(its->lock);
		CHECK(!soft_claim_connect(its, &wanted, (struct sockaddr *)&to, &list, &fd, &stranger));
		CHECK(soft_local_user(fd) == geteuid() && !close(fd));
		/* Another of this user has it. */
		CHECK(soft_claim_make(its, &wanted, (struct sockaddr *)&any, true, false, &second) ||
		      soft_claim_check(second, &wanted, (struct sockaddr *)&any, true, &list));
		if (second)
			soft_claim_release(second);
		soft_local_list_free(&list);
		soft_mutex_unlock(its->lock);
		soft_mutex_lock(ipc->lock);
		soft_claim_release(claim);
		soft_mutex_unlock(ipc->lock);
	}
	process_end(&other);
	process_end(&server);
	user_end(bob);
}

/* Each block gets a second name if its name is taken. */
static void test_blocks(struct user *bob)
{
	user_act(bob);
	for (int round = 0; round < 20; round++) {
		struct process process = start(false);
		struct rdma_cm_id *id = process_id(&process, RDMA_PS_TCP);

		process_destroy(&process, id);
		process_end(&process);
	}
	user_end(bob);
}

int main(int count, char **words)
{
	struct user narrow, full, alone, honest, listener, client, by_hand, of_root, shared, hosts, blocks;

	(void)count;
	actor_need_root(words);
	actor_make_hosts(0);
	snprintf(fabric, sizeof(fabric), "users-%d", getpid());
	narrow = user_start(BOB, take_narrower_name);
	full = user_start(BOB, fill_narrower_name);
	alone = user_start(BOB, take_narrower_name);
	honest = user_start(BOB, bind_honestly);
	listener = user_start(ALICE, listen_privately);
	client = user_start(BOB, connect_in_vain);
	by_hand = user_start(BOB, connect_by_hand);
	of_root = user_start(BOB, connect_to_root);
	shared = user_start(ALICE, listen_shared);
	hosts = user_start(BOB, take_names_for_hosts);
	blocks = user_start(BOB, take_blocks);
	test_narrower_name(&narrow);
	test_narrower_name(&full);
	test_stranger_alone(&alone);
	test_honest_bind(&honest);
	test_private(&listener, &client, &by_hand);
	test_root_serves_all(&of_root);
	test_shared(&shared);
	test_names_for_hosts(&hosts);
	test_blocks(&blocks);
	return 0;
}
