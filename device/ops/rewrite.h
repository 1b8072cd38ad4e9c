/* A program copied with changes, for passes from programs to programs. */
#ifndef CORNU_DEVICE_OPS_REWRITE_H
#define CORNU_DEVICE_OPS_REWRITE_H

#include "../program.h"

typedef struct {
    const CornuProgram *from;
    CornuProgram       *to;
    CornuValue         *map;   /* the new value of each old one */
    CornuValue         *in;    /* the mapped operands of the current op */
    CornuType          *in_type;
    bool                one_shard;
    bool                decomposed;   /* an op at least */
} CornuRewrite;

/* Declares the same inputs; for one shard none of them varies from shard to shard. */
CornuStatus       cornu__rewrite_begin(CornuRewrite *rewrite, const CornuProgram *from,
                                       bool one_shard);
const CornuValue *cornu__rewrite_operands(CornuRewrite *rewrite, const CornuProgramOp *op);
/* Records the op unchanged. */
CornuStatus       cornu__rewrite_keep(CornuRewrite *rewrite, const CornuProgramOp *op);
/* Records the op's decomposition, which it has. */
CornuStatus       cornu__rewrite_decompose(CornuRewrite *rewrite, const CornuProgramOp *op);
/* Declares the same outputs, frees everything but the new program, which it returns; NULL after a
 * failure. An output that varied from shard to shard still does, even where the change has made it
 * one value for all, as select(c, x, x) = x does. */
CornuProgram     *cornu__rewrite_end(CornuRewrite *rewrite, CornuStatus status);

/* Records an op unchanged, decomposed or otherwise changed. */
typedef CornuStatus CornuRewriteOp(CornuRewrite *rewrite, const CornuProgramOp *op,
                                   const void *context);

/* A copy with each op as `record` has recorded it; round by round, until it decomposes none: what a
 * decomposition consists of may have to be decomposed, too. */
CornuProgram     *cornu__rewrite_rounds(const CornuProgram *program, CornuRewriteOp *record,
                                        const void *context);

/* A program of an op alone, or of its decomposition, its operands as inputs; the caller frees it.
 * NULL, pending, after a failure. */
CornuProgram     *cornu__program_isolate(const CornuProgram *program, const CornuProgramOp *op,
                                         bool decomposed);

/* Whether the op is one that is computed by its body, a program among its attributes. */
bool              cornu__has_body(const CornuProgramOp *op);
/* A copy with registered ops replaced by what they are composed of. */
CornuProgram     *cornu__rewrite_bodies(const CornuProgram *program);

/* A plain copy: the result of a pass that is left out. */
CornuProgram     *cornu__rewrite_copy(const CornuProgram *program, bool one_shard);

#endif
