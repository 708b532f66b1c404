#include "lm.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define AT(field) offsetof(lm_settings, field)

/* Commands that share options: those that hold a model's shape, that train, that read a model, that write text. */
enum {
    SHAPE = LM_TRAIN | LM_INFO,
    READER = LM_SAMPLE | LM_EVAL | LM_ATTEND | LM_LOGITS,
    WRITER = LM_TRAIN | LM_SAMPLE,
    FIXED = SHAPE | LM_FIXED,
    RUNNER = LM_TRAIN | READER | LM_INFO,
    NOTED = LM_TRAIN | LM_UNSAVED,
};

/* clang-format off */
const lm_option lm_options[] = {
    {LM_TRAIN | LM_EVAL, "data", LM_LIST,   AT(data),          NULL,    "FILE...",      NULL,       "text; several files are one text, - is standard input"},
    {LM_TRAIN,  "validation",    LM_TEXT,   AT(validation),    "",      "FILE",         NULL,       "text to validate with; else the end of the data"},
    {LM_TRAIN,  "validation-share", LM_NUMBER, AT(validation_share), "0.1", "(0, 1)",   NULL,       "of the data, at its end, that is for validation"},
    {LM_EVAL,   "validation-share", LM_NUMBER, AT(validation_share), "0", "[0, 1)",     NULL,       "measure only this share, at the end of the data; 0 measures all"},
    {LM_TRAIN,  "out",           LM_TEXT,   AT(out),           NULL,    "DIR",          NULL,       "where the weights, the log and the pictures go"},
    {NOTED | LM_COMMAND_LINE, "resume", LM_TEXT, AT(resume),       "",      "DIR",          NULL,       "go on with the run in DIR, by its config.txt; --steps may grow"},
    {NOTED | LM_COMMAND_LINE, "overwrite", LM_SWITCH, AT(overwrite), "no", "no|yes", NULL, "replace the training that --out holds"},
    {SHAPE | LM_UNSAVED | LM_COMMAND_LINE, "config", LM_TEXT, AT(config),       "",      "FILE",         NULL,       "options from a file of lines \"width = 64\"; those given here win"},
    {SHAPE | LM_UNSAVED, "preset", LM_TEXT, AT(preset),        "",      "tiny|shakespeare|small", NULL, "other defaults, which take seconds, a minute or two, hours"},
    {READER,    "model",         LM_TEXT,   AT(model),         NULL,    "DIR",          NULL,       "what lm train wrote: the directory, or a file of weights"},
    {LM_PLOT,   "model",         LM_TEXT,   AT(model),         NULL,    "DIR",          NULL,       "the directory that lm train wrote to; it has log.tsv"},
    {LM_INFO,   "model",         LM_TEXT,   AT(model),         "",      "DIR",          NULL,       "a run's directory, or a file of weights; else the options are told of"},
    {LM_LOGITS, "text",          LM_TEXT,   AT(text),          NULL,    "FILE",         NULL,       "the text, of which as much counts as the context is long; - is standard input"},
    {LM_LOGITS, "out",           LM_TEXT,   AT(out),           NULL,    "FILE",         NULL,       "safetensors to write: ids (T) and logits (T, V)"},
    {FIXED,     "layers",        LM_WHOLE,  AT(layers),        "4",     "[1, 1000]",    NULL,       "blocks of attention and MLP"},
    {FIXED,     "heads",         LM_WHOLE,  AT(heads),         "4",     "[1, 1000]",    NULL,       "attention heads of a block; they divide the width"},
    {FIXED,     "width",         LM_WHOLE,  AT(width),         "128",   "[1, 65536]",   NULL,       "numbers that stand for a token between blocks"},
    {FIXED,     "context",       LM_WHOLE,  AT(context),       "64",    "[1, 65536]",   "tokens",   "how far back the model sees"},
    {FIXED,     "attention",     LM_CHOICE, AT(attention),     "fused", "textbook|fused|window|sparse|linear", NULL, "which keys a query sees, and how that is computed"},
    {FIXED,     "window",        LM_WHOLE,  AT(window),        "64",    "[1, 65536]",   "tokens",   "of window attention: the last keys that a query sees"},
    {FIXED,     "global",        LM_WHOLE,  AT(global),        "0",     "[0, 65536]",   "tokens",   "of window attention: first keys that every query sees"},
    {FIXED,     "block",         LM_WHOLE,  AT(block),         "16",    "[1, 65536]",   "tokens",   "of sparse attention: keys that are seen or hidden together"},
    {FIXED,     "positions",     LM_CHOICE, AT(positions),     "learned", "learned|rotary", NULL,   "how a token's place is told: a vector is added, or q and k are turned"},
    {FIXED,     "gelu",          LM_CHOICE, AT(gelu),          "tanh",  "tanh|erf",     NULL,       "form of the MLP's GELU: GPT-2's, or the exact one"},
    {FIXED,     "bias",          LM_SWITCH, AT(bias),          "no",    "no|yes",       NULL,       "biases in linear layers and norms"},
    {LM_TRAIN | LM_FIXED, "tokenizer", LM_CHOICE, AT(tokenizer), "chars", "chars|bytes", NULL,      "vocabulary: the bytes that the text has, or all 256"},
    {LM_INFO | LM_FIXED, "vocab",         LM_WHOLE,  AT(vocab),         "65",    "[1, 256]",     "tokens",   "of the vocabulary: different bytes of the text, or all 256"},
    {SHAPE,     "batch",         LM_WHOLE,  AT(batch),         "12",    "[1, 65536]",   "windows",  "text that is taken at once"},
    {LM_EVAL,   "batch",         LM_WHOLE,  AT(batch),         "12",    "[1, 65536]",   "windows",  "text that is measured at once; the result is the same"},
    {SHAPE,     "accumulation",  LM_WHOLE,  AT(accumulation),  "1",     "[1, 65536]",   "batches",  "whose mean gradient makes a step"},
    {LM_TRAIN,  "steps",         LM_WHOLE,  AT(steps),         "2000",  "[1, inf)",     "steps",    "length of the training"},
    {LM_TRAIN,  "lr",            LM_NUMBER, AT(lr),            "1e-3",  "(0, 10]",      NULL,       "learning rate at its peak, after the warmup"},
    {LM_TRAIN,  "min-lr",        LM_NUMBER, AT(min_lr),        "1e-4",  "(0, 10]",      NULL,       "learning rate at the end of a half cosine"},
    {LM_TRAIN,  "lr-steps",      LM_WHOLE,  AT(lr_steps),      "0",     "[0, inf)",     "steps",    "after which the learning rate is at its end; 0: --steps"},
    {LM_TRAIN,  "warmup",        LM_WHOLE,  AT(warmup),        "100",   "[0, inf)",     "steps",    "rise of the learning rate from 0"},
    {LM_TRAIN,  "decay",         LM_NUMBER, AT(decay),         "0.1",   "[0, 100]",     NULL,       "AdamW's weight decay of the matrices"},
    {LM_TRAIN,  "beta1",         LM_NUMBER, AT(beta1),         "0.9",   "(0, 1)",       NULL,       "AdamW's memory of the gradient"},
    {LM_TRAIN,  "beta2",         LM_NUMBER, AT(beta2),         "0.99",  "(0, 1)",       NULL,       "AdamW's memory of its square"},
    {LM_TRAIN,  "clip",          LM_NUMBER, AT(clip),          "1",     "[0, inf)",     NULL,       "largest gradient norm, 0 leaves it as it is"},
    {LM_TRAIN,  "dropout",       LM_NUMBER, AT(dropout),       "0",     "[0, 1)",       NULL,       "share of the activations that a step leaves out"},
    {LM_TRAIN,  "eval-interval", LM_WHOLE,  AT(eval_interval), "250",   "[1, inf)",     "steps",    "from one validation, and saving, to the next"},
    {LM_TRAIN,  "eval-batches",  LM_WHOLE,  AT(eval_batches),  "20",    "[1, inf)",     "batches",  "text of a validation"},
    {LM_TRAIN,  "sample-interval", LM_WHOLE, AT(sample_interval), "0",  "[0, inf)",     "steps",    "from one sample on standard output to the next; 0: only at the end"},
    {LM_TRAIN,  "attend",        LM_TEXT,   AT(attend),        "",      "TEXT",         NULL,       "text of the attention picture; else 16 bytes of the data"},
    {WRITER,    "bytes",         LM_WHOLE,  AT(bytes),         "500",   "[0, inf)",     "bytes",    "length of a sample"},
    {LM_ATTEND, "prompt",        LM_TEXT,   AT(prompt),        "",      "TEXT",         NULL,       "the text to show"},
    {WRITER,    "prompt",        LM_TEXT,   AT(prompt),        "",      "TEXT",         NULL,       "the text that a sample continues"},
    {LM_SAMPLE | LM_ATTEND, "prompt-file", LM_TEXT, AT(prompt_file), "", "FILE",       NULL,       "a file that is the prompt; - is standard input"},
    {LM_SAMPLE, "samples",       LM_WHOLE,  AT(samples),       "1",     "[1, inf)",     "texts",    "with a line --- between them"},
    {LM_SAMPLE, "stop",          LM_TEXT,   AT(stop),          "",      "TEXT",         NULL,       "a sample ends before this text"},
    {WRITER,    "temperature",   LM_NUMBER, AT(temperature),   "0.8",   "[0, 100]",     NULL,       "0 takes the likeliest byte, 1 draws as the model has learnt"},
    {WRITER,    "top-k",         LM_WHOLE,  AT(top_k),         "0",     "[0, inf)",     "bytes",    "draw from the k likeliest only, 0 from all"},
    {WRITER,    "top-p",         LM_NUMBER, AT(top_p),         "1",     "(0, 1]",       NULL,       "draw from the likeliest that together have this probability"},
    {LM_ATTEND, "layer",         LM_WHOLE,  AT(layer),         "0",     "[0, 1000]",    NULL,       "the layer to show, from 1; 0 shows all"},
    {LM_ATTEND, "head",          LM_WHOLE,  AT(head),          "0",     "[0, 1000]",    NULL,       "the head to show, from 1; 0 shows all"},
    {LM_ATTEND, "out",           LM_TEXT,   AT(out),           "",      "DIR",          NULL,       "where the pictures go; else beside the model"},
    {LM_TRAIN | LM_FIXED, "seed", LM_WHOLE, AT(seed),          "1337",  "[0, inf)",     NULL,       "of all random numbers; the same seed, the same result"},
    {LM_SAMPLE, "seed",          LM_WHOLE,  AT(seed),          "1337",  "[0, inf)",     NULL,       "of the draws; the same seed, the same text"},
    {RUNNER,    "threads",       LM_WHOLE,  AT(threads),       "0",     "[0, 4096]",    "threads",  "0 for all processors; the result is the same"},
    {NOTED,     "profile",       LM_SWITCH, AT(profile),       "no",    "no|yes",       NULL,       "at the end, where the time went: a row for each operation"},
    {NOTED,     "quiet",         LM_SWITCH, AT(quiet),         "no",    "no|yes",       NULL,       "no progress on standard error"},
};
/* clang-format on */
const size_t lm_option_count = sizeof lm_options / sizeof *lm_options;
_Static_assert(sizeof lm_options / sizeof *lm_options <= LM_MOST_OPTIONS, "lm_settings has a level for every option");

