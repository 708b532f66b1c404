/* A model's configuration as the notes of a file. */
#ifndef GR_CONFIGURATION_H
#define GR_CONFIGURATION_H

#include "gpt.h"
#include "safetensors.h"

enum { GR_CONFIGURATION_NOTES = 12 };

/* What the notes say of a model with seed and dropout 0; an error that names the note if they say none. */
gr_gpt_config gr_configuration_read(const gr_safetensors *in);
/* Texts live until gr_context_reset. */
void gr_configuration_write(gr_context *ctx, gr_gpt_config config, gr_note out[GR_CONFIGURATION_NOTES]);

/* A note that must be there, "" after an error, and one that must be a number in [low, high]. */
const char *gr_note_text(const gr_safetensors *in, const char *key);
int64_t gr_note_number(const gr_safetensors *in, const char *key, int64_t low, int64_t high);

/* printf into a text of the step; "" after an error. */
const char *gr_text(gr_context *ctx, const char *format, ...) GR_PRINTF(2, 3);

#endif
