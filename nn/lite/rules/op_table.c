/* The tables of writers and nothing else, so that no writer depends on the others. */
#include "recorded_internal.h"

const CornuLiteOpRow *const cornu__lite_op_families[] = {
    cornu__lite_writers_ops, cornu__lite_writers_products, cornu__lite_writers_scan,
    cornu__lite_writers_functions, NULL
};
