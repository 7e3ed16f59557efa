/*
 * A program that unmaps memory which is registered, and which its peer and it itself continue to use. An adapter has
 * pinned it, so nothing fails. The rest of a region gets its bytes. The unmapped part reads as zeros and stays
 * unmapped.
 */
#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "exec_test.h"

#define PAGE ((size_t)sysconf(_SC_PAGESIZE))
#define PAGES 600 /* more than is lent at once */
#define FIRST_GONE 8
#define FIRST_AFTER 560
#define FILE_PAGES 40
#define ALL (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

/* What a side sends to the other. */
struct address {
	union ibv_gid gid;
	uint32_t qp_num;
	uint32_t region_key, file_key;
	uint64_t region, file;
};

struct side {
	struct endpoint endpoint;
	char *region, *file; /* registered, and unmapped, or made shorter */
	struct ibv_mr *region_mr, *file_mr;
	int fd;
};

static void side_open(struct side *side)
{
	struct ibv_device **list;

	endpoint_make(&side->endpoint, first_device(&list));
	ibv_free_device_list(list);
	side->region = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	REQUIRE(side->region != MAP_FAILED);
	memset(side->region, 'o', PAGES * PAGE);
	REQUIRE(side->region_mr = ibv_reg_mr(side->endpoint.pd, side->region, PAGES * PAGE, ALL));

	side->fd = memfd_create("file", 0);
	REQUIRE(side->fd >= 0 && !ftruncate(side->fd, (off_t)(FILE_PAGES * PAGE)));
	side->file = mmap(NULL, FILE_PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, side->fd, 0);
	REQUIRE(side->file != MAP_FAILED);
	REQUIRE(side->file_mr = ibv_reg_mr(side->endpoint.pd, side->file, FILE_PAGES * PAGE, ALL));
}

static struct address address_of(const struct side *side)
{
	return (struct address){side->endpoint.gid,	  side->endpoint.qp->qp_num,	 side->region_mr->rkey,
				side->file_mr->rkey, (uintptr_t)side->region, (uintptr_t)side->file};
}

static bool is_gone(const struct side *side)
{
	for (size_t page = FIRST_GONE; page < FIRST_AFTER; page++)
		if (!msync(side->region + page * PAGE, PAGE, MS_ASYNC) || errno != ENOMEM)
			return false;
	return true;
}

static void side_unmap(struct side *side)
{
	REQUIRE(!munmap(side->region + FIRST_GONE * PAGE, (FIRST_AFTER - FIRST_GONE) * PAGE));
	REQUIRE(!ftruncate(side->fd, (off_t)PAGE));
	endpoint_expect(&side->endpoint, side->region_mr, side->region + FIRST_GONE * PAGE, 64);
	endpoint_expect(&side->endpoint, side->region_mr, side->region + 20 * PAGE - 100, 3 * PAGE);
	endpoint_expect(&side->endpoint, side->region_mr, side->region, 0);
}

static bool holds(const char *memory, char byte, size_t length)
{
	for (size_t index = 0; index < length; index++)
		if (memory[index] != byte)
			return false;
	return true;
}

static void request(struct side *side, enum ibv_wr_opcode opcode, struct ibv_mr *mr, void *local, size_t length,
		    uint64_t remote, uint32_t rkey)
{
	struct ibv_sge entry = {.addr = (uintptr_t)local, .length = (uint32_t)length, .lkey = mr->lkey};
	struct ibv_send_wr send = {.sg_list = &entry, .num_sge = 1, .opcode = opcode};

	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
		send.wr.atomic.remote_addr = remote;
		send.wr.atomic.rkey = rkey;
		send.wr.atomic.swap = 7;
	} else {
		send.wr.rdma.remote_addr = remote;
		send.wr.rdma.rkey = rkey;
	}
	endpoint_post(&side->endpoint, &send);
	endpoint_complete(&side->endpoint, 1);
}

