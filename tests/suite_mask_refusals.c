/* Masks that cannot be are refused where they are used, in one line. */
#include "support.h"

#include <string.h>

/* Refused by all that use it, and by nothing before that. */
static void expect_refused(int line, gr_mask mask, const char *why) {
    gr_tensor *q = gr_zeros(ctx, GR_SHAPE(2, 3, 4)), *k = gr_zeros(ctx, GR_SHAPE(2, 5, 4));
    char text[256];
    ck_assert(gr_ok(ctx));
    for (int weights = 0; weights < 3; weights++) {
        gr_tensor *more = NULL;
        gr_attention_options options = {.mask = gr_mask_and(gr_mask_causal(), mask)};
        if (weights == 1) options.weights = &more;
        if (weights == 2) options.logsumexp = &more;
        ck_assert(gr_is_inert(gr_attention(q, k, k, options)) && (weights == 0 || gr_is_inert(more)));
        ck_assert_ptr_null(strchr(gr_error_message(ctx), '\n'));
        snprintf(text, sizeof text, "attention: %s", why);
        expect_error(line, text);
    }
    ck_assert(gr_is_inert(gr_mask_matrix(ctx, mask, GR_SHAPE(2, 3, 5))));
    snprintf(text, sizeof text, "mask: %s", why);
    expect_error(line, text);
}
#define EXPECT_REFUSED(mask, why) expect_refused(__LINE__, mask, why)

TEST(bad_masks_are_refused_where_they_are_used) {
    EXPECT_REFUSED(gr_mask_window(0), "a window of 0; must be at least 1");
    EXPECT_REFUSED(gr_mask_or(gr_mask_window(INT64_MIN), gr_mask_causal()), "a window of -9223372036854775808;");
    EXPECT_REFUSED(gr_mask_global(-1), "-1 global tokens; must not be negative");
    EXPECT_REFUSED(gr_mask_padding(gr_zeros(ctx, GR_SHAPE(3))), "len (3,) is not (B) for the scores (2, 3, 5)");
    EXPECT_REFUSED(gr_mask_padding(gr_zeros(ctx, GR_SHAPE(2, 1))), "len (2, 1) is not (B) for the scores (2, 3, 5)");
    gr_tensor *layout = gr_zeros(ctx, GR_SHAPE(2, 2)), *wide = gr_zeros(ctx, GR_SHAPE(2, 3));
    EXPECT_REFUSED(gr_mask_blocks(layout, 0), "blocks of 0; must be at least 1");
    EXPECT_REFUSED(gr_mask_blocks(layout, 2),
                   "layout (2, 2) has not a block of 2 for each part of the scores (2, 3, 5)");
    EXPECT_REFUSED(gr_mask_blocks(wide, 2), "layout (2, 3) has not a block of 2 for each");
    EXPECT_REFUSED(gr_mask_blocks(gr_zeros(ctx, GR_SHAPE(9)), 2), "layout (9,) has not a block of 2 for each");
    EXPECT_REFUSED(gr_mask_tensor(wide), "allow (2, 3) does not broadcast to the scores (2, 3, 5)");
    EXPECT_REFUSED(gr_mask_tensor(gr_zeros(ctx, GR_SHAPE(1, 2, 3, 5))), "allow (1, 2, 3, 5) does not broadcast");
    const char *none = "a tensor of the mask is NULL";
    EXPECT_REFUSED(gr_mask_tensor(NULL), none);
    EXPECT_REFUSED(gr_mask_padding(NULL), none);
    EXPECT_REFUSED(gr_mask_blocks(NULL, 1), none);
    gr_tensor *bad = gr_reshape(layout, GR_SHAPE(3));
    gr_error_clear(ctx);
    EXPECT_REFUSED(gr_mask_tensor(bad), "a tensor of the mask was made after an error that has been cleared since");
    gr_context *other = gr_context_new();
    EXPECT_REFUSED(gr_mask_tensor(gr_zeros(other, GR_SHAPE(3, 5))),
                   "the mask's tensor (3, 5) belongs to another context");
    gr_context_free(other);
    gr_mask_matrix(ctx, gr_mask_causal(), GR_SHAPE(3));
    EXPECT_ERROR("mask: a mask is for scores of 2 to 6 axes, not 1");
    gr_mask_matrix(ctx, gr_mask_causal(), (gr_shape){GR_MAX_DIMS + 1, {1, 1, 1, 1, 1, 1}});
    EXPECT_ERROR("mask: a mask is for scores of 2 to 6 axes, not 7");
    gr_mask_matrix(ctx, gr_mask_blocks(gr_zeros(ctx, GR_SHAPE(3, 2)), 2),
                   GR_SHAPE(6, 6)); /* columns that are missing */
    EXPECT_ERROR("layout (3, 2) has not a block of 2 for each");
    gr_mask_print(ctx, gr_mask_causal(), 2, 2, NULL);
    EXPECT_ERROR("mask: out is NULL");
    gr_mask_print(ctx, gr_mask_causal(), -1, 4, stdout);
    EXPECT_ERROR("mask: -1 queries and 4 keys cannot be drawn");
    gr_mask_print(ctx, gr_mask_window(0), 2, 2, stdout);
    EXPECT_ERROR("mask: a window of 0");
}

TEST(more_words_than_there_is_room_for_are_refused) {
    gr_mask mask = gr_mask_causal();
    for (int n = 1; n < (GR_MASK_WORDS + 1) / 2; n++)
        mask = gr_mask_and(gr_mask_window(3), mask); /* every joint waits to the last */
    EXPECT(gr_mask_matrix(ctx, mask, GR_SHAPE(2, 2)), 1, 0, 1, 1);
    EXPECT_REFUSED(gr_mask_or(gr_mask_causal(), mask), "a mask of 17 words; at most 15");
    EXPECT_REFUSED(gr_mask_or(gr_mask_or(gr_mask_causal(), mask), gr_mask_causal()), "a mask of 17 words; at most 15");
}

TEST(layouts_that_cannot_be_are_refused) {
    gr_layout_strided(ctx, 4, 0);
    EXPECT_ERROR("layout_strided: stride is 0; it must be at least 1");
    gr_layout_fixed(ctx, 4, -1);
    EXPECT_ERROR("layout_fixed: stride is -1; it must be at least 1");
    for (int bad = 0; bad < 3; bad++) {
        gr_layout_bigbird(ctx, (gr_bigbird_config){4, bad == 0 ? -1 : 1, bad == 1 ? -1 : 1, bad == 2 ? -1 : 1, &rng});
        EXPECT_ERROR("layout_bigbird: the least of window, global and random is -1; it must be at least 0");
    }
    gr_layout_bigbird(ctx, (gr_bigbird_config){4, 1, 1, 1, NULL});
    EXPECT_ERROR("layout_bigbird: rng is NULL");
    gr_layout_fixed(ctx, -1, 1);
    EXPECT_ERROR("shape (-1, -1)");
}

Suite *mask_refusals_suite(void) {
    Suite *suite = suite_create("mask_refusals");
    GROUP(suite, "masks", bad_masks_are_refused_where_they_are_used, more_words_than_there_is_room_for_are_refused,
          layouts_that_cannot_be_are_refused);
    return suite;
}
