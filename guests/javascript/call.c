/*
 * Calls of the ABI from scripts. A script passes what the host reads, and gets what it writes. Parameters that count
 * the elements of others, and those that are only written, are left out. Memory that is passed as bytes is the
 * script's own, so that a region is an ArrayBuffer. A failure is thrown.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine.h"

enum { max_elements = 4096, text_size = 512 };

/* A call as it is made. */
struct call {
	JSContext *ctx;
	const struct function *function;
	uint64_t arguments[max_params];
	uint8_t *memory[max_params]; /* what pointers point to, unless it is the script's */
	JSValueConst kept;           /* the bytes that the host uses after the call */
	int taken, given;            /* of the script's arguments */
	JSValueConst *values;
	int clamped; /* a timeout ends with the script's own time */
};

static JSValueConst next(struct call *c)
{
	return c->taken < c->given ? c->values[c->taken++] : JS_UNDEFINED;
}

static int is_none(JSValueConst value) { return JS_IsUndefined(value) || JS_IsNull(value); }

/* Whether the host reads more of it than the size that the script's side knows. */
static int is_given(const struct param *param)
{
	return param->kind == IN || (param->kind == INOUT && !(param->shape && param->shape->sized));
}

/* Whether another parameter determines a number. */
static int follows(const struct function *function, int at)
{
	for (int i = 0; i < function->count; i++)
		if (function->params[i].count == at && is_given(&function->params[i]))
			return 1;
	return 0;
}

/* A timeout is no longer than the script may run, so that what waits ends in the script. */
static uint64_t bounded(struct call *c, int64_t timeout)
{
	uint64_t now;

	if (!deadline)
		return (uint64_t)timeout;
	now = now_ns();
	if (timeout >= 0 && (now >= deadline || (uint64_t)timeout <= deadline - now))
		return (uint64_t)timeout;
	c->clamped = 1;
	return now < deadline ? deadline - now : 0;
}

static int take_number(struct call *c, int at)
{
	const struct param *param = &c->function->params[at];
	JSValueConst value = next(c);
	struct place place = {c->function->name, param->name};
	int waits = param->type == WIDE && !strcmp(param->name, "timeout_ns");
	uint64_t number;

	if (number_from(c->ctx, value, place, param->names, &number))
		return -1;
	if (waits)
		number = bounded(c, is_none(value) ? -1 : (int64_t)number);
	if (param->type == PLAIN && number > UINT32_MAX) {
		JS_ThrowRangeError(c->ctx, "%s.%s: the number does not fit", place.of, place.name);
		return -1;
	}
	c->arguments[at] = number;
	return 0;
}

/* A handle, or an object that has one, as reg_mr returns. */
static int take_handle(struct call *c, int at)
{
	const struct param *param = &c->function->params[at];
	JSValueConst value = next(c);
	JSValue handle = JS_DupValue(c->ctx, value);
	struct place place = {c->function->name, param->name};
	int failed;

	if (JS_IsObject(value)) {
		JS_FreeValue(c->ctx, handle);
		handle = JS_GetPropertyStr(c->ctx, value, "handle");
	}
	failed = JS_IsException(handle) || number_from(c->ctx, handle, place, NULL, &c->arguments[at]);
	JS_FreeValue(c->ctx, handle);
	if (!failed && c->arguments[at] > UINT32_MAX) {
		JS_ThrowRangeError(c->ctx, "%s.%s: no handle is as great", place.of, place.name);
		return -1;
	}
	return failed ? -1 : 0;
}

static void set_count(struct call *c, const struct param *param, uint64_t count)
{
	if (param->count >= 0)
		c->arguments[param->count] = count;
}

static uint8_t *room(struct call *c, int at, size_t size)
{
	c->memory[at] = js_mallocz(c->ctx, size ? size : 1);
	c->arguments[at] = (uint64_t)(uintptr_t)c->memory[at];
	return c->memory[at];
}

