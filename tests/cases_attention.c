/* Ops of attention: chunks and their edges, queries and keys of different number, heads as views. */
#include "cases.h"

static gr_tensor *linear_over_all(gr_tensor *q, gr_tensor *k, gr_tensor *v) {
    return gr_linear_attention(q, k, v, false);
}
static gr_tensor *linear_causal(gr_tensor *q, gr_tensor *k, gr_tensor *v) { return gr_linear_attention(q, k, v, true); }
static gr_tensor *linear_of_same(const gradient_case *c, gr_tensor **x) {
    return gr_linear_attention(x[0], x[0], x[0], c->number != 0);
}

/* Fused attention under mask number c->number; with dropout the generator begins anew in each call. */
enum { OPEN, BEFORE, NEAR, FIRST_TOO, IN_BLOCKS, DROPPED, BLIND_ROW, SCALED_UP };
static gr_tensor *attention(const gradient_case *c, gr_tensor **x) {
    gr_context *ctx = gr_context_of(x[0]);
    gr_rng seven = gr_rng_seed(7);
    gr_attention_options o = {.rng = &seven};
    gr_tensor *but_first = gr_full(ctx, GR_SHAPE(gr_dim(x[0], -2), 1), 1); /* (Tq, 1) */
    switch ((int)c->number) {
    case BEFORE:
        o.mask = gr_mask_causal();
        break;
    case NEAR:
        o.mask = gr_mask_and(gr_mask_causal(), gr_mask_window(2));
        break;
    case FIRST_TOO:
        o.mask = gr_mask_or(gr_mask_window(1), gr_mask_global(1));
        break;
    case IN_BLOCKS:
        o.mask = gr_mask_blocks(gr_layout_fixed(ctx, 4, 2), 2);
        break;
    case DROPPED:
        o.mask = gr_mask_causal(), o.dropout = 0.3;
        break;
    case BLIND_ROW:
        if (!gr_is_inert(but_first)) gr_data(but_first)[0] = 0;
        o.mask = gr_mask_tensor(but_first);
        break;
    case SCALED_UP:
        o.scale = -1.5;
        break;
    default:
        break;
    }
    return gr_attention(x[0], x[1], x[2], o);
}
static gr_tensor *attention_of_same(const gradient_case *c, gr_tensor **x) {
    return attention(c, (gr_tensor *[]){x[0], x[0], x[0]});
}

/* clang-format off */
#define ATTENTION(kind) .apply = attention, .number = kind
#define ALL_KEYS      THREE(linear_over_all)
#define CAUSAL        THREE(linear_causal)
#define ROTARY        TWO(gr_rotary)
#define KINKED(...)   OPERAND(AWAY, WHOLE, __VA_ARGS__) /* elu bends at 0 */
#define BENT(as, ...) OPERAND(AWAY, as, __VA_ARGS__)

