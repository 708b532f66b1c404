/* The options of lm: one table (options.c) serves parsing, checking, help, --config files and a run's config.txt. */
#ifndef LM_OPTIONS_H
#define LM_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct lm_command lm_command;

enum { LM_MOST_OPTIONS = 96 }; /* rows of the table, at most */

/* Files, in the order they were given. */
typedef struct lm_list {
    const char **item; /* malloc'd; the names are not */
    int count;
} lm_list;

/* The value of every option, given or by default. */
typedef struct lm_settings {
    const lm_command *command;
    const char *program; /* the name it was called by */
    lm_list data;
    const char *out, *model, *prompt, *prompt_file, *attend, *validation, *stop, *text;
    const char *config, *resume, *preset;
    int64_t layers, heads, width, context, tokenizer, vocab;   /* tokenizer: a gr_vocab_kind */
    int64_t attention, window, global, block, positions, gelu; /* those of choices: the number of their word */
    int64_t batch, accumulation, steps, lr_steps, warmup, seed, threads, eval_interval, eval_batches, sample_interval;
    int64_t bytes, samples, top_k, layer, head;
    double lr, min_lr, decay, beta1, beta2, clip, dropout, temperature, top_p, validation_share;
    bool bias, quiet, profile, overwrite;
    int64_t steps_before;                  /* what the run to resume was to have; 0: as many */
    unsigned char level[LM_MOST_OPTIONS];  /* an lm_level of each row of the table: where its value comes from */
    char *text_of_config, *text_of_preset; /* malloc'd: values are pieces of them */
} lm_settings;

/* LM_LIST: files, each a value of its own. */
typedef enum lm_kind { LM_TEXT, LM_LIST, LM_WHOLE, LM_NUMBER, LM_CHOICE, LM_SWITCH } lm_kind;

/* Beside the bits of the commands that take an option: a resumed run keeps it; config.txt does not hold it; no file of
 * options may. */
enum { LM_FIXED = 1 << 16, LM_UNSAVED = 1 << 17, LM_COMMAND_LINE = 1 << 18 };

typedef struct lm_option {
    unsigned commands; /* bits */
    const char *name;
    lm_kind kind;
    size_t offset;         /* in lm_settings */
    const char *otherwise; /* the default, written as a user would; NULL: must be given */
    const char *range;     /* of numbers "[0, 1)", of a choice "chars|bytes", of a text what it is: "FILE" */
    const char *unit;      /* NULL: none */
    const char *help;
} lm_option;

enum { LM_DESCRIPTION = 128, LM_ORIGIN = 256 };

extern const lm_option lm_options[];
extern const size_t lm_option_count;

/* Where a value comes from; a higher level wins, whatever the order. */
typedef enum lm_level { LM_BY_DEFAULT, LM_BY_PRESET, LM_BY_FILE, LM_BY_COMMAND } lm_level;
typedef struct lm_source {
    lm_level level;
    const char *file; /* NULL: the command line */
    int line;
} lm_source;

/* Sets the option of that name from a text, which must outlive the settings. 0, or LM_USAGE after one line. */
int lm_set(lm_settings *set, lm_source source, const char *name, const char *text);

/* Fills *set from the words after the command's name. 0, or an exit status after one line to standard error. */
int lm_parse(lm_settings *set, const lm_command *command, int count, char *const *words);
void lm_settings_free(lm_settings *set);

/* The option of a command whose name is a word, or (distance > 0) nearly one; NULL: there is none. */
const lm_option *lm_find_option(const lm_command *command, const char *word, int distance);

/* The field of an option. */
const void *lm_value(const lm_settings *set, const lm_option *option);

/* Levenshtein's distance: the fewest letters to insert, delete or replace that make b of a. */
int lm_distance(const char *a, const char *b);

/* "a whole number in [1, 64]": what a value of the option is, into out. */
const char *lm_describe(const lm_option *option, char out[LM_DESCRIPTION]);

/* A number, choice or switch as its option would be given, into out. */
const char *lm_show(const lm_settings *set, const lm_option *option, char out[LM_DESCRIPTION]);

/* -- Files of options (config.c): "key = value" a line, "#" begins a comment; texts may stand in double quotes, with \n
 * \t \" \\ and \xHH ------------------------------------------------------------------------------------------------ */

int lm_read_config(lm_settings *set, const char *path); /* as lm_parse */
int lm_use_preset(lm_settings *set);
void lm_help_presets(void); /* what each sets */

void lm_help(const lm_command *commands, size_t count);
void lm_help_command(const lm_command *command);

#endif
