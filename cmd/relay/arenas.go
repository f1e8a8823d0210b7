package main

/*
#include <stdlib.h>
#include <string.h>
#ifdef __GLIBC__
#include <malloc.h>

// Each producer of librdkafka has a thread of its own, and one for each broker, and
// glibc gives each thread an arena of memory, up to eight for each processor, from
// which it rarely gives anything back. Two are enough: producing was no slower. The
// limit is set before Go starts its first threads, which would have arenas by then.
// Who sets one in the environment knows better.
__attribute__((constructor)) static void limit_arenas(void) {
	const char *tunables = getenv("GLIBC_TUNABLES");
	if (getenv("MALLOC_ARENA_MAX") || (tunables && strstr(tunables, "glibc.malloc.arena_max"))) {
		return;
	}
	mallopt(M_ARENA_MAX, 2);
}
#endif
*/
import "C"
