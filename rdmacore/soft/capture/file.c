#include "soft/capture/file.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "soft/base/clock.h"
#include "soft/base/mutex.h"
#include "soft/capture/own_file.h"
#include "soft/capture/pcapng.h"

#define BUFFER (UINT32_C(4) << 20) /* of two: a thousand packets of 4 KiB */
/* How long the end waits for a full pipe. */
#define END_TIMEOUT SOFT_SECOND
/* How long a thread with a packet waits for room. */
#define ROOM_TIMEOUT (100 * SOFT_MILLISECOND)
#define LOOK_AGAIN (20 * SOFT_MILLISECOND)

/* Complete blocks, one after the other. */
struct buffer {
	uint8_t *bytes;
	size_t used;
};

struct soft_capture_file {
	struct soft_mutex lock; /* guards the fields below, except those of the thread */
	pthread_cond_t work; /* there are blocks to write, or the thread must end */
	pthread_cond_t room; /* the buffers were exchanged, or writing has ended */
	pthread_t thread;
	int descriptor; /* of the thread */
	uint32_t snap_length; /* constant; 0: whole packets */
	bool regular; /* constant; false for a pipe */
	dev_t device; /* constant, like inode: the file that the descriptor was opened for */
	ino_t inode;
	struct buffer *filling, *writing; /* writing belongs to the thread */
	struct buffer buffers[2];
	bool stalled; /* a thread has waited for room without success, and there is still none */
	bool ending; /* the thread must end after writing all blocks */
	bool ended; /* writing has ended */
	int error; /* why writing has failed; otherwise 0 */
	uint32_t interfaces;
	uint64_t packets, missing;
	uint64_t length; /* of the file; of the thread */
};

static uint64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * SOFT_SECOND + (uint64_t)time.tv_nsec;
}

/* --- the thread ----------------------------------------------------------------------------------- */

static bool is_ending(struct soft_capture_file *file)
{
	bool ending;

	soft_mutex_lock(&file->lock);
	ending = file->ending;
	soft_mutex_unlock(&file->lock);
	return ending;
}

/* Programs may close descriptors that they did not open. Then another file may have the number. */
static bool has_descriptor(const struct soft_capture_file *file)
{
	struct stat status;

	return !fstat(file->descriptor, &status) && status.st_dev == file->device && status.st_ino == file->inode;
}

/* Write the buffer until all bytes are written, or writing fails. Returns the number of bytes, and *error. */
static size_t write_buffer(struct soft_capture_file *file, const struct buffer *buffer, int *error)
{
	struct pollfd pipe = {.fd = file->descriptor, .events = POLLOUT};
	uint64_t progress = now();
	size_t done = 0;

	*error = has_descriptor(file) ? 0 : EBADF;
	while (!*error && done < buffer->used) {
		ssize_t written = write(file->descriptor, buffer->bytes + done, buffer->used - done);

		if (written > 0) {
			done += (size_t)written;
			progress = now();
		} else if (written < 0 && errno != EAGAIN && errno != EINTR) {
			*error = errno;
		} else if (is_ending(file) && now() - progress > END_TIMEOUT) {
			*error = ETIMEDOUT;
		} else {
			poll(&pipe, 1, (int)(LOOK_AGAIN / SOFT_MILLISECOND));
		}
	}
	return done;
}

/*
 * The offset of the first block that is not completely in the first written bytes, and the number of packets from
 * there on.
 */
static size_t count_lost(const struct buffer *buffer, size_t written, uint64_t *packets)
{
	size_t whole = 0;

	*packets = 0;
	for (size_t offset = 0; offset < buffer->used;) {
		const uint8_t *block = buffer->bytes + offset;

		offset += soft_pcapng_length(block);
		if (offset <= written)
			whole = offset;
		else
			*packets += soft_pcapng_is_packet(block);
	}
	return whole;
}

