#include "soft/base/page_guard.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <unistd.h>

#define MOST 16 /* page ranges that a copy uses at once: it copies a few pages at a time */
#define PIECE (UINT64_C(1) << 21)

struct placeholder {
	char *address;
	size_t length;
	void *displaced; /* where the replaced mapping is; NULL: there was none */
	int segment; /* the shared memory segment of the placeholder, used by nothing else */
};

_Thread_local volatile int soft_page_guard;

static _Thread_local struct {
	struct placeholder pieces[MOST]; /* oldest first */
	uint32_t count;
} placeholders;

/* The length in whole pages from that of address on, at most a piece. */
static size_t measure(uint64_t *address, uint64_t end, uint64_t page)
{
	uint64_t left;

	*address &= ~(page - 1);
	left = end - *address;
	return left < PIECE ? (left + page - 1) & ~(page - 1) : PIECE;
}

/* --- mappings of the process ------------------------------------------------------------------------ */

/* /proc/self/maps, read on the stack of the signal handler. */
struct maps {
	int file;
	size_t at, length;
	char bytes[512];
};

/* The next character; 0: the end. */
static char next(struct maps *maps)
{
	if (maps->at == maps->length) {
		ssize_t length = read(maps->file, maps->bytes, sizeof(maps->bytes));

		maps->at = 0;
		maps->length = length > 0 ? (size_t)length : 0;
	}
	return maps->at < maps->length ? maps->bytes[maps->at++] : 0;
}

/* Read a number, and the character after it. */
static uint64_t read_number(struct maps *maps, unsigned int base)
{
	uint64_t number = 0;

	for (;;) {
		char digit = next(maps);

		if (digit >= '0' && digit <= '9')
			number = number * base + (uint64_t)(digit - '0');
		else if (base == 16 && digit >= 'a' && digit <= 'f')
			number = number * base + (uint64_t)(digit - 'a') + 10;
		else
			return number;
	}
}

/* Skip up to the character; false at the end of the file. */
static bool skip(struct maps *maps, char until)
{
	char found = next(maps);

	while (found && found != until)
		found = next(maps);
	return found;
}

/* The next mapping and its shared memory segment, or -1; false: no more. */
static bool next_mapping(struct maps *maps, uint64_t *start, uint64_t *end, int *segment)
{
	static const char name[] = "/SYSV";
	size_t same = 0;
	char found;

	*start = read_number(maps, 16);
	*end = read_number(maps, 16);
	for (int field = 0; field < 3; field++) /* rights, offset, device */
		if (!skip(maps, ' '))
			return false;
	*segment = (int)read_number(maps, 10);
	do
		found = next(maps);
	while (found == ' ');
	for (; name[same] && found == name[same]; same++)
		found = next(maps);
	if (name[same])
		*segment = -1;
	return found == '\n' || skip(maps, '\n');
}

static bool open_maps(struct maps *maps)
{
	maps->file = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	maps->at = maps->length = 0;
	return maps->file >= 0;
}

/* How much of length bytes the mapping at address has: at least one page. */
static size_t measure_mapping(uint64_t address, size_t length, size_t page)
{
	uint64_t start = 0, end = 0;
	struct maps maps;
	int segment;

	if (!open_maps(&maps))
		return page;
	while (end <= address && next_mapping(&maps, &start, &end, &segment))
		;
	close(maps.file);
	if (start > address || end <= address)
		return page;
	return end - address < length ? (size_t)(end - address) : length;
}

/* --- unmapping placeholders ------------------------------------------------------------------------- */

static void put_back(const struct placeholder *piece, size_t from, size_t to)
{
	mremap((char *)piece->displaced + from, to - from, to - from, MREMAP_MAYMOVE | MREMAP_FIXED,
	       piece->address + from);
}

static void drop(const struct placeholder *piece, size_t from, size_t to)
{
	if (from < to)
		munmap((char *)piece->displaced + from, to - from);
}

/*
 * Restore the replaced mapping if the placeholder is still there. Otherwise the program has mapped something else
 * there, which ends the old mapping. Linux has no call that checks and moves at once, as shmdt(2) checks and unmaps:
 * what is mapped in between is lost.
 */