const void *lm_value(const lm_settings *set, const lm_option *option) { return (const char *)set + option->offset; }

/* -- Values -------------------------------------------------------------------------------------------------------- */

/* Digits, a point, a minus, an exponent: none of the blanks, plus signs, hexadecimals and names that strtod takes too.
 */
static bool plain(const char *text) { return strspn(text, "0123456789.-eE+") == strlen(text) && *text != '+'; }

/* "[0, 1)" as mathematicians write it. */
static bool in_range(const char *range, double value) {
    char *end;
    const double low = strtod(range + 1, &end), high = strtod(end + 1, &end);
    return (*range == '[' ? value >= low : value > low) && (*end == ']' ? value <= high : value < high);
}

/* The place of a word in "chars|bytes"; -1: not in it. */
static int64_t choice(const char *choices, const char *word) {
    const size_t length = strlen(word);
    for (int64_t i = 0;; i++) {
        const size_t size = strcspn(choices, "|");
        if (size == length && memcmp(choices, word, size) == 0) return i;
        if (!choices[size]) return -1;
        choices += size + 1;
    }
}

static bool append(lm_list *list, const char *text) {
    const char **item = realloc(list->item, (size_t)(list->count + 1) * sizeof *item);
    if (!item) return false;
    list->item = item;
    item[list->count++] = text;
    return true;
}

