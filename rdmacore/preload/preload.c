#include "preload.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "soft/capture/capture.h"
#include "soft/capture/file.h"
#include "soft/cm/calls.h"
#include "soft/host.h"
#include "soft/objects/device.h"

/*
 * The one provider of the process. A preloaded library has no other place for it: its callers do not have a handle
 * of it.
 */
static struct {
	pthread_once_t once;
	pthread_once_t watching; /* fork handlers remain after the provider is closed */
	struct core_provider provider;
	int error;
	bool forked; /* this is a child, and an ancestor had a provider */
	struct soft_capture_file *capture; /* of the provider's packets; NULL: none */
	pid_t capturing; /* the process that writes capture */
	pid_t opened; /* the process that opened provider; 0: none */
} process = {.once = PTHREAD_ONCE_INIT, .watching = PTHREAD_ONCE_INIT};

/*
 * The parent's provider is a copy without its timer thread, and its locks are as other threads left them. So it is
 * not used, and the child's first call opens a provider of its own.
 */
static void in_child(void)
{
	process.once = (pthread_once_t)PTHREAD_ONCE_INIT;
	process.forked = true;
	preload_control_forget();
	preload_events_forget();
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
 * RDMARUN_EXEC_CAPTURE is @NAME or PID:FILE. NAME is an abstract unix socket of the rdmarun that takes the packets. PID
 * is that of the process that rdmarun exec becomes. Two processes cannot write sections of one file at the same time.
 * So processes that it starts write files of their own, with their PID before the suffix.
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

/* If the file cannot be opened, print a message and run without. */
static void open_capture(struct core_options *options)
{
	const char *setting = getenv("RDMARUN_EXEC_CAPTURE"), *snap_length = getenv("RDMARUN_EXEC_CAPTURE_SNAPLEN");
	struct core_capture_options capture = {.application = "rdmarun exec",
					       .reader_timeout = CORE_CAPTURE_READER_TIMEOUT};
	char path[PATH_MAX];
	int result;

	if (!setting)
		return;
	if (setting[0] == '@') {
		snprintf(path, sizeof(path), "%s", setting);
		capture.descriptor = preload_control_connect(setting + 1, SOCK_STREAM);
		if (capture.descriptor < 0)
			capture.descriptor = -ECONNREFUSED;
	} else if (capture_path(setting, path, sizeof(path))) {
		capture.path = path;
	} else {
		return;
	}
	capture.snap_length = snap_length ? (uint32_t)strtoul(snap_length, NULL, 10) : 0;
	result = soft_capture_file_open(&capture, &process.capture);
	if (result) {
		fprintf(stderr, "rdmarun exec: --capture %s: %s%s; no packets are recorded\n", path, strerror(-result),
			result == -ENXIO ? ", the pipe has no reader" : "");
		process.capture = NULL;
		return;
	}
	process.capturing = getpid();
	options->capture = process.capture;
	options->capture_label = program_invocation_short_name;
}

/* The program ends with its provider open. A forked child leaves the file to its parent. */
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

/* SEED:CHOICES, and after another colon NUMBER=RATE with commas between them. */
static void read_legal(struct core_options *options, const char *text)
{
	char *rest;

	options->legal_seed = strtoull(text, &rest, 0);
	if (*rest != ':')
		return;
	options->legal = (uint32_t)strtoul(rest + 1, &rest, 0);
	while (*rest == ':' || *rest == ',') {
		unsigned long choice = strtoul(rest + 1, &rest, 0);

		if (*rest != '=' || choice >= CORE_LEGAL_CHOICES)
			return;
		options->legal_rates[choice] = (uint32_t)strtoul(rest + 1, &rest, 0);
	}
}

static void open_provider(void)
{
	struct core_options options = {0};
	const char *seed = getenv("RDMARUN_EXEC_SEED"), *link = getenv("RDMARUN_EXEC_LINK");
	const char *fabric = getenv("RDMARUN_EXEC_FABRIC"), *legal = getenv("RDMARUN_EXEC_LEGAL");

	if (seed) {
		options.seeded = true;
		options.seed = strtoull(seed, NULL, 0);
	}
	if (legal)
		read_legal(&options, legal);
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
	options.tally = preload_control_open();
	process.provider = (struct core_provider){0};
	process.error = -soft_provider_open(&process.provider, &options);
	if (process.error) {
		preload_control_forget();
		return;
	}
	/* rdma_cm returns this context to programs, in id->verbs. */
	if (preload_context_add(host()->cm->opened->context)) {
		soft_provider_close(&process.provider);
		preload_control_forget();
		process.error = ENOMEM;
		return;
	}
	host()->device->network_in_service_level = true;
	process.opened = getpid();
	preload_faults_catch(&host()->device->memory);
	pthread_once(&process.watching, watch_forks);
	preload_control_begin(&process.provider);
}

/* The program ends: send acknowledgements that peers wait for, notify peers of the end, and print pending notices. */
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

int preload_report(struct core_provider *provider, int result)
{
	static atomic_flag printed = ATOMIC_FLAG_INIT;
	int error = errno;
	const char *why;

	if ((result < 0 ? error : result) != EADDRINUSE || getenv("RDMARUN_EXEC_QUIET"))
		return result;
	why = provider->refusal(provider);
	if (*why && !atomic_flag_test_and_set(&printed))
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
