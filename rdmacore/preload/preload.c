#include "preload.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "soft/capture/capture.h"
#include "soft/capture/file.h"
#include "soft/cm/calls.h"
#include "soft/host.h"
#include "soft/objects/device.h"

/*
 * The one provider of the process.  A preloaded library has nowhere else to keep it: its callers know
 * no handle of ours.
 */
static struct {
	pthread_once_t once;
	pthread_once_t watching; /* handlers of forks outlive one */
	struct core_provider provider;
	int error;
	bool forked; /* this is a child, and an ancestor had a provider */
	struct soft_capture_file *capture; /* of its packets; NULL: there is none */
	pid_t capturing; /* the process that writes it */
	pid_t opened; /* the process that has provider; 0: none */
} process = {.once = PTHREAD_ONCE_INIT, .watching = PTHREAD_ONCE_INIT};

/*
 * What the parent had is a copy without its timer thread, and its locks are as other threads left them:
 * it is left alone, and the child's first call opens a provider of its own.
 */
static void in_child(void)
{
	process.once = (pthread_once_t)PTHREAD_ONCE_INIT;
	process.forked = true;
	preload_descriptors_forget();
	preload_faults_forget();
	process.capture = NULL;
	process.opened = 0;
}

static void watch_forks(void)
{
	preload_contexts_watch_forks(in_child);
}

static struct soft_host *host(void)
{
	return process.provider.host;
}

/*
 * RDMARUN_EXEC_CAPTURE is PID:FILE, of the process that rdmarun exec has become.  Others, which that one starts, write
 * files of their own, with their PID before the suffix: sections of one file cannot be written at once.
 */
static bool capture_path(const char *setting, char *path, size_t size)
{
	char *file;
	long first = strtol(setting, &file, 10);
	const char *slash, *suffix;
	int length;

	if (*file++ != ':' || !*file)
		return false;
	slash = strrchr(file, '/');
	suffix = strrchr(slash ? slash : file, '.');
	if (first == getpid())
		length = snprintf(path, size, "%s", file);
	else
		length = snprintf(path, size, "%.*s.%ld%s", suffix ? (int)(suffix - file) : (int)strlen(file), file,
				  (long)getpid(), suffix ? suffix : "");
	return length > 0 && (size_t)length < size;
}

/* What cannot be recorded is said, and the program runs without. */
static void open_capture(struct core_options *options)
{
	const char *setting = getenv("RDMARUN_EXEC_CAPTURE"), *snap_length = getenv("RDMARUN_EXEC_CAPTURE_SNAPLEN");
	struct core_capture_options capture = {.application = "rdmarun exec",
					       .reader_timeout = CORE_CAPTURE_READER_TIMEOUT};
	char path[PATH_MAX];
	int result;

	if (!setting || !capture_path(setting, path, sizeof(path)))
		return;
	capture.path = path;
	capture.snap_length = snap_length ? (uint32_t)strtoul(snap_length, NULL, 10) : 0;
	result = soft_capture_file_open(&capture, &process.capture);
	if (result) {
		fprintf(stderr, "rdmarun exec: --capture %s: %s%s; no packets are recorded\n", path, strerror(-result),
			result == -ENXIO ? ", nobody reads the pipe" : "");
		process.capture = NULL;
		return;
	}
	process.capturing = getpid();
	options->capture = process.capture;
	options->capture_label = program_invocation_short_name;
}

/* The program ends, and its provider is still open; in a child that was forked the file is its parent's. */
static __attribute__((destructor)) void close_capture(void)
{
	struct core_capture_result result;

	if (!process.capture || process.capturing != getpid())
		return;
	if (!process.error && host()->fabric.capture)
		soft_capture_finish(host()->fabric.capture);
	soft_capture_file_finish(process.capture, &result);
	process.capture = NULL;
	if (result.missing)
		fprintf(stderr, "rdmarun exec: --capture: %" PRIu64 " packets are missing: %s%s\n", result.missing,
			result.error ? strerror(result.error) : "who takes them is too slow",
			!result.error || result.error == ENOSPC ? "; keep less of each with --capture-snaplen" : "");
}

static void open_provider(void)
{
	struct core_options options = {0};
	const char *seed = getenv("RDMARUN_EXEC_SEED"), *link = getenv("RDMARUN_EXEC_LINK");
	const char *fabric = getenv("RDMARUN_EXEC_FABRIC");

	if (seed) {
		options.seeded = true;
		options.seed = strtoull(seed, NULL, 0);
	}
	if (link && !strcmp(link, "packets"))
		options.link = CORE_LINK_PACKETS;
	if (link && !strcmp(link, "udp"))
		options.link = CORE_LINK_UDP;
	if (fabric && strlen(fabric) <= CORE_FABRIC_MAX)
		strcpy(options.fabric, fabric);
	options.shared = getenv("RDMARUN_EXEC_SHARED") != NULL;
	if (!getenv("RDMARUN_EXEC_QUIET")) {
		options.notices = STDERR_FILENO;
		options.notice_prefix = "rdmarun exec: ";
	}
	open_capture(&options);
	process.provider = (struct core_provider){0};
	process.error = -soft_provider_open(&process.provider, &options);
	if (process.error)
		return;
	/* Programs are given it by rdma_cm, in id->verbs. */
	if (preload_context_add(host()->cm->opened->context)) {
		soft_provider_close(&process.provider);
		process.error = ENOMEM;
		return;
	}
	host()->device->network_in_service_level = true;
	process.opened = getpid();
	preload_faults_catch(&host()->device->memory);
	pthread_once(&process.watching, watch_forks);
}

/*
 * The program ends: acknowledgements that its peers wait for are sent, the peers are told that it ends, and its user is told
 * the rest.
 */
static __attribute__((destructor)) void end_progress(void)
{
	struct soft_progress *progress;

	if (process.opened != getpid())
		return;
	progress = host()->device->progress;
	if (progress)
		progress->sleep(progress);
	soft_cm_leave_hosts(host()->cm);
	soft_notices_say(&host()->fabric.notices);
}

struct core_provider *preload_provider(void)
{
	pthread_once(&process.once, open_provider);
	if (process.error) {
		errno = process.error;
		return NULL;
	}
	process.provider.select(&process.provider);
	return &process.provider;
}

int preload_tell(struct core_provider *provider, int result)
{
	static atomic_flag told = ATOMIC_FLAG_INIT;
	int error = errno;
	const char *why;

	if ((result < 0 ? error : result) != EADDRINUSE || getenv("RDMARUN_EXEC_QUIET"))
		return result;
	why = provider->refusal(provider);
	if (*why && !atomic_flag_test_and_set(&told))
		fprintf(stderr, "rdmarun exec: %s\n", why);
	errno = error;
	return result;
}

struct core_provider *preload_provider_of(const void *owner)
{
	struct core_provider *provider = preload_provider();

	if (provider && process.forked && owner && owner != &host()->device->ibv &&
	    owner != host()->cm) {
		errno = ENODEV;
		return NULL;
	}
	return provider;
}
