/* Files of options: the bytes are --config of lm train, and of lm info, which passes over what is train's alone. What
 * has been accepted is written as config.txt, read again, and then is the same. */
#include "lm_support.h"

static int read_back(lm_settings *set, const lm_command *command, const char *path) {
    char *words[] = {"--config", (char *)path, "--data", "d", "--out", (char *)fuzz_directory()};
    const int given = strcmp(command->name, "train") == 0 ? 6 : 2;
    fuzz_lines = 0;
    const int status = lm_parse(set, command, given, words);
    fuzz_check_settings(set, status);
    return status;
}

static void check_same(const lm_settings *a, const lm_settings *b, const lm_option *option) {
    char of_a[LM_DESCRIPTION], of_b[LM_DESCRIPTION];
    const void *x = lm_value(a, option), *y = lm_value(b, option);
    if (option->kind == LM_LIST) return; /* given on the command line, which wins */
    if (option->kind == LM_TEXT)
        DEMAND(strcmp(*(const char *const *)x, *(const char *const *)y) == 0);
    else
        DEMAND(strcmp(lm_show(a, option, of_a), lm_show(b, option, of_b)) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    enum { WRITTEN, GIVEN }; /* files; the first is config.txt */
    const lm_command *train = fuzz_command(0), *info = fuzz_command(5);
    lm_settings set, again;
    fuzz_write(fuzz_path(GIVEN), data, size);
    read_back(&set, info, fuzz_path(GIVEN));
    lm_settings_free(&set);
    if (read_back(&set, train, fuzz_path(GIVEN)) == 0) {
        gr_context *ctx = fuzz_context(0);
        lm_write_config(ctx, &set, LM_CONFIG); /* in --out */
        DEMAND_SAYING(gr_ok(ctx), "%s", gr_error_message(ctx));
        DEMAND(read_back(&again, train, fuzz_path(WRITTEN)) == 0);
        for (size_t i = 0; i < lm_option_count; i++)
            if (lm_options[i].commands & LM_TRAIN && !(lm_options[i].commands & LM_UNSAVED))
                check_same(&set, &again, &lm_options[i]);
        lm_settings_free(&again);
    }
    lm_settings_free(&set);
    return 0;
}
