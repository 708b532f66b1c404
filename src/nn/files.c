#include "files.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void gr_fail_errno(gr_context *ctx, const char *where, const char *what) {
    char why[128] = "unknown error";
    strerror_r(errno, why, sizeof why); /* strerror is not for threads */
    gr_fail(ctx, where, "cannot %s: %s", what, why);
}

int gr_open_regular(gr_context *ctx, const char *path, uint64_t *size) {
    const int file = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC); /* does not wait for the writer of a pipe */
    struct stat info;
    if (file < 0) {
        gr_fail_errno(ctx, path, "open");
        return -1;
    }
    if (fstat(file, &info) != 0)
        gr_fail_errno(ctx, path, "ask for the size");
    else if (!S_ISREG(info.st_mode))
        gr_fail(ctx, path, S_ISDIR(info.st_mode) ? "is a directory" : "is not a regular file");
    if (!gr_ok(ctx)) {
        close(file);
        return -1;
    }
    *size = (uint64_t)info.st_size;
    return file;
}
