/* The kernels that every instruction set shares. The including file has defined GR_SIMD and, to round otherwise,
 * GR_FMA. */
#ifndef GR_TABLE_H
#define GR_TABLE_H

#include "kernels.h"
#include "math.h"
#include "maps.h"
#include "tree.h"
#include "rows.h"
#include "attention.h"
#include "plain.h"

#endif
