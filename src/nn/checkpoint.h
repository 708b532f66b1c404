/* A model in a file: safetensors, under the names and in the layouts of GPT-2's PyTorch code, with the configuration
 * and the vocabulary as metadata, all of them strings:
 *
 * layers heads width context vocab   whole numbers
 * gelu                               "tanh" or "erf"
 * tokenizer, vocabulary              "chars" or "bytes", and the bytes of the ids in hexadecimal; may be missing when
 *                                    vocab is 256: then an id is its byte
 * bias                               "1" or "0"; missing: whether there is a transformer.ln_f.bias
 * attention window global block      missing: "fused"
 * positions                          "learned" (also when missing) or "rotary" */
#ifndef GR_CHECKPOINT_H
#define GR_CHECKPOINT_H

#include "gpt.h"
#include "optim.h"
#include "text.h"

/* Replaces the file at once or not at all: written beside it, flushed to the disk, renamed. False after an error; then
 * the file is as it was, and nothing is beside it (after a kill there may be: "path.XXXXXXXX.tmp", which must not be
 * too long). An older file's permissions stay. Values have the type of gr_real: F32, or F64. */
bool gr_gpt_save(gr_gpt *gpt, const gr_tokenizer *tokenizer, const char *path);

/* A new model with the weights of the file (F16, BF16, F32 or F64), without dropout, and its tokenizer (NULL: not
 * wanted). What nanoGPT's state dict has besides is understood: causal masks "attn.bias" are passed over, an
 * "lm_head.weight" must be equal to the embedding, or stand for it. All or nothing: a file that is cut off or foreign,
 * a tensor that is missing, too much or of another shape is an error that names it and both shapes; then the context
 * has no more than a model that cannot be used. Never NULL. */
gr_gpt *gr_gpt_load(gr_context *ctx, const char *path, gr_tokenizer *tokenizer);

/* The tokenizer of such a file alone. False after an error; then *out is of no byte. */
bool gr_tokenizer_load(gr_context *ctx, const char *path, gr_tokenizer *out);

/* Where a run is: steps done, the generator of its batches, its best validation loss so far, the bytes of its text (0:
 * not told), by which a later one can see that the text has changed. */
typedef struct gr_resume {
    int64_t step;
    gr_rng rng;
    double best;
    int64_t text;
} gr_resume;

/* All that a run needs to go on bit for bit, replaced at once or not at all: weights, both moments of each, the
 * optimiser's count of steps, the generators of dropout, and where it is. The model's parameters must be all that the
 * optimiser has. */
bool gr_state_save(gr_gpt *gpt, gr_adamw *adamw, gr_resume at, const char *path);

/* Puts it back into a model and an optimiser that were made with the same configuration. All or nothing; false after an
 * error that names what differs. */
bool gr_state_load(gr_gpt *gpt, gr_adamw *adamw, gr_resume *at, const char *path);

#endif
