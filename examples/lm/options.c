#include "lm.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define AT(field) offsetof(lm_settings, field)

enum { BOTH = LM_TRAIN | LM_SAMPLE };

/* clang-format off */
const lm_option lm_options[] = {
    {LM_TRAIN,  "data",          LM_TEXT,   AT(data),          NULL,    "FILE",         NULL,       "text to learn from; its last tenth is for validation"},
    {LM_TRAIN,  "out",           LM_TEXT,   AT(out),           NULL,    "DIR",          NULL,       "where the weights, the log and the pictures go"},
    {LM_SAMPLE, "model",         LM_TEXT,   AT(model),         NULL,    "DIR",          NULL,       "what lm train wrote: the directory, or the weights' file"},
    {LM_TRAIN,  "layers",        LM_WHOLE,  AT(layers),        "4",     "[1, 1000]",    NULL,       "blocks of attention and MLP"},
    {LM_TRAIN,  "heads",         LM_WHOLE,  AT(heads),         "4",     "[1, 1000]",    NULL,       "attention heads of a block; they divide the width"},
    {LM_TRAIN,  "width",         LM_WHOLE,  AT(width),         "128",   "[1, 65536]",   NULL,       "numbers that stand for a token between blocks"},
    {LM_TRAIN,  "context",       LM_WHOLE,  AT(context),       "64",    "[1, 65536]",   "tokens",   "how far back the model sees"},
    {LM_TRAIN,  "attention",     LM_CHOICE, AT(attention),     "fused", "textbook|fused|window|sparse|linear", NULL, "which keys a query sees, and how that is computed"},
    {LM_TRAIN,  "window",        LM_WHOLE,  AT(window),        "64",    "[1, 65536]",   "tokens",   "of window attention: the last keys that a query sees"},
    {LM_TRAIN,  "global",        LM_WHOLE,  AT(global),        "0",     "[0, 65536]",   "tokens",   "of window attention: first keys that every query sees"},
    {LM_TRAIN,  "block",         LM_WHOLE,  AT(block),         "16",    "[1, 65536]",   "tokens",   "of sparse attention: keys that are seen or hidden together"},
    {LM_TRAIN,  "positions",     LM_CHOICE, AT(positions),     "learned", "learned|rotary", NULL,   "how a token's place is told: a vector is added, or q and k are turned"},
    {LM_TRAIN,  "tokenizer",     LM_CHOICE, AT(tokenizer),     "chars", "chars|bytes",  NULL,       "vocabulary: the bytes that the text has, or all 256"},
    {LM_TRAIN,  "batch",         LM_WHOLE,  AT(batch),         "12",    "[1, 65536]",   "windows",  "text that one step learns from"},
    {LM_TRAIN,  "steps",         LM_WHOLE,  AT(steps),         "2000",  "[1, inf)",     "steps",    "length of the training"},
    {LM_TRAIN,  "lr",            LM_NUMBER, AT(lr),            "1e-3",  "(0, 10]",      NULL,       "learning rate at its peak, after the warmup"},
    {LM_TRAIN,  "min-lr",        LM_NUMBER, AT(min_lr),        "1e-4",  "(0, 10]",      NULL,       "learning rate at the end of a half cosine"},
    {LM_TRAIN,  "warmup",        LM_WHOLE,  AT(warmup),        "100",   "[0, inf)",     "steps",    "rise of the learning rate from 0"},
    {LM_TRAIN,  "decay",         LM_NUMBER, AT(decay),         "0.1",   "[0, 100]",     NULL,       "AdamW's weight decay of the matrices"},
    {LM_TRAIN,  "beta1",         LM_NUMBER, AT(beta1),         "0.9",   "(0, 1)",       NULL,       "AdamW's memory of the gradient"},
    {LM_TRAIN,  "beta2",         LM_NUMBER, AT(beta2),         "0.99",  "(0, 1)",       NULL,       "AdamW's memory of its square"},
    {LM_TRAIN,  "clip",          LM_NUMBER, AT(clip),          "1",     "[0, inf)",     NULL,       "largest gradient norm, 0 leaves it as it is"},
    {LM_TRAIN,  "dropout",       LM_NUMBER, AT(dropout),       "0",     "[0, 1)",       NULL,       "share of the activations that a step leaves out"},
    {LM_TRAIN,  "eval-interval", LM_WHOLE,  AT(eval_interval), "250",   "[1, inf)",     "steps",    "from one validation, and saving, to the next"},
    {LM_TRAIN,  "eval-batches",  LM_WHOLE,  AT(eval_batches),  "20",    "[1, inf)",     "batches",  "text of a validation; the last has 100 at least"},
    {LM_TRAIN,  "attend",        LM_TEXT,   AT(attend),        "",      "TEXT",         NULL,       "text of the attention picture; else 16 bytes of the data"},
    {LM_TRAIN,  "sample-bytes",  LM_WHOLE,  AT(bytes),         "500",   "[0, inf)",     "bytes",    "length of the sample at the end"},
    {LM_SAMPLE, "bytes",         LM_WHOLE,  AT(bytes),         "500",   "[0, inf)",     "bytes",    "length of the text to write"},
    {BOTH,      "prompt",        LM_TEXT,   AT(prompt),        "",      "TEXT",         NULL,       "beginning that is to be continued"},
    {BOTH,      "temperature",   LM_NUMBER, AT(temperature),   "0.8",   "[0, 100]",     NULL,       "0 takes the likeliest byte, 1 draws as the model has learnt"},
    {BOTH,      "top-k",         LM_WHOLE,  AT(top_k),         "0",     "[0, inf)",     "bytes",    "draw from the k likeliest only, 0 from all"},
    {BOTH,      "top-p",         LM_NUMBER, AT(top_p),         "1",     "(0, 1]",       NULL,       "draw from the likeliest that together have this probability"},
    {BOTH,      "seed",          LM_WHOLE,  AT(seed),          "1337",  "[0, inf)",     NULL,       "of all random numbers; the same seed, the same result"},
    {BOTH,      "threads",       LM_WHOLE,  AT(threads),       "0",     "[0, 4096]",    "threads",  "0 for all processors; the result is the same"},
    {LM_TRAIN,  "profile",       LM_SWITCH, AT(profile),       "no",    "no|yes",       NULL,       "at the end, where the time went: a row for each operation"},
    {LM_TRAIN,  "quiet",         LM_SWITCH, AT(quiet),         "no",    "no|yes",       NULL,       "no progress on standard error"},
};
/* clang-format on */
const size_t lm_option_count = sizeof lm_options / sizeof *lm_options;

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

