/* gradus: tensors, reverse-mode differentiation, and a small neural-network library. This is the only header to
 * include. Compile with -DGR_DOUBLE and link libgradus64 for double precision. */
#ifndef GRADUS_H
#define GRADUS_H

#include <float.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" { /* not of the system's headers, which are above */
#endif

#include "tensor/context.h"
#include "tensor/mask.h"
#include "tensor/profile.h"
#include "tensor/random.h"
#include "tensor/tensor.h"

#include "autograd/autograd.h"
#include "autograd/explain.h"
#include "autograd/ops.h"

#include "nn/attention.h"
#include "nn/checkpoint.h"
#include "nn/generate.h"
#include "nn/gpt.h"
#include "nn/layers.h"
#include "nn/optim.h"
#include "nn/schedule.h"
#include "nn/text.h"

#ifdef __cplusplus
}
#endif

#endif