static int take_bytes(struct call *c, int at, JSValueConst value)
{
	const struct param *param = &c->function->params[at];
	size_t length;
	uint8_t *start;

	if (JS_IsString(value)) {
		const char *text = JS_ToCStringLen(c->ctx, &length, value);

		start = text ? room(c, at, length) : NULL;
		if (start)
			memcpy(start, text, length);
		JS_FreeCString(c->ctx, text);
	} else if (!(start = bytes_of(c->ctx, value, &length))) {
		JS_ThrowTypeError(c->ctx, "%s: %s takes a text, an ArrayBuffer or a view of one", c->function->name, param->name);
	}
	if (start && param->size && length < param->size) {
		JS_ThrowRangeError(c->ctx, "%s: %s has at least %u bytes", c->function->name, param->name, (unsigned)param->size);
		return -1;
	}
	if (!start)
		return -1;
	c->arguments[at] = (uint64_t)(uintptr_t)start;
	c->kept = value;
	set_count(c, param, length);
	return 0;
}

static int take_structs(struct call *c, int at, JSValueConst value)
{
	const struct param *param = &c->function->params[at];
	int64_t count = 1;
	uint8_t *start;

	if (param->count >= 0) {
		JSValue length = JS_IsArray(c->ctx, value) ? JS_GetPropertyStr(c->ctx, value, "length") : JS_UNDEFINED;
		int failed = JS_IsUndefined(length) || JS_ToInt64(c->ctx, &count, length);

		JS_FreeValue(c->ctx, length);
		if (failed || count > max_elements) {
			JS_ThrowTypeError(c->ctx, "%s: %s takes a list of at most %d", c->function->name, param->name, max_elements);
			return -1;
		}
		set_count(c, param, (uint64_t)count);
	}
	start = room(c, at, (size_t)count * param->shape->size);
	if (!start)
		return -1;
	for (int64_t i = 0; i < count; i++) {
		JSValue item = param->count >= 0 ? JS_GetPropertyUint32(c->ctx, value, (uint32_t)i) : JS_DupValue(c->ctx, value);
		int failed = JS_IsException(item) || struct_from(c->ctx, param->shape, item, start + (size_t)i * param->shape->size);

		JS_FreeValue(c->ctx, item);
		if (failed)
			return -1;
	}
	return 0;
}

static int take_given(struct call *c, int at)
{
	const struct param *param = &c->function->params[at];
	JSValueConst value = next(c);

	if (is_none(value) && param->optional)
		return 0;
	if (param->type == STRUCTS)
		return take_structs(c, at, value);
	return take_bytes(c, at, value);
}

/* Room for what the host writes, once all numbers are known. */
static int make_room(struct call *c, int at)
{
	const struct param *param = &c->function->params[at];
	uint64_t count = param->count >= 0 ? c->arguments[param->count] : 1;
	size_t size = param->type == STRUCTS ? param->shape->size : param->type == WIDE ? 8 : 1;
	uint8_t *start;

	if (param->type == TEXT && !count)
		count = c->arguments[param->count] = text_size;
	if (count > (param->type == STRUCTS ? max_elements : 1 << 20)) {
		JS_ThrowRangeError(c->ctx, "%s: %s has no room for so many", c->function->name, param->name);
		return -1;
	}
	start = room(c, at, (size_t)count * size);
	if (!start)
		return -1;
	if (param->type == STRUCTS && param->shape->sized)
		for (uint64_t i = 0; i < count; i++)
			memcpy(start + i * size, &param->shape->size, sizeof(uint32_t));
	return 0;
}

static int take(struct call *c)
{
	const struct function *f = c->function;

	for (int i = 0; i < f->count; i++) {
		const struct param *param = &f->params[i];
		int failed = 0;

		if (param->kind == HANDLE)
			failed = take_handle(c, i);
		else if (param->kind == NUMBER && !follows(f, i))
			failed = take_number(c, i);
		else if (is_given(param))
			failed = take_given(c, i);
		if (failed)
			return -1;
	}
	if (c->taken < c->given) {
		JS_ThrowTypeError(c->ctx, "%s takes %d arguments, not %d", f->name, c->taken, c->given);
		return -1;
	}
	for (int i = 0; i < f->count; i++)
		if (f->params[i].kind >= OUT && !is_given(&f->params[i]) && make_room(c, i))
			return -1;
	return 0;
}

