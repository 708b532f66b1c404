#include "files.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

void gr_fail_errno(gr_context *ctx, const char *where, const char *what) {
    char why[128] = "unknown error";
    strerror_r(errno, why, sizeof why); /* strerror is not for threads */
    gr_fail(ctx, where, "cannot %s: %s", what, why);
}

/* Only a regular file is read, and only such a file is replaced. */
static bool is_regular(gr_context *ctx, const char *path, const struct stat *info) {
    if (!S_ISREG(info->st_mode))
        gr_fail(ctx, path, S_ISDIR(info->st_mode) ? "is a directory" : "is not a regular file");
    return S_ISREG(info->st_mode);
}

int gr_open_regular(gr_context *ctx, const char *path, uint64_t *size) {
    const int file = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC); /* does not wait for the writer of a pipe */
    struct stat info;
    if (file < 0) {
        gr_fail_errno(ctx, path, "open");
        return -1;
    }
    const bool known = fstat(file, &info) == 0;
    if (!known) gr_fail_errno(ctx, path, "ask for the size");
    if (!known || !is_regular(ctx, path, &info)) {
        close(file);
        return -1;
    }
    *size = (uint64_t)info.st_size;
    return file;
}

bool gr_read_at(gr_context *ctx, const char *name, int file, uint64_t at, size_t n, uint8_t *out) {
    for (size_t have = 0; have < n;) {
        const ssize_t got = pread(file, out + have, n - have, (off_t)(at + have));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) gr_fail_errno(ctx, name, "read");
        if (got == 0) gr_fail(ctx, name, "has become shorter: no byte at offset %llu", (unsigned long long)at + have);
        if (got <= 0) return false;
        have += (size_t)got;
    }
    return true;
}

/* -- Replacing a file ---------------------------------------------------------------------------------------------- */

enum {
    BUFFER = 1 << 16,                /* bytes of a system call */
    PRINTED = 1 << 12,               /* bytes that one call prints, NUL included */
    SUFFIX = sizeof ".XXXXXXXX.tmp", /* NUL included */
    TRIES = 100                      /* of names that are all taken: somebody means it */
};

/* Keeps the first cause. */
static void note_failure(gr_replacing *r, bool ok) {
    if (!ok && r->cause == 0) r->cause = errno ? errno : EIO;
}

/* A write above the limit would end the process by a signal. */
static bool within_limit(uint64_t size) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || size <= limit.rlim_cur) return true;
    errno = EFBIG;
    return false;
}

