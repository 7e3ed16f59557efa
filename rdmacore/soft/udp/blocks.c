/* Blocks of queue pair numbers, each with a port that the device has bound. */
#include "soft/udp/internal.h"

#include <errno.h>

#include "soft/base/fabric.h"

/* A block belongs to this process when its port of 127.0.0.1 is bound. 0 or a positive errno. */
static int bind_block(struct soft_udp *udp, uint32_t *block)
{
	uint64_t random = soft_fabric_random(udp->fabric);
	uint32_t step = (uint32_t)(random >> 32) | 1; /* odd, so that all blocks are tried */
	int error = EAGAIN;

	for (uint32_t tries = 0; tries < SOFT_UDP_BLOCKS; tries++) {
		*block = ((uint32_t)random + tries * step) % SOFT_UDP_BLOCKS;
		if (soft_udp_bind_block(udp, (uint16_t)(SOFT_UDP_PORTS + *block), &error))
			error = soft_udp_share_block(udp, *block);
		if (error != EADDRINUSE)
			return error;
	}
	return soft_udp_refuse_blocks();
}

/* A block with numbers that the caller has not used: one that this process has already, or a new one. */
static int next_block(struct soft_table_block_source *block_source, uint32_t *number)
{
	struct soft_udp_block_source *mine = soft_container_of(block_source, struct soft_udp_block_source,
							       block_source);
	struct soft_udp *udp = mine->udp;
	struct soft_udp_block *block = udp->blocks;
	int error = 0;

	soft_mutex_lock(&udp->lock);
	while (block < udp->blocks + udp->block_count && block->used[mine->numbers])
		block++;
	if (block == udp->blocks + udp->block_count) {
		soft_mutex_unlock(&udp->lock);
		error = bind_block(udp, number);
		soft_mutex_lock(&udp->lock);
		/* block_count stays below the limit: each block has a socket, and sockets are limited. */
		if (!error) {
			block = udp->blocks + udp->block_count++;
			*block = (struct soft_udp_block){.number = *number};
		}
	}
	if (!error) {
		*number = block->number;
		block->used[mine->numbers] = true;
	}
	soft_mutex_unlock(&udp->lock);
	return -error;
}

void soft_udp_init_block_source(struct soft_udp *udp, enum soft_udp_numbers numbers)
{
	udp->block_sources[numbers] = (struct soft_udp_block_source){{next_block}, udp, numbers};
}

bool soft_udp_has_block(struct soft_udp *udp, const struct soft_endpoint *endpoint)
{
	bool found = false;

	soft_mutex_lock(&udp->lock);
	for (uint32_t index = 0; index < udp->block_count; index++)
		found |= endpoint->port == SOFT_UDP_PORTS + udp->blocks[index].number;
	soft_mutex_unlock(&udp->lock);
	return found;
}
