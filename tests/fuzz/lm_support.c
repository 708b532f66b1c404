#include "lm_support.h"

#include <stdarg.h>

int fuzz_lines;

static const lm_command command[] = {
    {.bit = LM_TRAIN, .name = "train"},   {.bit = LM_SAMPLE, .name = "sample"}, {.bit = LM_EVAL, .name = "eval"},
    {.bit = LM_ATTEND, .name = "attend"}, {.bit = LM_PLOT, .name = "plot"},     {.bit = LM_INFO, .name = "info"},
    {.bit = LM_LOGITS, .name = "logits"},
};
enum { COMMANDS = sizeof command / sizeof *command };

const lm_command *fuzz_command(int number) { return &command[number % COMMANDS]; }

/* -- What main.c has ----------------------------------------------------------------------------------------------- */

static void GR_PRINTF(1, 0) say(const char *format, va_list args) {
    char message[1024];
    DEMAND(vsnprintf(message, sizeof message, format, args) > 0);
    fuzz_lines++;
}

int lm_wrong_usage(const lm_settings *set, const char *format, ...) {
    va_list args;
    va_start(args, format);
    (void)set, say(format, args);
    va_end(args);
    return LM_USAGE;
}

int lm_failed(const lm_settings *set, const char *format, ...) {
    va_list args;
    va_start(args, format);
    (void)set, say(format, args);
    va_end(args);
    return LM_FAILED;
}

void lm_warn(const lm_settings *set, const char *format, ...) { (void)set, (void)format; }

int lm_end(const lm_settings *set, gr_context *ctx) {
    const int status = gr_ok(ctx) ? 0 : lm_failed(set, "%s", gr_error_message(ctx));
    gr_context_free(ctx);
    return status;
}

/* -- Checks -------------------------------------------------------------------------------------------------------- */

/* "[0, 1)" as it is written: which ends belong to it. */
static bool lies_in(const char *range, double value) {
    char first, last;
    double low, high;
    DEMAND(sscanf(range, "%c%lf, %lf%c", &first, &low, &high, &last) == 4);
    return (value > low || (first == '[' && value == low)) && (value < high || (last == ']' && value == high));
}

static double number_of(const lm_settings *set, const lm_option *option) {
    const void *field = lm_value(set, option);
    return option->kind == LM_WHOLE ? (double)*(const int64_t *)field : *(const double *)field;
}

/* A value, shown, is accepted by its own option, and means itself. */
static void check_value(const lm_settings *set, const lm_option *option) {
    char shown[LM_DESCRIPTION], again[LM_DESCRIPTION];
    lm_settings other = {.command = set->command, .config = "", .resume = "", .preset = ""};
    lm_show(set, option, shown);
    DEMAND(lm_set(&other, (lm_source){.level = LM_BY_COMMAND}, option->name, shown) == 0);
    DEMAND(strcmp(lm_show(&other, option, again), shown) == 0);
    if (option->kind != LM_WHOLE && option->kind != LM_NUMBER) return;
    DEMAND(number_of(set, option) == number_of(&other, option) && lies_in(option->range, number_of(set, option)));
}

void fuzz_check_settings(const lm_settings *set, int status) {
    DEMAND(status == 0 || status == LM_USAGE || status == LM_FAILED);
    DEMAND(fuzz_lines == (status != 0));
    for (size_t i = 0; status == 0 && i < lm_option_count; i++) {
        const lm_option *option = &lm_options[i];
        if (!(option->commands & set->command->bit)) continue;
        const char *text = option->kind == LM_TEXT ? *(const char *const *)lm_value(set, option) : NULL;
        if (option->kind == LM_LIST)
            DEMAND(((const lm_list *)lm_value(set, option))->count > 0);
        else if (option->kind == LM_TEXT)
            DEMAND(text && (option->otherwise || *text));
        else
            check_value(set, option);
    }
    if (status == 0 && set->command->bit & (LM_TRAIN | LM_INFO)) DEMAND(lm_check_model(set) == 0 || fuzz_lines == 1);
}
