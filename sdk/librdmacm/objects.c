/* Objects that events name: by their handle, rdma-core's structs. */
#include <stdlib.h>
#include "internal.h"

static struct object {
	rdmarun_handle handle;
	void *base;
	struct object *next;
} *objects;

void note_object(rdmarun_handle handle, void *base)
{
	struct object *object = malloc(sizeof(*object));

	if (!object)
		return; /* its events name none then */
	*object = (struct object){handle, base, objects};
	objects = object;
}

void forget_object(const void *base)
{
	for (struct object **at = &objects; *at; at = &(*at)->next)
		if ((*at)->base == base) {
			struct object *object = *at;

			*at = object->next;
			free(object);
			return;
		}
}

void *object_of(rdmarun_handle handle)
{
	for (const struct object *object = objects; object; object = object->next)
		if (object->handle == handle)
			return object->base;
	return NULL;
}
