/* Mask expressions drawn from bytes, each with what it shows by definition, element by element of the scores. */
#ifndef TESTS_FUZZ_MASKS_H
#define TESTS_FUZZ_MASKS_H

#include "fuzz.h"

enum { FUZZ_MASK_MOST = 24000 }; /* elements of the scores, at most */

typedef struct fuzz_mask {
    gr_mask mask;
    bool valid; /* may be used on these scores */
    unsigned char see[FUZZ_MASK_MOST];
} fuzz_mask;

/* A tree of up to so many words over the scores, two axes or more. hostile: some words are refused. It is static and
 * lives until the next call. */
const fuzz_mask *fuzz_draw_mask(fuzz_bytes *in, gr_context *ctx, gr_shape scores, int leaves, bool hostile);

#endif
