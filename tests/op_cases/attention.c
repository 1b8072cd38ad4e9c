/* Attention and its gradient. */
#include "rows.h"

static const OpCase rows[] = {
    /* q, k, v, mask; q, k, v, y, lse, d_y, mask */
    { CORNU_OP_ATTENTION, .in_count = 3, .in = { T(F32, 4, 2, 3, 2, 4), T(F32, 4, 2, 5, 2, 4),
      T(F32, 4, 2, 5, 2, 3) }, .near = NEAR_SUMMED, .differentiate = 7 },
};

const OpCases op_cases_attention = { "attention", rows, sizeof rows / sizeof *rows };
