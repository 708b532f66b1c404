#include "lm.h"

#include <string.h>

enum { NAME_COLUMN = 24, DEFAULT_COLUMN = 7 };

void lm_help(const lm_command *commands, size_t count) {
    puts("lm trains a small language model on text files, byte by byte, and works with it.\n");
    for (size_t i = 0; i < count; i++) printf("  lm %-8s %s\n", commands[i].name, commands[i].summary);
    puts("  lm help     this, or with the name of a command its options\n"
         "  lm --version\n");
    for (size_t i = 0; i < count; i++) printf("  lm %s %s\n", commands[i].name, commands[i].example);
    puts("\nStatus 0: done; 1: failed; 2: wrong usage; 130, 143: stopped by Ctrl-C or SIGTERM.");
}

static const char *value_name(const lm_option *option) {
    static const char *const name[] = {[LM_WHOLE] = " N", [LM_NUMBER] = " X", [LM_CHOICE] = " WORD", [LM_SWITCH] = ""};
    return name[option->kind];
}

/* "  --context N              64       how far back the model sees: [1, 65536] tokens" */
static void help_option(const lm_option *option) {
    char name[64];
    const bool text = option->kind == LM_TEXT || option->kind == LM_LIST;
    const bool choices = text && strchr(option->range, '|');
    const char *value = choices ? "WORD" : option->range;
    snprintf(name, sizeof name, "--%s%s%s", option->name, text ? " " : value_name(option), text ? value : "");
    const char *otherwise = !option->otherwise ? "needed" : *option->otherwise ? option->otherwise : "none";
    printf("  %-*s %-*s  %s", NAME_COLUMN, name, DEFAULT_COLUMN, otherwise, option->help);
    if ((!text || choices) && option->kind != LM_SWITCH) printf(": %s", option->range);
    if (option->unit) printf(" %s", option->unit);
    putchar('\n');
}

void lm_help_command(const lm_command *command) {
    printf("lm %s: %s\n\n  %-*s %-*s  meaning\n", command->name, command->summary, NAME_COLUMN, "option",
           DEFAULT_COLUMN, "default");
    for (size_t i = 0; i < lm_option_count; i++)
        if (lm_options[i].commands & command->bit) help_option(&lm_options[i]);
    if (lm_find_option(command, "preset", 0)) lm_help_presets();
    printf("\n  lm %s %s\n", command->name, command->example);
}
