/*
 * A loop over steps: its body is a program of its own, written before the function that calls it in
 * each step. The memory of the loop holds, one after the other, the body's scratch, the carries
 * before and after a step, and the slices and results of a step, which are copied.
 */
#include <string.h>

#include "source_internal.h"

/* What the body's inputs and outputs are called in the loop. */
typedef struct {
    CornuCCalls   how;
    const char  **names;
    char        (*text)[64];
} Names;

static void free_names(Names *n)
{
    cornu__release(n->names);
    cornu__release(n->text);
}

static CornuStatus make_names(Names *n, const CornuCSection *s, const CornuProgramOp *op)
{
    const CornuAttributes_SCAN *scan = &op->attributes.scan;
    const int count = op->in_count + op->out_count;
    n->names = cornu__allocate((size_t)count, sizeof *n->names);
    n->text = cornu__allocate((size_t)count, sizeof *n->text);
    if (!n->names || !n->text) return CORNU_ERR_MEMORY;
    for (int i = 0; i < count; i++) {
        const int         k = i - op->in_count;   /* of a result */
        const CornuCView *view = k < 0 ? &s->views[cornu_program_operands(s->program, op)[i]]
                                       : NULL;
        n->names[i] = n->text[i];
        if (k >= 0) snprintf(n->text[i], sizeof *n->text, k < scan->carries ? "n%d" : "r%d", k);
        else if (i < scan->carries) snprintf(n->text[i], sizeof *n->text, "c%d", i);
        else if (i < scan->carries + scan->slices) snprintf(n->text[i], sizeof *n->text, "x%d", i);
        else if (view->offset == 0)
            snprintf(n->text[i], sizeof *n->text, "%s", s->labels[view->root]);
        else
            snprintf(n->text[i], sizeof *n->text, "%s + %lld", s->labels[view->root],
                     (long long)view->offset);
    }
    n->how = (CornuCCalls){ .what = "", .in = n->names, .out = n->names + op->in_count };
    return CORNU_OK;
}

/* Input i or result i of a step, of the body. */
static CornuType type_of(const CornuProgram *body, bool result, int i)
{
    return cornu_program_type(body, result ? body->outputs[i].value : body->inputs[i]);
}

static size_t aligned(CornuType type)
{
    return (cornu_type_bytes(type) / CORNU_C_ALIGNMENT + 1) * CORNU_C_ALIGNMENT;
}

size_t cornu__c_scan_scratch(const CornuCPart *part, const CornuProgramOp *op)
{
    const CornuAttributes_SCAN *scan = &op->attributes.scan;
    size_t                      bytes = part->body->scratch;
    for (int i = 0; i < scan->carries + scan->slices; i++)
        bytes += aligned(type_of(scan->body, 0, i));
    for (int i = 0; i < op->out_count; i++) bytes += aligned(type_of(scan->body, 1, i));
    return bytes;
}

CornuStatus cornu__c_scan_prepare(CornuCSection *s, CornuCPart *part, const CornuProgramOp *op)
{
    Names         names = { 0 };
    CornuProgram *body = cornu__c_lower(op->attributes.scan.body);
    CornuStatus   status = body ? CORNU_OK : cornu_error_take();
    if (!status) status = cornu_program_scope(body, op->scope);
    part->body = status ? NULL : cornu__allocate(1, sizeof *part->body);
    if (!status && !part->body) status = CORNU_ERR_MEMORY;
    if (!status) status = make_names(&names, s, op);
    if (part->body && !status) status = cornu__c_section(part->body, s->source, body, &names.how);
    else cornu_program_free(body);
    if (part->body) {
        part->body->how = NULL;   /* places have their expressions */
        part->body->named = s->named;
    }
    free_names(&names);
    if (status) return status;
    const int64_t bytes = (int64_t)cornu__c_scan_scratch(part, op);
    return cornu__c_extra(s, cornu_type(CORNU_U8, bytes), &part->value);
}

/* ---- Writing ---- */

/* Elements per step of what is stacked along the axis: outside of it, and inside. */
typedef struct { int64_t outer, inner; } Slice;

static Slice slice_of(CornuType type, int64_t axis)
{
    Slice slice = { 1, 1 };
    for (int i = 0; i < type.shape.rank; i++)
        *(i < axis ? &slice.outer : &slice.inner) *= type.shape.extent[i];
    return slice;
}

static void declare(CornuCText *to, const CornuCCall *call, CornuType type, const char *letter,
                    int i, size_t *at)
{
    const char *c = cornu__c_type(type.dtype);
    cornu__c_print(to, "%s *const %s%d = (%s *)(void *)(%s + %zu);\n", c, letter, i, c,
                   cornu__c_label(call->section, call->part->value), *at);
    *at += aligned(type);
}

