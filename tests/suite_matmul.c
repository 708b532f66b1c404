/* The matrix product of every instruction set against the three loops of the reference, with == on the bits. */
#include "kernels.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { END = 999999 };                  /* of a list of sizes */
enum { ELEMENTS = 1 << 20, EXTRA = 3 }; /* columns beyond those of C, which must stay as they are */
static gr_real a[ELEMENTS], b[ELEMENTS], c_before[ELEMENTS], c_fast[ELEMENTS], c_plain[ELEMENTS];
static gr_real scratch[GR_GEMM_SCRATCH];

/* How the elements of an operand of r rows and c columns lie. */
typedef enum layout { BY_ROWS, BY_COLUMNS, SPREAD, REPEATED_ROW, REPEATED_COLUMN, LAYOUTS } layout;

static void find_strides(layout of, size_t rows, size_t columns, ptrdiff_t *row, ptrdiff_t *col) {
    const ptrdiff_t r = (ptrdiff_t)rows, c = (ptrdiff_t)columns;
    const ptrdiff_t strides[LAYOUTS][2] = {{c, 1}, {1, r}, {2 * c + 5, 2}, {0, 1}, {1, 0}};
    *row = strides[of][0], *col = strides[of][1];
}

static gr_gemm product_of(size_t m, size_t n, size_t k, layout of_a, layout of_b, bool accumulate) {
    gr_gemm g = {.m = m, .n = n, .k = k, .a = a, .b = b, .c_row = (ptrdiff_t)n + EXTRA, .accumulate = accumulate};
    find_strides(of_a, m, k, &g.a_row, &g.a_col);
    find_strides(of_b, k, n, &g.b_row, &g.b_col);
    g.scratch = scratch;
    return g;
}

static void compare(const gr_kernels *k, gr_gemm g) {
    size_t used = g.m * (size_t)g.c_row;
    char what[128];
    snprintf(what, sizeof what, "matmul (%zu, %zu) (%zu, %zu), strides %d %d and %d %d%s", g.m, g.k, g.k, g.n,
             (int)g.a_row, (int)g.a_col, (int)g.b_row, (int)g.b_col, g.accumulate ? ", accumulated" : "");
    memcpy(c_fast, c_before, used * sizeof *c_fast);
    memcpy(c_plain, c_before, used * sizeof *c_plain);
    g.c = c_fast, k->matmul(&g);
    g.c = c_plain, gr_kernels_select("reference")->matmul(&g);
    expect_same(k, what, used, c_fast, c_plain);
    g.c = c_fast, memcpy(c_fast, c_before, used * sizeof *c_fast), k->matmul_hiding(&g);
    g.c = c_plain, memcpy(c_plain, c_before, used * sizeof *c_plain), gr_kernels_select("reference")->matmul_hiding(&g);
    expect_same(k, what, used, c_fast, c_plain);
}

static void draw_operands(kind of) {
    draw_numbers(ELEMENTS / 8, a, of), draw_numbers(ELEMENTS / 8, b, of), draw_numbers(ELEMENTS / 8, c_before, of);
    memcpy(a + ELEMENTS / 8, a, sizeof a / 8), memcpy(b + ELEMENTS / 8, b, sizeof b / 8);
}

/* 0 and 1; a tile of each instruction set and precision (4, 6, 8, 12, 16, 32) and its neighbours; primes. */
TEST(every_size_around_a_tile_gives_the_bits_of_the_reference) {
    const gr_kernels *k = table(_i);
    const size_t m[] = {0, 1, 2, 5, 6, 7, 11, 12, 13, 23, 25},
                 n[] = {0, 1, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 37};
    const size_t depth[] = {0, 1, 2, 7, 29};
    draw_operands(TAME);
    for (size_t x = 0; x < sizeof m / sizeof m[0]; x++)
        for (size_t y = 0; y < sizeof n / sizeof n[0]; y++)
            for (size_t z = 0; z < sizeof depth / sizeof depth[0]; z++)
                for (int accumulate = 0; accumulate < 2; accumulate++)
                    compare(k, product_of(m[x], n[y], depth[z], BY_ROWS, BY_ROWS, accumulate));
}

