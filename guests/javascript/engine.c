/*
 * A guest that runs a script in JavaScript, with the heap in this guest's memory: NAME SOURCE ARGUMENT...  It has what
 * guests have and nothing else: no sockets, no timers, no files but those it is given.  RDMARUN_TIME_NS and
 * RDMARUN_MEMORY in its environment are what the script may take; what ends a script says where it was.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine.h"

uint64_t deadline;
volatile uint32_t of_script;

/* prelude.js, as the build made a text of it. */
static const char prelude[] =
#include "prelude.inc"
	;

static const char *stopped; /* why the script was interrupted */
enum { code_failed = 1, code_timeout = 124, code_usage = 64 };

uint64_t now_ns(void)
{
	uint64_t now = 0;

	rdmarun_clock_ns(&now);
	return now;
}

/* The engine asks now and then, while it runs a script, whether it shall go on. */
static int interrupted(JSRuntime *rt, void *opaque)
{
	(void)rt;
	(void)opaque;
	if (deadline && now_ns() >= deadline)
		stopped = "the script exceeded its time limit";
	else if (rdmarun_stop_requested() == 1)
		stopped = "the run asked the script to end";
	return stopped != NULL;
}

static JSValue print(JSContext *ctx, JSValueConst this, int given, JSValueConst *values)
{
	(void)this;
	for (int i = 0; i < given; i++) {
		size_t length;
		const char *text = JS_ToCStringLen(ctx, &length, values[i]);

		if (!text)
			return JS_EXCEPTION;
		if (i)
			fputc(' ', stdout);
		fwrite(text, 1, length, stdout);
		JS_FreeCString(ctx, text);
	}
	fputc('\n', stdout);
	fflush(stdout);
	return JS_UNDEFINED;
}

static JSValue assert_that(JSContext *ctx, JSValueConst this, int given, JSValueConst *values)
{
	JSValue error;

	(void)this;
	if (given > 0 && JS_ToBool(ctx, values[0]))
		return JS_UNDEFINED;
	error = JS_NewError(ctx);
	JS_DefinePropertyValueStr(ctx, error, "name", JS_NewString(ctx, "AssertionError"), JS_PROP_C_W_E);
	JS_DefinePropertyValueStr(ctx, error, "message", given > 1 ? JS_ToString(ctx, values[1]) : JS_NewString(ctx, "it does not hold"),
				  JS_PROP_C_W_E);
	return JS_Throw(ctx, error);
}

static JSValue end(JSContext *ctx, JSValueConst this, int given, JSValueConst *values)
{
	int code = 0;

	(void)this;
	if (given > 0 && JS_ToInt32(ctx, &code, values[0]))
		return JS_EXCEPTION;
	fflush(stdout);
	exit(code);
}

/* read_file(PATH), or of the standard input: all of it, as an ArrayBuffer. */
static JSValue read_file(JSContext *ctx, JSValueConst this, int given, JSValueConst *values)
{
	const char *path = given > 0 ? JS_ToCString(ctx, values[0]) : NULL;
	FILE *from = path ? fopen(path, "rb") : stdin;
	char *text = NULL;
	size_t length = 0, room = 0, got = 1;
	JSValue result;

	(void)this;
	if (given > 0 && !path)
		return JS_EXCEPTION;
	while (from && got) {
		if (length == room) {
			char *more = js_realloc(ctx, text, room = room ? 2 * room : 4096);

			if (!more)
				break;
			text = more;
		}
		length += got = fread(text + length, 1, room - length, from);
	}
	if (!from || ferror(from))
		result = JS_ThrowReferenceError(ctx, "%s: %s", path ? path : "the standard input", from ? "it cannot be read" : "there is no such file");
	else
		result = got ? JS_EXCEPTION : JS_NewArrayBufferCopy(ctx, (uint8_t *)text, length);
	js_free(ctx, text);
	if (path && from)
		fclose(from);
	JS_FreeCString(ctx, path);
	return result;
}

/* Math.random(): the engine's own begins with the time of day, which is the same each time if the host decides that. */
static JSValue draw(JSContext *ctx, JSValueConst this, int given, JSValueConst *values)
{
	uint64_t drawn;

	(void)this;
	(void)given;
	(void)values;
	if (getentropy(&drawn, sizeof(drawn)))
		return JS_ThrowInternalError(ctx, "there are no random numbers");
	return JS_NewFloat64(ctx, (double)(drawn >> 11) * 0x1p-53);
}

/* The environment, less what is for this program. */
static JSValue make_env(JSContext *ctx)
{
	extern char **environ;
	JSValue env = JS_NewObject(ctx);

	for (char **each = environ; *each; each++) {
		const char *value = strchr(*each, '=');
		JSAtom name;

		if (!value || strncmp(*each, "RDMARUN_", strlen("RDMARUN_")) == 0)
			continue;
		name = JS_NewAtomLen(ctx, *each, (size_t)(value - *each));
		JS_SetProperty(ctx, env, name, JS_NewString(ctx, value + 1));
		JS_FreeAtom(ctx, name);
	}
	return env;
}

static void add(JSContext *ctx, JSValueConst to, const char *name, JSCFunction *function)
{
	JS_SetPropertyStr(ctx, to, name, JS_NewCFunction(ctx, function, name, 1));
}

