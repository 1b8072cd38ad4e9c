/* Programs among the attributes of an op: bodies of loops, and what registered ops consist of. */
#ifndef CORNU_DEVICE_OPS_BODY_H
#define CORNU_DEVICE_OPS_BODY_H

#include "rules.h"

/* CORNU_ERR_UNSUPPORTED unless the body runs on one shard by itself, or, on_mesh, exchanges along
 * axes of a mesh; CORNU_ERR_ARGUMENT if it writes into its operands. `owner` names its op. */
CornuStatus cornu__body_check(const CornuProgram *body, const char *owner, bool on_mesh);

/* Memory to run a body by reference kernels: its values, and room for an op's operands. */
typedef struct {
    double       **value;
    double        *elements;
    const double **in;
    CornuType     *in_type;
} CornuBodyMemory;

/* Also after a failure the memory is to be released. */
CornuStatus cornu__body_take(CornuBodyMemory *memory, const CornuProgram *body);
void        cornu__body_release(CornuBodyMemory *memory);

/* The number of elements of a value. */
int64_t     cornu__body_count(const CornuProgram *body, CornuValue value);

#endif
