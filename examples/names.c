/*
 * names.c - writes a corpus with one rule that only attention can find.
 *
 * Text:  one sentence a line,
 *            Tamo took the red cup, and later Tamo lost it.
 * Rule:  the name of the first clause returns in the second.
 *
 * The rule determines four characters a line: the letters of the name after
 * ", and later ".  Names are drawn uniformly and independently of the rest of
 * the line, so a model that does not look back pays ln(NAMES) = ln 2500 = 7.82
 * nats for them, and a model that copies pays 0.  The words between the two
 * names differ in length, so no fixed distance finds the first name.
 *
 * Usage:  names [lines] [seed]      defaults 4000 and 1; text goes to stdout
 * Exit:   0 written, 1 write failed, 2 wrong arguments
 */
#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define DEFAULT_LINES 4000 /* about 210 KB: enough to learn the copy from */
#define DEFAULT_SEED  1
#define MAX_LINES     1000000 /* about 53 MB: more is surely a slip */
#define NAME_SIZE     5       /* two syllables of two letters, and the NUL */

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

/* 10 consonants, 5 vowels: 50 syllables, 50 * 50 = 2500 names. */
static const char CONSONANTS[] = {'b', 'd', 'k', 'l', 'm', 'n', 'r', 's', 't', 'v'};
static const char VOWELS[] = {'a', 'e', 'i', 'o', 'u'};

/*
 * The longest words have 8, 6, 7 and 12 letters; with 30 bytes of names and
 * fixed text a line has at most 63 bytes, the newline included.
 */
static const char *const VERBS[] = {"took", "made", "found", "bought", "saw", "washed", "carried", "borrowed"};
static const char *const ADJECTIVES[] = {"red", "old", "blue", "small", "green", "heavy", "yellow", "wooden"};
static const char *const NOUNS[] = {"cup", "bag", "boat", "lamp", "chair", "bread", "basket", "lantern"};
static const char *const ENDINGS[] = {"lost it",    "hid it",    "sold it",     "broke it",
                                      "dropped it", "forgot it", "gave it away"};

/* splitmix64 (Steele, Lea, Flood 2014): integers only, so the same seed gives
 * the same bytes on every machine. */
static uint64_t next(uint64_t *state) {
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* An index 0..n-1: floor(u * n) with u = (top 32 bits) / 2^32; bias < n / 2^32. */
static size_t draw(uint64_t *state, size_t n) { return (size_t)(((next(state) >> 32) * n) >> 32); }

static void draw_name(uint64_t *state, char name[NAME_SIZE]) {
    for (int i = 0; i < NAME_SIZE - 1; i += 2) {
        name[i] = CONSONANTS[draw(state, COUNT(CONSONANTS))];
        name[i + 1] = VOWELS[draw(state, COUNT(VOWELS))];
    }
    name[0] = (char)(name[0] - 'a' + 'A');
    name[NAME_SIZE - 1] = '\0';
}

/* One draw a statement: C leaves the order of function arguments open. */
static void write_line(uint64_t *state) {
    char name[NAME_SIZE];
    draw_name(state, name);
    const char *verb = VERBS[draw(state, COUNT(VERBS))];
    const char *adjective = ADJECTIVES[draw(state, COUNT(ADJECTIVES))];
    const char *noun = NOUNS[draw(state, COUNT(NOUNS))];
    const char *ending = ENDINGS[draw(state, COUNT(ENDINGS))];
    printf("%s %s the %s %s, and later %s %s.\n", name, verb, adjective, noun, name, ending);
}

/* A whole number min..max in digits only (strtoull alone takes " 7" and "-7"). */
static uint64_t parse(const char *what, const char *text, uint64_t min, uint64_t max) {
    char *end = NULL;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || value < min || value > max) {
        fprintf(stderr, "names: %s is \"%s\", should be a whole number from %" PRIu64 " to %" PRIu64 "\n", what, text,
                min, max);
        exit(2);
    }
    return value;
}

int main(int argc, char **argv) {
    if (argc > 3) {
        fprintf(stderr, "names: %d arguments, should be at most 2: names [lines] [seed]\n", argc - 1);
        return 2;
    }
    uint64_t lines = argc > 1 ? parse("lines", argv[1], 1, MAX_LINES) : DEFAULT_LINES;
    uint64_t state = argc > 2 ? parse("seed", argv[2], 0, UINT64_MAX) : DEFAULT_SEED;

    for (uint64_t i = 0; i < lines; i++) write_line(&state);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "names: could not write to stdout, should be open with room on disk\n");
        return 1;
    }
    return 0;
}
