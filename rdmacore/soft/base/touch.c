#include "soft/base/touch.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MOST 16 /* pieces that a copy has at once: it goes through few pages at a time */
#define PIECE (UINT64_C(1) << 21)

struct lent {
	char *address;
	size_t length;
	void *aside; /* where the mapping is that it stands for; NULL: there is none */
};

_Thread_local volatile int soft_touch;

static _Thread_local struct {
	struct lent pieces[MOST]; /* oldest first */
	uint32_t count;
} lent;

/* Whole pages from that of address on, no more than a piece. */
static size_t measure(uint64_t *address, uint64_t end, uint64_t page)
{
	uint64_t left;

	*address &= ~(page - 1);
	left = end - *address;
	return left < PIECE ? (left + page - 1) & ~(page - 1) : PIECE;
}

static void take(const struct lent *piece)
{
	if (piece->aside)
		mremap(piece->aside, piece->length, piece->length, MREMAP_MAYMOVE | MREMAP_FIXED, piece->address);
	else
		munmap(piece->address, piece->length);
}

static void add(uint64_t address, size_t length, void *aside)
{
	soft_touch = SOFT_TOUCHES_LENT;
	if (lent.count == MOST) {
		take(&lent.pieces[0]);
		memmove(&lent.pieces[0], &lent.pieces[1], --lent.count * sizeof(lent.pieces[0]));
	}
	lent.pieces[lent.count++] = (struct lent){(char *)(uintptr_t)address, length, aside};
}

/* Where there is nothing: 0, or an errno value. */
static int map(uint64_t address, size_t length)
{
	void *wanted = (void *)(uintptr_t)address;
	void *mapped = mmap(wanted, length, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);

	if (mapped == MAP_FAILED)
		return errno;
	if (mapped == wanted)
		return 0;
	munmap(mapped, length); /* Linux before 4.17 */
	return EEXIST;
}

bool soft_touch_lend(uint64_t address, uint64_t end)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	size_t length = measure(&address, end, page);
	int error = map(address, length);

	if (error == EEXIST && length > page) {
		length = page;
		error = map(address, length);
	}
	if (!error)
		add(address, length, NULL);
	return !error || error == EEXIST;
}

bool soft_touch_replace(uint64_t address, uint64_t end)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	size_t length = measure(&address, end, page);
	void *here = (void *)(uintptr_t)address, *aside;

	aside = mmap(NULL, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (aside == MAP_FAILED)
		return false;
	/* The mapping may end before the region does, and is moved in one piece or not at all. */
	if (mremap(here, length, length, MREMAP_MAYMOVE | MREMAP_FIXED, aside) == MAP_FAILED) {
		munmap((char *)aside + page, length - page);
		length = page;
		if (mremap(here, length, length, MREMAP_MAYMOVE | MREMAP_FIXED, aside) == MAP_FAILED) {
			munmap(aside, length);
			return false;
		}
	}
	if (map(address, length)) {
		mremap(aside, length, length, MREMAP_MAYMOVE | MREMAP_FIXED, here);
		return false;
	}
	add(address, length, aside);
	return true;
}

void soft_touch_give_back(void)
{
	int saved = errno; /* this may be a thread of the user's that polls */

	while (lent.count)
		take(&lent.pieces[--lent.count]);
	errno = saved;
}