static bool set_value(lm_settings *set, const lm_option *option, const char *text) {
    void *field = (char *)set + option->offset;
    char *end;
    errno = 0;
    switch (option->kind) {
    case LM_TEXT:
        *(const char **)field = text;
        return true;
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
    static const char *const what[] = {"", "a whole number in ", "a number in ", "one of ", "one of "};
    snprintf(out, LM_DESCRIPTION, "%s%s", what[option->kind], option->range);
    return out;
}

/* -- The words of a command line ----------------------------------------------------------------------------------- */

int lm_distance(const char *a, const char *b) {
    enum { MOST = 32 }; /* letters of b; more are as far away as can be */
    int row[MOST + 1];  /* distances of a's first i letters from b's first j */
    const int length = (int)strlen(b);
    if (length > MOST) return INT_MAX;
    for (int j = 0; j <= length; j++) row[j] = j;
    for (int i = 1; a[i - 1]; i++) {
        int corner = row[0];
        row[0] = i;
        for (int j = 1; j <= length; j++) {
            const int replaced = corner + (a[i - 1] != b[j - 1]), other = row[j] < row[j - 1] ? row[j] : row[j - 1];
            corner = row[j];
            row[j] = replaced <= other ? replaced : other + 1;
        }
    }
    return row[length];
}

const lm_option *lm_find_option(const lm_command *command, const char *word, int distance) {
    const lm_option *best = NULL;
    for (size_t i = 0; i < lm_option_count; i++) {
        if (!(lm_options[i].commands & command->bit)) continue;
        const int d = lm_distance(word, lm_options[i].name);
        if (d > distance || (best && d == distance)) continue;
        best = &lm_options[i];
        distance = d;
    }
    return best;
}

static int unknown_option(const lm_settings *set, const char *name) {
    const lm_option *near = lm_find_option(set->command, name, (int)strlen(name) / 3 + 1);
    if (near) return lm_wrong_usage(set, "no option --%.40s; did you mean --%s?", name, near->name);
    return lm_wrong_usage(set, "no option --%.40s; lm help %s lists them", name, set->command->name);
}

/* Takes "--name value", "--name=value" or "--switch" from the words; the number of words taken, 0 after an error. */
static int take_option(lm_settings *set, int count, char *const *words) {
    char name[64], what[LM_DESCRIPTION];
    if (strncmp(words[0], "--", 2) != 0) {
        lm_wrong_usage(set, "\"%.80s\" is not an option; these begin with --", words[0]);
        return 0;
    }
    const char *word = words[0] + 2;
    const size_t size = strcspn(word, "="), length = size < sizeof name ? size : sizeof name - 1;
    const char *value = word[size] ? word + size + 1 : NULL;
    memcpy(name, word, length);
    name[length] = '\0';
    const lm_option *option = lm_find_option(set->command, name, 0);
    if (!option) {
        unknown_option(set, name);
        return 0;
    }
    int taken = 1;
    if (!value && option->kind == LM_SWITCH) value = "yes";
    if (!value && count > 1 && strncmp(words[1], "--", 2) != 0) value = words[taken++];
    if (!value)
        lm_wrong_usage(set, "--%s needs a value: %s", name, lm_describe(option, what));
    else if (!set_value(set, option, value))
        lm_wrong_usage(set, "--%s \"%.80s\" is not %s", name, value, lm_describe(option, what));
    else
        return taken;
    return 0;
}

int lm_parse(lm_settings *set, const lm_command *command, int count, char *const *words) {
    *set = (lm_settings){.command = command};
    for (size_t i = 0; i < lm_option_count; i++)
        if (lm_options[i].commands & command->bit && lm_options[i].otherwise)
            set_value(set, &lm_options[i], lm_options[i].otherwise);
    for (int i = 0, taken; i < count; i += taken)
        if ((taken = take_option(set, count - i, words + i)) == 0) return LM_USAGE;
    for (size_t i = 0; i < lm_option_count; i++) {
        const lm_option *o = &lm_options[i];
        if (!(o->commands & command->bit) || o->otherwise) continue;
        const char *text = *(const char **)(void *)((char *)set + o->offset);
        if (!text || !*text) return lm_wrong_usage(set, "--%s %s is missing: %s", o->name, o->range, o->help);
    }
    return 0;
}
