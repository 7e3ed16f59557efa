/*
 * The provider "verbs": the system's librdmacm and libibverbs, loaded at run time, so that the program starts on
 * machines without them. An entry that a library lacks is NULL; those below must exist.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "provider/provider.h"

#define RDMACM_LIBRARY "librdmacm.so.1"
#define IBVERBS_LIBRARY "libibverbs.so.1"

/* Without these there is neither a connection nor a transfer. All are as old as the libraries' ABI. */
#define REQUIRED_FUNCTIONS(ENTRY)                                                                  \
	ENTRY(rdma_create_event_channel)                                                           \
	ENTRY(rdma_destroy_event_channel)                                                          \
	ENTRY(rdma_create_id)                                                                      \
	ENTRY(rdma_destroy_id)                                                                     \
	ENTRY(rdma_bind_addr)                                                                      \
	ENTRY(rdma_resolve_addr)                                                                   \
	ENTRY(rdma_resolve_route)                                                                  \
	ENTRY(rdma_create_qp)                                                                      \
	ENTRY(rdma_destroy_qp)                                                                     \
	ENTRY(rdma_connect)                                                                        \
	ENTRY(rdma_listen)                                                                         \
	ENTRY(rdma_accept)                                                                         \
	ENTRY(rdma_reject)                                                                         \
	ENTRY(rdma_disconnect)                                                                     \
	ENTRY(rdma_get_cm_event)                                                                   \
	ENTRY(rdma_ack_cm_event)                                                                   \
	ENTRY(rdma_get_devices)                                                                    \
	ENTRY(rdma_free_devices)                                                                   \
	ENTRY(ibv_query_device)                                                                    \
	ENTRY(ibv_query_port)                                                                      \
	ENTRY(ibv_query_gid)                                                                       \
	ENTRY(ibv_alloc_pd)                                                                        \
	ENTRY(ibv_dealloc_pd)                                                                      \
	ENTRY(ibv_reg_mr)                                                                          \
	ENTRY(ibv_dereg_mr)                                                                        \
	ENTRY(ibv_create_comp_channel)                                                             \
	ENTRY(ibv_destroy_comp_channel)                                                            \
	ENTRY(ibv_create_cq)                                                                       \
	ENTRY(ibv_destroy_cq)                                                                      \
	ENTRY(ibv_get_cq_event)                                                                    \
	ENTRY(ibv_ack_cq_events)                                                                   \
	ENTRY(ibv_modify_qp)                                                                       \
	ENTRY(ibv_query_qp)

struct symbol {
	const char *name;
	size_t offset; /* offset of its entry in struct core_provider */
};

static const struct symbol rdmacm_symbols[] = {
#define SYMBOL(function) {#function, offsetof(struct core_provider, function)},
	CORE_RDMACM_FUNCTIONS(SYMBOL)
};

static const struct symbol ibverbs_symbols[] = {
	CORE_IBVERBS_FUNCTIONS(SYMBOL)
};

static const struct symbol required_symbols[] = {
	REQUIRED_FUNCTIONS(SYMBOL)
#undef SYMBOL
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* POSIX allows a data pointer to contain a function's address; ISO C does not, so it is copied. */
static void set_entry(struct core_provider *provider, size_t offset, void *function)
{
	memcpy((char *)provider + offset, &function, sizeof(function));
}

static bool has_entry(const struct core_provider *provider, size_t offset)
{
	void *function;

	memcpy(&function, (const char *)provider + offset, sizeof(function));
	return function != NULL;
}

static void load(struct core_provider *provider, void *library, const struct symbol *symbols,
		 size_t count)
{
	for (size_t i = 0; i < count; i++)
		set_entry(provider, symbols[i].offset, dlsym(library, symbols[i].name));
}

/*
 * RTLD_NODELETE: libibverbs loads drivers that stay, and librdmacm may have a thread. Unmapping either would crash
 * them.
 */
static void *open_library(const char *name, const char *debian_package, const char *rpm_package,
			  char *why, size_t why_size)
{
	void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);

	if (!library)
		snprintf(why, why_size,
			 "%s; install the package %s (Debian, Ubuntu) or %s (Fedora, RHEL, SUSE), "
			 "or use the provider soft",
			 dlerror(), debian_package, rpm_package);
	return library;
}

int verbs_provider_open(struct core_provider *provider, char *why, size_t why_size)
{
	provider->name = "verbs";
	provider->libraries[1] = open_library(IBVERBS_LIBRARY, "libibverbs1 and ibverbs-providers",
					      "libibverbs", why, why_size);
	if (!provider->libraries[1])
		return -ENOENT;
	provider->libraries[0] = open_library(RDMACM_LIBRARY, "librdmacm1", "librdmacm", why,
					      why_size);
	if (!provider->libraries[0]) {
		verbs_provider_close(provider);
		return -ENOENT;
	}
	load(provider, provider->libraries[0], rdmacm_symbols, COUNT(rdmacm_symbols));
	load(provider, provider->libraries[1], ibverbs_symbols, COUNT(ibverbs_symbols));
	for (size_t i = 0; i < COUNT(required_symbols); i++) {
		if (has_entry(provider, required_symbols[i].offset))
			continue;
		snprintf(why, why_size,
			 "the installed rdma-core has no %s; install a newer one (44 or later)",
			 required_symbols[i].name);
		verbs_provider_close(provider);
		return -ENOSYS;
	}
	return 0;
}

void verbs_provider_close(struct core_provider *provider)
{
	for (size_t i = 0; i < COUNT(provider->libraries); i++) {
		if (provider->libraries[i])
			dlclose(provider->libraries[i]);
		provider->libraries[i] = NULL;
	}
}
