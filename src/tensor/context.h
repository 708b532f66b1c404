/* The context owns every tensor, keeps the first error, and ends a step.
 *
 * Two lifetimes: parameters and kept tensors live as long as the context; all other tensors live until
 * gr_context_reset. Nobody frees a single tensor. Errors stick: after the first one, operations on this context do
 * nothing and return an inert tensor, until gr_error_clear. Two contexts may be used from two threads at once; a child
 * of fork() goes on with its copy, on one thread if the parent has used several before, with the same bits. */
#ifndef GR_CONTEXT_H
#define GR_CONTEXT_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __GNUC__
#    define GR_PRINTF(text, first) __attribute__((format(printf, text, first)))
#else
#    define GR_PRINTF(text, first)
#endif

/* Of this header; gr_version is that of the library at hand. */
#define GR_VERSION "1.0.0"
const char *gr_version(void);

typedef struct gr_context gr_context;

#ifdef GR_DOUBLE /* the libraries export the same names: the wrong one for -DGR_DOUBLE must not link */
#    define gr_context_new gr_context_new_double
#endif

/* A new context; never NULL. Without memory for one, a constant inert context whose error says so. The kernels are
 * those of the best instruction set of this processor, or of the environment's GRADUS_ISA (an unknown one is an error).
 */
gr_context *gr_context_new(void);

/* Frees the context and all it owns. An error that nobody read is printed to standard error. NULL is allowed. */
void gr_context_free(gr_context *ctx);

/* Ends the step: every tensor that is not a parameter and was not kept is gone, and the tape with it. To use such a
 * tensor in the next step is an error, but for gr_data, gr_shape_of and their like, to which it is inert; later it may
 * not be noticed. */
void gr_context_reset(gr_context *ctx);

/* True as long as no error is kept. */
bool gr_ok(const gr_context *ctx);

/* The kept error as one line, "matmul: q (2, 3), k (4, 2): inner sizes 3 and 4 differ"; "" when there is none. */
const char *gr_error_message(gr_context *ctx);

/* Forgets the kept error. Call gr_context_reset too: tensors made after the error are inert. */
void gr_error_clear(gr_context *ctx);

/* The end of main: 0, or 1 after printing the kept error to standard error. */
int gr_context_report(gr_context *ctx);

/* Keeps "where: message" unless an earlier error is kept. For operations and layers of your own. With GRADUS_ABORT=1
 * in the environment this stops the program, for a debugger. */
void gr_fail(gr_context *ctx, const char *where, const char *format, ...) GR_PRINTF(3, 4);

/* The instruction set in use: "reference", "baseline", "avx2", "avx512", "neon". */
const char *gr_context_isa(const gr_context *ctx);

/* Bytes of tensors and tape now alive, in both lifetimes. */
size_t gr_context_bytes(const gr_context *ctx);

#endif
