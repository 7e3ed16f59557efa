/* Numbers in packets: big endian, at any alignment. */
#ifndef SOFT_WIRE_FIELDS_H
#define SOFT_WIRE_FIELDS_H

#include <stdint.h>

/* Each returns the address behind what it wrote. */

static inline uint8_t *soft_put16(uint8_t *cursor, uint32_t value)
{
	cursor[0] = (uint8_t)(value >> 8);
	cursor[1] = (uint8_t)value;
	return cursor + 2;
}

static inline uint8_t *soft_put24(uint8_t *cursor, uint32_t value)
{
	cursor[0] = (uint8_t)(value >> 16);
	return soft_put16(cursor + 1, value);
}

static inline uint8_t *soft_put32(uint8_t *cursor, uint32_t value)
{
	cursor[0] = (uint8_t)(value >> 24);
	return soft_put24(cursor + 1, value);
}

static inline uint8_t *soft_put64(uint8_t *cursor, uint64_t value)
{
	return soft_put32(soft_put32(cursor, (uint32_t)(value >> 32)), (uint32_t)value);
}

static inline uint32_t soft_get16(const uint8_t *cursor)
{
	return (uint32_t)cursor[0] << 8 | cursor[1];
}

static inline uint32_t soft_get24(const uint8_t *cursor)
{
	return (uint32_t)cursor[0] << 16 | soft_get16(cursor + 1);
}

static inline uint32_t soft_get32(const uint8_t *cursor)
{
	return (uint32_t)cursor[0] << 24 | soft_get24(cursor + 1);
}

static inline uint64_t soft_get64(const uint8_t *cursor)
{
	return (uint64_t)soft_get32(cursor) << 32 | soft_get32(cursor + 4);
}

#endif
