/* Between shards: devices of these rows have one. */
#include "rows.h"

#define GROUPS(...) \
    { sizeof (int[]){ __VA_ARGS__ } / sizeof(int), (const int[]){ __VA_ARGS__ } }

static const OpCase rows[] = {
    { CORNU_OP_ALL_REDUCE, .in = { T(F32, 2, 2) }, .given = { D(1, -2, 0.5, 4) },
      .out = { D(1, -2, 0.5, 4) }, .differentiate = 1 },
    { CORNU_OP_ALL_REDUCE, .in = { T(I64, 1, 3) }, .given = { D(1, -2, 4) },
      .out = { D(1, -2, 4) } },
    { CORNU_OP_ALL_REDUCE, .in = { T(BF16, 1, 3) }, .refused = CORNU_ERR_DTYPE },
    { CORNU_OP_ALL_REDUCE, { .shards = { 4, GROUPS(0, 1, 2, 3, 4) } }, .in = { T(F32, 1, 2) },
      .refused = CORNU_ERR_ARGUMENT },
    { CORNU_OP_ALL_REDUCE, { .shards = { 2, GROUPS(0, 1, 2, 4) } }, .in = { T(F32, 1, 2) },
      .refused = CORNU_ERR_ARGUMENT },
    { CORNU_OP_ALL_REDUCE, { .shards = { 2, GROUPS(0, 1, 1, 3) } }, .in = { T(F32, 1, 2) },
      .refused = CORNU_ERR_ARGUMENT },
    { CORNU_OP_ALL_REDUCE, { .shards = { 2, GROUPS(0, 1, 3, 2) } }, .in = { T(F32, 1, 2) },
      .refused = CORNU_ERR_ARGUMENT },
    { CORNU_OP_ALL_REDUCE, { .shards = { 2, GROUPS(2, 3, 0, 1) } }, .in = { T(F32, 1, 2) },
      .refused = CORNU_ERR_ARGUMENT },
    { CORNU_OP_ALL_REDUCE, { .shards = { 0, GROUPS(0, 1) } }, .in = { T(F32, 1, 2) },
      .refused = CORNU_ERR_ARGUMENT },
    { CORNU_OP_ALL_REDUCE, { .shards = { 2, { -1, NULL } } }, .in = { T(F32, 1, 2) },
      .refused = CORNU_ERR_ARGUMENT },
    { CORNU_OP_REDUCE_SCATTER, { .shards = { .size = 1 } }, .in = { T(F32, 2, 2, 2) },
      .given = { D(1, -2, 0.5, 4) }, .out = { D(1, -2, 0.5, 4) }, .differentiate = 1 },
    { CORNU_OP_REDUCE_SCATTER, { .shards = { .size = 4 } }, .in = { T(F32, 1, 6) },
      .refused = CORNU_ERR_SHAPE },
    { CORNU_OP_REDUCE_SCATTER, { .shards = { .size = 1 } }, .in = { T(BF16, 1, 6) },
      .refused = CORNU_ERR_DTYPE },
    { CORNU_OP_ALL_GATHER, { .shards = { .size = 1 } }, .in = { T(BF16, 2, 2, 2) },
      .given = { D(1, -2, 0.5, 4) }, .out = { D(1, -2, 0.5, 4) }, .near = NEAR_EXACT },
    { CORNU_OP_ALL_GATHER, { .shards = { .size = 1 } }, .in = { T(F32, 1, 5) }, .near = NEAR_EXACT,
      .differentiate = 1 },
    { CORNU_OP_ALL_GATHER, { .shards = { .size = 1 } }, .in = { T(F32, 0, 0) },
      .refused = CORNU_ERR_SHAPE },
    { CORNU_OP_SHARD_SLICE, { .shards = { .size = 1 } }, .in = { T(F32, 2, 3, 2) },
      .near = NEAR_EXACT, .differentiate = 1 },
    { CORNU_OP_SHARD_SLICE, { .shards = { .size = 1 } }, .in = { T(U8, 1, 3) },
      .given = { D(1, 2, 3) }, .out = { D(1, 2, 3) }, .near = NEAR_EXACT },
    { CORNU_OP_SHARD_SLICE, { .shards = { .size = 8 } }, .in = { T(F32, 2, 12, 2) },
      .refused = CORNU_ERR_SHAPE },
    { CORNU_OP_SHARD_SLICE, { .shards = { .size = 1025 } }, .in = { T(F32, 1, 1025) },
      .refused = CORNU_ERR_ARGUMENT },
};

const OpCases op_cases_collective = { "collective", rows, sizeof rows / sizeof *rows };
