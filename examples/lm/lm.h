/* lm: trains a byte-level language model on text files, and works with it. One file a command. */
#ifndef LM_H
#define LM_H

#include "options.h"

#include <gradus.h>

#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>

/* The commands, each a bit, so that an option can belong to several. */
enum { LM_TRAIN = 1, LM_SAMPLE = 2, LM_EVAL = 4, LM_ATTEND = 8, LM_PLOT = 16, LM_INFO = 32, LM_LOGITS = 64 };

enum { LM_FAILED = 1, LM_USAGE = 2 }; /* exit statuses beside 0: a run-time failure, wrong usage */

struct lm_command {
    unsigned bit;
    const char *name, *summary, *example;
    int (*run)(const lm_settings *set); /* gives the exit status */
};

int lm_train(const lm_settings *set);
extern volatile sig_atomic_t lm_stopped; /* the signal that has stopped a training: a sample ends, too */
int lm_sample(const lm_settings *set);
int lm_eval(const lm_settings *set);
int lm_attend(const lm_settings *set);
int lm_plot(const lm_settings *set);
int lm_info(const lm_settings *set);
int lm_logits(const lm_settings *set);

/* Print "lm train: message" to standard error, as one line whatever is in it; the statuses LM_USAGE and LM_FAILED. */
int lm_wrong_usage(const lm_settings *set, const char *format, ...) GR_PRINTF(2, 3);
int lm_failed(const lm_settings *set, const char *format, ...) GR_PRINTF(2, 3);
void lm_warn(const lm_settings *set, const char *format, ...) GR_PRINTF(2, 3);

/* The end of a command: prints an error kept in the context as "lm train: message", frees it, gives the exit status. */
int lm_end(const lm_settings *set, gr_context *ctx);

/* -- Files (files.c) ----------------------------------------------------------------------------------------------- */

/* What is in a run's directory, --out of train and --model of the others: the best weights, the last ones, all that a
 * run needs to go on, its options, a row for each step. */
#define LM_MODEL  "model.safetensors"
#define LM_LAST   "last.safetensors"
#define LM_STATE  "state.safetensors"
#define LM_CONFIG "config.txt"
#define LM_LOG    "log.tsv"
#define LM_NEW    ".new" /* behind the name of a file until it takes the old one's place */

enum { LM_PATH = 4096 }; /* bytes of a path, NUL included */

/* "directory/name" into out; one that is too long is an error in the context. */
const char *lm_path(gr_context *ctx, char out[LM_PATH], const char *directory, const char *name);

const char *lm_shown(const char *path); /* "-": "standard input" */
bool lm_is_file(const char *input);     /* neither "-" nor "", an option that was not given */

/* Is it there, a directory, the same one, there in a directory? False and an error if the system cannot tell. */
bool lm_look_at(gr_context *ctx, const char *path, struct stat *info);
bool lm_is_directory(gr_context *ctx, const char *path);
bool lm_same_file(gr_context *ctx, const char *a, const char *b);
bool lm_exists(gr_context *ctx, const char *directory, const char *name);

/* An error if a directory, which is there, does not have the file that makes it one with a model, say. */
void lm_check_holds(gr_context *ctx, const char *directory, const char *what, const char *name);

/* The directory that a model is in: itself, or that of a file, into out. */
const char *lm_home(gr_context *ctx, const char *model, char out[LM_PATH]);

/* A path as a POSIX shell reads it, for a command to be copied: as it is, or in single quotes; into out. */
const char *lm_quoted(char out[LM_PATH], const char *path);

/* Makes a directory, and those above it, where they are missing. */
bool lm_make_directory(gr_context *ctx, const char *path);

/* Has a training that was killed while it wrote left this entry of its directory? */
bool lm_is_leftover(const char *entry);

/* Would this file be replaced if commands (bits) wrote all their files into a directory? */
bool lm_writes(gr_context *ctx, unsigned commands, const char *directory, const char *file);

/* An error if the command at hand would replace a file that it reads, and (false) if one of those that it writes is a
 * directory or a device already. */
void lm_spare(gr_context *ctx, const lm_settings *set, const char *directory, const char *input);
bool lm_can_write(gr_context *ctx, const lm_settings *set, const char *directory);

/* config.txt under a name: every option of a training, as lm_read_config reads it; replaced at once or not at all. */
void lm_write_config(gr_context *ctx, const lm_settings *set, const char *name);

/* A file of a run, to be read; NULL where there is none, or after an error: a pipe of its name would never open. */
FILE *lm_open(gr_context *ctx, const char *path);

/* A whole file, "-" standard input, NUL behind it; malloc'd, NULL after an error. */
char *lm_read(gr_context *ctx, const char *path, size_t *size);

/* -- Models and texts (model.c) ------------------------------------------------------------------------------------ */

/* The model of the options, for so many tokens. */
gr_gpt_config lm_gpt_config(const lm_settings *set, int64_t vocab);

/* 0, or LM_USAGE after a line on options of the model that do not go together. */
int lm_check_model(const lm_settings *set);

/* The best model of a run's directory, or that of a file; not training. The tokenizer may be NULL: not wanted. */
gr_gpt *lm_load(gr_context *ctx, const char *model, gr_tokenizer *tokenizer);

/* The place of the first element of x, contiguous, that is not finite; -1: there is none. */
int64_t lm_first_broken(gr_tensor *x);

/* A text to encode, and the option or file that it comes from, for messages. */
typedef struct lm_text {
    const char *origin, *bytes;
    size_t size;
    char *owned; /* to be freed */
} lm_text;

/* --prompt, or what --prompt-file holds, "-" standard input. */
lm_text lm_prompt(gr_context *ctx, const lm_settings *set);
int lm_check_prompt(const lm_settings *set, bool needed); /* 0, or LM_USAGE after one line */

/* Its ids, with room for `room` more behind them and another one: a text that is empty is continued from some first id.
 * malloc'd, NULL after an error. */
int32_t *lm_encode(gr_context *ctx, const gr_tokenizer *tokenizer, lm_text text, size_t room);

/* -- Writing with a model (sample.c) ------------------------------------------------------------------------------- */

/* Prints the prompt and then, as they come, --bytes more, drawn by a generator that moves on. */
void lm_continue(const lm_settings *set, gr_gpt *gpt, const gr_tokenizer *tokenizer, lm_text prompt, gr_rng *rng);
gr_rng lm_sample_rng(const lm_settings *set); /* the generator of texts: a stream of the seed */

/* Columns of the terminal that a descriptor is open on; 80 if it tells none (terminal.c). */
int lm_columns(int descriptor);

#endif
