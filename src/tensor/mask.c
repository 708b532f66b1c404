#include "mask_tile.h"
#include "internal.h"

#include <string.h>

/* -- Building ------------------------------------------------------------------------------------------------------ */

static gr_mask word(int kind, int64_t number, gr_tensor *tensor) { return (gr_mask){1, {{kind, number, tensor}}}; }

gr_mask gr_mask_all(void) { return (gr_mask){0}; }
gr_mask gr_mask_causal(void) { return word(GR_MASK_CAUSAL, 0, NULL); }
gr_mask gr_mask_window(int64_t w) { return word(GR_MASK_WINDOW, w, NULL); }
gr_mask gr_mask_global(int64_t g) { return word(GR_MASK_GLOBAL, g, NULL); }
gr_mask gr_mask_padding(gr_tensor *len) { return word(GR_MASK_PADDING, 0, len ? len : gr_inert(NULL)); }
gr_mask gr_mask_blocks(gr_tensor *layout, int64_t block) {
    return word(GR_MASK_BLOCKS, block, layout ? layout : gr_inert(NULL));
}
gr_mask gr_mask_tensor(gr_tensor *allow) { return word(GR_MASK_TENSOR, 0, allow ? allow : gr_inert(NULL)); }

static gr_mask join(gr_mask a, gr_mask b, int how) {
    if (a.count + b.count + 1 > GR_MASK_WORDS) return word(GR_MASK_TOO_LONG, a.count + b.count + 1, NULL);
    memcpy(a.word + a.count, b.word, (size_t)b.count * sizeof *b.word);
    a.count += b.count;
    a.word[a.count++] = (struct gr_mask_word){how, 0, NULL};
    return a;
}

gr_mask gr_mask_and(gr_mask a, gr_mask b) { return a.count == 0 ? b : b.count == 0 ? a : join(a, b, GR_MASK_AND); }
gr_mask gr_mask_or(gr_mask a, gr_mask b) { return a.count == 0 ? a : b.count == 0 ? b : join(a, b, GR_MASK_OR); }

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t parts(int64_t n, int64_t size) { return n / size + (n % size != 0); }

/* -- Checking ------------------------------------------------------------------------------------------------------ */

static int64_t matrices(gr_shape scores) {
    scores.ndim -= 2;
    return gr_shape_numel(scores);
}

static bool check_tensor(gr_context *ctx, const char *where, const struct gr_mask_word *w, gr_shape scores) {
    gr_tensor *x = w->tensor;
    const int64_t keys = scores.dim[scores.ndim - 1]; /* and positions at which a query sees any */
    gr_shape common;
    if (!x || !x->ctx->kernels) /* or made of NULL */
        gr_fail(ctx, where, "a tensor of the mask is NULL");
    else if (x->ctx != ctx)
        gr_fail(ctx, where, "%s belongs to another context", gr_show(x, "the mask's tensor"));
    else if (!gr_check_alive(x, where, "a tensor of the mask"))
        return false;
    else if (w->kind == GR_MASK_TENSOR &&
             (!gr_shape_broadcast(x->shape, scores, &common) || !gr_shape_equal(common, scores)))
        gr_fail(ctx, where, "%s does not broadcast to the scores %s", gr_show(x, "allow"), gr_show_shape(ctx, scores));
    else if (w->kind == GR_MASK_PADDING &&
             (x->shape.ndim != 1 || x->shape.dim[0] != (scores.ndim > 2 ? scores.dim[0] : 1)))
        gr_fail(ctx, where, "%s is not (B) for the scores %s", gr_show(x, "len"), gr_show_shape(ctx, scores));
    else if (w->kind == GR_MASK_BLOCKS && w->number < 1)
        gr_fail(ctx, where, "blocks of %lld; must be at least 1", (long long)w->number);
    else if (w->kind == GR_MASK_BLOCKS && (x->shape.ndim != 2 || x->shape.dim[0] < parts(keys, w->number) ||
                                           x->shape.dim[1] < parts(keys, w->number)))
        gr_fail(ctx, where, "%s has not a block of %lld for each part of the scores %s", gr_show(x, "layout"),
                (long long)w->number, gr_show_shape(ctx, scores));
    return gr_ok(ctx);
}

bool gr_mask_check(gr_context *ctx, const char *where, const gr_mask *mask, gr_shape scores) {
    if (gr_ok(ctx) && (scores.ndim < 2 || scores.ndim > GR_MAX_DIMS))
        gr_fail(ctx, where, "a mask is for scores of 2 to %d axes, not %d", GR_MAX_DIMS, scores.ndim);
    for (int n = 0; n < mask->count && gr_ok(ctx); n++) {
        const struct gr_mask_word *w = &mask->word[n];
        if (w->kind == GR_MASK_TOO_LONG)
            gr_fail(ctx, where, "a mask of %lld words; at most %d", (long long)w->number, GR_MASK_WORDS);
        else if (w->kind == GR_MASK_WINDOW && w->number < 1)
            gr_fail(ctx, where, "a window of %lld; must be at least 1", (long long)w->number);
        else if (w->kind == GR_MASK_GLOBAL && w->number < 0)
            gr_fail(ctx, where, "%lld global tokens; must not be negative", (long long)w->number);
        else if (w->kind == GR_MASK_PADDING || w->kind == GR_MASK_BLOCKS || w->kind == GR_MASK_TENSOR)
            check_tensor(ctx, where, w, scores);
    }
    return gr_ok(ctx);
}

