/* Memory given out in order and taken back all at once. Blocks are kept for the next round, so that a loop which asks
 * for the same sizes each time asks the system only the first time. */
#ifndef GR_ARENA_H
#define GR_ARENA_H

#include <stddef.h>

typedef struct gr_arena {
    struct gr_block *first, *current;
    size_t used;         /* bytes given out since the last reset */
    size_t current_used; /* of them, in the current block */
    size_t held;         /* bytes of all blocks */
} gr_arena;

/* Not cleared, aligned to 64 bytes; NULL when there is no memory. */
void *gr_arena_alloc(gr_arena *arena, size_t bytes);
void gr_arena_reset(gr_arena *arena);

/* Takes back all that was given out since `since` was copied from *arena. */
void gr_arena_rewind(gr_arena *arena, const gr_arena *since);
void gr_arena_free(gr_arena *arena);

#endif
