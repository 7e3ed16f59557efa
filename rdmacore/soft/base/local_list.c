/* The kernel's list of sockets. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "soft/base/local_name.h"
#include "soft/base/order.h"

/* One more name; false without memory. */
static bool add_name(struct soft_local_list *list, size_t *room, const char *name, bool listens)
{
	size_t length = strlen(name) + 1;

	if (list->size + 1 + length > *room) {
		size_t more = 2 * *room + 1 + length;
		char *names = realloc(list->names, more);

		if (!names)
			return false;
		list->names = names;
		*room = more;
	}
	list->names[list->size] = listens;
	memcpy(list->names + list->size + 1, name, length);
	list->size += 1 + length;
	return true;
}

void soft_local_list_read(struct soft_local_list *list)
{
	FILE *file;
	size_t size = 0, room = 0;
	char *line = NULL;

	soft_order_expect_none();
	file = fopen("/proc/net/unix", "re");
	*list = (struct soft_local_list){.known = file};
	if (!file)
		return;
	while (list->known && getline(&line, &size, file) > 0) {
		unsigned int flags, state;
		char *name = strstr(line, " @rdmarun/");

		/* Num RefCount Protocol Flags Type St Inode Path */
		if (!name || sscanf(line, "%*s %*x %*x %x %*x %x", &flags, &state) != 2 || state != 1 /* SS_UNCONNECTED */)
			continue;
		name[strcspn(name, "\n")] = 0;
		list->known = add_name(list, &room, name + 2, flags & 0x10000 /* __SO_ACCEPTCON */);
	}
	free(line);
	fclose(file);
}

void soft_local_list_free(struct soft_local_list *list)
{
	free(list->names);
	*list = (struct soft_local_list){0};
}

bool soft_local_list_each(const struct soft_local_list *list, const char *begin,
			  bool (*each)(void *context, const char *rest, bool listens), void *context)
{
	size_t length = strlen(begin);

	for (const char *name = list->names; name < list->names + list->size; name += 1 + strlen(name + 1) + 1)
		if (!strncmp(name + 1, begin, length) && each(context, name + 1 + length, *name))
			return true;
	return false;
}
