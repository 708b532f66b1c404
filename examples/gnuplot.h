/* Pictures by gnuplot. */
#ifndef GNUPLOT_H
#define GNUPLOT_H

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { GNUPLOT_FAILED = 1, GNUPLOT_MISSING = 127 /* the shell's exit status for a program that is not there */ };

/* In the child: becomes gnuplot, silent, in the directory. What the program ignores, it would ignore too. */
static inline void gnuplot_become(const char *directory, const char *script) {
#ifdef SIGXFSZ
    signal(SIGXFSZ, SIG_DFL);
#endif
    const int nowhere = open("/dev/null", O_RDWR);
    if (nowhere < 0 || chdir(directory) != 0) _exit(GNUPLOT_FAILED);
    dup2(nowhere, STDIN_FILENO);
    dup2(nowhere, STDOUT_FILENO);
    dup2(nowhere, STDERR_FILENO);
    execlp("gnuplot", "gnuplot", script, (char *)NULL);
    _exit(GNUPLOT_MISSING);
}

/* Runs a script of the directory. 0, GNUPLOT_MISSING, or another status: it has failed. */
static inline int gnuplot(const char *directory, const char *script) {
    int status = 0;
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) gnuplot_become(directory, script);
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status)) return GNUPLOT_FAILED;
    return WEXITSTATUS(status);
}

#endif