TEST(every_number_of_blocks_gives_the_bits_of_the_reference) {
    const gr_kernels *k = table(_i);
    enum { K = GR_GEMM_BLOCK_K, N = GR_GEMM_BLOCK_N, SOME = 300 };
    const size_t size[][3] = {
        {13, 37, K - 1}, {12, 32, K},     {13, 37, K + 1}, {7, 33, 2 * K - 1}, {7, 33, 2 * K}, {5, 9, 2 * K + 1},
        {6, N - 1, 40},  {13, N, 41},     {50, N + 1, 17}, {33, N + 1, K + 1}, {1, 600, SOME}, {67, SOME, SOME},
        {SOME, 1, SOME}, {131, 129, 127}, {95, 65, 64},    {96, 64, 65},       {127, 65, 64},  {128, 64, 65}};
    draw_operands(TAME);
    for (size_t s = 0; s < sizeof size / sizeof size[0]; s++)
        for (int accumulate = 0; accumulate < 2; accumulate++)
            compare(k, product_of(size[s][0], size[s][1], size[s][2], BY_ROWS, BY_ROWS, accumulate));
}

static void compare_all(const gr_kernels *k, const size_t (*list)[10], layout of_a, layout of_b) {
    for (const size_t *m = list[0]; *m != END; m++)
        for (const size_t *n = list[1]; *n != END; n++)
            for (const size_t *depth = list[2]; *depth != END; depth++)
                for (int accumulate = 0; accumulate < 2; accumulate++)
                    compare(k, product_of(*m, *n, *depth, of_a, of_b, accumulate));
}

/* One row and two go by strips of 1, 2, 4 and 8 vectors; three do not. */
TEST(few_rows_give_the_bits_of_the_reference) {
    const gr_kernels *k = table(_i);
    const size_t size[][10] = {
        {1, 2, 3, END}, {0, 1, 15, 16, 31, 65, 127, 128, 257, END}, {0, 1, 2, 31, 128, 131, END}};
    draw_operands(TAME);
    for (int of_a = BY_ROWS; of_a <= SPREAD; of_a++)
        for (int of_b = BY_ROWS; of_b <= SPREAD; of_b++) compare_all(k, size, (layout)of_a, (layout)of_b);
}

/* Squares of 4 and 8 are transposed as one; what is left over, below and beside, number by number. */
TEST(transposed_operands_give_the_bits_of_the_reference) {
    const gr_kernels *k = table(_i);
    const size_t size[][10] = {
        {3, 4, 5, 7, 8, 9, 13, 33, END}, {3, 4, 7, 8, 9, 31, 32, 41, 65, END}, {1, 3, 4, 7, 8, 9, 16, 37, END}};
    draw_operands(TAME);
    for (int of_a = BY_ROWS; of_a <= BY_COLUMNS; of_a++)
        for (int of_b = BY_ROWS; of_b <= BY_COLUMNS; of_b++) compare_all(k, size, (layout)of_a, (layout)of_b);
}

/* n numbers behind which reading is a fault. */
static gr_real *before_a_wall(size_t n, gr_real **room) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = (n * sizeof(gr_real) + page - 1) / page * page;
    void *whole = NULL;
    ck_assert(posix_memalign(&whole, page, bytes + page) == 0);
    ck_assert(mprotect((char *)whole + bytes, page, PROT_NONE) == 0);
    *room = whole;
    return (gr_real *)((char *)whole + bytes) - n;
}

static void tear_down(size_t n, gr_real *room) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = (n * sizeof(gr_real) + page - 1) / page * page;
    ck_assert(mprotect((char *)room + bytes, page, PROT_READ | PROT_WRITE) == 0);
    free(room);
}

static void multiply_before_walls(const gr_kernels *k, gr_gemm g) {
    gr_real *room[3], *walled[3];
    const gr_real *from[] = {a, b, c_before};
    const size_t n[] = {g.m * g.k, g.k * g.n, g.m * g.n};
    for (int i = 0; i < 3; i++) {
        walled[i] = before_a_wall(n[i], &room[i]);
        memcpy(walled[i], from[i], n[i] * sizeof(gr_real));
    }
    g.c_row = (ptrdiff_t)g.n;
    memcpy(c_plain, c_before, n[2] * sizeof *c_plain);
    g.c = c_plain, gr_kernels_select("reference")->matmul(&g);
    g.a = walled[0], g.b = walled[1], g.c = walled[2], k->matmul(&g);
    expect_same(k, "matmul before a wall", n[2], g.c, c_plain);
    for (int i = 0; i < 3; i++) tear_down(n[i], room[i]);
}

TEST(nothing_beyond_an_operand_is_touched) {
    const gr_kernels *k = table(_i);
    const size_t m[] = {1, 2, 3, 5, 7, 9, 97, 129}, n[] = {1, 5, 15, 17, 33, 65}, depth[] = {1, 7, 9, 19};
    draw_operands(TAME);
    for (size_t x = 0; x < sizeof m / sizeof m[0]; x++)
        for (size_t y = 0; y < sizeof n / sizeof n[0]; y++)
            for (size_t z = 0; z < sizeof depth / sizeof depth[0]; z++)
                for (int i = 0; i < 4; i++)
                    multiply_before_walls(
                        k, product_of(m[x], n[y], depth[z], (layout)(i % 2), (layout)(i / 2), (x + y + z) % 2));
}