static const gradient_case cases[] = {
    CASE(attention, "1 x 1",                            ATTENTION(OPEN), ON(IN(1, 1), IN(1, 1), IN(1, 1))),
    CASE(attention, "queries and keys differ",          ATTENTION(OPEN), ON(IN(3, 2), IN(5, 2), IN(5, 4))),
    CASE(attention, "batch and heads",                  ATTENTION(OPEN), ON(IN(2, 3, 2, 3), IN(2, 3, 4, 3), IN(2, 3, 4, 2))),
    CASE(attention, "another scale",                    ATTENTION(SCALED_UP), ON(IN(3, 2), IN(4, 2), IN(4, 2))),
    CASE(attention, "no keys",                          ATTENTION(OPEN), ON(IN(2, 3), IN(0, 3), IN(0, 2))),
    CASE(attention, "no queries",                       ATTENTION(OPEN), ON(IN(0, 3), IN(2, 3), IN(2, 2))),
    CASE(attention, "no width",                         ATTENTION(OPEN), ON(IN(2, 0), IN(2, 0), IN(2, 2))),
    CASE(attention, "two tiles",                        ATTENTION(BEFORE), ON(IN(130, 1), IN(129, 1), IN(129, 1))),
    CASE(attention, "causal",                           ATTENTION(BEFORE), ON(IN(5, 3), IN(5, 3), IN(5, 2))),
    CASE(attention, "causal, more keys",                ATTENTION(BEFORE), ON(IN(3, 2), IN(5, 2), IN(5, 4))),
    CASE(attention, "causal, more queries",             ATTENTION(BEFORE), ON(IN(5, 2), IN(3, 2), IN(3, 4))),
    CASE(attention, "window",                           ATTENTION(NEAR), ON(IN(2, 5, 2), IN(2, 5, 2), IN(2, 5, 2))),
    CASE(attention, "window and global",                ATTENTION(FIRST_TOO), ON(IN(5, 2), IN(6, 2), IN(6, 2))),
    CASE(attention, "blocks",                           ATTENTION(IN_BLOCKS), ON(IN(7, 2), IN(7, 2), IN(7, 2))),
    CASE(attention, "dropout",                          ATTENTION(DROPPED), ON(IN(2, 5, 2), IN(2, 5, 2), IN(2, 5, 2))),
    CASE(attention, "a row wholly masked",              ATTENTION(BLIND_ROW), ON(IN(4, 2), IN(3, 2), IN(3, 2))),
    CASE(attention, "views",                            ATTENTION(BEFORE), ON(SEEN(TRANSPOSED, 2, 3, 4), SEEN(SLICED, 2, 5, 4), SEEN(ROTATED, 2, 5, 2))),
    CASE(attention, "expanded",                         ATTENTION(BEFORE), ON(SEEN(EXPANDED, 2, 3, 2), SEEN(SPREAD, 2, 3, 2), SEEN(EXPANDED, 2, 3, 2))),
    CASE(attention, "twice",                            ATTENTION(BEFORE), TWICE, ON(IN(3, 2), IN(3, 2), IN(3, 2))),
    CASE(attention, "of x, x and x",                    .apply = attention_of_same, .number = BEFORE, ON(IN(4, 3))),
    CASE(attention, "only q",                           ATTENTION(BEFORE), ON(IN(3, 2), CONSTANT(4, 2), CONSTANT(4, 2))),
    CASE(attention, "only k",                           ATTENTION(BEFORE), ON(CONSTANT(3, 2), IN(4, 2), CONSTANT(4, 2))),
    CASE(attention, "only v",                           ATTENTION(BEFORE), ON(CONSTANT(3, 2), CONSTANT(4, 2), IN(4, 2))),

    CASE(linear_attention, "1 x 1",                     ALL_KEYS, ON(KINKED(1, 1), KINKED(1, 1), IN(1, 1))),
    CASE(linear_attention, "queries and keys differ",   ALL_KEYS, ON(KINKED(3, 2), KINKED(5, 2), IN(5, 4))),
    CASE(linear_attention, "batch and heads",           ALL_KEYS, ON(KINKED(2, 3, 2, 3), KINKED(2, 3, 4, 3),
                                                                     IN(2, 3, 4, 2))),
    CASE(linear_attention, "two chunks",                ALL_KEYS, ON(KINKED(66, 1), KINKED(65, 1), IN(65, 1))),
    CASE(linear_attention, "views",                     ALL_KEYS, ON(BENT(TRANSPOSED, 2, 3, 4), BENT(SLICED, 2, 5, 4),
                                                                     SEEN(ROTATED, 2, 5, 2))),
    CASE(linear_attention, "twice",                     ALL_KEYS, TWICE, ON(KINKED(3, 2), KINKED(2, 2), IN(2, 2))),
    CASE(linear_attention, "of x, x and x",             .apply = linear_of_same, ON(KINKED(4, 3))),
    CASE(linear_attention, "no keys",                   ALL_KEYS, ON(KINKED(2, 3), KINKED(0, 3), IN(0, 2))),
    CASE(linear_attention, "no queries",                ALL_KEYS, ON(KINKED(0, 3), KINKED(2, 3), IN(2, 2))),
    CASE(linear_attention, "no width",                  ALL_KEYS, ON(KINKED(2, 0), KINKED(2, 0), IN(2, 2))),
    CASE(linear_attention, "causal, 1 x 1",             CAUSAL, ON(KINKED(1, 1), KINKED(1, 1), IN(1, 1))),
    CASE(linear_attention, "causal, square",            CAUSAL, ON(KINKED(5, 3), KINKED(5, 3), IN(5, 2))),
    CASE(linear_attention, "causal, more keys",         CAUSAL, ON(KINKED(3, 2), KINKED(5, 2), IN(5, 4))),
    CASE(linear_attention, "causal, more queries",      CAUSAL, ON(KINKED(5, 2), KINKED(3, 2), IN(3, 4))),
    CASE(linear_attention, "causal, batch and heads",   CAUSAL, ON(KINKED(2, 3, 3, 2), KINKED(2, 3, 3, 2),
                                                                   IN(2, 3, 3, 2))),
    CASE(linear_attention, "causal, two chunks",        CAUSAL, ON(KINKED(65, 1), KINKED(65, 1), IN(65, 1))),
    CASE(linear_attention, "causal, a chunk of past",   CAUSAL, ON(KINKED(2, 1), KINKED(67, 1), IN(67, 2))),
    CASE(linear_attention, "causal, a chunk is blind",  CAUSAL, ON(KINKED(66, 1), KINKED(2, 1), IN(2, 2))),
    CASE(linear_attention, "causal, views",             CAUSAL, ON(BENT(SPACED, 2, 4, 3), BENT(ROTATED, 2, 4, 3),
                                                                   SEEN(TRANSPOSED, 2, 4, 2))),
    CASE(linear_attention, "causal, expanded",          CAUSAL, ON(BENT(EXPANDED, 2, 3, 2), BENT(SPREAD, 2, 3, 2),
                                                                   SEEN(EXPANDED, 2, 3, 2))),
    CASE(linear_attention, "causal, twice",             CAUSAL, TWICE, ON(KINKED(3, 2), KINKED(3, 2), IN(3, 2))),
    CASE(linear_attention, "causal, of x, x and x",     .apply = linear_of_same, .number = 1, ON(KINKED(4, 3))),
    CASE(linear_attention, "only q",                    CAUSAL, ON(KINKED(3, 2), CONSTANT(4, 2), CONSTANT(4, 2))),
    CASE(linear_attention, "only k",                    CAUSAL, ON(CONSTANT(3, 2), KINKED(4, 2), CONSTANT(4, 2))),
    CASE(linear_attention, "only v",                    CAUSAL, ON(CONSTANT(3, 2), CONSTANT(4, 2), IN(4, 2))),

    CASE(rotary, "one pair",                            ROTARY, ON(IN(1, 2), CONSTANT(1, 2))),
    CASE(rotary, "matrix",                              ROTARY, ON(IN(3, 6), CONSTANT(3, 6))),
    CASE(rotary, "batch and heads",                     ROTARY, ON(IN(2, 3, 4, 4), CONSTANT(4, 4))),
    CASE(rotary, "x transposed",                        ROTARY, ON(SEEN(TRANSPOSED, 2, 3, 4), CONSTANT(3, 4))),
    CASE(rotary, "x rotated",                           ROTARY, ON(SEEN(ROTATED, 2, 3, 4), CONSTANT(3, 4))),
    CASE(rotary, "both sliced",                         ROTARY, ON(SEEN(SLICED, 3, 4), OPERAND(FIXED, SLICED, 3, 4))),
    CASE(rotary, "x expanded, table spread",            ROTARY, ON(SEEN(EXPANDED, 2, 3, 4),
                                                                   OPERAND(FIXED, SPREAD, 3, 4))),
    CASE(rotary, "twice",                               ROTARY, TWICE, ON(SEEN(SPACED, 3, 2), CONSTANT(3, 2))),
    CASE(rotary, "no rows",                             ROTARY, ON(IN(2, 0, 4), CONSTANT(0, 4))),
};
/* clang-format on */

const case_list attention_cases = CASE_LIST(cases);
