/* lm: trains a character-level language model on a text file, and writes with it. One file a command. */
#ifndef LM_H
#define LM_H

#include "options.h"

#include <gradus.h>

#include <stdio.h>

/* The commands, each a bit, so that an option can belong to several. */
enum { LM_TRAIN = 1, LM_SAMPLE = 2 };

enum { LM_FAILED = 1, LM_USAGE = 2 }; /* exit statuses beside 0: a run-time failure, wrong usage */

struct lm_command {
    unsigned bit;
    const char *name, *summary;
    int (*run)(const lm_settings *set); /* gives the exit status */
};

int lm_train(const lm_settings *set);
int lm_sample(const lm_settings *set);

/* Prints "lm train: message" to standard error and returns LM_USAGE. */
int lm_wrong_usage(const lm_settings *set, const char *format, ...) GR_PRINTF(2, 3);

/* The end of a command: prints an error kept in the context as "lm train: message", frees it, gives the exit status. */
int lm_end(const lm_settings *set, gr_context *ctx);

/* -- Files (files.c) ----------------------------------------------------------------------------------------------- */

/* What is in the directory of --out and --model. */
#define LM_MODEL "model.safetensors"
#define LM_LOG   "log.tsv"

enum { LM_PATH = 4096 }; /* bytes of a path, NUL included */

/* "directory/name" into out; one that is too long is an error in the context. */
const char *lm_path(gr_context *ctx, char out[LM_PATH], const char *directory, const char *name);

/* Makes a directory, and those above it, where they are missing. */
bool lm_make_directory(gr_context *ctx, const char *path);

/* False, after an error, if one of the files to be written later is a directory already. */
bool lm_can_hold(gr_context *ctx, const char *directory, const char *const *names, size_t count);

/* Opens directory/name for writing; NULL after an error, kept in the context as are those of lm_close. */
FILE *lm_create(gr_context *ctx, const char *directory, const char *name);
bool lm_close(gr_context *ctx, FILE *file, const char *name);

/* -- Writing with a model (sample.c) ------------------------------------------------------------------------------- */

/* What a prompt that was not given is: a line break, or the first byte of the vocabulary when it has none. */
int32_t lm_first_id(const gr_tokenizer *tokenizer);

/* Prints the prompt and then, as they come, so many bytes more. */
void lm_continue(const lm_settings *set, gr_gpt *gpt, const gr_tokenizer *tokenizer, int64_t bytes);

/* A text to encode, and the option or file that it comes from, for messages. */
typedef struct lm_text {
    const char *origin, *bytes;
    size_t size;
} lm_text;

/* Its ids, with room for more behind them; malloc'd, NULL after an error. */
int32_t *lm_encode(gr_context *ctx, const gr_tokenizer *tokenizer, lm_text text, size_t room);

#endif
