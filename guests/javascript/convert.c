/* Values of scripts, and the same in the ABI's structs. */
#include <arpa/inet.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine.h"

enum { inet = 2, inet6 = 10 }; /* Linux's families, which the ABI has */

static const struct value *constant(const struct names *names, const char *name)
{
	for (int i = 0; i < names->count; i++)
		if (!strcmp(names->values[i].name, name) || !strcmp(names->values[i].constant, name))
			return &names->values[i];
	return NULL;
}

static int named(JSContext *ctx, JSValueConst value, struct place at, const struct names *names, uint64_t *number)
{
	const char *name = JS_ToCString(ctx, value);
	const struct value *found = name ? constant(names, name) : NULL;

	if (found)
		*number = found->number;
	else if (name)
		JS_ThrowTypeError(ctx, "%s.%s: \"%s\" is no value of %s", at.of, at.name, name, names->name);
	JS_FreeCString(ctx, name);
	return found ? 0 : -1;
}

/* The sum of a list of flags. */
static int flags_from(JSContext *ctx, JSValueConst list, struct place at, const struct names *names, uint64_t *number)
{
	JSValue count = JS_GetPropertyStr(ctx, list, "length");
	uint64_t sum = 0, each;
	int64_t length = 0;
	int failed = JS_ToInt64(ctx, &length, count);

	JS_FreeValue(ctx, count);
	for (int64_t i = 0; !failed && i < length; i++) {
		JSValue item = JS_GetPropertyUint32(ctx, list, (uint32_t)i);

		failed = JS_IsException(item) || number_from(ctx, item, at, names, &each);
		JS_FreeValue(ctx, item);
		sum |= failed ? 0 : each;
	}
	*number = sum;
	return failed ? -1 : 0;
}

int number_from(JSContext *ctx, JSValueConst value, struct place at, const struct names *names, uint64_t *number)
{
	double real;
	int64_t whole;

	if (JS_IsUndefined(value) || JS_IsNull(value)) {
		*number = 0;
		return 0;
	}
	if (JS_IsString(value) && names)
		return named(ctx, value, at, names, number);
	if (JS_IsArray(ctx, value) && names)
		return flags_from(ctx, value, at, names, number);
	if (JS_IsBool(value)) {
		*number = (uint64_t)JS_ToBool(ctx, value);
		return 0;
	}
	if (JS_IsNumber(value)) {
		if (JS_ToFloat64(ctx, &real, value))
			return -1;
		if (!(fabs(real) <= 9007199254740991.0) || real != floor(real)) {
			JS_ThrowTypeError(ctx, "%s.%s: %g is no whole number; one beyond 2**53 is a BigInt", at.of, at.name, real);
			return -1;
		}
		*number = (uint64_t)(int64_t)real;
		return 0;
	}
	if (JS_IsBigInt(ctx, value)) {
		if (JS_ToInt64Ext(ctx, &whole, value))
			return -1;
		*number = (uint64_t)whole;
		return 0;
	}
	JS_ThrowTypeError(ctx, names ? "%s.%s is no number, and no name of %s" : "%s.%s is no number", at.of, at.name,
			  names ? names->name : "");
	return -1;
}

JSValue number_to(JSContext *ctx, uint64_t number)
{
	return number <= 9007199254740991 ? JS_NewInt64(ctx, (int64_t)number) : JS_NewBigUint64(ctx, number);
}

uint8_t *bytes_of(JSContext *ctx, JSValueConst value, size_t *length)
{
	size_t whole, offset = 0, size = 0, element;
	uint8_t *start;
	JSValue buffer;

	if (!JS_IsObject(value))
		return NULL;
	start = JS_GetArrayBuffer(ctx, length, value);
	if (start)
		return start;
	JS_FreeValue(ctx, JS_GetException(ctx));
	buffer = JS_GetTypedArrayBuffer(ctx, value, &offset, &size, &element);
	if (JS_IsException(buffer)) {
		JS_FreeValue(ctx, JS_GetException(ctx));
		return NULL;
	}
	start = JS_GetArrayBuffer(ctx, &whole, buffer);
	JS_FreeValue(ctx, buffer);
	if (!start || offset + size > whole) {
		JS_FreeValue(ctx, JS_GetException(ctx));
		return NULL;
	}
	*length = size;
	return start + offset;
}