/* The constant's name of an errno. */
static const char *errno_name(int32_t number)
{
	for (int i = 0; i < num_names; i++)
		for (int j = 0; !strcmp(all_names[i]->name, "errno") && j < all_names[i]->count; j++)
			if (all_names[i]->values[j].number == (uint32_t)number)
				return all_names[i]->values[j].name;
	return "";
}

static JSValue throw_failure(struct call *c, int32_t result)
{
	JSValue error = JS_NewError(c->ctx);
	char sentence[text_size], message[text_size + 128];
	int32_t length = rdmarun_error_text(sentence, sizeof(sentence) - 1);
	int own = c->clamped && result == -RDMARUN_ETIMEDOUT; /* guest: stop ends a wait as well */

	sentence[length > 0 ? length : 0] = 0;
	snprintf(message, sizeof(message), "%s: %s%s", c->function->name, sentence, own ? " (the script's own time is over)" : "");
	JS_DefinePropertyValueStr(c->ctx, error, "message", JS_NewString(c->ctx, message), JS_PROP_C_W_E);
	JS_DefinePropertyValueStr(c->ctx, error, "name", JS_NewString(c->ctx, "RdmaError"), JS_PROP_C_W_E);
	JS_DefinePropertyValueStr(c->ctx, error, "function", JS_NewString(c->ctx, c->function->name), JS_PROP_C_W_E);
	JS_DefinePropertyValueStr(c->ctx, error, "errno", JS_NewString(c->ctx, errno_name(-result)), JS_PROP_C_W_E);
	JS_DefinePropertyValueStr(c->ctx, error, "code", JS_NewInt32(c->ctx, -result), JS_PROP_C_W_E);
	for (int i = 0; i < c->function->count; i++)
		if (!strcmp(c->function->params[i].name, "posted"))
			JS_DefinePropertyValueStr(c->ctx, error, "posted", number_to(c->ctx, *(uint64_t *)c->memory[i]), JS_PROP_C_W_E);
	return JS_Throw(c->ctx, error);
}

/* Whether what a parameter points to is for the script. */
static int is_result(const struct param *param)
{
	return param->kind >= OUT && strcmp(param->name, "posted") != 0;
}

static JSValue written(struct call *c, int at, int32_t result)
{
	const struct param *param = &c->function->params[at];
	const uint8_t *start = c->memory[at];
	uint64_t count;
	JSValue list;

	if (!start)
		return JS_NULL;
	if (param->type == WIDE)
		return number_to(c->ctx, *(const uint64_t *)start);
	if (param->type == TEXT)
		return JS_NewStringLen(c->ctx, (const char *)start, (size_t)result);
	if (param->type == BYTES)
		return JS_NewArrayBufferCopy(c->ctx, start, (size_t)result);
	if (param->count < 0)
		return struct_to(c->ctx, param->shape, start);
	list = JS_NewArray(c->ctx);
	/* The result is the length of what is only written. */
	count = is_given(param) || c->function->result == NO_RESULT ? c->arguments[param->count] : (uint64_t)result;
	for (uint64_t i = 0; i < count && i < c->arguments[param->count]; i++) {
		JSValue item = struct_to(c->ctx, param->shape, start + i * param->shape->size);

		if (JS_IsException(item) || JS_SetPropertyUint32(c->ctx, list, (uint32_t)i, item) < 0) {
			JS_FreeValue(c->ctx, list);
			return JS_EXCEPTION;
		}
	}
	return list;
}