TEST(operands_may_have_any_strides) {
    const gr_kernels *k = table(_i);
    const size_t size[][3] = {{1, 1, 1}, {7, 17, 9}, {12, 32, 16}, {13, 37, 131}, {29, 270, 260}};
    draw_operands(TAME);
    for (size_t s = 0; s < sizeof size / sizeof size[0]; s++)
        for (int of_a = 0; of_a < LAYOUTS; of_a++)
            for (int of_b = 0; of_b < LAYOUTS; of_b++)
                compare(k, product_of(size[s][0], size[s][1], size[s][2], (layout)of_a, (layout)of_b, of_a % 2));
}

TEST(numbers_of_every_kind_give_the_bits_of_the_reference) {
    const gr_kernels *k = table(_i);
    const size_t size[][3] = {{7, 17, 3}, {13, 37, 9}, {31, 33, 1}, {12, 32, 2}, {29, 60, 260}};
    for (int of = SPECIAL; of < (k->exact ? KINDS : WILD); of++) {
        draw_operands((kind)of);
        for (size_t s = 0; s < sizeof size / sizeof size[0]; s++)
            for (int accumulate = 0; accumulate < 2; accumulate++)
                compare(k, product_of(size[s][0], size[s][1], size[s][2], BY_ROWS, BY_COLUMNS, accumulate));
    }
}

/* The header's words: begun at 0 or at C's value, over k = 0, 1, ... in order, each step rounded once. */
TEST(an_element_is_one_chain_of_fused_multiply_adds) {
    enum { M = 9, N = 21, K = 300 };
    draw_operands(TAME);
    for (int accumulate = 0; accumulate < 2; accumulate++) {
        gr_gemm g = product_of(M, N, K, BY_ROWS, BY_ROWS, accumulate);
        memcpy(c_plain, c_before, sizeof c_plain);
        g.c = c_plain, gr_kernels_select("reference")->matmul(&g);
        for (size_t i = 0; i < M; i++)
            for (size_t j = 0; j < N; j++) {
                gr_real sum = accumulate ? c_before[i * (N + EXTRA) + j] : 0;
                for (size_t p = 0; p < K; p++) {
                    if (sizeof sum == sizeof(float))
                        sum = (gr_real)fmaf((float)a[i * K + p], (float)b[p * N + j], (float)sum);
                    else
                        sum = (gr_real)fma((double)a[i * K + p], (double)b[p * N + j], (double)sum);
                }
                DEMAND(sum == c_plain[i * (N + EXTRA) + j]);
            }
    }
}

TEST(a_hidden_factor_is_not_read) {
    const gr_kernels *k = table(_i);
    const gr_real left[] = {1, 0, 2, -0.0}, right[] = {3, NAN, 5, INFINITY};
    gr_real out = 7;
    gr_gemm g = {.m = 1,
                 .n = 1,
                 .k = 4,
                 .a = left,
                 .a_row = 4,
                 .a_col = 1,
                 .b = right,
                 .b_row = 1,
                 .b_col = 1,
                 .c = &out,
                 .c_row = 1,
                 .scratch = scratch};
    k->matmul_hiding(&g);
    ck_assert_double_eq((double)out, 13);
    k->matmul(&g);
    ck_assert(out != out);
}

Suite *matmul_suite(void) {
    Suite *suite = suite_create("matmul");
    add_rows(suite, "tiles", every_size_around_a_tile_gives_the_bits_of_the_reference, fast_tables());
    add_rows(suite, "blocks", every_number_of_blocks_gives_the_bits_of_the_reference, fast_tables());
    add_rows(suite, "few rows", few_rows_give_the_bits_of_the_reference, fast_tables());
    add_rows(suite, "transposed", transposed_operands_give_the_bits_of_the_reference, fast_tables());
    add_rows(suite, "walls", nothing_beyond_an_operand_is_touched, fast_tables());
    add_rows(suite, "strides", operands_may_have_any_strides, fast_tables());
    add_rows(suite, "numbers", numbers_of_every_kind_give_the_bits_of_the_reference, fast_tables());
    add_rows(suite, "hiding", a_hidden_factor_is_not_read, tables());
    GROUP(suite, "definition", an_element_is_one_chain_of_fused_multiply_adds);
    return suite;
}
