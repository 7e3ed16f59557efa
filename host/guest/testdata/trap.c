/* A guest that traps in line 11, in a loop, called from line 27. */
#include <stdlib.h>

struct node {
	struct node *next;
	int value;
};

static __attribute__((noinline)) int last(const struct node *node) {
	while (node->next)
		if (node->value < 0) __builtin_trap();
		else node = node->next;
	return node->value;
}

int main(void) {
	struct node *list = NULL;
	for (int i = -1; i < 5; i++) {
		struct node *node = malloc(sizeof *node);
		*node = (struct node){list, i};
		list = node;
	}
	struct node *circle = list;
	while (circle->next)
		circle = circle->next;
	circle->next = list;
	return last(list);
}