/* What the script gets: the result, what was written, or an object with both. */
static JSValue returned(struct call *c, int32_t result)
{
	const struct function *f = c->function;
	int outs = 0, last = -1;
	JSValue value, object;

	for (int i = 0; i < f->count; i++)
		if (is_result(&f->params[i]))
			outs++, last = i;
	if (outs == 0)
		return f->result == NO_RESULT ? JS_UNDEFINED : JS_NewInt32(c->ctx, result);
	if (outs == 1) {
		value = written(c, last, result);
		if (f->result == RESULT_HANDLE && JS_IsObject(value))
			JS_SetPropertyStr(c->ctx, value, "handle", JS_NewInt32(c->ctx, result));
		else if (f->result == RESULT_NUMBER && JS_IsObject(value) && f->params[last].type == STRUCTS && f->params[last].count < 0)
			JS_SetPropertyStr(c->ctx, value, "result", JS_NewInt32(c->ctx, result));
		return value;
	}
	object = JS_NewObject(c->ctx);
	for (int i = 0; i < f->count; i++)
		if (is_result(&f->params[i]))
			JS_SetPropertyStr(c->ctx, object, f->params[i].name, written(c, i, result));
	if (f->result != NO_RESULT)
		JS_SetPropertyStr(c->ctx, object, f->result == RESULT_HANDLE ? "handle" : "result", JS_NewInt32(c->ctx, result));
	return object;
}

/* Memory that the host uses is not collected: it stays in a list by its region's handle, until that is gone. */
static void keep(struct call *c, JSValueConst regions, int32_t result)
{
	uint32_t handle = (uint32_t)c->arguments[0];

	if (c->function->keeps && c->function->result == RESULT_HANDLE)
		JS_SetPropertyUint32(c->ctx, regions, (uint32_t)result, JS_DupValue(c->ctx, c->kept));
	else if (!strcmp(c->function->name, "dereg_mr"))
		JS_SetPropertyUint32(c->ctx, regions, handle, JS_UNDEFINED);
}

static JSValue call(JSContext *ctx, JSValueConst this, int given, JSValueConst *values, int magic, JSValue *data)
{
	struct call c = {.ctx = ctx, .function = &functions[magic], .given = given, .values = values, .kept = JS_UNDEFINED};
	JSValue value = JS_EXCEPTION;
	int32_t result;

	(void)this;
	if (!take(&c)) {
		of_script = 1;
		result = c.function->call(c.arguments);
		of_script = 0;
		if (result < 0) {
			value = throw_failure(&c, result);
		} else {
			keep(&c, data[0], result);
			value = returned(&c, result);
		}
	}
	for (int i = 0; i < c.function->count; i++)
		js_free(ctx, c.memory[i]);
	return value;
}

/* rdma.address(view): where its bytes are, as requests take it. */
static JSValue address(JSContext *ctx, JSValueConst this, int given, JSValueConst *values)
{
	size_t length;
	const uint8_t *start = given == 1 ? bytes_of(ctx, values[0], &length) : NULL;

	(void)this;
	if (!start)
		return JS_ThrowTypeError(ctx, "address takes an ArrayBuffer or a view of one");
	return JS_NewInt64(ctx, (int64_t)(uintptr_t)start);
}

JSValue make_rdma(JSContext *ctx)
{
	JSValue rdma = JS_NewObject(ctx), regions = JS_NewObject(ctx);

	for (int i = 0; i < num_functions; i++)
		JS_SetPropertyStr(ctx, rdma, functions[i].name, JS_NewCFunctionData(ctx, call, 0, i, 1, &regions));
	for (int i = 0; i < num_names; i++)
		for (int j = 0; j < all_names[i]->count; j++)
			JS_SetPropertyStr(ctx, rdma, all_names[i]->values[j].constant, JS_NewInt64(ctx, all_names[i]->values[j].number));
	JS_SetPropertyStr(ctx, rdma, "address", JS_NewCFunction(ctx, address, "address", 1));
	JS_FreeValue(ctx, regions);
	return rdma;
}
