/* What stands in for examples/lm/main.c, and the checks of options. */
#ifndef TESTS_FUZZ_LM_SUPPORT_H
#define TESTS_FUZZ_LM_SUPPORT_H

#include "fuzz.h"

#include "../../examples/lm/lm.h"

extern int fuzz_lines; /* that were said instead of printed */

/* A command of lm, by number. */
const lm_command *fuzz_command(int number);

/* After lm_parse: a status with one line, or 0 with none and every value in its range. */
void fuzz_check_settings(const lm_settings *set, int status);

#endif
