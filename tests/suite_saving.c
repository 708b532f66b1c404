/* A file that could not be replaced is as it was, and nothing is beside it. */
#include "faults.h"
#include "nn/files.h"
#include "nn_support.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROOM = 1 << 18, VOCAB = 7, TIMES = 200 };

static struct {
    char directory[32], path[64];
    char before[ROOM];
    size_t size;
    gr_gpt *gpt;
    gr_adamw *adamw;
    gr_tokenizer letters;
} t;

static size_t read_back(char *out) {
    FILE *file = fopen(t.path, "rb");
    const size_t size = file ? fread(out, 1, ROOM, file) : 0;
    if (file) fclose(file);
    return size;
}

static bool save(bool state) {
    return state ? gr_state_save(t.gpt, t.adamw, (gr_resume){.step = 1}, t.path)
                 : gr_gpt_save(t.gpt, &t.letters, t.path);
}

/* A directory with one file: a model's, or a run's. */
static void begin(bool state) {
    strcpy(t.directory, "/tmp/gradus_test_XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(t.directory));
    snprintf(t.path, sizeof t.path, "%s/model", t.directory);
    t.letters = gr_tokenizer_chars((const uint8_t *)"abcdefg", VOCAB);
    t.gpt = gr_gpt_new(ctx, (gr_gpt_config){.vocab = VOCAB, .context = 8, .layers = 2, .width = 8});
    t.adamw = gr_adamw_new(ctx, (gr_adamw_config){.beta1 = 0});
    ck_assert_msg(save(state), "%s", gr_error_message(ctx));
    t.size = read_back(t.before);
    ck_assert(t.size > 1000 && t.size < ROOM);
    fill_parameters(); /* what comes next would be another file */
}

static int entries(void) {
    int count = 0;
    DIR *directory = opendir(t.directory);
    while (directory && readdir(directory)) count++;
    if (directory) closedir(directory);
    return count - 2; /* . and .. */
}

static void expect_as_before(const char *message) {
    static char after[ROOM];
    EXPECT_ERROR(message);
    ck_assert_uint_eq(read_back(after), t.size);
    ck_assert(memcmp(t.before, after, t.size) == 0);
    ck_assert_int_eq(entries(), 1);
}

static void clean_up(void) {
    unlink(t.path);
    ck_assert_int_eq(rmdir(t.directory), 0);
}

TEST(a_file_larger_than_a_process_may_write_is_an_error_and_no_signal) {
    begin(_i);
    const size_t limit[] = {0, 1, 100, t.size / 2, t.size - 1};
    for (size_t i = 0; i < sizeof limit / sizeof *limit; i++) {
        struct rlimit old, few;
        getrlimit(RLIMIT_FSIZE, &old);
        few = old;
        few.rlim_cur = limit[i];
        const bool limited = setrlimit(RLIMIT_FSIZE, &few) == 0; /* from here on Check cannot write either */
        const bool saved = save(_i);
        setrlimit(RLIMIT_FSIZE, &old);
        ck_assert(limited && !saved);
        expect_as_before("/model: cannot write: File too large");
    }
    ck_assert(save(_i) && entries() == 1);
    clean_up();
}

TEST(a_directory_that_cannot_be_written_is_an_error) {
    begin(_i);
    const bool root = geteuid() == 0; /* whom permissions do not concern */
    ck_assert_int_eq(chmod(t.directory, 0555), 0);
    ck_assert(!root || seteuid(65534) == 0);
    ck_assert(!save(_i));
    expect_as_before("/model: cannot write: Permission denied");
    ck_assert(!root || seteuid(0) == 0);
    ck_assert_int_eq(chmod(t.directory, 0755), 0);
    clean_up();
}

TEST(a_directory_that_has_gone_is_an_error) {
    begin(_i);
    clean_up();
    ck_assert(!save(_i));
    EXPECT_ERROR("/model: cannot write: No such file or directory");
    ck_assert_int_eq(access(t.directory, F_OK), -1);
}

TEST(a_directory_in_the_place_of_the_file_is_an_error) {
    begin(_i);
    unlink(t.path);
    ck_assert_int_eq(mkdir(t.path, 0755), 0);
    ck_assert(!save(_i));
    EXPECT_ERROR("/model: is a directory");
    ck_assert_int_eq(entries(), 1); /* the directory; nothing beside it */
    rmdir(t.path);
    clean_up();
}

TEST(a_pipe_in_the_place_of_the_file_stays_one) { /* as /dev/null does, which root could replace */
    struct stat info;
    begin(_i);
    unlink(t.path);
    ck_assert_int_eq(mkfifo(t.path, 0644), 0);
    ck_assert(!save(_i));
    EXPECT_ERROR("/model: is not a regular file");
    ck_assert(entries() == 1 && stat(t.path, &info) == 0 && S_ISFIFO(info.st_mode));
    clean_up();
}

TEST(a_bare_name_is_a_file_of_the_working_directory) {
    begin(_i);
    ck_assert_int_eq(chdir(t.directory), 0);
    strcpy(t.path, "model");
    ck_assert_msg(save(_i), "%s", gr_error_message(ctx));
    ck_assert_int_eq(entries(), 1);
    unlink(t.path);
    ck_assert_int_eq(rmdir(t.directory), 0);
}

/* The files of two that replace one, long enough for more than one call of the system. */
static const struct text {
    char letter;
    size_t size;
} texts[] = {{'a', 70000}, {'b', 140000}};

static bool is_one_of_them(const char *bytes, size_t size) {
    const struct text *text = &texts[size != texts[0].size];
    return size == text->size && *bytes == text->letter && memcmp(bytes, bytes + 1, size - 1) == 0;
}

/* NULL: each time it was done, and the file whole, its own or the other's. */
static void *replace_often(void *arg) {
    const struct text *text = arg;
    char *bytes = malloc(ROOM);
    gr_context *c = gr_context_new();
    bool fine = bytes;
    for (int i = 0; fine && i < TIMES; i++) {
        memset(bytes, text->letter, text->size);
        gr_replacing r = gr_replace_begin(c, t.path, text->size);
        gr_replace_write(&r, bytes, text->size);
        fine = gr_replace_end(&r) && is_one_of_them(bytes, read_back(bytes));
        gr_context_reset(c);
    }
    gr_context_free(c);
    free(bytes);
    return fine ? NULL : arg;
}

static bool in_threads(void) {
    pthread_t thread[2];
    bool fine = true;
    for (int i = 0; i < 2; i++) ck_assert_int_eq(pthread_create(&thread[i], NULL, replace_often, (void *)&texts[i]), 0);
    for (int i = 0; i < 2; i++) {
        void *failed;
        fine = pthread_join(thread[i], &failed) == 0 && !failed && fine;
    }
    return fine;
}

static bool in_processes(void) {
    pid_t child[2];
    bool fine = true;
    for (int i = 0; i < 2; i++)
        if ((child[i] = fork()) == 0) _exit(replace_often((void *)&texts[i]) != NULL);
    for (int i = 0; i < 2; i++) {
        int status = 1;
        fine = waitpid(child[i], &status, 0) == child[i] && status == 0 && fine;
    }
    return fine;
}

TEST(two_that_replace_one_file_leave_one_of_theirs_whole) {
    begin(false);
    ck_assert(_i ? in_processes() : in_threads());
    ck_assert_int_eq(entries(), 1);
    clean_up();
}

TEST(what_lies_beside_the_file_is_left_alone) {
    static char bytes[ROOM];
    const char *const names[] = {"model.tmp", "model.00000000.tmp"}; /* a link to a user's file, and this file */
    begin(_i);
    ck_assert(chdir(t.directory) == 0 && rename(t.path, names[1]) == 0 && symlink(names[1], names[0]) == 0);
    ck_assert(save(_i) && entries() == 3);
    unlink(t.path);
    for (int i = 0; i < 2; i++) {
        strcpy(t.path, names[i]);
        ck_assert_uint_eq(read_back(bytes), t.size);
        ck_assert(memcmp(t.before, bytes, t.size) == 0);
    }
    unlink(names[0]);
    clean_up();
}

static unsigned permissions(void) {
    struct stat info;
    ck_assert_int_eq(stat(t.path, &info), 0);
    return info.st_mode & 07777;
}

TEST(permissions_of_the_older_file_stay) {
    const mode_t modes[] = {0600, 0400, 0640, 0644, 0666, 0755};
    umask(027);
    begin(_i);
    ck_assert_uint_eq(permissions(), 0640); /* there was none */
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        ck_assert_int_eq(chmod(t.path, modes[i]), 0);
        ck_assert(save(_i));
        ck_assert_uint_eq(permissions(), modes[i]);
    }
    ck_assert_int_eq(chmod(t.path, 04755), 0);
    ck_assert(save(_i));
    ck_assert_uint_eq(permissions(), 0755);
    clean_up();
}

