/* The option parser of lm: a command line from bytes, the first of them the command, then words that end with NUL. A
 * word may stand for files that exist: see names. What is accepted is in its range and means the same when it is shown
 * and given again; what is refused is refused with one line. */
#include "lm_support.h"

enum { WORDS = 64, ROOM = 1 << 16 };

static const char config[] = "layers = 2 # of options.c\nwidth=32\nlr = 1e-2\nseed = 7\nprompt = \"a\\x41 \\n\"\n";

/* "@config" is a file of options, "@run" a run's directory with the same as its config.txt. */
static char *name_of(char *word) {
    if (strcmp(word, "@config") == 0) return (char *)fuzz_path(0);
    return strcmp(word, "@run") == 0 ? (char *)fuzz_directory() : word;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static char text[ROOM + 1];
    char *word[WORDS];
    int count = 0;
    fuzz_bytes in = {data, data + size};
    DEMAND(freopen("/dev/null", "r", stdin)); /* what "--config -" reads */
    fuzz_write(fuzz_path(0), (const uint8_t *)config, sizeof config - 1);
    const lm_command *command = fuzz_command(fuzz_byte(&in));
    const size_t length = fuzz_left(&in) < ROOM ? fuzz_left(&in) : ROOM;
    if (length > 0) memcpy(text, in.at, length);
    text[length] = '\0';
    for (char *at = text; at < text + length && count < WORDS; at += strlen(at) + 1) word[count++] = name_of(at);
    lm_settings set;
    fuzz_lines = 0;
    const int status = lm_parse(&set, command, count, word);
    fuzz_check_settings(&set, status);
    lm_settings_free(&set);
    return 0;
}