/* Writes the value that a text means into a field of the option's kind; false if it means none. */
static bool read_value(void *field, const lm_option *option, const char *text) {
    char *end;
    errno = 0;
    switch (option->kind) {
    case LM_TEXT:
        *(const char **)field = text;
        return true;
    case LM_LIST:
        break; /* it grows, by append */
    case LM_WHOLE:
        *(int64_t *)field = strtoll(text, &end, 10);
        return plain(text) && end > text && !*end && errno == 0 && in_range(option->range, (double)*(int64_t *)field);
    case LM_NUMBER:
        *(double *)field = strtod(text, &end);
        return plain(text) && end > text && !*end && in_range(option->range, *(double *)field);
    case LM_CHOICE:
        *(int64_t *)field = choice(option->range, text);
        return *(int64_t *)field >= 0;
    case LM_SWITCH:
        *(bool *)field = choice(option->range, text) == 1;
        return choice(option->range, text) >= 0;
    }
    return false;
}

const char *lm_describe(const lm_option *option, char out[LM_DESCRIPTION]) {
    static const char *const what[] = {"", "", "a whole number in ", "a number in ", "one of ", "one of "};
    snprintf(out, LM_DESCRIPTION, "%s%s", what[option->kind], option->range);
    return out;
}

const char *lm_show(const lm_settings *set, const lm_option *option, char out[LM_DESCRIPTION]) {
    const void *field = lm_value(set, option);
    const char *words = option->range;
    switch (option->kind) {
    case LM_WHOLE:
        snprintf(out, LM_DESCRIPTION, "%lld", (long long)*(const int64_t *)field);
        break;
    case LM_NUMBER: /* the fewest digits that mean this number */
        for (int digits = 1; digits <= 17; digits++) {
            snprintf(out, LM_DESCRIPTION, "%.*g", digits, *(const double *)field);
            if (strtod(out, NULL) == *(const double *)field) break;
        }
        break;
    case LM_CHOICE:
        for (int64_t i = *(const int64_t *)field; i > 0; i--) words += strcspn(words, "|") + 1;
        snprintf(out, LM_DESCRIPTION, "%.*s", (int)strcspn(words, "|"), words);
        break;
    case LM_SWITCH:
        snprintf(out, LM_DESCRIPTION, "%s", *(const bool *)field ? "yes" : "no");
        break;
    default:
        out[0] = '\0';
    }
    return out;
}