/* Its members are then among the others. */
TEST(without_the_group_nobody_may_do_more) {
    const struct {
        mode_t old, wanted;
    } modes[] = {{0600, 0600}, {0604, 0600}, {0640, 0600}, {0664, 0604}, {0755, 0705}};
    begin(_i);
    for (size_t i = 0; faults_possible && i < sizeof modes / sizeof *modes; i++) {
        ck_assert_int_eq(chmod(t.path, modes[i].old), 0);
        faults_begin((failure){FAULT(fchown), 1, FAULT_FAILS, EPERM});
        ck_assert(save(_i));
        ck_assert(faults_end());
        ck_assert_uint_eq(permissions(), modes[i].wanted);
    }
    clean_up();
}

TEST(a_file_beside_another_is_known_by_its_name) {
    static const char *const others[] = {"m",
                                         "model",
                                         "model.tmp",
                                         "model..tmp",
                                         "model.12345678",
                                         "model.1234567.tmp",
                                         "model.123456789.tmp",
                                         "model.1234567G.tmp",
                                         "model.1234567A.tmp",
                                         "model.12345678.tmp2",
                                         "model-12345678.tmp",
                                         "models.12345678.tmp",
                                         "amodel.12345678.tmp",
                                         ""};
    ck_assert(gr_is_beside("model.12345678.tmp", "model") && gr_is_beside("model.new.90abcdef.tmp", "model.new"));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        ck_assert_msg(!gr_is_beside(others[i], "model"), "%s", others[i]);
}

