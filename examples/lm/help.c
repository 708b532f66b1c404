#include "lm.h"

enum { NAME_COLUMN = 24, DEFAULT_COLUMN = 7 };

void lm_help(const lm_command *commands, size_t count) {
    puts("lm trains a small language model on a text file, byte by byte, and writes with it.\n");
    for (size_t i = 0; i < count; i++) printf("  lm %-8s %s\n", commands[i].name, commands[i].summary);
    puts("  lm help     this, or with the name of a command its options\n\n"
         "  lm train --data FILE --out DIR\n"
         "  lm sample --model DIR --prompt \"Once upon a time\"");
}

static const char *value_name(const lm_option *option) {
    static const char *const name[] = {[LM_WHOLE] = " N", [LM_NUMBER] = " X", [LM_CHOICE] = " WORD", [LM_SWITCH] = ""};
    return name[option->kind];
}

/* "  --context N              64       how far back the model sees: [1, 65536] tokens" */
static void help_option(const lm_option *option) {
    char name[64];
    const bool text = option->kind == LM_TEXT;
    snprintf(name, sizeof name, "--%s%s%s", option->name, text ? " " : value_name(option), text ? option->range : "");
    printf("  %-*s %-*s  %s", NAME_COLUMN, name, DEFAULT_COLUMN, option->otherwise ? option->otherwise : "needed",
           option->help);
    if (!text && option->kind != LM_SWITCH) printf(": %s", option->range);
    if (option->unit) printf(" %s", option->unit);
    putchar('\n');
}

void lm_help_command(const lm_command *command) {
    printf("lm %s: %s\n\n  %-*s %-*s  meaning\n", command->name, command->summary, NAME_COLUMN, "option",
           DEFAULT_COLUMN, "default");
    for (size_t i = 0; i < lm_option_count; i++)
        if (lm_options[i].commands & command->bit) help_option(&lm_options[i]);
}
