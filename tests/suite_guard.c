/* No kernel touches memory beyond its operands. Every operand ends where a page without access begins, or begins where
 * one ends: to read or write one element too far is a fault, and so a failure of the test. */
#include "kernels.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const table_name[] = {"reference", "baseline", "avx2", "avx512", "neon"};
enum { TABLES = sizeof table_name / sizeof table_name[0], SIDES = 2 };
static const size_t sizes[] = {0, 1, 2, 3, 15, 16, 17, 31, 33, 64, 67};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

/* -- Memory between two pages without access ----------------------------------------------------------------------- */

enum { OPERANDS = 4, ROOM = GR_GEMM_SCRATCH * sizeof(gr_real) }; /* a multiple of any page */
static char *room[OPERANDS];
static bool flush_right; /* operands end at the page above; else they begin at the page below */

static void open_rooms(bool right) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const int zero = open("/dev/zero", O_RDWR);
    const gr_real half = GR_R(0.5);
    ck_assert(zero >= 0 && ROOM % page == 0);
    for (int i = 0; i < OPERANDS; i++) {
        char *all = mmap(NULL, ROOM + 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE, zero, 0);
        ck_assert(all != MAP_FAILED);
        ck_assert(mprotect(all, page, PROT_NONE) == 0 && mprotect(all + page + ROOM, page, PROT_NONE) == 0);
        room[i] = all + page;
        for (size_t at = 0; at < ROOM; at += sizeof(gr_real)) memcpy(room[i] + at, &half, sizeof half);
    }
    close(zero);
    flush_right = right;
}

/* The n numbers of operand i, against the guard; 0.5 at first. */
static gr_real *place(int i, size_t n) {
    char *end = room[i] + ROOM;
    return (gr_real *)(void *)(flush_right ? end - n * sizeof(gr_real) : room[i]);
}

static gr_real *numbers(int i, size_t n) {
    gr_real *x = place(i, n);
    draw_numbers(n, x, TAME);
    return x;
}

/* The table and the side of a row of the loop; NULL: it cannot run here. */
static const gr_kernels *table_of(int row) {
    open_rooms(row % SIDES == 0);
    return gr_kernels_select(table_name[row / SIDES]);
}

/* Ends by the signal of a fault, whatever handler the process had for it. */
static void read_in_a_child(const volatile gr_real *x) {
    const pid_t child = fork();
    ck_assert(child >= 0);
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL), signal(SIGBUS, SIG_DFL);
        (void)*x;
        _exit(EXIT_SUCCESS);
    }
    int status = 0;
    ck_assert(waitpid(child, &status, 0) == child);
    ck_assert_msg(WIFSIGNALED(status), "a read beyond the page is no fault");
}

TEST(to_read_beyond_an_operand_is_a_fault) {
    for (int right = 0; right <= 1; right++) {
        open_rooms(right == 1);
        for (int i = 0; i < OPERANDS; i++) {
            const gr_real *x = numbers(i, 3);
            read_in_a_child(right ? x + 3 : x - 1);
        }
    }
}

/* -- Elementwise maps ---------------------------------------------------------------------------------------------- */

static size_t extent(size_t n, ptrdiff_t stride) { return n > 0 ? (n - 1) * (size_t)stride + 1 : 0; }

/* With 0 to 3 operands beside y; those that are NULL are not read. */
static void run_map(const gr_kernels *k, int map, size_t n, const ptrdiff_t stride[GR_ROW_OPERANDS], int operands) {
    gr_row row = {.n = n, .t = GR_R(1.5)};
    for (int i = 0; i <= operands; i++) row.p[i] = numbers(i, extent(n, stride[i])), row.s[i] = stride[i];
    k->map[map](&row);
}