static void write_moved(CornuCText *to, CornuType type, const char *y, const char *x)
{
    cornu__c_print(to, "for (ptrdiff_t i = 0; i < %lld; i++) %s[i] = %s[i];\n",
                   (long long)cornu_type_count(type), y, x);
}

/* Step t of `whole` into `part`, or back. */
static void write_slice(CornuCText *to, const CornuAttributes_SCAN *scan, CornuType type,
                        const char *whole, const char *part, bool back)
{
    const Slice s = slice_of(type, scan->axis);
    cornu__c_print(to, "for (ptrdiff_t o = 0; o < %lld; o++)\n", (long long)s.outer);
    cornu__c_print(to, "    for (ptrdiff_t i = 0; i < %lld; i++) ", (long long)s.inner);
    char a[128], b[128];
    snprintf(a, sizeof a, "%s[(o * %lld + t) * %lld + i]", whole, (long long)scan->steps,
             (long long)s.inner);
    snprintf(b, sizeof b, "%s[o * %lld + i]", part, (long long)s.inner);
    cornu__c_print(to, "%s = %s;\n", back ? a : b, back ? b : a);
}

static void write_steps(CornuCText *to, const CornuCCall *call, const CornuCText *calls)
{
    const CornuAttributes_SCAN *scan = &call->op.attributes->scan;
    char                        name[2][24];
    cornu__c_print(to, "for (ptrdiff_t n = 0; n < %lld; n++) {\n", (long long)scan->steps);
    to->depth++;
    if (scan->reverse)
        cornu__c_print(to, "const ptrdiff_t t = %lld - n;\n", (long long)scan->steps - 1);
    else cornu__c_print(to, "const ptrdiff_t t = n;\n");
    for (int i = (int)scan->carries; i < scan->carries + scan->slices; i++) {
        snprintf(name[0], sizeof name[0], "x%d", i);
        write_slice(to, scan, type_of(scan->body, 0, i), call->name[i], name[0], false);
    }
    for (const char *line = calls->text ? calls->text : ""; *line;) {
        const char *end = strchr(line, '\n');
        for (const char *at = line; at <= end; at += 512)
            cornu__c_print(to, "%.*s", (int)(end + 1 - at < 512 ? end + 1 - at : 512), at);
        line = end + 1;
    }
    for (int i = 0; i < call->record->out_count; i++) {
        snprintf(name[0], sizeof name[0], i < scan->carries ? "n%d" : "r%d", i);
        snprintf(name[1], sizeof name[1], "c%d", i);
        if (i < scan->carries) write_moved(to, type_of(scan->body, 1, i), name[1], name[0]);
        else if (call->out[i])
            write_slice(to, scan, type_of(scan->body, 1, i), call->out[i], name[0], true);
    }
    to->depth--;
    cornu__c_print(to, "}\n");
}

static void write_scan(CornuCText *to, const CornuCCall *call)
{
    const CornuAttributes_SCAN *scan = &call->op.attributes->scan;
    CornuCText                  calls = { 0 };
    char                        name[24];
    size_t                      at = call->part->body->scratch;
    const CornuStatus status = cornu__c_write_section(call->part->body, &calls);
    if (status || calls.status) to->status = status ? status : calls.status;
    cornu__c_print(to, "{\n");
    to->depth++;
    cornu__c_print(to, "unsigned char *const s = %s;\n",
                   cornu__c_label(call->section, call->part->value));
    cornu__c_print(to, "(void)s;\n");
    for (int i = 0; i < scan->carries + scan->slices; i++)
        declare(to, call, type_of(scan->body, 0, i), i < scan->carries ? "c" : "x", i, &at);
    for (int i = 0; i < call->record->out_count; i++)
        declare(to, call, type_of(scan->body, 1, i), i < scan->carries ? "n" : "r", i, &at);
    for (int i = 0; i < scan->carries; i++) {
        snprintf(name, sizeof name, "c%d", i);
        write_moved(to, type_of(scan->body, 0, i), name, call->name[i]);
    }
    if (!to->status) write_steps(to, call, &calls);
    for (int i = 0; i < scan->carries; i++) {
        snprintf(name, sizeof name, "c%d", i);
        if (call->out[i]) write_moved(to, type_of(scan->body, 1, i), call->out[i], name);
    }
    cornu__c_close(to, 1);
    cornu__release(calls.text);
}

const CornuCRule *const cornu__scan_c =
    &(const CornuCRule){ .write = write_scan, .any = true, .skips = true };