static int open_directory(gr_context *ctx, const char *path) {
    const char *slash = strrchr(path, '/');
    const size_t length = !slash ? 0 : slash == path ? 1 : (size_t)(slash - path);
    char *name = gr_alloc(ctx, false, length + 2);
    if (!name) return -1;
    memcpy(name, slash ? path : ".", slash ? length : 1);
    name[slash ? length : 1] = '\0';
    return open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* Where nothing is yet, old stays as it is. */
static bool look_at(gr_context *ctx, const char *path, struct stat *old) {
    if (stat(path, old) == 0) return is_regular(ctx, path, old);
    if (errno != ENOENT) gr_fail_errno(ctx, path, "write");
    return errno == ENOENT;
}

bool gr_can_replace(gr_context *ctx, const char *path) { return look_at(ctx, path, &(struct stat){0}); }

void gr_permit_like(int file, const struct stat *old) {
    mode_t mode = old->st_mode & (S_IRWXU | S_IRWXG | S_IRWXO); /* the owner may have become another: no set-user-ID */
    if (fchown(file, (uid_t)-1, old->st_gid) != 0) mode &= S_IRWXU | (mode >> 3 & S_IRWXO);
    (void)fchmod(file, mode);
}

/* Names differ by process, call and time; where two meet all the same, O_EXCL tells. It follows no link either. */
static int open_beside(gr_replacing *r, mode_t mode) {
    const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    const size_t room = strlen(r->path) + SUFFIX;
    struct timespec now = {0};
    clock_gettime(CLOCK_REALTIME, &now);
    gr_rng rng = gr_rng_seed((uint64_t)now.tv_sec << 30 ^ (uint64_t)now.tv_nsec);
    rng = gr_rng_stream(rng, (uint64_t)getpid() << 32 ^ (uintptr_t)r);
    for (int i = 0; i < TRIES; i++) {
        snprintf(r->beside, room, "%s.%08" PRIx32 ".tmp", r->path, (uint32_t)gr_rng_next(&rng));
        const int file = open(r->beside, flags, mode);
        if (file >= 0 || errno != EEXIST) return file;
    }
    return -1;
}

bool gr_is_beside(const char *entry, const char *name) {
    const size_t length = strlen(name);
    if (strncmp(entry, name, length) != 0) return false;
    entry += length;
    return *entry == '.' && strspn(entry + 1, "0123456789abcdef") == 8 && strcmp(entry + 9, ".tmp") == 0;
}

gr_replacing gr_replace_begin(gr_context *ctx, const char *path, uint64_t size) {
    gr_replacing r = {.ctx = ctx, .path = path, .file = -1, .directory = -1};
    struct stat old = {0};
    r.beside = gr_alloc(ctx, false, strlen(path) + SUFFIX);
    r.buffer = gr_alloc(ctx, false, BUFFER);
    if (!r.beside || !r.buffer) {
        r.cause = ENOMEM;
        return r;
    }
    note_failure(&r, look_at(ctx, path, &old));
    if (!r.cause) note_failure(&r, within_limit(size));
    if (!r.cause) note_failure(&r, (r.directory = open_directory(ctx, path)) >= 0);
    if (!r.cause) note_failure(&r, (r.file = open_beside(&r, old.st_mode ? old.st_mode & S_IRWXU : 0666)) >= 0);
    if (r.file >= 0 && old.st_mode) gr_permit_like(r.file, &old);
    return r;
}

static void write_out(gr_replacing *r) {
    for (size_t done = 0; done < r->used && !r->cause;) {
        errno = 0;
        const ssize_t n = write(r->file, r->buffer + done, r->used - done);
        if (n < 0 && errno == EINTR) continue;
        note_failure(r, n > 0); /* a device that takes nothing would take nothing for ever */
        if (n > 0) done += (size_t)n;
    }
    r->used = 0;
}

void gr_replace_write(gr_replacing *r, const void *bytes, size_t n) {
    const uint8_t *from = bytes;
    r->size += n;
    while (n > 0 && !r->cause && !r->counts) {
        const size_t left = BUFFER - r->used, some = n < left ? n : left;
        memcpy(r->buffer + r->used, from, some);
        r->used += some, from += some, n -= some;
        if (r->used == BUFFER) write_out(r);
    }
}

void gr_replace_text(gr_replacing *r, const char *text) { gr_replace_write(r, text, strlen(text)); }

void gr_replace_print(gr_replacing *r, const char *format, ...) {
    char text[PRINTED];
    va_list args;
    va_start(args, format);
    errno = EOVERFLOW;
    const int length = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    const bool fits = length >= 0 && length < PRINTED;
    note_failure(r, fits);
    if (fits) gr_replace_write(r, text, (size_t)length);
}

bool gr_replace_end(gr_replacing *r) {
    bool renamed = false;
    write_out(r);
    if (!r->cause) note_failure(r, fsync(r->file) == 0);
    if (r->file >= 0) {
        const bool closed = close(r->file) == 0;
        note_failure(r, closed);
    }
    if (!r->cause) note_failure(r, renamed = rename(r->beside, r->path) == 0);
    if (!renamed && r->file >= 0) unlink(r->beside);
    /* EINVAL: a file system that has no flushing of directories. */
    if (!r->cause) note_failure(r, fsync(r->directory) == 0 || errno == EINVAL);
    if (r->directory >= 0) close(r->directory);
    if (r->cause) {
        errno = r->cause;
        gr_fail_errno(r->ctx, r->path, "write");
    }
    return r->cause == 0;
}
