#include "fused_support.h"

attended attend(gr_tensor *const in[INPUTS], view *const through[INPUTS], gr_attention_options options,
                gr_tensor *seed) {
    gr_tensor *x[INPUTS], *seen[INPUTS];
    gr_rng same = options.rng ? *options.rng : (gr_rng){0};
    if (options.rng) options.rng = &same;
    for (int n = 0; n < INPUTS; n++) x[n] = gr_requires_grad(gr_detach(in[n]));
    for (int n = 0; n < INPUTS; n++) seen[n] = through[n] ? through[n](x[n]) : x[n];
    attended a = {.y = gr_attention(seen[Q], seen[K], seen[V], options)};
    ck_assert_msg(gr_ok(ctx), "%s", gr_error_message(ctx));
    if (seed)
        ck_assert(gr_backward_from(a.y, seed));
    else
        backward_at_random(a.y);
    for (int n = 0; n < INPUTS; n++) a.gradient[n] = gr_grad(x[n]);
    return a;
}

gr_tensor *sparse(gr_shape shape, int64_t odds) {
    gr_tensor *x = gr_zeros(ctx, shape);
    for (int64_t i = 0; i < gr_numel(x); i++) gr_data(x)[i] = below(10) < odds;
    return x;
}

enum { WORDS = 7 };
static gr_mask draw_word(gr_shape scores, int word) {
    const int64_t queries = scores.dim[scores.ndim - 2], keys = scores.dim[scores.ndim - 1], block = 1 + below(70);
    const int64_t blocks = (queries > keys ? queries : keys) / block + 1;
    gr_tensor *len = gr_zeros(ctx, GR_SHAPE(scores.ndim > 2 ? scores.dim[0] : 1));
    for (int64_t b = 0; b < gr_numel(len); b++) gr_data(len)[b] = (gr_real)below(keys + 1);
    switch (word) {
    case 0:
        return gr_mask_all();
    case 1:
        return gr_mask_causal();
    case 2:
        return gr_mask_window(1 + below(below(2) ? 9 : keys));
    case 3:
        return gr_mask_global(below(4));
    case 4:
        return gr_mask_padding(len);
    case 5:
        return gr_mask_blocks(sparse(GR_SHAPE(blocks, blocks), 1 + below(9)), block);
    default:
        return gr_mask_tensor(sparse(below(2) ? scores : GR_SHAPE(queries, keys), 1 + below(9)));
    }
}

gr_mask draw_mask(gr_shape scores) {
    gr_mask mask = draw_word(scores, (int)below(WORDS));
    for (int64_t more = below(3); more > 0; more--)
        mask = (below(2) ? gr_mask_and : gr_mask_or)(draw_word(scores, (int)below(WORDS)), mask);
    return mask;
}
