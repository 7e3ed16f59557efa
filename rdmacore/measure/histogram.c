#include "measure/histogram.h"

#include <errno.h>
#include <stdlib.h>

#define HIGHEST (UINT64_C(1) << 62)

int core_histogram_init(struct core_histogram *histogram, uint64_t highest, uint32_t digits)
{
	uint64_t resolved = 2, untracked;
	uint32_t magnitude = 1, buckets = 1;

	if (digits < 1 || digits > 5 || highest < 2 || highest > HIGHEST)
		return -EINVAL;
	/* Neighbours must differ by at most one part in 10^digits: single units up to twice that. */
	for (uint32_t digit = 0; digit < digits; digit++)
		resolved *= 10;
	while ((UINT64_C(1) << magnitude) < resolved)
		magnitude++;
	for (untracked = UINT64_C(1) << magnitude; untracked <= highest; untracked <<= 1)
		buckets++;
	*histogram = (struct core_histogram){
		.length = (uint64_t)(buckets + 1) << (magnitude - 1),
		.highest = highest,
		.mask = (UINT64_C(1) << magnitude) - 1,
		.digits = digits,
		.half_magnitude = magnitude - 1,
		.minimum = UINT64_MAX,
	};
	histogram->counts = calloc(histogram->length, sizeof(*histogram->counts));
	return histogram->counts ? 0 : -ENOMEM;
}

void core_histogram_free(struct core_histogram *histogram)
{
	free(histogram->counts);
	histogram->counts = NULL;
}

static uint64_t load(const uint64_t *field)
{
	return __atomic_load_n(field, __ATOMIC_RELAXED);
}

int core_histogram_copy(struct core_histogram *into, const struct core_histogram *from)
{
	*into = (struct core_histogram){
		.length = from->length,
		.highest = from->highest,
		.mask = from->mask,
		.digits = from->digits,
		.half_magnitude = from->half_magnitude,
		.recorded = load(&from->recorded),
		.clamped = load(&from->clamped),
		.minimum = load(&from->minimum),
		.maximum = load(&from->maximum),
	};
	into->counts = malloc(into->length * sizeof(*into->counts));
	if (!into->counts)
		return -ENOMEM;
	for (uint64_t index = 0; index < into->length; index++)
		into->counts[index] = __atomic_load_n(&from->counts[index], __ATOMIC_RELAXED);
	return 0;
}
