/* Pictures by gnuplot, as PNG and SVG: each has its data and its script in a directory, so that it can be drawn again.
 */
#ifndef LM_FIGURE_H
#define LM_FIGURE_H

#include "attention.h"
#include "nn/files.h"

typedef struct lm_picture {
    const char *directory, *name;
    int width, height; /* in pixels */
} lm_picture;

/* name.gp, a script that draws name.png, where this gnuplot can, and name.svg; it takes the older one's place as a
 * whole or not at all. */
typedef struct lm_script {
    gr_replacing out;
    char path[LM_PATH];
} lm_script;
void lm_begin_script(lm_script *script, gr_context *ctx, lm_picture p);
void lm_end_script(lm_script *script);

/* Runs gnuplot on name.gp of the directory. False after a warning: there is no picture. */
bool lm_draw(const lm_settings *set, const char *directory, const char *name);

/* loss.gp and its pictures: loss, learning rate and gradient norm of log.tsv, and the bigram loss as a line to compare
 * with (NaN: none). False without a picture. */
bool lm_draw_log(const lm_settings *set, gr_context *ctx, const char *directory, double bigram);

/* name.tsv, name.gp and the pictures of the heads of a view. False without a picture. */
bool lm_draw_attention(const lm_settings *set, gr_context *ctx, const char *directory, const char *name,
                       const lm_attention *a, lm_view view);

/* attention.* of the head that looks most for content, into --out; the ids are n at most the context; nothing for a
 * model that has no weights. */
void lm_draw_one_head(const lm_settings *set, gr_gpt *gpt, const gr_tokenizer *tokenizer, const int32_t *ids,
                      int64_t n);

#endif