/* -- Layouts ------------------------------------------------------------------------------------------------------- */

static gr_tensor *new_layout(gr_context *ctx, const char *where, int64_t blocks, int64_t value, int64_t least,
                             const char *what) {
    if (gr_ok(ctx) && value < least)
        gr_fail(ctx, where, "%s is %lld; it must be at least %lld", what, (long long)value, (long long)least);
    return gr_zeros(ctx, GR_SHAPE(blocks, blocks));
}

static int64_t apart(int64_t i, int64_t j) { return i > j ? i - j : j - i; }

gr_tensor *gr_layout_strided(gr_context *ctx, int64_t blocks, int64_t stride) {
    gr_tensor *x = new_layout(ctx, "layout_strided", blocks, stride, 1, "stride");
    if (gr_is_inert(x)) return x;
    for (int64_t i = 0; i < blocks; i++)
        for (int64_t j = 0; j < blocks; j++)
            x->data[i * blocks + j] = apart(i, j) < stride || apart(i, j) % stride == 0;
    return x;
}

gr_tensor *gr_layout_fixed(gr_context *ctx, int64_t blocks, int64_t stride) {
    gr_tensor *x = new_layout(ctx, "layout_fixed", blocks, stride, 1, "stride");
    if (gr_is_inert(x)) return x;
    for (int64_t i = 0; i < blocks; i++)
        for (int64_t j = 0; j < blocks; j++)
            x->data[i * blocks + j] = i / stride == j / stride || j % stride == stride - 1;
    return x;
}

gr_tensor *gr_layout_bigbird(gr_context *ctx, gr_bigbird_config c) {
    const int64_t least = smaller(c.window, smaller(c.global, c.random));
    if (gr_ok(ctx) && !c.rng) gr_fail(ctx, "layout_bigbird", "rng is NULL");
    gr_tensor *x = new_layout(ctx, "layout_bigbird", c.blocks, least, 0, "the least of window, global and random");
    if (gr_is_inert(x)) return x;
    for (int64_t i = 0; i < c.blocks; i++) {
        gr_real *row = x->data + i * c.blocks;
        for (int64_t j = 0; j < c.blocks; j++) row[j] = apart(i, j) <= c.window / 2 || i < c.global || j < c.global;
        for (int64_t n = 0; n < c.random; n++) row[gr_rng_below(c.rng, (uint64_t)c.blocks)] = 1;
    }
    return x;
}

/* -- Showing ------------------------------------------------------------------------------------------------------- */

gr_tensor *gr_mask_matrix(gr_context *ctx, gr_mask mask, gr_shape scores) {
    if (!gr_mask_check(ctx, "mask", &mask, scores)) return gr_inert(ctx);
    gr_tensor *m = gr_new(ctx, "mask", false, scores);
    if (gr_is_inert(m) || gr_numel(m) == 0) return m;
    const int64_t queries = gr_dim(m, -2), keys = gr_dim(m, -1);
    gr_real *row = m->data;
    for (int64_t matrix = 0; matrix < matrices(scores); matrix++) {
        const gr_mask_view at = gr_mask_view_at(&mask, scores, matrix);
        for (int64_t i = 0; i < queries; i++, row += keys)
            for (int64_t j = 0; j < keys; j += GR_MASK_ROW)
                gr_mask_row(&at, i, j, smaller(keys, j + GR_MASK_ROW), row + j);
    }
    return m;
}

enum { PRINTED_COLUMNS = 80, PRINTED_ROWS = 40 }; /* of a terminal */

/* i * of / count, which may be more than an int64_t on the way. */
static int64_t sample(int64_t i, int64_t of, int64_t count) { return i * (of / count) + i * (of % count) / count; }

void gr_mask_print(gr_context *ctx, gr_mask mask, int64_t queries, int64_t keys, FILE *out) {
    gr_shape scores = GR_SHAPE(queries, keys);
    if (!out) gr_fail(ctx, "mask", "out is NULL");
    if (queries < 0 || keys < 0)
        gr_fail(ctx, "mask", "%lld queries and %lld keys cannot be drawn", (long long)queries, (long long)keys);
    if (!gr_mask_check(ctx, "mask", &mask, scores)) return;
    const gr_mask_view at = gr_mask_view_at(&mask, scores, 0);
    const int64_t columns = smaller(keys, PRINTED_COLUMNS), rows = smaller(queries, PRINTED_ROWS);
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t c = 0; c < columns; c++) {
            gr_real allow;
            const int64_t j = sample(c, keys, columns);
            gr_mask_row(&at, sample(r, queries, rows), j, j + 1, &allow);
            fputc(allow != 0 ? '#' : '.', out);
        }
        fputc('\n', out);
    }
}
