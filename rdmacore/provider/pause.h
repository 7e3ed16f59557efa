/* What loops that wait without sleeping do in between. */
#ifndef PROVIDER_PAUSE_H
#define PROVIDER_PAUSE_H

/* Tells the processor that this is a spin loop: less power, and the sibling thread gets the core. */
static inline void core_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("isb" ::: "memory");
#endif
}

#endif
