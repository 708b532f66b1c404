#include "registry.h"

#define GR_LIST_OP(name) &gr_op_##name,
const gr_op *const gr_ops[] = {GR_OPS(GR_LIST_OP)};
const int gr_op_count = sizeof gr_ops / sizeof gr_ops[0];
