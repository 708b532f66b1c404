/* In a program, the environment says what fails: FAULT=pread FAULT_AT=3, FAULT_WAY=short or interrupted (else it
 * fails with EIO, memory with ENOMEM), and FAULT_MARK, a file that is made when it does. */
#include "faults.h"

#if defined __linux__ && defined __LP64__ /* elsewhere they have other names, such as open64 */

#    include <dirent.h>
#    include <errno.h>
#    include <fcntl.h>
#    include <stdarg.h>
#    include <stdatomic.h>
#    include <stdio.h>
#    include <stdlib.h>
#    include <string.h>
#    include <sys/mman.h>
#    include <sys/stat.h>
#    include <unistd.h>

const bool faults_possible = true;

static atomic_int counted[FAULT_NUMBERS], reached, careless;
static atomic_bool came;
static failure armed;
static const char *mark;

void faults_begin(failure f) {
    reached = 0;
    came = false;
    armed = f;
}

bool faults_end(void) {
    armed.calls = 0;
    return came;
}

int faults_careless(void) { return careless; }

int faults_counted(unsigned long long calls) {
    int sum = 0;
    for (int i = 0; i < FAULT_NUMBERS; i++) sum += calls >> i & 1 ? counted[i] : 0;
    return sum;
}

/* The C library has another name for a call whose off_t has 64 bits by choice. */
/* clang-format off */
#    define ALSO_64(name) extern __typeof__(__wrap_##name) __wrap_##name##64 __attribute__((alias("__wrap_" #name)));
/* clang-format on */

int __real_open(const char *path, int flags, ...);
int __real_close(int file);

static bool comes(int number) {
    counted[number]++;
    if (!(armed.calls >> number & 1)) return false;
    if (++reached != armed.at && armed.at != 0) return false;
    if (mark && !came) __real_close(__real_open(mark, O_WRONLY | O_CREAT, 0666));
    came = true;
    errno = armed.error;
    return true;
}

/* -- Memory and files ---------------------------------------------------------------------------------------------- */

#    define WRAP(result, name, declared, passed, failed) \
        result __real_##name declared;                   \
        result __wrap_##name declared;                   \
        result __wrap_##name declared { return comes(FAULT_NUMBER_##name) ? failed : __real_##name passed; }
struct gr_arena;
WRAP(void *, malloc, (size_t size), (size), NULL)
WRAP(void *, calloc, (size_t count, size_t size), (count, size), NULL)
WRAP(void *, realloc, (void *old, size_t size), (old, size), NULL)
WRAP(void *, aligned_alloc, (size_t alignment, size_t size), (alignment, size), NULL)
WRAP(int, posix_memalign, (void **out, size_t alignment, size_t size), (out, alignment, size), ENOMEM)
WRAP(void *, mmap, (void *at, size_t size, int access, int flags, int file, off_t from),
     (at, size, access, flags, file, from), MAP_FAILED)
WRAP(int, munmap, (void *at, size_t size), (at, size), -1)
WRAP(void *, gr_arena_alloc, (struct gr_arena * arena, size_t bytes), (arena, bytes), NULL)
WRAP(int, fsync, (int file), (file), -1)
WRAP(int, rename, (const char *from, const char *to), (from, to), -1)
WRAP(int, stat, (const char *path, struct stat *out), (path, out), -1)
WRAP(int, fstat, (int file, struct stat *out), (file, out), -1)
WRAP(int, fchown, (int file, uid_t owner, gid_t group), (file, owner, group), -1)
WRAP(int, fchmod, (int file, mode_t mode), (file, mode), -1)
WRAP(DIR *, opendir, (const char *path), (path), NULL)
WRAP(struct dirent *, readdir, (DIR * directory), (directory), NULL)
WRAP(int, access, (const char *path, int how), (path, how), -1)
WRAP(int, unlink, (const char *path), (path), -1)
WRAP(int, mkdir, (const char *path, mode_t mode), (path, mode), -1)
WRAP(int, ftruncate, (int file, off_t size), (file, size), -1)
WRAP(FILE *, fopen, (const char *path, const char *how), (path, how), NULL)
WRAP(FILE *, fdopen, (int file, const char *how), (file, how), NULL)

#    define WRAP_MOVE(name, declared, passed)                   \
        ssize_t __real_##name declared;                         \
        ssize_t __wrap_##name declared;                         \
        ssize_t __wrap_##name declared {                        \
            if (comes(FAULT_NUMBER_##name)) {                   \
                if (armed.way == FAULT_FAILS) return -1;        \
                n = armed.way == FAULT_SHORT ? (n + 1) / 2 : 0; \
            }                                                   \
            return __real_##name passed;                        \
        }
WRAP_MOVE(read, (int file, void *out, size_t n), (file, out, n))
WRAP_MOVE(pread, (int file, void *out, size_t n, off_t at), (file, out, n, at))
WRAP_MOVE(write, (int file, const void *from, size_t n), (file, from, n))

void __real_free(void *old);
void __wrap_free(void *old);
void __wrap_free(void *old) {
    comes(FAULT_NUMBER_free);
    __real_free(old);
}

int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    const unsigned mode = flags & O_CREAT ? va_arg(rest, unsigned) : 0;
    if (flags & O_CREAT && !(flags & O_EXCL)) careless++;
    va_end(rest);
    return comes(FAULT_NUMBER_open) ? -1 : __real_open(path, flags, mode);
}

