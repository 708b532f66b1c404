#include "attention.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { COLUMNS = 80, LABEL = 2, GAP = 3 };

/* Colours where standard output is a terminal that has them and NO_COLOR (no-color.org) is not set. */
static bool has_colours(void) {
    const char *term = getenv("TERM"), *none = getenv("NO_COLOR");
    return isatty(STDOUT_FILENO) && !(none && *none) && term && strcmp(term, "dumb") != 0;
}

int lm_columns(int descriptor) {
#ifdef TIOCGWINSZ
    struct winsize size;
    if (ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
#else
    (void)descriptor;
#endif
    return COLUMNS;
}

/* Of 256 colours, for tenths: from white to dark blue, the nearest to those of the pictures. */
static const int colour[] = {231, 189, 153, 111, 75, 69, 33, 27, 26, 25, 18};

/* A cell of a colour, or a digit of tenths. */
static void print_cell(bool colours, int width, double weight) {
    const double w = weight < 0 ? 0 : weight > 1 ? 1 : weight;
    if (colours)
        printf("\033[48;5;%dm%*s\033[0m", colour[(int)(10 * w + 0.5)], width, "");
    else
        printf("%c", w == 0 ? '.' : w < 1 ? '0' + (int)(10 * w) : '9');
}

typedef struct sheet {
    const lm_attention *a;
    bool colours;
    int width; /* columns of a cell */
} sheet;

/* A label in one column: a byte without a character is a dot. */
static const char *short_label(const sheet *s, int64_t i) {
    const char *text = s->a->label[i];
    return text[0] == 'x' && text[1] ? u8"\u00b7" : text;
}

static void print_row(const sheet *s, int64_t layer, int64_t head, int64_t query) {
    const gr_real *weight = lm_head_of(s->a, layer, head) + query * s->a->n;
    printf("%s ", short_label(s, query));
    for (int64_t key = 0; key < s->a->n; key++)
        if (key <= query)
            print_cell(s->colours, s->width, (double)weight[key]);
        else
            printf("%*s", s->width, "");
}

static void print_keys(const sheet *s) {
    printf("%*s", LABEL, "");
    for (int64_t key = 0; key < s->a->n; key++) printf("%s%*s", short_label(s, key), s->width - 1, "");
}

/* Some heads of a layer side by side. */
static void print_heads(const sheet *s, int64_t layer, int64_t head, int64_t count) {
    const int width = LABEL + s->width * (int)s->a->n;
    for (int64_t row = -2; row < s->a->n; row++) {
        for (int64_t h = head; h < head + count; h++) {
            if (h > head) printf("%*s", GAP, "");
            if (row == -2) {
                const int used = printf("layer %lld, head %lld", (long long)layer + 1, (long long)h + 1);
                printf("%*s", h + 1 < head + count && used < width ? width - used : 0, "");
            } else if (row == -1) {
                print_keys(s);
            } else {
                print_row(s, layer, h, row);
            }
        }
        putchar('\n');
    }
    putchar('\n');
}

void lm_print_attention(const lm_attention *a, lm_view view) {
    sheet s = {a, has_colours(), 2};
    const int64_t columns = lm_columns(STDOUT_FILENO);
    enum { TITLE = 20 }; /* columns of "layer 10, head 10" and more */
    if (!s.colours || LABEL + s.width * a->n > columns) s.width = 1;
    if (s.colours && LABEL + s.width * a->n > columns) {
        printf("%lld tokens are wider than this terminal; see the picture\n", (long long)a->n);
        return;
    }
    int64_t width = LABEL + s.width * a->n;
    if (width < TITLE) width = TITLE;
    const int64_t fit = (columns + GAP) / (width + GAP), side = fit < 1 ? 1 : fit;
    printf("rows: queries, columns: keys; each row sums to 1%s\n\n",
           s.colours ? "" : "; a digit is tenths, rounded down; blank: hidden");
    for (int64_t layer = view.layer; layer < view.layer + view.layers; layer++)
        for (int64_t head = view.head; head < view.head + view.heads; head += side) {
            const int64_t left = view.head + view.heads - head;
            print_heads(&s, layer, head, left < side ? left : side);
        }
}
