/*
 * Two or more ranks of MPI greet rank 0. The first two send a message of each size to and fro, as OSU's osu_latency
 * does. They check what arrives, and write and add into each other's windows.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LARGEST = 1 << 20, ROUNDS = 10, TAG = 7 };

static void require(int holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "not so: %s\n", what);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

static char byte_at(int size, int round, int place)
{
	return (char)(size * 3 + round * 5 + place * 7 + place / 251);
}

static void fill(char *memory, int size, int round)
{
	for (int place = 0; place < size; place++)
		memory[place] = byte_at(size, round, place);
}

static void receive(char *memory, int size, int round, int from)
{
	MPI_Status status;
	int count;

	memset(memory, 0, (size_t)size);
	MPI_Recv(memory, LARGEST, MPI_CHAR, from, TAG, MPI_COMM_WORLD, &status);
	MPI_Get_count(&status, MPI_CHAR, &count);
	require(count == size, "a message has its length");
	for (int place = 0; place < size; place++)
		require(memory[place] == byte_at(size, round, place), "a message has its bytes");
}

static void ping_pong(int rank, char *memory)
{
	for (int size = 1; size <= LARGEST; size *= 4) {
		double begin = MPI_Wtime();

		for (int round = 0; round < ROUNDS; round++) {
			if (rank == 0) {
				fill(memory, size, round);
				MPI_Send(memory, size, MPI_CHAR, 1, TAG, MPI_COMM_WORLD);
			}
			receive(memory, size, round, 1 - rank);
			if (rank == 1)
				MPI_Send(memory, size, MPI_CHAR, 0, TAG, MPI_COMM_WORLD);
		}
		if (rank == 0)
			printf("%8d bytes %10.2f us\n", size, (MPI_Wtime() - begin) * 1e6 / (2 * ROUNDS));
	}
}

/* One-sided: RDMA and atomics. */
static void windows(int rank)
{
	long long *memory, one = 1, mine = 100 + rank;
	MPI_Win window;

	MPI_Win_allocate(2 * sizeof(*memory), sizeof(*memory), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
	memory[0] = memory[1] = 0;
	MPI_Win_fence(0, window);
	if (rank < 2) {
		MPI_Put(&mine, 1, MPI_LONG_LONG, 1 - rank, 0, 1, MPI_LONG_LONG, window);
		for (int round = 0; round < ROUNDS; round++)
			MPI_Accumulate(&one, 1, MPI_LONG_LONG, 0, 1, 1, MPI_LONG_LONG, MPI_SUM, window);
	}
	MPI_Win_fence(0, window);
	require(rank > 1 || memory[0] == 101 - rank, "what the peer wrote is in the window");
	require(rank || memory[1] == 2 * ROUNDS, "all that was added is in the window");
	MPI_Win_free(&window);
}

int main(int argc, char **argv)
{
	int rank, ranks, sum;
	char *memory = malloc(LARGEST);

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	require(memory && ranks >= 2, "there are two ranks");
	MPI_Reduce(&rank, &sum, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
	if (rank == 0) {
		require(sum == ranks * (ranks - 1) / 2, "every rank has greeted");
		printf("hello from %d ranks\n", ranks);
	}
	if (rank < 2)
		ping_pong(rank, memory);
	windows(rank);
	MPI_Finalize();
	free(memory);
	return 0;
}
