#include "lm.h"

#include "nn/files.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* -- Names --------------------------------------------------------------------------------------------------------- */

int lm_distance(const char *a, const char *b) {
    enum { MOST = 32 }; /* letters; a word of more is as far away as can be */
    int row[MOST + 1];  /* distances of a's first i letters from b's first j */
    const int length = (int)strlen(b);
    if (length > MOST || strlen(a) > MOST) return INT_MAX;
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

/* -- The words of a command line ----------------------------------------------------------------------------------- */

static bool is_option(const char *word) { return strncmp(word, "--", 2) == 0; }

/* Takes "--name value", "--name=value", "--switch" or "--files a b" from the words; *taken: how many. An exit status.
 */
static int take_option(lm_settings *set, int count, char *const *words, int *taken) {
    static const lm_source here = {.level = LM_BY_COMMAND};
    char name[64], what[LM_DESCRIPTION];
    if (!is_option(words[0])) return lm_wrong_usage(set, "\"%.80s\" is not an option; these begin with --", words[0]);
    const char *word = words[0] + 2;
    const size_t size = strcspn(word, "="), length = size < sizeof name ? size : sizeof name - 1;
    const char *value = word[size] ? word + size + 1 : NULL;
    memcpy(name, word, length);
    name[length] = '\0';
    const lm_option *option = lm_find_option(set->command, name, 0);
    *taken = 1;
    if (!option) return lm_set(set, here, name, ""); /* says so */
    if (!value && option->kind == LM_SWITCH) value = "yes";
    if (!value && count > 1 && !is_option(words[1])) value = words[(*taken)++];
    if (!value) return lm_wrong_usage(set, "--%s needs a value: %s", name, lm_describe(option, what));
    int status = lm_set(set, here, name, value);
    while (status == 0 && option->kind == LM_LIST && *taken < count && !is_option(words[*taken]))
        status = lm_set(set, here, name, words[(*taken)++]);
    return status;
}

static bool is_missing(const lm_settings *set, const lm_option *option) {
    if (option->kind == LM_LIST) return ((const lm_list *)lm_value(set, option))->count == 0;
    const char *text = *(const char *const *)lm_value(set, option);
    return !text || !*text;
}

static int check_needed(const lm_settings *set) {
    for (size_t i = 0; i < lm_option_count; i++) {
        const lm_option *o = &lm_options[i];
        if (o->commands & set->command->bit && !o->otherwise && is_missing(set, o))
            return lm_wrong_usage(set, "--%s %s is missing: %s", o->name, o->range, o->help);
    }
    return 0;
}

/* The run's own directory and configuration stand in for --out and --config. */
static int use_resume(lm_settings *set, char path[LM_PATH]) {
    const char *other = *set->config     ? "config"
                        : *set->preset   ? "preset"
                        : set->out       ? "out"
                        : set->overwrite ? "overwrite"
                                         : NULL;
    if (other) return lm_wrong_usage(set, "--resume goes on with a run as it is; --%s does not go with it", other);
    if (snprintf(path, LM_PATH, "%s/%s", set->resume, LM_CONFIG) >= LM_PATH)
        return lm_wrong_usage(set, "--resume: the path is longer than %d bytes", LM_PATH - 1);
    gr_context *ctx = gr_context_new();
    lm_check_holds(ctx, set->resume, "training", LM_CONFIG);
    gr_can_replace(ctx, path); /* a pipe would never open */
    const int status = lm_end(set, ctx);
    return status == 0 ? lm_set(set, (lm_source){.level = LM_BY_COMMAND}, "out", set->resume) : status;
}

int lm_parse(lm_settings *set, const lm_command *command, int count, char *const *words) {
    char path[LM_PATH] = "";
    int status = 0;
    *set = (lm_settings){.command = command, .config = "", .resume = "", .preset = ""};
    for (size_t i = 0; i < lm_option_count; i++)
        if (lm_options[i].commands & command->bit && lm_options[i].otherwise)
            lm_set(set, (lm_source){.level = LM_BY_DEFAULT}, lm_options[i].name, lm_options[i].otherwise);
    for (int i = 0, taken = 0; i < count && status == 0; i += taken)
        status = take_option(set, count - i, words + i, &taken);
    const char *config = set->config;
    if (status == 0 && *set->resume) status = use_resume(set, path), config = path;
    if (status == 0 && *config) status = lm_read_config(set, config);
    if (status == 0 && *set->preset) status = lm_use_preset(set);
    const lm_option *floor = lm_find_option(command, "min-lr", 0);
    if (floor && set->level[floor - lm_options] < LM_BY_FILE && set->min_lr > set->lr) set->min_lr = set->lr / 10;
    return status == 0 ? check_needed(set) : status;
}

void lm_settings_free(lm_settings *set) {
    free(set->data.item);
    free(set->text_of_config);
    free(set->text_of_preset);
}