TEST(what_cannot_be_saved_makes_no_file) {
    t.letters = gr_tokenizer_chars((const uint8_t *)"abcdefg", VOCAB);
    strcpy(t.path, "/tmp/gradus_test_none");
    t.gpt = gr_gpt_new(ctx, (gr_gpt_config){.vocab = VOCAB, .context = 8, .width = 8, .dropout = 2});
    EXPECT_ERROR("dropout 2");
    t.adamw = gr_adamw_new(ctx, (gr_adamw_config){.beta1 = 0});
    ck_assert(!save(_i));
    EXPECT_ERROR("the model could not be made, after an error that has been cleared since");
    ck_assert(!gr_gpt_save(NULL, NULL, t.path));
    t.gpt = gr_gpt_new(ctx, (gr_gpt_config){.vocab = VOCAB, .context = 8, .width = 8});
    ck_assert(!gr_gpt_save(t.gpt, NULL, t.path));
    EXPECT_ERROR("gradus_test_none: ");
    gr_fail(ctx, "saving", "on purpose");
    ck_assert(!save(_i));
    EXPECT_ERROR("saving: on purpose");
    ck_assert_int_ne(access(t.path, F_OK), 0);
}

Suite *saving_suite(void) {
    Suite *suite = suite_create("saving"); /* each of a model (0) and of a run (1) */
    add_rows(suite, "size", a_file_larger_than_a_process_may_write_is_an_error_and_no_signal, 2);
    add_rows(suite, "permission", a_directory_that_cannot_be_written_is_an_error, 2);
    add_rows(suite, "gone", a_directory_that_has_gone_is_an_error, 2);
    add_rows(suite, "directory", a_directory_in_the_place_of_the_file_is_an_error, 2);
    add_rows(suite, "pipe", a_pipe_in_the_place_of_the_file_stays_one, 2);
    add_rows(suite, "nothing", what_cannot_be_saved_makes_no_file, 2);
    add_rows(suite, "bare", a_bare_name_is_a_file_of_the_working_directory, 2);
    add_rows(suite, "two", two_that_replace_one_file_leave_one_of_theirs_whole, 2); /* threads, processes */
    add_rows(suite, "neighbours", what_lies_beside_the_file_is_left_alone, 2);
    add_rows(suite, "permissions", permissions_of_the_older_file_stay, 2);
    add_rows(suite, "group", without_the_group_nobody_may_do_more, 2);
    GROUP(suite, "names", a_file_beside_another_is_known_by_its_name);
    return suite;
}