static void restore(const struct placeholder *piece)
{
	uint64_t base = (uintptr_t)piece->address, start, end;
	size_t done = 0;
	struct maps maps;
	int segment;

	if (!open_maps(&maps)) {
		put_back(piece, 0, piece->length);
		return;
	}
	while (next_mapping(&maps, &start, &end, &segment)) {
		if (segment != piece->segment || start < base || end - base > piece->length)
			continue;
		drop(piece, done, start - base);
		put_back(piece, start - base, end - base);
		done = end - base;
	}
	drop(piece, done, piece->length);
	close(maps.file);
}

/* The program may have mapped something there meanwhile. shmdt(2) only unmaps a mapping of the segment. */
static void take(const struct placeholder *piece)
{
	if (piece->displaced)
		restore(piece);
	else
		shmdt(piece->address);
}

/* --- mapping placeholders --------------------------------------------------------------------------- */

static void add(const struct placeholder *piece)
{
	soft_page_guard = SOFT_GUARDED_PLACEHOLDER;
	if (placeholders.count == MOST) {
		take(&placeholders.pieces[0]);
		memmove(&placeholders.pieces[0], &placeholders.pieces[1],
			--placeholders.count * sizeof(placeholders.pieces[0]));
	}
	placeholders.pieces[placeholders.count++] = *piece;
}

/* Map the segment. Fails if something else is mapped there, unless flags contain SHM_REMAP. 0, or an errno value. */
static int attach(struct placeholder *piece, int flags)
{
	int error = 0;

	piece->segment = shmget(IPC_PRIVATE, piece->length, SHM_NORESERVE | 0600);
	if (piece->segment < 0)
		return errno;
	if (shmat(piece->segment, piece->address, flags) == (void *)-1)
		error = errno == EINVAL ? EEXIST : errno; /* something is mapped there */
	shmctl(piece->segment, IPC_RMID, NULL); /* the segment is freed with its last mapping */
	return error;
}

/*
 * Without System V shared memory: use ordinary pages, which stay, because nothing distinguishes them from the
 * program's.
 */
static int leave(const struct placeholder *piece)
{
	void *mapped = mmap(piece->address, piece->length, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);

	if (mapped == MAP_FAILED)
		return errno;
	if (mapped == piece->address)
		return 0;
	munmap(mapped, piece->length); /* Linux before 4.17 ignores MAP_FIXED_NOREPLACE */
	return EEXIST;
}

/* Where nothing is mapped: 0, or an errno value. */
static int map_placeholder(uint64_t address, size_t length)
{
	struct placeholder piece = {.address = (char *)(uintptr_t)address, .length = length};
	int error = attach(&piece, 0);

	if (!error)
		add(&piece);
	return piece.segment < 0 ? leave(&piece) : error;
}

bool soft_page_guard_map(uint64_t address, uint64_t end)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	size_t length = measure(&address, end, page);
	int error = map_placeholder(address, length);

	if (error == EEXIST && length > page)
		error = map_placeholder(address, page);
	return !error || error == EEXIST;
}

bool soft_page_guard_replace(uint64_t address, uint64_t end)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	struct placeholder piece = {.length = measure(&address, end, page)};

	/* From Linux 6.17 on, one call moves several mappings, and those behind the file's are in use. */
	piece.length = measure_mapping(address, piece.length, page);
	piece.address = (char *)(uintptr_t)address;
	piece.displaced = mmap(NULL, piece.length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (piece.displaced == MAP_FAILED)
		return false;
	/* The address stays mapped throughout, so that no other thread's mmap(2) gets it. This needs Linux 5.13. */
	if (mremap(piece.address, piece.length, piece.length, MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP,
		   piece.displaced) == MAP_FAILED) {
		drop(&piece, 0, piece.length);
		return false;
	}
	if (attach(&piece, SHM_REMAP)) {
		put_back(&piece, 0, piece.length);
		return false;
	}
	add(&piece);
	return true;
}

void soft_page_guard_unmap(void)
{
	int saved = errno; /* this thread may be a user's that polls */

	while (placeholders.count)
		take(&placeholders.pieces[--placeholders.count]);
	errno = saved;
}
