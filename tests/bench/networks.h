/* Networks that are measured and are not among those of models/: what people train besides images
 * of 28 x 28 and text. peers/networks_torch.py has the same ones. */
#ifndef CORNU_TESTS_BENCH_NETWORKS_H
#define CORNU_TESTS_BENCH_NETWORKS_H

#include "../../nn/model/model.h"

typedef struct {
    const char *name;
    CornuModel *(*build)(void);    /* its output: probabilities of classes */
    CornuDtype  dtype;             /* of x: u8 or i32 */
    int         range;             /* x are below this */
    bool        padded;            /* rows of x end with zeros, after different lengths */
    const char *batches;           /* those that `steps` runs by default, "64,1024" */
} Network;

/* Network i, NULL past the last; the network of a name, NULL if there is none. */
const Network *network(int i);
const Network *network_named(const char *name);

/* How many of `steps` columns of row i are not padding: from a quarter of them to all. */
int64_t network_length(int64_t i, int64_t steps);

#endif
