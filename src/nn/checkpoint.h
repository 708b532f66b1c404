/* A model in a file: safetensors, under the names and in the layouts of GPT-2's PyTorch code, with the configuration
 * and the vocabulary as metadata: the strings layers, heads, width, context, vocab, gelu ("tanh"), bias ("0" or "1"),
 * tokenizer ("chars" or "bytes"), vocabulary (its bytes in hexadecimal), and, where they are missing as in a model
 * without a choice, attention ("fused"), window, global, block and positions ("learned"). */
#ifndef GR_CHECKPOINT_H
#define GR_CHECKPOINT_H

#include "gpt.h"
#include "text.h"

/* Replaces the file at once or not at all: written beside it, flushed to the disk, renamed. False after an error. */
bool gr_gpt_save(gr_gpt *gpt, const gr_tokenizer *tokenizer, const char *path);

/* A new model with the weights of the file, without dropout, and its tokenizer (NULL: not wanted). All or nothing: a
 * file that is cut off or foreign, a tensor that is missing, too much or of another shape is an error that names it and
 * both shapes; then the context has no parameter more than before, and what it has is untouched. Never NULL. */
gr_gpt *gr_gpt_load(gr_context *ctx, const char *path, gr_tokenizer *tokenizer);

#endif
