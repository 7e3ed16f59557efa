/* Address handles, by the numbers of provider/ah_table.h. */
#include "core/call.h"

static int insert(struct core_provider *provider, struct ibv_ah *ah, uint32_t *number)
{
	struct core_ah_table *table = &provider->address_handles;
	struct core_ah_slot *slot;

	pthread_rwlock_wrlock(&table->lock);
	slot = core_ah_table_take(table);
	if (slot) {
		slot->ah = ah;
		*number = slot->number;
	}
	pthread_rwlock_unlock(&table->lock);
	if (!slot) {
		provider->ibv_destroy_ah(ah);
		return -ENOMEM;
	}
	core_count(provider, CORE_AH, 1);
	return 0;
}

int core_create_ah(struct core_provider *provider, struct ibv_pd *pd, struct ibv_ah_attr *attr,
		   uint32_t *number)
{
	struct ibv_ah *ah;

	CORE_NEEDS(provider->ibv_create_ah && provider->ibv_destroy_ah);
	ah = provider->ibv_create_ah(pd, attr);
	return ah ? insert(provider, ah, number) : core_errno();
}

int core_create_ah_from_wc(struct core_provider *provider, struct ibv_pd *pd, struct ibv_wc *wc,
			   struct ibv_grh *grh, uint8_t port, uint32_t *number)
{
	struct ibv_ah *ah;

	CORE_NEEDS(provider->ibv_create_ah_from_wc && provider->ibv_destroy_ah);
	ah = provider->ibv_create_ah_from_wc(pd, wc, grh, port);
	return ah ? insert(provider, ah, number) : core_errno();
}

int core_init_ah_from_wc(struct core_provider *provider, struct ibv_context *context, struct ibv_wc *wc,
			 struct ibv_grh *grh, uint8_t port, struct ibv_ah_attr *attr)
{
	CORE_NEEDS(provider->ibv_init_ah_from_wc);
	errno = EINVAL; /* if the library returns only -1 */
	return core_verbs_result(provider->ibv_init_ah_from_wc(context, port, wc, grh, attr));
}

int core_destroy_ah(struct core_provider *provider, struct ibv_pd *pd, uint32_t number)
{
	struct core_ah_table *table = &provider->address_handles;
	struct ibv_ah *ah;
	int result = -EINVAL;

	pthread_rwlock_wrlock(&table->lock);
	ah = core_ah_find(table, number, pd);
	if (ah)
		result = core_verbs_result(provider->ibv_destroy_ah(ah));
	if (!result)
		core_ah_table_give_back(table, number);
	pthread_rwlock_unlock(&table->lock);
	if (!result)
		core_count(provider, CORE_AH, -1);
	return result;
}
