/* Calls of the system that fail on demand, and are counted. The linker leads those of the library, of lm and of the
 * tests here: --wrap for each name below (WRAP in the Makefile, which reads them here; with the GNU linkers only). */
#ifndef TESTS_FAULTS_H
#define TESTS_FAULTS_H

#include <stdbool.h>

/* clang-format off */
#define FAULT_CALLS(X) \
    X(malloc)         \
    X(calloc)         \
    X(realloc)        \
    X(aligned_alloc)  \
    X(posix_memalign) \
    X(free)           \
    X(mmap)           \
    X(munmap)         \
    X(gr_arena_alloc) \
    X(open)           \
    X(read)           \
    X(pread)          \
    X(write)          \
    X(fsync)          \
    X(rename)         \
    X(close)          \
    X(stat)           \
    X(fstat)          \
    X(fchown)         \
    X(fchmod)         \
    X(opendir)        \
    X(readdir)        \
    X(access)         \
    X(unlink)         \
    X(mkdir)          \
    X(ftruncate)      \
    X(fopen)          \
    X(fdopen)         \
    X(fclose)         \
    X(fflush)         \
    X(fwrite)         \
    X(fputs)          \
    X(fprintf)        \
    X(fgets)          \
    X(fread)
/* clang-format on */

#define FAULT_NUMBER(name) FAULT_NUMBER_##name,
enum { FAULT_CALLS(FAULT_NUMBER) FAULT_NUMBERS };
#define FAULT(name) (1ull << FAULT_NUMBER_##name)

/* What asks the system for memory, or gives it back; what of it may fail. gr_arena_alloc is the library's own: its
 * blocks are so large that few calls reach the system. */
#define FAULT_SYSTEM_MEMORY (FAULT_MEMORY | FAULT(free) | FAULT(mmap) | FAULT(munmap))
#define FAULT_MEMORY        (FAULT(malloc) | FAULT(calloc) | FAULT(realloc) | FAULT(aligned_alloc) | FAULT(posix_memalign))

/* A call that fails does nothing and sets errno; but close and fclose close, and then say that they failed. Of a
 * stream, what fails is the system's reading or writing beneath it; stderr is left alone. A short read or write moves
 * half of the bytes, an empty one none. */
typedef enum { FAULT_FAILS, FAULT_SHORT, FAULT_EMPTY } failure_way;

typedef struct failure {
    unsigned long long calls;
    int at; /* the first is 1; 0: every one */
    failure_way way;
    int error; /* errno */
} failure;

extern const bool faults_possible;
void faults_begin(failure f);
bool faults_end(void);     /* has it come? */
int faults_careless(void); /* calls of open, since the program began, that made a file and would have taken another's */

/* Calls since the program began. */
int faults_counted(unsigned long long calls);

#endif
