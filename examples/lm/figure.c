#include "figure.h"

#include "../gnuplot.h"

#include <string.h>

void lm_begin_script(lm_script *script, gr_context *ctx, lm_picture p) {
    char file[64];
    snprintf(file, sizeof file, "%s.gp", p.name);
    script->out = gr_replace_begin(ctx, lm_path(ctx, script->path, p.directory, file), 0);
    gr_replace_print(&script->out,
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
                     p.name, p.name, p.name, p.width, p.height, p.width, p.height, p.name);
}

void lm_end_script(lm_script *script) {
    gr_replace_text(&script->out, "set output\n}\n");
    gr_replace_end(&script->out);
}

/* Whether the mark of a picture's end is among its last bytes. */
static bool is_whole(const char *path, const char *mark) {
    enum { TAIL = 12 }; /* bytes of the chunk that ends a PNG */
    char tail[TAIL];
    FILE *picture = fopen(path, "rb");
    bool found = false;
    if (picture && fseek(picture, -TAIL, SEEK_END) == 0 && fread(tail, 1, TAIL, picture) == TAIL)
        for (size_t i = 0; i + strlen(mark) <= TAIL; i++) found = found || memcmp(tail + i, mark, strlen(mark)) == 0;
    if (picture) (void)fclose(picture); /* only read */
    return found;
}

bool lm_draw(const lm_settings *set, const char *directory, const char *name) {
    static bool warned; /* that there is no gnuplot */
    char script[64], svg[LM_PATH], png[LM_PATH];
    snprintf(script, sizeof script, "%s.gp", name);
    if (snprintf(svg, sizeof svg, "%s/%s.svg", directory, name) >= LM_PATH) {
        lm_warn(set, "no picture: its path is longer than %d bytes", LM_PATH - 1);
        return false;
    }
    snprintf(png, sizeof png, "%s/%s.png", directory, name);
    unlink(svg); /* of other data */
    unlink(png);
    const int status = gnuplot(directory, script); /* 0, too, where a write has failed */
    const bool whole = is_whole(svg, "</svg>") && (access(png, F_OK) != 0 || is_whole(png, "IEND"));
    if (status == 0 && whole) return true;
    unlink(svg);
    unlink(png);
    if (status == 0)
        lm_warn(set, "no picture: what gnuplot writes in %s is cut off; is the disk full?", directory);
    else if (status != GNUPLOT_MISSING)
        lm_warn(set, "no picture: gnuplot fails on %s/%s", directory, script);
    else if (!warned)
        lm_warn(set, "no pictures, as gnuplot is not installed; with it: cd %s && gnuplot *.gp",
                lm_quoted(svg, directory));
    warned = warned || status == GNUPLOT_MISSING;
    return false;
}