/* -- Setting ------------------------------------------------------------------------------------------------------- */

/* "--width", or "run/config.txt:12: width" */
static const char *origin(char out[LM_ORIGIN], lm_source source, const char *name) {
    if (source.file)
        snprintf(out, LM_ORIGIN, "%.180s:%d: %.40s", source.file, source.line, name);
    else
        snprintf(out, LM_ORIGIN, "--%.40s", name);
    return out;
}

static int unknown_option(const lm_settings *set, lm_source source, const char *name) {
    char where[LM_ORIGIN] = "";
    const lm_option *near = lm_find_option(set->command, name, (int)strlen(name) / 3 + 1);
    if (source.file) snprintf(where, sizeof where, "%.180s:%d: ", source.file, source.line);
    const char *dashes = source.file ? "" : "--";
    if (near)
        return lm_wrong_usage(set, "%sno option %s%.40s; did you mean %s%s?", where, dashes, name, dashes, near->name);
    return lm_wrong_usage(set, "%sno option %s%.40s; lm help %s lists them", where, dashes, name, set->command->name);
}

/* Of a resumed run: what its config.txt says against what was given. */
static bool differs(const lm_settings *set, const lm_option *option, const void *value) {
    return option->kind == LM_SWITCH ? *(const bool *)value != *(const bool *)lm_value(set, option)
                                     : *(const int64_t *)value != *(const int64_t *)lm_value(set, option);
}

static const lm_command train = {.bit = LM_TRAIN};

int lm_set(lm_settings *set, lm_source source, const char *name, const char *text) {
    char where[LM_ORIGIN], what[LM_DESCRIPTION];
    const lm_option *option = lm_find_option(set->command, name, 0);
    if (!option && source.file && lm_find_option(&train, name, 0)) return 0; /* lm info reads the file of a run */
    if (!option) return unknown_option(set, source, name);
    unsigned char *level = &set->level[option - lm_options];
    union {
        const char *text;
        int64_t whole;
        double number;
        bool yes;
    } value = {0};
    const bool list = option->kind == LM_LIST;
    void *const field = (char *)set + option->offset;
    if (source.level == LM_BY_FILE && option->commands & LM_COMMAND_LINE)
        return lm_wrong_usage(set, "%s stands on the command line, not in a file", origin(where, source, name));
    if (!list && !read_value(&value, option, text)) {
        origin(where, source, name);
        if (errno == ERANGE && plain(text))
            return lm_wrong_usage(set, "%s %.80s is beyond what a number can hold", where, text);
        return lm_wrong_usage(set, "%s \"%.80s\" is not %s", where, text, lm_describe(option, what));
    }
    if (source.level < *level) {
        if (option->commands & LM_FIXED && *set->resume && differs(set, option, &value))
            return lm_wrong_usage(set, "--%s %s: the run to resume has %.40s, and keeps it", name,
                                  lm_show(set, option, what), text);
        if (field == &set->steps) set->steps_before = value.whole;
        return 0;
    }
    if (list && source.level > *level) ((lm_list *)field)->count = 0;
    *level = (unsigned char)source.level;
    const bool taken = list ? append(field, text) : read_value(field, option, text);
    return taken ? 0 : lm_failed(set, "no memory for the options");
}
