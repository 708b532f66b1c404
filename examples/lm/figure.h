/* Pictures by gnuplot: each has its data and its script in the output directory, so that it can be drawn again. */
#ifndef LM_FIGURE_H
#define LM_FIGURE_H

#include "lm.h"

/* The script's first lines: PNG where this gnuplot can, else SVG, as name.png or name.svg. */
void lm_write_terminal(FILE *script, const char *name, int width, int height);

/* loss.gp: the losses of log.tsv, and the bigram loss as a line to compare with. */
void lm_write_loss_script(const lm_settings *set, gr_context *ctx, double bigram);

/* attention.tsv and attention.gp: what the head that looks most for content does with n ids, n at most the
 * context. */
void lm_write_attention(const lm_settings *set, gr_gpt *gpt, const gr_tokenizer *tokenizer, const int32_t *ids,
                        int64_t n);

/* Runs gnuplot on name.gp of the output directory; without gnuplot prints a warning and gives false. */
bool lm_draw(const lm_settings *set, const char *name);

#endif