/* "192.0.2.1:7471", "[2001:db8::1]:7471", or without a port. */
static int address_from(JSContext *ctx, const char *text, uint8_t *to)
{
	struct rdmarun_address *address = (struct rdmarun_address *)to;
	char host[64] = "";
	const char *port = NULL, *end;

	if (text[0] == '[' && (end = strchr(text, ']')) && (size_t)(end - text) <= sizeof(host)) {
		memcpy(host, text + 1, (size_t)(end - text - 1));
		port = end[1] == ':' ? end + 2 : NULL;
	} else if ((end = strchr(text, ':')) && !strchr(end + 1, ':') && (size_t)(end - text) < sizeof(host)) {
		memcpy(host, text, (size_t)(end - text));
		port = end + 1;
	} else {
		snprintf(host, sizeof(host), "%s", text);
	}
	if (inet_pton(AF_INET, host, address->ip) == 1)
		address->family = inet;
	else if (inet_pton(AF_INET6, host, address->ip) == 1)
		address->family = inet6;
	else if (host[0] == 0)
		address->family = 0;
	else {
		JS_ThrowTypeError(ctx, "\"%s\" is no address: 192.0.2.1:7471, [2001:db8::1]:7471, or without a port", text);
		return -1;
	}
	address->port = port ? (uint16_t)atoi(port) : 0;
	return 0;
}

static JSValue address_to(JSContext *ctx, const uint8_t *from)
{
	const struct rdmarun_address *address = (const struct rdmarun_address *)from;
	char host[64] = "", text[96];

	if (address->family == 0)
		return JS_NewString(ctx, "");
	inet_ntop(address->family == inet6 ? AF_INET6 : AF_INET, address->ip, host, sizeof(host));
	snprintf(text, sizeof(text), address->family == inet6 ? "[%s]:%u" : "%s:%u", host, (unsigned)address->port);
	return JS_NewString(ctx, text);
}

static void store(const struct field *field, uint8_t *to, uint64_t number)
{
	static const uint8_t widths[] = {1, 2, 4, 8, 4};

	memcpy(to + field->offset, &number, widths[field->type]); /* both little-endian */
}

static uint64_t loaded(const struct field *field, const uint8_t *from)
{
	static const uint8_t widths[] = {1, 2, 4, 8, 4};
	uint64_t number = 0;

	memcpy(&number, from + field->offset, widths[field->type]);
	return field->type == I32 ? (uint64_t)(int64_t)(int32_t)number : number;
}

/* Whether a number fits a field, negative ones as well as bit patterns do. */
static int fits(const struct field *field, uint64_t number)
{
	static const uint8_t bits[] = {8, 16, 32, 64, 32};
	int64_t whole = (int64_t)number;

	return bits[field->type] == 64 || number >> bits[field->type] == 0 ||
	       (field->type == I32 && whole < 0 && whole >= INT32_MIN);
}

static int array_from(JSContext *ctx, const struct shape *shape, const struct field *field, JSValueConst value, uint8_t *to)
{
	const char *text = NULL;
	const uint8_t *bytes;
	size_t length;

	if (JS_IsString(value))
		bytes = (const uint8_t *)(text = JS_ToCStringLen(ctx, &length, value));
	else
		bytes = bytes_of(ctx, value, &length);
	if (!bytes) {
		JS_ThrowTypeError(ctx, "%s.%s takes a text, an ArrayBuffer or a view of one", shape->name, field->name);
		return -1;
	}
	if (length > field->count || (field->length >= 0 && length > 255)) {
		JS_ThrowRangeError(ctx, "%s.%s has room for %u bytes, not %u", shape->name, field->name,
				   (unsigned)(field->length >= 0 && field->count > 255 ? 255 : field->count), (unsigned)length);
		JS_FreeCString(ctx, text);
		return -1;
	}
	memcpy(to + field->offset, bytes, length);
	if (field->length >= 0)
		store(&shape->fields[field->length], to, length);
	JS_FreeCString(ctx, text);
	return 0;
}

static int field_from(JSContext *ctx, const struct shape *shape, const struct field *field, JSValueConst value, uint8_t *to)
{
	struct place at = {shape->name, field->name};
	uint64_t number;

	if (field->type == STRUCT)
		return struct_from(ctx, field->shape, value, to + field->offset);
	if (field->count)
		return array_from(ctx, shape, field, value, to);
	if (number_from(ctx, value, at, field->names, &number))
		return -1;
	if (!fits(field, number)) {
		JS_ThrowRangeError(ctx, "%s.%s: the number does not fit", at.of, at.name);
		return -1;
	}
	store(field, to, number);
	return 0;
}