/* Truncate the file after a block, because a file that ends within a block cannot be read to its end. */
static void end_at_block(struct soft_capture_file *file, size_t written, size_t whole)
{
	if (file->regular && has_descriptor(file) && whole < written && ftruncate(file->descriptor, (off_t)(file->length + whole)))
		return; /* the disk is full or fails, and the error is reported already */
}

/* The thread has all signals blocked, so a pipe without a reader is an error like others. */
static void *write_file(void *argument)
{
	struct soft_capture_file *file = argument;

	soft_mutex_lock(&file->lock);
	for (;;) {
		struct buffer *buffer = file->filling;
		uint64_t lost = 0;
		size_t written;
		int error;

		if (!buffer->used && file->ending)
			break;
		if (!buffer->used) {
			pthread_cond_wait(&file->work, &file->lock.native);
			continue;
		}
		file->filling = file->writing;
		file->writing = buffer;
		file->stalled = false;
		pthread_cond_broadcast(&file->room);
		soft_mutex_unlock(&file->lock);

		written = write_buffer(file, buffer, &error);
		if (error)
			end_at_block(file, written, count_lost(buffer, written, &lost));
		file->length += written;

		soft_mutex_lock(&file->lock);
		buffer->used = 0;
		if (error) {
			uint64_t more;

			count_lost(file->filling, 0, &more);
			file->filling->used = 0;
			file->missing += lost + more;
			file->packets -= lost + more;
			file->error = error;
			break;
		}
	}
	file->ended = true;
	pthread_cond_broadcast(&file->room);
	soft_mutex_unlock(&file->lock);
	return NULL;
}

/* --- threads with packets --------------------------------------------------------------------------- */

/* True if there may be room now. */
static bool await_room(struct soft_capture_file *file, uint64_t until)
{
	struct timespec time = {.tv_sec = (time_t)(until / SOFT_SECOND), .tv_nsec = (long)(until % SOFT_SECOND)};

	if (!pthread_cond_timedwait(&file->room, &file->lock.native, &time))
		return true;
	file->stalled = true;
	return false;
}

uint8_t *soft_capture_file_begin(struct soft_capture_file *file, size_t length)
{
	uint64_t until = 0;

	soft_mutex_expect(&file->lock);
	while (!file->ended && file->filling->used + length > BUFFER) {
		if (!until)
			until = now() + ROOM_TIMEOUT;
		if (file->stalled || !await_room(file, until))
			return NULL;
	}
	return file->ended ? NULL : file->filling->bytes + file->filling->used;
}

void soft_capture_file_end(struct soft_capture_file *file, size_t length)
{
	struct buffer *buffer = file->filling;

	soft_mutex_expect(&file->lock);
	file->packets += soft_pcapng_is_packet(buffer->bytes + buffer->used);
	if (!buffer->used)
		pthread_cond_signal(&file->work);
	buffer->used += length;
}

void soft_capture_file_miss(struct soft_capture_file *file)
{
	soft_mutex_expect(&file->lock);
	file->missing++;
}

uint32_t soft_capture_file_add_interface(struct soft_capture_file *file)
{
	soft_mutex_expect(&file->lock);
	return file->interfaces++;
}

uint32_t soft_capture_file_keeps(const struct soft_capture_file *file, uint32_t length)
{
	return file->snap_length && file->snap_length < length ? file->snap_length : length;
}

uint32_t soft_capture_file_snap_length(const struct soft_capture_file *file)
{
	return file->snap_length;
}

void soft_capture_file_lock(struct soft_capture_file *file)
{
	soft_mutex_lock(&file->lock);
}

void soft_capture_file_unlock(struct soft_capture_file *file)
{
	soft_mutex_unlock(&file->lock);
}

/* --- opening and closing ---------------------------------------------------------------------------- */

