#include "figure.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NO_PROGRAM = 127 }; /* the shell's exit status for a program that is not there */

lm_output lm_begin_script(gr_context *ctx, const char *directory, const char *name, int width, int height) {
    char file[64];
    snprintf(file, sizeof file, "%s.gp", name);
    lm_output script = lm_create(ctx, directory, file);
    if (!script.file) return script;
    fprintf(script.file,
            "# Draws %s.png, where this gnuplot can, and %s.svg in this directory: gnuplot %s.gp\n"
            "reset\n"
            "kinds = strstrt(GPVAL_TERMINALS, 'pngcairo') > 0 ? 'png svg' : 'svg'\n"
            "do for [kind in kinds] {\n"
            "if (kind eq 'png') {\n"
            "    set terminal pngcairo noenhanced size %d,%d font 'sans,11'\n"
            "} else {\n"
            "    set terminal svg noenhanced size %d,%d font 'sans,11' background rgb 'white'\n"
            "}\n"
            "set output '%s.'.kind\n",
            name, name, name, width, height, width, height, name);
    return script;
}

void lm_end_script(gr_context *ctx, lm_output *script) {
    fputs("set output\n}\n", script->file);
    lm_close(ctx, script);
}

/* In the child: becomes gnuplot, silent, in the directory. */
static void become_gnuplot(const char *directory, const char *script) {
    const int nowhere = open("/dev/null", O_RDWR);
    if (nowhere < 0 || chdir(directory) != 0) _exit(1);
    dup2(nowhere, STDIN_FILENO);
    dup2(nowhere, STDOUT_FILENO);
    dup2(nowhere, STDERR_FILENO);
    execlp("gnuplot", "gnuplot", script, (char *)NULL);
    _exit(NO_PROGRAM);
}

void lm_draw(const lm_settings *set, const char *directory, const char *name) {
    static bool warned; /* that there is no gnuplot */
    char script[64];
    int status = 0;
    snprintf(script, sizeof script, "%s.gp", name);
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) become_gnuplot(directory, script);
    const bool ended = child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status);
    if (ended && WEXITSTATUS(status) == 0) return;
    if (!ended || WEXITSTATUS(status) != NO_PROGRAM)
        lm_warn(set, "no picture: gnuplot fails on %s/%s", directory, script);
    else if (!warned)
        lm_warn(set, "no pictures, as gnuplot is not installed; with it: cd %s && gnuplot *.gp", directory);
    warned = true;
}
