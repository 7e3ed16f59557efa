/* Writes as many lines to standard error as its argument says, and fails. */
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	for (int i = atoi(argv[argc - 1]); i > 0; i--)
		fputs("no device\n", stderr);
	return 3;
}
