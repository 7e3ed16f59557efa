/*
 * Counts of values by the bucket rules of HdrHistogram (hdrhistogram.org). Buckets double in width, and each is
 * divided so that a value is known to a number of significant decimal digits. HdrHistogram's own libraries can import
 * the counts array, so they can compute percentiles.
 */
#ifndef MEASURE_HISTOGRAM_H
#define MEASURE_HISTOGRAM_H

#include <stdint.h>

/* The lowest value that differs from 0 is 1. */
struct core_histogram {
	int64_t *counts;
	uint64_t length; /* of counts */
	uint64_t highest; /* higher values count as this */
	uint64_t mask; /* values up to this are in the first bucket, which counts each by itself */
	uint32_t digits;
	uint32_t half_magnitude; /* log2 of half of the entries of a bucket */
	uint64_t recorded;
	uint64_t clamped; /* of those, how many exceeded highest */
	uint64_t minimum; /* exact; UINT64_MAX and 0 while nothing is recorded */
	uint64_t maximum;
};

/* digits 1 to 5, highest from 2 to 2^62; -EINVAL, -ENOMEM. The owner frees it. */
int core_histogram_init(struct core_histogram *histogram, uint64_t highest, uint32_t digits);
void core_histogram_free(struct core_histogram *histogram);
/*
 * Copy the counts while another thread may record: each count is a value that it had during the copy. -ENOMEM. The
 * owner frees the copy.
 */
int core_histogram_copy(struct core_histogram *into, const struct core_histogram *from);

/* One thread records, others may copy: plain arithmetic, and stores that other threads see completely. */
#define CORE_HISTOGRAM_STORE(field, value) __atomic_store_n(&(field), value, __ATOMIC_RELAXED)

static inline void core_histogram_record(struct core_histogram *histogram, uint64_t value)
{
	uint32_t magnitude = histogram->half_magnitude;
	uint32_t bucket;
	int64_t *count;

	CORE_HISTOGRAM_STORE(histogram->recorded, histogram->recorded + 1);
	if (value < histogram->minimum)
		CORE_HISTOGRAM_STORE(histogram->minimum, value);
	if (value > histogram->maximum)
		CORE_HISTOGRAM_STORE(histogram->maximum, value);
	if (value > histogram->highest) {
		CORE_HISTOGRAM_STORE(histogram->clamped, histogram->clamped + 1);
		value = histogram->highest;
	}
	/* The number of bits beyond the resolution of a bucket. */
	bucket = 64 - (uint32_t)__builtin_clzll(value | histogram->mask) - (magnitude + 1);
	/* From the second one on, a bucket has only its upper half: the lower half is the previous bucket. */
	count = &histogram->counts[((uint64_t)bucket << magnitude) + (value >> bucket)];
	CORE_HISTOGRAM_STORE(*count, *count + 1);
}

#endif