static void make_globals(JSContext *ctx, int count, char **args)
{
	JSValue global = JS_GetGlobalObject(ctx), list = JS_NewArray(ctx), console = JS_NewObject(ctx), math;

	for (int i = 0; i < count; i++)
		JS_SetPropertyUint32(ctx, list, (uint32_t)i, JS_NewString(ctx, args[i]));
	JS_SetPropertyStr(ctx, global, "args", list);
	JS_SetPropertyStr(ctx, global, "env", make_env(ctx));
	JS_SetPropertyStr(ctx, global, "rdma", make_rdma(ctx));
	add(ctx, global, "read_file", read_file);
	add(ctx, global, "print", print);
	add(ctx, global, "assert", assert_that);
	add(ctx, global, "exit", end);
	add(ctx, console, "log", print);
	JS_SetPropertyStr(ctx, global, "console", console);
	math = JS_GetPropertyStr(ctx, global, "Math");
	add(ctx, math, "random", draw);
	JS_FreeValue(ctx, math);
	JS_FreeValue(ctx, global);
	JS_FreeValue(ctx, JS_Eval(ctx, prelude, sizeof(prelude) - 1, "prelude.js", JS_EVAL_TYPE_GLOBAL));
}

/* The position in the first line of a stack: "    at main (odd.js:3:5)". */
static void print_position(const char *stack, const char *name)
{
	const char *at = stack ? strstr(stack, name) : NULL;

	if (at)
		fprintf(stderr, "%.*s: ", (int)strcspn(at, ")\n"), at);
	else
		fprintf(stderr, "%s: ", name);
}

/* The functions of a stack, the first of them: a recursion without end has thousands. */
static void print_stack(const char *line)
{
	enum { most = 10 };
	int printed = 0;

	for (; line && *line && printed < most; printed++) {
		size_t length = strcspn(line, "\n");

		fprintf(stderr, "%.*s\n", (int)length, line);
		line += length + (line[length] != 0);
	}
	if (line && *line)
		fprintf(stderr, "    and further ones\n");
}

/* A promise that was rejected and has no handler is like an uncaught exception. The last of them is kept. */
static JSValue rejected;
static JSValueConst rejected_promise;
static int is_rejected;

static void track(JSContext *ctx, JSValueConst promise, JSValueConst reason, int is_handled, void *opaque)
{
	(void)opaque;
	if (!is_handled && !is_rejected) {
		rejected = JS_DupValue(ctx, reason);
		rejected_promise = promise;
		is_rejected = 1;
	} else if (is_handled && is_rejected && JS_VALUE_GET_PTR(promise) == JS_VALUE_GET_PTR(rejected_promise)) {
		JS_FreeValue(ctx, rejected);
		is_rejected = 0;
	}
}

/* Says what a script ended with, and where. */
static int report(JSContext *ctx, const char *name)
{
	JSValue error, stack = JS_UNDEFINED;
	const char *message, *trace = NULL;

	JS_SetMemoryLimit(JS_GetRuntime(ctx), (size_t)-1); /* the rest is for this */
	JS_SetInterruptHandler(JS_GetRuntime(ctx), NULL, NULL);
	error = JS_GetException(ctx);
	if (JS_IsError(ctx, error))
		stack = JS_GetPropertyStr(ctx, error, "stack");
	if (JS_IsString(stack))
		trace = JS_ToCString(ctx, stack);
	print_position(trace, name);
	message = stopped ? stopped : JS_ToCString(ctx, error);
	fprintf(stderr, "%s\n", message ? message : "an exception without a text");
	print_stack(trace);
	return stopped && deadline && now_ns() >= deadline ? code_timeout : code_failed;
}

static uint64_t number_of(const char *variable)
{
	const char *text = getenv(variable);

	return text ? strtoull(text, NULL, 10) : 0;
}

#define JOBS_UNASKED 64 /* the engine itself asks after 10,000 calls, which are many jobs */

/* Runs the jobs of promises until there is none, or one has thrown an exception (-1). */
static int run_jobs(JSRuntime *rt, JSContext *ctx)
{
	JSContext *of;
	int job = 1;

	for (unsigned int jobs = 1; job > 0; jobs++) {
		job = JS_ExecutePendingJob(rt, &of);
		if (job > 0 && jobs % JOBS_UNASKED == 0 && interrupted(rt, NULL)) {
			JS_ThrowInternalError(ctx, "interrupted");
			return -1;
		}
	}
	return job;
}

int main(int count, char **args)
{
	JSRuntime *rt = JS_NewRuntime();
	JSContext *ctx = rt ? JS_NewContext(rt) : NULL;
	uint64_t time = number_of("RDMARUN_TIME_NS");
	/* Only whether it is a script is asked then. */
	bool parses = getenv("RDMARUN_PARSE") != NULL;
	JSValue result;
	int job;

	if (!ctx || count < 3) {
		fprintf(stderr, "usage: NAME SOURCE ARGUMENT...\n");
		return code_usage;
	}
	if (time)
		deadline = now_ns() + time;
	if (number_of("RDMARUN_MEMORY"))
		JS_SetMemoryLimit(rt, (size_t)number_of("RDMARUN_MEMORY"));
	JS_SetMaxStackSize(rt, 512 << 10); /* of the megabyte that this program has */
	JS_SetInterruptHandler(rt, interrupted, NULL);
	JS_SetHostPromiseRejectionTracker(rt, track, NULL);
	make_globals(ctx, count - 3, args + 3);
	result = JS_Eval(ctx, args[2], strlen(args[2]), args[1], JS_EVAL_TYPE_GLOBAL | JS_EVAL_FLAG_STRICT | (parses ? JS_EVAL_FLAG_COMPILE_ONLY : 0));
	job = JS_IsException(result) ? -1 : run_jobs(rt, ctx);
	fflush(stdout);
	if (is_rejected && job == 0)
		job = -!JS_IsUndefined(JS_Throw(ctx, rejected));
	if (job < 0)
		return report(ctx, args[1]);
	return 0;
}