int __wrap_close(int file);
int __wrap_close(int file) {
    const bool fails = comes(FAULT_NUMBER_close);
    const int closed = __real_close(file);
    errno = fails ? armed.error : errno;
    return fails ? -1 : closed;
}

ALSO_64(mmap)
ALSO_64(stat)
ALSO_64(fstat)
ALSO_64(ftruncate)
ALSO_64(readdir)
ALSO_64(fopen)
ALSO_64(pread)
ALSO_64(open)

/* -- Streams ------------------------------------------------------------------------------------------------------- */

/* While the fault lasts, the descriptor is a device that is full, or a directory, which cannot be read. */
typedef struct swapped {
    int file, kept; /* kept: -1, nothing was swapped */
} swapped;

static swapped swap(int number, FILE *stream, const char *device, int flags) {
    swapped s = {stream && stream != stderr ? fileno(stream) : -1, -1};
    if (s.file < 0 || !comes(number)) return s;
    const int other = __real_open(device, flags);
    s.kept = dup(s.file);
    dup2(other, s.file);
    __real_close(other);
    return s;
}

/* errno stays. */
static bool swap_back(swapped s) {
    const int error = errno;
    if (s.kept < 0) return false;
    dup2(s.kept, s.file);
    __real_close(s.kept);
    errno = error;
    return true;
}

static swapped fill(int number, FILE *stream) { return swap(number, stream, "/dev/full", O_WRONLY); }
static swapped block(int number, FILE *stream) { return swap(number, stream, "/", O_RDONLY | O_DIRECTORY); }

int __real_fflush(FILE *stream);
int __wrap_fflush(FILE *stream);
int __wrap_fflush(FILE *stream) {
    const swapped s = fill(FAULT_NUMBER_fflush, stream);
    const int result = __real_fflush(stream);
    return swap_back(s) ? EOF : result;
}

int __real_fclose(FILE *stream);
int __wrap_fclose(FILE *stream);
int __wrap_fclose(FILE *stream) {
    const swapped s = fill(FAULT_NUMBER_fclose, stream);
    const int result = __real_fclose(stream);
    if (s.kept < 0) return result;
    __real_close(s.kept);
    errno = armed.error;
    return EOF;
}

/* What goes into the stream's buffer is flushed at once, so that it fails here. */
#    define WRAP_OUTPUT(result, name, declared, passed, failed)  \
        result __real_##name declared;                           \
        result __wrap_##name declared;                           \
        result __wrap_##name declared {                          \
            const swapped s = fill(FAULT_NUMBER_##name, stream); \
            const result done = __real_##name passed;            \
            if (s.kept >= 0) __real_fflush(stream);              \
            return swap_back(s) ? (failed) : done;               \
        }
WRAP_OUTPUT(size_t, fwrite, (const void *from, size_t size, size_t count, FILE *stream), (from, size, count, stream), 0)
WRAP_OUTPUT(int, fputs, (const char *text, FILE *stream), (text, stream), EOF)

int __wrap_fprintf(FILE *stream, const char *format, ...);
int __wrap_fprintf(FILE *stream, const char *format, ...) {
    va_list values;
    va_start(values, format);
    const swapped s = fill(FAULT_NUMBER_fprintf, stream);
    const int result = vfprintf(stream, format, values);
    va_end(values);
    if (s.kept >= 0) __real_fflush(stream);
    return swap_back(s) ? -1 : result;
}

/* A reading that the buffer can serve goes well. */
#    define WRAP_INPUT(result, name, declared, passed)            \
        result __real_##name declared;                            \
        result __wrap_##name declared;                            \
        result __wrap_##name declared {                           \
            const swapped s = block(FAULT_NUMBER_##name, stream); \
            const result done = __real_##name passed;             \
            swap_back(s);                                         \
            return done;                                          \
        }
typedef char *line;
WRAP_INPUT(line, fgets, (char *out, int n, FILE *stream), (out, n, stream))
WRAP_INPUT(size_t, fread, (void *out, size_t size, size_t count, FILE *stream), (out, size, count, stream))

/* -- Of a program -------------------------------------------------------------------------------------------------- */

static const char *const names[] = {
/* clang-format off */
#    define NAME(name) #name,
    /* clang-format on */
    FAULT_CALLS(NAME)};

__attribute__((constructor)) static void read_environment(void) {
    const char *name = getenv("FAULT"), *at = getenv("FAULT_AT"), *way = getenv("FAULT_WAY");
    failure f = {.at = at ? atoi(at) : 1, .error = EIO};
    if (!name) return;
    for (int i = 0; i < FAULT_NUMBERS; i++)
        if (strcmp(names[i], name) == 0) f.calls = 1ull << i;
    if (!f.calls) abort();
    if (f.calls & FAULT_MEMORY) f.error = ENOMEM;
    if (way && strcmp(way, "interrupted") == 0) f.error = EINTR;
    if (way && strcmp(way, "short") == 0) f.way = FAULT_SHORT;
    mark = getenv("FAULT_MARK");
    faults_begin(f);
}

#else

const bool faults_possible = false;
void faults_begin(failure f) { (void)f; }
bool faults_end(void) { return false; }
int faults_careless(void) { return 0; }
int faults_counted(unsigned long long calls) { return (int)(calls & 0); }

#endif