TEST(a_map_stays_within_its_operands) {
    const ptrdiff_t stride[][GR_ROW_OPERANDS] = {{1, 1, 1, 1}, {1, 0, 1, 1}, {1, 1, 0, 0}, {2, 3, 1, 2}};
    const gr_kernels *k = table_of(_i);
    for (int map = 0; k && map < GR_MAP_COUNT; map++)
        for (int s = 0; s < SIZES; s++)
            for (size_t d = 0; d < sizeof stride / sizeof stride[0]; d++)
                for (int operands = 1; operands < GR_ROW_OPERANDS; operands++)
                    run_map(k, map, sizes[s], stride[d], operands);
}

/* -- Rows ---------------------------------------------------------------------------------------------------------- */

static const gr_center about = {GR_R(0.3), GR_R(0.007)};

static void run_reductions(const gr_kernels *k, size_t n) {
    const gr_real *x = numbers(0, n), *y = numbers(1, n);
    size_t first = 0;
    k->sum(n, x, GR_R(0.3));
    k->sum_squares(n, x, about, GR_R(1.7));
    k->logsumexp(n, x);
    k->dot(n, x, y);
    if (n > 0) k->max(n, x, &first);
    for (int s = 0; s < SIZES; s++) { /* n columns, n + 1 apart */
        const size_t m = sizes[s], all = m > 0 ? (m - 1) * (n + 1) + n : 0;
        k->sum_rows(m, n, numbers(0, all), (ptrdiff_t)n + 1, numbers(1, n), s % 2 == 0);
        k->all_finite(m, n, numbers(0, all), (ptrdiff_t)n + 1);
    }
}

static void run_softmaxes(const gr_kernels *k, size_t n) {
    gr_real *y = numbers(0, n), *x = numbers(1, n), *dy = numbers(2, n), *mask = numbers(3, n);
    for (size_t i = 0; i < n; i += 2) mask[i] = 0;
    for (int hidden = 0; hidden <= 1; hidden++) {
        const gr_real *allow = hidden ? mask : NULL;
        k->softmax(n, y, x, allow, GR_R(0.3));
    }
    k->softmax_dx(n, x, y, dy, GR_R(0.3));
    k->log_softmax(n, y, x);
    k->log_softmax_dx(n, x, y, dy);
    if (n > 0) k->cross_entropy_dx(n, y, x, GR_R(2.1), GR_R(0.25), n - 1);
    if (n > 0) k->cross_entropy_dx(n, y, x, GR_R(2.1), GR_R(0.25), 0);
}

/* These have room for whole lanes. */
static void run_attention(const gr_kernels *k, size_t n) {
    const size_t all = (n + GR_ROW_ROOM - 1) / GR_ROW_ROOM * GR_ROW_ROOM;
    gr_real *x = numbers(0, all), *dp = numbers(1, all), *mask = numbers(2, all);
    for (int hidden = 0; hidden <= 1; hidden++) {
        const gr_real *allow = hidden ? mask : NULL;
        gr_online_softmax so_far = {(gr_real)-INFINITY, 0};
        k->softmax_join(n, x, allow, GR_R(0.3), &so_far);
        k->attention_dx(n, x, dp, allow, GR_R(0.3), 1, GR_R(0.1), GR_R(0.2));
    }
}

static void run_norms(const gr_kernels *k, size_t n) {
    gr_real *y = numbers(0, n), *x = numbers(1, n), *w = numbers(2, n), *b = numbers(3, n);
    k->normalize(n, y, x, about, GR_R(1.7), w, b);
    k->normalize(n, y, x, about, GR_R(1.7), NULL, NULL);
    k->normalize_dx(n, y, b, x, about, GR_R(1.7), w, true);
    k->normalize_dx(n, y, b, x, (gr_center){0, 0}, GR_R(1.7), NULL, false);
    k->normalize_dw(n, y, b, x, about, GR_R(1.7));
}