/* A non-blocking descriptor, or a negative errno. */
static int open_path(const char *path, uint64_t reader_timeout)
{
	uint64_t until = now() + reader_timeout;
	struct timespec rest = {.tv_nsec = LOOK_AGAIN};

	for (;;) {
		/* A pipe without a reader fails (fifo(7)). */
		int descriptor = soft_own_file_open(path, O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

		if ((descriptor != -ENXIO && descriptor != -EINTR) || now() >= until)
			return descriptor;
		nanosleep(&rest, NULL);
	}
}

/*
 * Begin the section. It is written to a regular file at once, so that the file is valid even if the process is
 * killed. A negative errno.
 */
static int write_section(struct soft_capture_file *file, const char *application)
{
	struct buffer *buffer = file->filling;
	ssize_t written;

	buffer->used = soft_pcapng_section(buffer->bytes, application);
	if (!file->regular)
		return 0;
	written = write(file->descriptor, buffer->bytes, buffer->used);
	if (written != (ssize_t)buffer->used)
		return written < 0 ? -errno : -ENOSPC;
	file->length = buffer->used;
	buffer->used = 0;
	return 0;
}

static void init_conditions(struct soft_capture_file *file)
{
	pthread_condattr_t monotonic;

	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&file->work, &monotonic);
	pthread_cond_init(&file->room, &monotonic);
	pthread_condattr_destroy(&monotonic);
}

int soft_capture_file_open(const struct core_capture_options *options, struct soft_capture_file **out)
{
	struct soft_capture_file *file = calloc(1, sizeof(*file));
	struct stat status;
	int result = -ENOMEM;

	if (!file)
		return result;
	file->filling = &file->buffers[0];
	file->writing = &file->buffers[1];
	file->snap_length = options->snap_length;
	result = options->path ? open_path(options->path, options->reader_timeout) : options->descriptor;
	if (result < 0)
		goto free_file;
	file->descriptor = result;
	for (int buffer = 0; buffer < 2; buffer++) {
		file->buffers[buffer].bytes = malloc(BUFFER);
		if (!file->buffers[buffer].bytes) {
			result = -ENOMEM;
			goto free_buffers;
		}
	}
	if (fstat(file->descriptor, &status)) {
		result = -errno;
		goto free_buffers;
	}
	file->regular = S_ISREG(status.st_mode);
	file->device = status.st_dev;
	file->inode = status.st_ino;
	result = write_section(file, options->application);
	if (result)
		goto free_buffers;
	soft_mutex_init(&file->lock, SOFT_ORDER_CAPTURE);
	init_conditions(file);
	result = -soft_thread_create(&file->thread, write_file, file);
	if (result)
		goto destroy_lock;
	*out = file;
	return 0;

destroy_lock:
	pthread_cond_destroy(&file->room);
	pthread_cond_destroy(&file->work);
	soft_mutex_destroy(&file->lock);
free_buffers:
	free(file->buffers[0].bytes);
	free(file->buffers[1].bytes);
	close(file->descriptor);
free_file:
	free(file);
	return result;
}

void soft_capture_file_finish(struct soft_capture_file *file, struct core_capture_result *result)
{
	soft_mutex_lock(&file->lock);
	file->ending = true;
	pthread_cond_signal(&file->work);
	soft_mutex_unlock(&file->lock);
	pthread_join(file->thread, NULL);

	soft_mutex_lock(&file->lock);
	/* A deferred error of the file system may be reported now (close(2)). */
	if (!has_descriptor(file))
		file->error = file->error ? file->error : EBADF;
	else if (close(file->descriptor) && !file->error && errno != EINTR)
		file->error = errno;
	*result = (struct core_capture_result){.error = file->error, .packets = file->packets, .missing = file->missing};
	soft_mutex_unlock(&file->lock);
}

void soft_capture_file_free(struct soft_capture_file *file)
{
	pthread_cond_destroy(&file->room);
	pthread_cond_destroy(&file->work);
	soft_mutex_destroy(&file->lock);
	free(file->buffers[0].bytes);
	free(file->buffers[1].bytes);
	free(file);
}
