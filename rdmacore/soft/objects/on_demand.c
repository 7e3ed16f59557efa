#include "soft/objects/on_demand.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "soft/base/bounds.h"

#define SHORT (UINT64_C(1) << 16) /* in a shorter range each page is checked */
#define SINK_PIECE (UINT64_C(1) << 25) /* memory of a null region, which is mapped 64 times */

_Static_assert(SOFT_NULL_MEMORY_SIZE >= SOFT_MAX_MESSAGE, "a message fits");
_Static_assert(SOFT_NULL_MEMORY_SIZE % SINK_PIECE == 0, "whole pieces");

static uint64_t page_mask(void)
{
	return (uint64_t)sysconf(_SC_PAGESIZE) - 1;
}

/* Extend to whole pages; false if the range ends behind the last address. */
static bool span(uint64_t *address, uint64_t *length)
{
	uint64_t mask = page_mask(), first = *address & ~mask, last = *address + (*length ? *length - 1 : 0);

	if (last < *address || (last | mask) == UINT64_MAX)
		return false;
	*address = first;
	*length = (last | mask) + 1 - first;
	return true;
}

bool soft_on_demand_is_supported(void)
{
	uint64_t page = (uintptr_t)&page & ~page_mask();

	return !madvise((void *)(uintptr_t)page, page_mask() + 1, MADV_POPULATE_WRITE);
}

bool soft_on_demand_populate(uint64_t address, uint64_t length, bool write)
{
	int saved = errno; /* this thread may be a user's that polls */
	bool present = span(&address, &length) && !madvise((void *)(uintptr_t)address, length,
							   write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ);

	errno = saved;
	return present;
}

bool soft_memory_is_there(uint64_t address, uint64_t length, bool write)
{
	uint64_t first = address, whole = length;

	if (!length)
		return true;
	if (!span(&first, &whole))
		return false;
	if (whole <= SHORT)
		return soft_on_demand_populate(address, length, write);
	/* MS_ASYNC only checks which pages are mapped. */
	return (!msync((void *)(uintptr_t)first, whole, MS_ASYNC) || errno != ENOMEM) &&
	       soft_on_demand_populate(first, 1, write) && soft_on_demand_populate(first + whole - 1, 1, write);
}

void soft_on_demand_expect(uint64_t address, uint64_t length)
{
	if (span(&address, &length))
		madvise((void *)(uintptr_t)address, length, MADV_WILLNEED);
}

static void *map_nothing(int protection)
{
	return mmap(NULL, SOFT_NULL_MEMORY_SIZE, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

/* Map the same piece of a memory file again and again, over the whole range. */
static void *map_sink(void)
{
	int file = memfd_create("rdmarun-null", MFD_CLOEXEC);
	char *sink = MAP_FAILED;

	if (file < 0)
		return MAP_FAILED;
	if (ftruncate(file, SINK_PIECE))
		goto close_file;
	sink = map_nothing(PROT_NONE);
	if (sink == MAP_FAILED)
		goto close_file;
	for (uint64_t offset = 0; offset < SOFT_NULL_MEMORY_SIZE; offset += SINK_PIECE)
		if (mmap(sink + offset, SINK_PIECE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) ==
		    MAP_FAILED) {
			munmap(sink, SOFT_NULL_MEMORY_SIZE);
			sink = MAP_FAILED;
			break;
		}
close_file:
	close(file);
	return sink;
}

bool soft_null_memory_take(struct soft_null_memory *memory)
{
	if (memory->users) {
		memory->users++;
		return true;
	}
	memory->zeros = map_nothing(PROT_READ);
	if (memory->zeros == MAP_FAILED)
		return false;
	memory->sink = map_sink();
	if (memory->sink == MAP_FAILED) {
		munmap(memory->zeros, SOFT_NULL_MEMORY_SIZE);
		return false;
	}
	memory->users = 1;
	return true;
}

void soft_null_memory_drop(struct soft_null_memory *memory)
{
	if (--memory->users)
		return;
	munmap(memory->zeros, SOFT_NULL_MEMORY_SIZE);
	munmap(memory->sink, SOFT_NULL_MEMORY_SIZE);
}
