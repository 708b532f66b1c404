/* NAME FILE...|DIRECTORY...     runs a fuzz target on each file
 * NAME --seeds FROM COUNT [SECONDS]   on the random bytes of COUNT seeds, or of as many as SECONDS allow
 *
 * Inputs run in a child: an input that ends it, by whatever means, is named, with the command that runs it alone. */
#include "fuzz.h"

#include <dirent.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ROOM = 1 << 20, SEED_BYTES = 400, NAME = 1024, HANGS = 60 }; /* HANGS: seconds; then an input is given up */

typedef struct input {
    char name[NAME]; /* a path, or "--seeds 7 1" */
} input;

static uint8_t data[ROOM];

/* Says what runs now, to the parent. */
static void announce(int to, const input *what) {
    DEMAND(write(to, what, sizeof *what) == (ssize_t)sizeof *what);
    alarm(HANGS);
}

static void run_file(int to, const char *path) {
    input what = {""};
    snprintf(what.name, sizeof what.name, "%s", path);
    announce(to, &what);
    FILE *file = fopen(path, "rb");
    DEMAND_SAYING(file, "%s: cannot be opened", path);
    const size_t size = fread(data, 1, sizeof data, file);
    fclose(file);
    LLVMFuzzerTestOneInput(data, size);
}

static int by_name(const void *a, const void *b) { return strcmp(a, b); }

static void run_directory(int to, const char *path) {
    enum { MOST = 4096 };
    static char names[MOST][NAME];
    size_t count = 0;
    DIR *all = opendir(path);
    DEMAND_SAYING(all, "%s: cannot be opened", path);
    for (const struct dirent *one; count < MOST && (one = readdir(all));)
        if (*one->d_name != '.') snprintf(names[count++], NAME, "%s/%s", path, one->d_name);
    closedir(all);
    DEMAND_SAYING(0 < count && count < MOST, "%s: %zu files; at least 1, and below %d", path, count, MOST);
    qsort(names, count, NAME, by_name);
    for (size_t i = 0; i < count; i++) run_file(to, names[i]);
}

static void run_seeds(int to, uint64_t from, uint64_t count, double seconds) {
    const time_t begin = time(NULL);
    for (uint64_t seed = from; seed - from < count && difftime(time(NULL), begin) < seconds; seed++) {
        input what = {""};
        snprintf(what.name, sizeof what.name, "--seeds %llu 1", (unsigned long long)seed);
        announce(to, &what);
        gr_rng rng = gr_rng_stream(gr_rng_seed(seed), GR_STREAM_USER);
        const size_t size = gr_rng_below(&rng, SEED_BYTES);
        for (size_t i = 0; i < size; i++) data[i] = (uint8_t)gr_rng_below(&rng, 256);
        LLVMFuzzerTestOneInput(data, size);
    }
}

static void run_all(int to, int count, char **words) {
    if (count >= 3 && strcmp(words[0], "--seeds") == 0) {
        run_seeds(to, strtoull(words[1], NULL, 10), strtoull(words[2], NULL, 10), count > 3 ? atof(words[3]) : 1e9);
        return;
    }
    for (int i = 0; i < count; i++) {
        struct stat info;
        if (stat(words[i], &info) == 0 && S_ISDIR(info.st_mode))
            run_directory(to, words[i]);
        else
            run_file(to, words[i]);
    }
}

int main(int argc, char **argv) {
    int ends[2], status = 0;
    unsigned long long runs = 0;
    input last = {"no input"};
    if (argc < 2 || pipe(ends) != 0) {
        fprintf(stderr, "%s FILE...|DIRECTORY...|--seeds FROM COUNT [SECONDS]\n", argv[0]);
        return EXIT_FAILURE;
    }
    const pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        run_all(ends[1], argc - 1, argv + 1);
        exit(EXIT_SUCCESS);
    }
    close(ends[1]);
    while (read(ends[0], &last, sizeof last) == (ssize_t)sizeof last) runs++;
    waitpid(child, &status, 0);
    const bool sound = child > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (!sound)
        printf("CRASH (%s %d), replay it: %s %s\n", WIFSIGNALED(status) ? "signal" : "status",
               WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), argv[0], last.name);
    printf("%llu inputs, %d crashes\n", runs, sound ? 0 : 1);
    return sound ? EXIT_SUCCESS : EXIT_FAILURE;
}
