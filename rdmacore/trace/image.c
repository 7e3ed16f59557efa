/* Where calls are made: addresses in the code of the process, and the files that it comes from. */
#include "trace.h"

#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

/* The range of the segments of an image. */
static void range_of(const struct dl_phdr_info *image, uint64_t *first, uint64_t *last)
{
	*first = UINT64_MAX;
	*last = 0;
	for (size_t i = 0; i < image->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &image->dlpi_phdr[i];
		uint64_t start = image->dlpi_addr + segment->p_vaddr;

		if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_X))
			continue;
		if (start < *first)
			*first = start;
		if (start + segment->p_memsz > *last)
			*last = start + segment->p_memsz;
	}
}

static int write_image(struct dl_phdr_info *image, size_t size, void *context)
{
	struct trace_call call = {.number = 0};
	const char *path = image->dlpi_name;
	char own[PATH_MAX];
	uint64_t first, last;
	ssize_t length;

	(void)size;
	(void)context;
	if (!*path) { /* the program, which comes first; the kernel's vdso has a name without a file */
		length = readlink("/proc/self/exe", own, sizeof(own) - 1);
		if (length < 0)
			return 0;
		own[length] = '\0';
		path = own;
	}
	if (*path != '/' || strlen(path) > TRACE_BYTES)
		return 0;
	range_of(image, &first, &last);
	if (first >= last)
		return 0;
	trace_put(&call, image->dlpi_addr);
	trace_put(&call, first);
	trace_put(&call, last);
	trace_put_string(&call, path);
	trace_note(TRACE_IMAGE, &call);
	return 0;
}

static void find_stack(struct trace_thread *self)
{
	int error = errno;
	pthread_attr_t attr;
	size_t size;
	void *start;

	self->stack_start = self->stack_end = UINTPTR_MAX;
	if (!pthread_getattr_np(pthread_self(), &attr)) {
		if (!pthread_attr_getstack(&attr, &start, &size)) {
			self->stack_start = (uintptr_t)start;
			self->stack_end = (uintptr_t)start + size;
		}
		pthread_attr_destroy(&attr);
	}
	errno = error;
}

/*
 * A frame begins with the frame pointer of the caller and the address that it returns to, on x86-64 and on aarch64.
 * Callers that were compiled without frame pointers use the register for something else. So each value is read only if
 * it is further up in the stack of this thread, all of which is mapped. On another stack, such as that of a coroutine, no
 * frame is read. rdmarun uses a caller only where the function before it is an inline one of verbs.h. The frame of such
 * a function is real.
 */
struct trace_site trace_site(const void *returns_to, const void *frame)
{
	struct trace_site site = {{(uintptr_t)returns_to}};
	struct trace_thread *self = &trace_self;
	uintptr_t at = (uintptr_t)frame, end, next;

	if (!self->stack_end)
		find_stack(self);
	end = self->stack_end;
	if (at < self->stack_start || at >= end)
		return site;
	for (int i = 1; i < TRACE_FRAMES; i++) {
		next = *(const uintptr_t *)at;
		if (next <= at || next >= end || end - next < 2 * sizeof(uintptr_t) || next % sizeof(uintptr_t))
			break;
		site.frames[i] = ((const uintptr_t *)next)[1];
		at = next;
	}
	return site;
}

void trace_images(void)
{
	dl_iterate_phdr(write_image, NULL);
}