static const struct field *field_called(const struct shape *shape, const char *name)
{
	for (int i = 0; i < shape->count; i++)
		if (!strcmp(shape->fields[i].name, name))
			return &shape->fields[i];
	return NULL;
}

/* One property of an object that is to be a struct. */
static int property_from(JSContext *ctx, const struct shape *shape, JSValueConst object, JSAtom atom, uint8_t *to)
{
	const char *name = JS_AtomToCString(ctx, atom);
	const struct field *field = name ? field_called(shape, name) : NULL;
	int failed = -1;

	if (field) {
		JSValue value = JS_GetProperty(ctx, object, atom);

		if (JS_IsUndefined(value))
			failed = 0;
		else if (!JS_IsException(value))
			failed = field_from(ctx, shape, field, value, to);
		JS_FreeValue(ctx, value);
	} else if (name) {
		JS_ThrowTypeError(ctx, "%s has no field \"%s\"", shape->name, name);
	}
	JS_FreeCString(ctx, name);
	return failed;
}

int struct_from(JSContext *ctx, const struct shape *shape, JSValueConst object, uint8_t *to)
{
	JSPropertyEnum *names;
	uint32_t count;
	int failed = 0;

	memset(to, 0, shape->size);
	if (shape->sized)
		store(&shape->fields[0], to, shape->size);
	if (JS_IsString(object) && !strcmp(shape->name, "address")) {
		const char *text = JS_ToCString(ctx, object);

		failed = text ? address_from(ctx, text, to) : -1;
		JS_FreeCString(ctx, text);
		return failed;
	}
	if (!JS_IsObject(object)) {
		JS_ThrowTypeError(ctx, "%s is written as an object of its fields", shape->name);
		return -1;
	}
	if (JS_GetOwnPropertyNames(ctx, &names, &count, object, JS_GPN_STRING_MASK | JS_GPN_ENUM_ONLY))
		return -1;
	for (uint32_t i = 0; i < count; i++) {
		if (!failed)
			failed = property_from(ctx, shape, object, names[i].atom, to);
		JS_FreeAtom(ctx, names[i].atom);
	}
	js_free(ctx, names);
	return failed;
}

/* The names of flags that are set, and as a number what has none. */
static JSValue flags_to(JSContext *ctx, const struct names *names, uint64_t number)
{
	JSValue list = JS_NewArray(ctx);
	uint32_t length = 0;

	for (int i = 0; i < names->count; i++)
		if (number & names->values[i].number) {
			JS_SetPropertyUint32(ctx, list, length++, JS_NewString(ctx, names->values[i].name));
			number &= ~(uint64_t)names->values[i].number;
		}
	if (number)
		JS_SetPropertyUint32(ctx, list, length, number_to(ctx, number));
	return list;
}

static JSValue field_to(JSContext *ctx, const struct shape *shape, const struct field *field, const uint8_t *from)
{
	uint64_t number;

	if (field->type == STRUCT)
		return struct_to(ctx, field->shape, from + field->offset);
	if (field->count) {
		uint64_t length = field->length >= 0 ? loaded(&shape->fields[field->length], from) : field->count;
		JSValue buffer = JS_NewArrayBufferCopy(ctx, from + field->offset, length < field->count ? length : field->count);
		JSValueConst all[] = {buffer, JS_UNDEFINED, JS_UNDEFINED}; /* from its begin to its end */
		JSValue view = JS_NewTypedArray(ctx, 3, all, JS_TYPED_ARRAY_UINT8);

		JS_FreeValue(ctx, buffer);
		return view;
	}
	number = loaded(field, from);
	if (field->names && field->names->flags)
		return flags_to(ctx, field->names, number);
	for (int i = 0; field->names && i < field->names->count; i++)
		if (field->names->values[i].number == number)
			return JS_NewString(ctx, field->names->values[i].name);
	return field->type == I32 ? JS_NewInt64(ctx, (int64_t)number) : number_to(ctx, number);
}

JSValue struct_to(JSContext *ctx, const struct shape *shape, const uint8_t *from)
{
	JSValue object;

	if (!strcmp(shape->name, "address"))
		return address_to(ctx, from);
	object = JS_NewObject(ctx);
	for (int i = shape->sized; i < shape->count; i++) {
		const struct field *field = &shape->fields[i];
		JSValue value;

		if (!strncmp(field->name, "reserved", 8))
			continue;
		value = field_to(ctx, shape, field, from);
		if (JS_IsException(value) || JS_SetPropertyStr(ctx, object, field->name, value) < 0) {
			JS_FreeValue(ctx, object);
			return JS_EXCEPTION;
		}
	}
	return object;
}