static void run_updates(const gr_kernels *k, size_t n) {
    const gr_adam_step step = {.beta1 = 0.9, .beta2 = 0.99, .eps = 1e-3, .rate = 0.1, .root = 1.5, .keep = 0.9};
    gr_real *w = numbers(0, n), *g = numbers(1, n), *m = numbers(2, n), *v = numbers(3, n);
    k->sgd(n, w, g, m, 0.1, 0.9, 0.01);
    for (size_t i = 0; i < n; i++) v[i] *= v[i];
    k->adam(n, w, g, m, v, &step);
}

TEST(a_row_kernel_stays_within_its_operands) {
    const gr_kernels *k = table_of(_i);
    for (int s = 0; k && s < SIZES; s++) {
        run_reductions(k, sizes[s]);
        run_softmaxes(k, sizes[s]);
        run_attention(k, sizes[s]);
        run_norms(k, sizes[s]);
        run_updates(k, sizes[s]);
    }
}

/* -- Matrix products ----------------------------------------------------------------------------------------------- */

enum { A, B, C, SCRATCH };

/* Numbers of a matrix whose rows are one number further apart than they are long, without what follows the last. */
static size_t matrix_extent(size_t rows, size_t columns) {
    return rows > 0 && columns > 0 ? (rows - 1) * (columns + 1) + columns : 0;
}

static gr_gemm product_of(size_t m, size_t n, size_t k, bool a_transposed, bool b_transposed) {
    const ptrdiff_t a_row = (ptrdiff_t)(a_transposed ? m : k) + 1, b_row = (ptrdiff_t)(b_transposed ? k : n) + 1;
    gr_gemm g = {.m = m, .n = n, .k = k, .c_row = (ptrdiff_t)n + 1, .accumulate = (m + n + k) % 2 == 1};
    g.a = place(A, a_transposed ? matrix_extent(k, m) : matrix_extent(m, k));
    g.b = place(B, b_transposed ? matrix_extent(n, k) : matrix_extent(k, n));
    g.c = place(C, matrix_extent(m, n));
    g.scratch = place(SCRATCH, GR_GEMM_SCRATCH);
    g.a_row = a_transposed ? 1 : a_row, g.a_col = a_transposed ? a_row : 1;
    g.b_row = b_transposed ? 1 : b_row, g.b_col = b_transposed ? b_row : 1;
    return g;
}

static void run_products(const gr_kernels *table, size_t m, size_t n, size_t k) {
    for (int transposed = 0; transposed < 4; transposed++) {
        gr_gemm g = product_of(m, n, k, transposed & 1, transposed & 2);
        table->matmul(&g);
        table->matmul_hiding(&g);
    }
}

TEST(a_product_stays_within_its_operands) {
    const gr_kernels *k = table_of(_i);
    for (int m = 0; k && m < SIZES; m++)
        for (int n = 0; n < SIZES; n++)
            for (int deep = 0; deep < SIZES; deep++) run_products(k, sizes[m], sizes[n], sizes[deep]);
}

/* More than a block each way: all of the scratch is in use. */
TEST(a_product_stays_within_its_scratch) {
    const gr_kernels *k = table_of(_i);
    if (k) run_products(k, 2 * GR_GEMM_PANEL_M + 1, GR_GEMM_BLOCK_N + 3, 3);
    if (k) run_products(k, GR_GEMM_PANEL_M + 1, 3, GR_GEMM_BLOCK_K + 3);
    if (k) run_products(k, 2 * GR_GEMM_PANEL_M, GR_GEMM_BLOCK_N / 2, GR_GEMM_BLOCK_K);
}

Suite *guard_suite(void) {
    Suite *suite = suite_create("guard");
    GROUP(suite, "guard", to_read_beyond_an_operand_is_a_fault);
    add_rows(suite, "maps", a_map_stays_within_its_operands, TABLES * SIDES);
    add_rows(suite, "rows", a_row_kernel_stays_within_its_operands, TABLES * SIDES);
    add_rows(suite, "products", a_product_stays_within_its_operands, TABLES * SIDES);
    add_rows(suite, "scratch", a_product_stays_within_its_scratch, TABLES * SIDES);
    return suite;
}
