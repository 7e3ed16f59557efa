/* The kernel's types, which rdma-core's headers are written in. */
#ifndef LIBRDMACM_LINUX_TYPES_H
#define LIBRDMACM_LINUX_TYPES_H

#include <stdint.h>

typedef uint8_t __u8;
typedef uint16_t __u16;
typedef uint32_t __u32;
typedef unsigned long long __u64;
typedef int8_t __s8;
typedef int16_t __s16;
typedef int32_t __s32;
typedef long long __s64;
typedef uint16_t __be16;
typedef uint32_t __be32;
typedef unsigned long long __be64;
typedef uint16_t __le16;
typedef uint32_t __le32;
typedef unsigned long long __le64;

#define __aligned_u64 __u64 __attribute__((aligned(8)))
#define __aligned_be64 __be64 __attribute__((aligned(8)))
#define __aligned_le64 __le64 __attribute__((aligned(8)))

#endif
