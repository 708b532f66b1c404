/* Mask expressions: every element of the matrix and every verdict on a tile (nothing, some or all of the keys from ...
 * to) against a definition by a double loop; a mask that cannot be used is refused, with an error. */
#include "masks.h"

#include "tensor/mask_tile.h"

enum { LEAVES = 12, TILES = 24 };

static gr_context *ctx;

static gr_shape draw_scores(fuzz_bytes *in) {
    static const int64_t edge[] = {1, 2, 5, 31, 32, 33, 127, 128, 129, 0};
    const int axes = 2 + (int)fuzz_below(in, 5);
    gr_shape scores = {axes, {0}};
    int64_t count = 1;
    for (int i = axes - 1; i >= 0; i--) {
        const bool matrix = i >= axes - 2;
        scores.dim[i] = !matrix ? fuzz_below(in, 3) + (fuzz_below(in, 32) != 1) : edge[fuzz_below(in, 10)];
        if (matrix && fuzz_below(in, 2)) scores.dim[i] = fuzz_below(in, 60) + 1;
        if (count * scores.dim[i] > FUZZ_MASK_MOST) scores.dim[i] = 1;
        count *= scores.dim[i];
    }
    return scores;
}

static void check_matrix(const fuzz_mask *k, gr_shape scores) {
    static gr_real found[FUZZ_MASK_MOST];
    gr_tensor *m = gr_mask_matrix(ctx, k->mask, scores);
    if (!k->valid) {
        DEMAND(gr_is_inert(m));
        fuzz_expect_error(ctx);
        return;
    }
    DEMAND_SAYING(gr_ok(ctx), "%s", gr_error_message(ctx));
    DEMAND(gr_ndim(m) == scores.ndim && gr_to_array(m, found));
    for (int64_t at = 0; at < gr_numel(m); at++)
        DEMAND_SAYING(found[at] == k->see[at], "element %lld is %g", (long long)at, (double)found[at]);
}

/* A tile of the scores' matrix number which. */
typedef struct tile {
    int64_t which, i0, i1, j0, j1;
} tile;

/* exact: of a single word, nothing less may be said than is so. */
static void check_tile(const fuzz_mask *k, const gr_mask_view *at, tile t, bool exact) {
    const gr_mask_range part = gr_mask_range_of(at, t.i0, t.i1, t.j0, t.j1);
    int64_t seen = 0, inside = 0;
    DEMAND(part.from >= t.j0 && part.to <= t.j1 && part.from <= part.to);
    for (int64_t i = t.i0; i < t.i1; i++)
        for (int64_t j = t.j0; j < t.j1; j++)
            if (k->see[(t.which * at->queries + i) * at->keys + j]) seen++, inside += part.from <= j && j < part.to;
    const bool whole = seen == (t.i1 - t.i0) * (part.to - part.from);
    DEMAND(inside == seen);
    DEMAND(part.seen != GR_SEEN_ALL || whole);
    DEMAND(part.seen != GR_SEEN_NONE || (seen == 0 && part.from == part.to));
    if (exact) DEMAND((part.seen == GR_SEEN_NONE) == (seen == 0));
    if (exact && seen > 0) DEMAND((part.seen == GR_SEEN_ALL) == whole);
}

/* The rows of a tile's scores, as attention asks for them. */
static void check_rows(const fuzz_mask *k, const gr_mask_view *at, tile t) {
    gr_real allow[GR_MASK_ROW];
    for (int64_t i = t.i0; i < t.i1; i++) {
        gr_mask_row(at, i, t.j0, t.j1, allow);
        for (int64_t j = t.j0; j < t.j1; j++)
            DEMAND(allow[j - t.j0] == k->see[(t.which * at->queries + i) * at->keys + j]);
    }
}

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

/* Tiles anywhere, and all tiles of one grid. */
static void check_tiles(fuzz_bytes *in, const fuzz_mask *k, gr_shape scores) {
    const int64_t queries = scores.dim[scores.ndim - 2], keys = scores.dim[scores.ndim - 1];
    int64_t count = 1;
    for (int i = 0; i < scores.ndim; i++) count *= scores.dim[i];
    if (count == 0) return;
    const int64_t matrices = count / (queries * keys), rows = fuzz_below(in, 40) + 1, columns = fuzz_below(in, 128) + 1;
    const bool exact = k->mask.count <= 1;
    for (int n = 0; n < TILES; n++) {
        const int64_t which = fuzz_below(in, matrices), i0 = fuzz_below(in, queries), j0 = fuzz_below(in, keys);
        const int64_t i1 = smaller(queries, i0 + 1 + fuzz_below(in, 130)),
                      j1 = smaller(keys, j0 + 1 + fuzz_below(in, 128));
        const gr_mask_view at = gr_mask_view_at(&k->mask, scores, which);
        check_tile(k, &at, (tile){which, i0, i1, j0, j1}, exact);
        check_rows(k, &at, (tile){which, i0, smaller(i1, i0 + 2), j0, j1});
    }
    for (int64_t which = 0; which < matrices; which++) {
        const gr_mask_view at = gr_mask_view_at(&k->mask, scores, which);
        for (int64_t i = 0; i < queries; i += rows)
            for (int64_t j = 0; j < keys; j += columns)
                check_tile(k, &at, (tile){which, i, smaller(queries, i + rows), j, smaller(keys, j + columns)}, exact);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_bytes in = {data, data + size};
    if (!ctx) ctx = gr_context_new();
    const bool hostile = fuzz_below(&in, 4) == 1;
    const gr_shape scores = draw_scores(&in);
    const int leaves = 1 + (int)fuzz_below(&in, LEAVES);
    const fuzz_mask *k = fuzz_draw_mask(&in, ctx, scores, leaves, hostile);
    check_matrix(k, scores);
    if (k->valid) check_tiles(&in, k, scores);
    const gr_shape flat = GR_SHAPE(4);
    DEMAND(gr_is_inert(gr_mask_matrix(ctx, k->mask, flat)));
    fuzz_expect_error(ctx);
    gr_context_reset(ctx);
    return 0;
}
