#include "soft/cm/cm.h"

/* Needs no lock: each thread has its own. */
static _Thread_local struct soft_cm *current;

struct soft_cm *soft_cm_current(void)
{
	return current;
}

void soft_cm_select(struct soft_cm *cm)
{
	current = cm;
}