/* With a peer that has unmapped the like. */
static void use(struct side *side, const struct address *peer)
{
	char *whole = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t gone = peer->region + 30 * PAGE;
	struct ibv_mr *mr;

	REQUIRE(whole != MAP_FAILED && (mr = ibv_reg_mr(side->endpoint.pd, whole, PAGES * PAGE, ALL)));
	memset(whole, 'n', PAGES * PAGE);
	request(side, IBV_WR_SEND, mr, whole, 64, 0, 0);
	request(side, IBV_WR_SEND_WITH_IMM, mr, whole, 3 * PAGE, 0, 0);
	request(side, IBV_WR_RDMA_WRITE_WITH_IMM, mr, whole, 8, gone, peer->region_key);
	request(side, IBV_WR_RDMA_WRITE, mr, whole, PAGES * PAGE, peer->region, peer->region_key);
	request(side, IBV_WR_RDMA_READ, mr, whole, PAGES * PAGE, peer->region, peer->region_key);
	REQUIRE(holds(whole, 'n', FIRST_GONE * PAGE));
	REQUIRE(holds(whole + FIRST_GONE * PAGE, 0, (FIRST_AFTER - FIRST_GONE) * PAGE));
	REQUIRE(holds(whole + FIRST_AFTER * PAGE, 'n', (PAGES - FIRST_AFTER) * PAGE));
	memset(whole, 'n', PAGES * PAGE);
	request(side, IBV_WR_ATOMIC_FETCH_AND_ADD, mr, whole, 8, gone, peer->region_key);
	REQUIRE(holds(whole, 0, 8));
	memset(whole, 'n', 8);
	request(side, IBV_WR_ATOMIC_CMP_AND_SWP, mr, whole, 8, gone, peer->region_key);
	REQUIRE(holds(whole, 0, 8));
	memset(whole, 'n', 8);

	/* Its own is gone as well. */
	request(side, IBV_WR_RDMA_WRITE, side->region_mr, side->region + 9 * PAGE, PAGE, peer->region, peer->region_key);
	request(side, IBV_WR_RDMA_WRITE, side->region_mr, side->region + 9 * PAGE, 64, peer->region + PAGE, peer->region_key);
	request(side, IBV_WR_RDMA_READ, side->region_mr, side->region + 5 * PAGE, 6 * PAGE, peer->region + 2 * PAGE, peer->region_key);
	REQUIRE(holds(side->region + 5 * PAGE, 'n', 3 * PAGE));
	request(side, IBV_WR_ATOMIC_FETCH_AND_ADD, side->region_mr, side->region + 40 * PAGE, 8, gone, peer->region_key);
	REQUIRE(is_gone(side));

	request(side, IBV_WR_RDMA_WRITE, mr, whole, FILE_PAGES * PAGE, peer->file, peer->file_key);
	request(side, IBV_WR_RDMA_READ, mr, whole, FILE_PAGES * PAGE, peer->file, peer->file_key);
	REQUIRE(holds(whole, 'n', PAGE) && holds(whole + PAGE, 0, (FILE_PAGES - 1) * PAGE));
	REQUIRE(!ibv_dereg_mr(mr) && !munmap(whole, PAGES * PAGE));
}

/* What use has left behind at the peer. */
static void look(struct side *side)
{
	char byte = 'f';

	endpoint_complete(&side->endpoint, 3);
	REQUIRE(is_gone(side));
	REQUIRE(holds(side->region, 0, PAGE + 64));
	REQUIRE(holds(side->region + PAGE + 64, 'n', (FIRST_GONE - 1) * PAGE - 64));
	REQUIRE(holds(side->region + FIRST_AFTER * PAGE, 'n', (PAGES - FIRST_AFTER) * PAGE));
	/* The mapping is the file's as before. */
	REQUIRE(holds(side->file, 'n', PAGE));
	REQUIRE(!ftruncate(side->fd, (off_t)(FILE_PAGES * PAGE)));
	REQUIRE(holds(side->file + PAGE, 0, (FILE_PAGES - 1) * PAGE));
	REQUIRE(pwrite(side->fd, &byte, 1, (off_t)(5 * PAGE)) == 1 && side->file[5 * PAGE] == byte);
}

static void side_close(struct side *side)
{
	REQUIRE(!ibv_dereg_mr(side->region_mr) && !ibv_dereg_mr(side->file_mr));
	endpoint_close(&side->endpoint);
}

static void in_one_process(void)
{
	struct side *one = calloc(1, sizeof(*one)), *other = calloc(1, sizeof(*other));
	struct address address;

	REQUIRE(one && other);
	side_open(one);
	side_open(other);
	endpoint_connect(&one->endpoint, &other->endpoint.gid, other->endpoint.qp->qp_num);
	endpoint_connect(&other->endpoint, &one->endpoint.gid, one->endpoint.qp->qp_num);
	side_unmap(one);
	side_unmap(other);
	address = address_of(other);
	use(one, &address);
	look(other);
	side_close(one);
	side_close(other);
}

static void wait_for_peer(int peer)
{
	char turn = 't';

	REQUIRE(write(peer, &turn, 1) == 1 && read(peer, &turn, 1) == 1);
}

static void be_one_of_two(int peer, bool uses)
{
	struct side *side = calloc(1, sizeof(*side));
	struct address own, others;

	REQUIRE(side);
	alarm(PATIENCE);
	side_open(side);
	own = address_of(side);
	REQUIRE(write(peer, &own, sizeof(own)) == sizeof(own) && read(peer, &others, sizeof(others)) == sizeof(others));
	endpoint_connect(&side->endpoint, &others.gid, others.qp_num);
	side_unmap(side);
	wait_for_peer(peer);
	if (uses)
		use(side, &others);
	/* The other's processor may have better to do than to look. */
	wait_for_peer(peer);
	if (!uses)
		look(side);
	wait_for_peer(peer);
	side_close(side);
}

int main(void)
{
	int peers[2], status;
	pid_t child;

	alarm(PATIENCE);
	REQUIRE(!socketpair(AF_UNIX, SOCK_STREAM, 0, peers));
	child = fork();
	if (!child) {
		be_one_of_two(peers[0], true);
		exit(0);
	}
	be_one_of_two(peers[1], false);
	REQUIRE(waitpid(child, &status, 0) == child && WIFEXITED(status) && !WEXITSTATUS(status));
	in_one_process();
	return 0;
}
