#include "soft/cm/calls.h"

#include "soft/base/fabric.h"

bool soft_budget_take(struct soft_cm *cm, struct soft_budget *budget, const struct soft_budget_limits *limits,
		      const union ibv_gid *to)
{
	uint16_t *of_source = &budget->by_source[soft_address_source(cm, to) % SOFT_HALF_OPEN_SOURCES];
	uint64_t now = soft_fabric_wall_now(cm->fabric);

	if (now >= budget->until)
		*budget = (struct soft_budget){.until = now + limits->time};
	if (*of_source >= limits->of_source || *of_source >= limits->total - budget->total) {
		soft_notice(&cm->fabric->notices, SOFT_NOTICE_FLOOD, to, 1);
		return false;
	}
	(*of_source)++;
	budget->total++;
	return true;
}
