#include "lm.h"

#include <ctype.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>

#ifdef _OPENMP
#    include <omp.h>
#endif

static const lm_command command[] = {
    {LM_TRAIN, "train", "trains a model on a text and draws how it went", lm_train},
    {LM_SAMPLE, "sample", "writes text with a trained model", lm_sample},
};
enum { COMMANDS = sizeof command / sizeof *command };

/* -- How a command ends -------------------------------------------------------------------------------------------- */

/* "lm train: message" as one line, whatever the names in it contain. */
static void print_error(const lm_settings *set, const char *message) {
    fprintf(stderr, "lm %s: ", set->command->name);
    for (; *message; message++) fputc(iscntrl((unsigned char)*message) ? '?' : *message, stderr);
    fputc('\n', stderr);
}

int lm_wrong_usage(const lm_settings *set, const char *format, ...) {
    char message[512];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    print_error(set, message);
    return LM_USAGE;
}

int lm_end(const lm_settings *set, gr_context *ctx) {
    if (fflush(stdout) != 0 || ferror(stdout)) gr_fail(ctx, "standard output", "cannot be written");
    const int status = gr_ok(ctx) ? 0 : LM_FAILED;
    if (status != 0) print_error(set, gr_error_message(ctx));
    gr_context_free(ctx);
    return status;
}

/* -- Which command ------------------------------------------------------------------------------------------------- */

static const lm_command *find_command(const char *word) {
    for (int i = 0; i < COMMANDS; i++)
        if (strcmp(word, command[i].name) == 0) return &command[i];
    return NULL;
}

enum { SLIP = 2 }; /* letters that a slip of the fingers gets wrong */

static int no_command(const char *word) {
    int best = 0;
    for (int i = 1; i < COMMANDS; i++)
        if (lm_distance(word, command[i].name) < lm_distance(word, command[best].name)) best = i;
    fprintf(stderr, "lm: no command \"%.40s\"", word);
    if (lm_distance(word, command[best].name) <= SLIP) fprintf(stderr, "; did you mean \"%s\"?", command[best].name);
    fputs("; lm help lists them\n", stderr);
    return LM_USAGE;
}

static int help(const char *word) {
    const lm_command *c = word ? find_command(word) : NULL;
    if (word && !c) return no_command(word);
    if (c)
        lm_help_command(c);
    else
        lm_help(command, COMMANDS);
    if (fflush(stdout) == 0) return 0;
    fputs("lm help: standard output: cannot be written\n", stderr);
    return LM_FAILED;
}

static void use_threads(int64_t threads) {
#ifdef _OPENMP
    if (threads > 0) omp_set_num_threads((int)threads);
#else
    (void)threads;
#endif
}

static bool asks_for_help(const char *word) { return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0; }

int main(int argc, char **argv) {
    if (argc < 2) {
        fputs("lm: which command? lm help lists them\n", stderr);
        return LM_USAGE;
    }
    if (strcmp(argv[1], "help") == 0 || asks_for_help(argv[1])) return help(argc > 2 ? argv[2] : NULL);
    const lm_command *c = find_command(argv[1]);
    if (!c) return no_command(argv[1]);
    for (int i = 2; i < argc; i++)
        if (asks_for_help(argv[i])) return help(c->name);
    lm_settings set;
    const int status = lm_parse(&set, c, argc - 2, argv + 2);
    if (status != 0) return status;
#ifdef SIGXFSZ
    signal(SIGXFSZ, SIG_IGN); /* a file that grows too large is an error of the write */
#endif
    set.program = argv[0];
    use_threads(set.threads);
    return c->run(&set);
}
