#include "arena.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

/* Under the address sanitizer, what has not been given out is out of bounds: alone it would see no further than a
 * block. */
#ifdef __has_feature
#    if __has_feature(address_sanitizer)
#        define SANITIZED
#    endif
#endif
#if defined SANITIZED || defined __SANITIZE_ADDRESS__
#    include <sanitizer/asan_interface.h>
#    define HIDE(memory, bytes) ASAN_POISON_MEMORY_REGION(memory, bytes)
#    define SHOW(memory, bytes) ASAN_UNPOISON_MEMORY_REGION(memory, bytes)
#else
#    define HIDE(memory, bytes) ((void)(memory), (void)(bytes))
#    define SHOW(memory, bytes) ((void)(memory), (void)(bytes))
#endif

/* Large enough that the tail lost at a block's end does not matter; a tail never touched costs no memory. */
enum { BLOCK_BYTES = 8 << 20, ALIGNMENT = 64 };

typedef struct gr_block {
    struct gr_block *next;
    size_t size; /* of the payload, which follows the header */
} gr_block;

enum { HEADER_BYTES = (sizeof(gr_block) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT };

static char *payload_of(gr_block *block) { return (char *)block + HEADER_BYTES; }

/* What has been given out from a place in a block on, and in the blocks behind it. */
static void hide_since(const gr_arena *now, gr_block *block, size_t used) {
    for (; block && block != now->current; block = block->next, used = 0)
        HIDE(payload_of(block) + used, block->size - used);
    if (block) HIDE(payload_of(block) + used, now->current_used - used);
}

/* What would take the arena above the machine's memory is refused: the system might promise it and kill us at the first
 * touch. */
static size_t physical_memory(void) {
    const long pages = sysconf(_SC_PHYS_PAGES), bytes = sysconf(_SC_PAGESIZE);
    const bool known = pages > 0 && bytes > 0;
    return known && (size_t)pages <= SIZE_MAX / (size_t)bytes ? (size_t)pages * (size_t)bytes : SIZE_MAX / 2;
}

static gr_block *new_block(gr_arena *arena, size_t payload) {
    size_t memory = physical_memory();
    if (arena->held > memory || payload > memory - arena->held) return NULL;
    gr_block *block = aligned_alloc(ALIGNMENT, HEADER_BYTES + payload);
    if (!block) return NULL;
    *block = (gr_block){NULL, payload};
    HIDE(payload_of(block), payload);
    arena->held += payload;
    return block;
}

/* Makes current the next block with room, in the order of the chain: the same requests find the same places in every
 * round. */
static gr_block *find_room(gr_arena *arena, size_t bytes) {
    gr_block *last = arena->current;
    if (last && last->size - arena->current_used >= bytes) return last;
    for (gr_block *b = last ? last->next : arena->first; b; last = b, b = b->next)
        if (b->size >= bytes) return b;
    gr_block *block = new_block(arena, bytes > BLOCK_BYTES ? bytes : BLOCK_BYTES);
    if (block && last) last->next = block;
    if (block && !last) arena->first = block;
    return block;
}

void *gr_arena_alloc(gr_arena *arena, size_t bytes) {
    if (bytes > SIZE_MAX / 2) return NULL;
    const size_t wanted = bytes;
    bytes = bytes ? (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT : ALIGNMENT;
    gr_block *block = find_room(arena, bytes);
    if (!block) return NULL;
    if (block != arena->current) arena->current_used = 0;
    arena->current = block;
    void *memory = payload_of(block) + arena->current_used;
    SHOW(memory, wanted);
    arena->current_used += bytes;
    arena->used += bytes;
    return memory;
}

void gr_arena_reset(gr_arena *arena) {
    hide_since(arena, arena->first, 0);
    arena->current = arena->first;
    arena->used = arena->current_used = 0;
}

void gr_arena_rewind(gr_arena *arena, const gr_arena *since) {
    gr_arena now = *arena;
    *arena = *since;
    arena->held = now.held;
    if (!since->first) arena->first = arena->current = now.first;
    hide_since(&now, arena->current, arena->current_used);
}

void gr_arena_free(gr_arena *arena) {
    for (gr_block *b = arena->first, *next; b; b = next) {
        next = b->next;
        free(b);
    }
    *arena = (gr_arena){0};
}
