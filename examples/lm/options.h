/* The options of lm: one table (options.c) serves parsing, checking and help. */
#ifndef LM_OPTIONS_H
#define LM_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct lm_command lm_command;

/* The value of every option, given or by default. */
typedef struct lm_settings {
    const lm_command *command;
    const char *program; /* the name it was called by */
    const char *data, *out, *model, *prompt, *attend;
    int64_t layers, heads, width, context, tokenizer;    /* tokenizer: a gr_vocab_kind */
    int64_t attention, window, global, block, positions; /* attention, positions: the number of their word */
    int64_t batch, steps, warmup, seed, threads, eval_interval, eval_batches, bytes, top_k;
    double lr, min_lr, decay, beta1, beta2, clip, dropout, temperature, top_p;
    bool quiet, profile;
} lm_settings;

typedef enum lm_kind { LM_TEXT, LM_WHOLE, LM_NUMBER, LM_CHOICE, LM_SWITCH } lm_kind;

typedef struct lm_option {
    unsigned commands; /* the bits of those that take it */
    const char *name;
    lm_kind kind;
    size_t offset;         /* in lm_settings */
    const char *otherwise; /* the default, written as a user would; NULL: must be given */
    const char *range;     /* of numbers "[0, 1)", of a choice "chars|bytes", of a text what it is: "FILE" */
    const char *unit;      /* NULL: none */
    const char *help;
} lm_option;

enum { LM_DESCRIPTION = 128 };

extern const lm_option lm_options[];
extern const size_t lm_option_count;

/* Fills *set from the words after the command's name. 0, or LM_USAGE after printing one line to standard error. */
int lm_parse(lm_settings *set, const lm_command *command, int count, char *const *words);

/* The option of a command whose name is a word, or (distance > 0) nearly one; NULL: there is none. */
const lm_option *lm_find_option(const lm_command *command, const char *word, int distance);

/* Levenshtein's distance: the fewest letters to insert, delete or replace that make b of a. */
int lm_distance(const char *a, const char *b);

/* "must be a whole number in [1, 64]": what a value of the option is, into out. */
const char *lm_describe(const lm_option *option, char out[LM_DESCRIPTION]);

void lm_help(const lm_command *commands, size_t count);
void lm_help_command(const lm_command *command);

#endif
