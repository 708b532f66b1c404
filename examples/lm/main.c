#include "lm.h"

#include <ctype.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#ifdef _OPENMP
#    include <omp.h>
#endif

static const lm_command command[] = {
    {LM_TRAIN, "train", "trains a model on a text and draws how it went", "--data FILE --out DIR", lm_train},
    {LM_SAMPLE, "sample", "writes text with a trained model", "--model DIR --prompt \"Once upon a time\"", lm_sample},
    {LM_EVAL, "eval", "measures a model on a text: loss, perplexity, bits per byte", "--model DIR --data FILE",
     lm_eval},
    {LM_ATTEND, "attend", "shows what each head of a model attends to",
     "--model DIR --prompt \"the fox, the fox\" --layer 2 --head 1", lm_attend},
    {LM_PLOT, "plot", "draws loss, learning rate and gradient norm of a training", "--model DIR", lm_plot},
    {LM_INFO, "info", "tells parameters, memory and FLOPs of a model or of options", "--preset small --layers 8",
     lm_info},
    {LM_LOGITS, "logits", "writes a model's logits for a text, the first context of it, to compare elsewhere",
     "--model DIR --text FILE --out logits.safetensors", lm_logits},
};
enum { COMMANDS = sizeof command / sizeof *command };

/* -- What is said of errors, and how a command ends ---------------------------------------------------------------- */

/* "lm train: message" as one line, whatever the names in it contain. */
static void print_line(const lm_settings *set, const char *message) {
    fprintf(stderr, "lm %s: ", set->command->name);
    for (; *message; message++) fputc(iscntrl((unsigned char)*message) ? '?' : *message, stderr);
    fputc('\n', stderr);
}

enum { MESSAGE = 1024 };

static void GR_PRINTF(2, 0) print_message(const lm_settings *set, const char *format, va_list args) {
    char message[MESSAGE];
    vsnprintf(message, sizeof message, format, args);
    print_line(set, message);
}

int lm_wrong_usage(const lm_settings *set, const char *format, ...) {
    va_list args;
    va_start(args, format);
    print_message(set, format, args);
    va_end(args);
    return LM_USAGE;
}

int lm_failed(const lm_settings *set, const char *format, ...) {
    va_list args;
    va_start(args, format);
    print_message(set, format, args);
    va_end(args);
    return LM_FAILED;
}

void lm_warn(const lm_settings *set, const char *format, ...) {
    va_list args;
    va_start(args, format);
    print_message(set, format, args);
    va_end(args);
}

int lm_end(const lm_settings *set, gr_context *ctx) {
    if (fflush(stdout) != 0 || ferror(stdout)) gr_fail(ctx, "standard output", "cannot be written");
    const int status = gr_ok(ctx) ? 0 : LM_FAILED;
    if (status != 0) print_line(set, gr_error_message(ctx));
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
    if (lm_distance(word, command[best].name) <= SLIP)
        fprintf(stderr, "; did you mean \"%s\"?", command[best].name);
    else
        fputs(";", stderr);
    fputs(" lm help lists them\n", stderr);
    return LM_USAGE;
}

static int end_of_output(void) {
    if (fflush(stdout) == 0 && !ferror(stdout)) return 0;
    fputs("lm: standard output: cannot be written\n", stderr);
    return LM_FAILED;
}

static int help(const char *word) {
    const lm_command *c = word ? find_command(word) : NULL;
    if (word && !c) return no_command(word);
    if (c)
        lm_help_command(c);
    else
        lm_help(command, COMMANDS);
    return end_of_output();
}

static void use_threads(int64_t threads) {
#ifdef _OPENMP
    if (threads > 0) omp_set_num_threads((int)threads);
#else
    (void)threads;
#endif
}

/* A pipe that nobody reads ends the program quietly, also where the parent ignores the signal; a file that grows too
 * large is an error of the write. */
static void set_signals(void) {
    signal(SIGPIPE, SIG_DFL);
#ifdef SIGXFSZ
    signal(SIGXFSZ, SIG_IGN);
#endif
}

/* A standard descriptor that is closed would be the next file's: what is printed would go into it. */
static void hold_descriptors(void) {
    for (int i = STDIN_FILENO; i <= STDERR_FILENO; i++)
        if (fcntl(i, F_GETFD) < 0 && open("/dev/null", O_RDONLY) < 0) { /* read-only: writing to it fails */
            fputs("lm: /dev/null: cannot be opened\n", stderr);
            _exit(LM_FAILED);
        }
}

static int run(const lm_command *c, int count, char **words, const char *program) {
    lm_settings set;
    int status = lm_parse(&set, c, count, words);
    set.program = program;
    if (status == 0) {
        use_threads(set.threads);
        status = c->run(&set);
    }
    lm_settings_free(&set);
    return status;
}

static bool asks_for_help(const char *word) { return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0; }

int main(int argc, char **argv) {
    hold_descriptors();
    set_signals();
    if (argc < 2) {
        fputs("lm: which command? lm help lists them\n", stderr);
        return LM_USAGE;
    }
    if (strcmp(argv[1], "help") == 0 || asks_for_help(argv[1])) return help(argc > 2 ? argv[2] : NULL);
    if (strcmp(argv[1], "--version") == 0) {
        puts("lm of gradus " GR_VERSION);
        return end_of_output();
    }
    const lm_command *c = find_command(argv[1]);
    if (!c) return no_command(argv[1]);
    for (int i = 2; i < argc; i++)
        if (asks_for_help(argv[i])) return help(c->name);
    return run(c, argc - 2, argv + 2, argv[0]);
}
