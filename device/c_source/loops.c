/* Loops, elements in them, groups of elementwise ops and copies. */
#include <ctype.h>
#include <string.h>

#include "source_internal.h"

const char *cornu__c_prefix(const CornuCSection *section) { return section->source->prefix; }

const char *cornu__c_label(const CornuCSection *section, CornuValue root)
{
    return section->labels[root];
}

void cornu__c_open(CornuCText *to, const CornuCLoops *loops)
{
    for (int i = 0; i < loops->rank; i++) {
        const bool last = i == loops->rank - 1;
        cornu__c_print(to, "for (ptrdiff_t i%d = 0; i%d < %lld; i%d++)%s\n", i, i,
                       (long long)loops->extent[i], i, last ? " {" : "");
    }
    to->depth += loops->rank > 0;
}

void cornu__c_close(CornuCText *to, int loops)
{
    to->depth -= loops > 0;
    if (loops > 0) cornu__c_print(to, "}\n");
}

void cornu__c_index(CornuCText *to, const CornuCView *view, const CornuCLoops *loops)
{
    bool any = view->offset != 0;
    if (any) cornu__c_print(to, "%lld", (long long)view->offset);
    for (int i = 0; i < loops->rank; i++) {
        const int64_t stride = view->stride[loops->axes[i]];
        if (stride == 0) continue;
        const int64_t size = stride < 0 ? -stride : stride;
        cornu__c_print(to, stride < 0 ? any ? " - i%d" : "-i%d" : any ? " + i%d" : "i%d", i);
        if (size != 1) cornu__c_print(to, " * %lld", (long long)size);
        any = true;
    }
    if (!any) cornu__c_print(to, "0");
}

void cornu__c_element(CornuCText *to, const CornuCSection *section, const CornuCView *view,
                      const CornuCLoops *loops, CornuDtype dtype)
{
    if (view->literal) {
        cornu__c_number(to, dtype, view->number);
        return;
    }
    cornu__c_print(to, "%s[", cornu__c_label(section, view->root));
    cornu__c_index(to, view, loops);
    cornu__c_print(to, "]");
}

/* ---- Groups ---- */

/* A value that the group makes, read at its place: a variable in the loop. */
static bool is_local(const CornuCSection *section, const CornuCPart *part, CornuValue value)
{
    if (value >= section->program->value_count) return false;
    const int op = section->program->values[value].op;
    if (op < 0) return false;
    for (int i = 0; i < part->count; i++)
        if (section->members[part->first + i] == op) return section->views[value].root == value;
    return false;
}

static void print_operand(CornuCText *to, CornuCSection *section, const CornuCPart *part,
                          CornuValue value, const CornuCLoops *loops)
{
    const CornuDtype dtype = section->types[value].dtype;
    const CornuCView *view = &section->views[value];
    if (!view->literal && is_local(section, part, view->root))
        cornu__c_print(to, "t%d", view->root);
    else cornu__c_element(to, section, view, loops, dtype);
}

/* "DIGITS_EXPF" of exp. */
static void print_macro(CornuCText *to, CornuCSection *section, const char *name, size_t length)
{
    cornu__c_math(section->source, name, length);
    for (const char *p = cornu__c_prefix(section); *p; p++)
        cornu__c_print(to, "%c", toupper((unsigned char)*p));
    cornu__c_print(to, "_");
    for (size_t i = 0; i < length; i++)
        cornu__c_print(to, "%c", toupper((unsigned char)name[i]));
    cornu__c_print(to, "F");
}

static double number_of(const CornuProgramOp *op)
{
    return op->id == CORNU_OP_ELU ? op->attributes.alpha.alpha : op->attributes.bound.bound;
}

/* A word of a formula: an operand, the attribute, a comparison, or a function. */
static void print_word(CornuCText *to, CornuCSection *section, const CornuCPart *part,
                       const CornuProgramOp *op, const CornuCLoops *loops, const char *word,
                       size_t length)
{
    static const char *const comparisons[] = { "==", "!=", "<", "<=", ">", ">=" };
    const CornuValue *in = cornu_program_operands(section->program, op);
    if (length > 1 && !strncmp(word, "holds", length))
        cornu__c_print(to, "%s", comparisons[op->attributes.compare.comparison]);
    else if (length > 1) print_macro(to, section, word, length);
    else if (*word == 'n') cornu__c_number(to, section->types[in[0]].dtype, number_of(op));
    else print_operand(to, section, part, in[*word == 'x' ? 0 : *word - 'a'], loops);
}

static void print_formula(CornuCText *to, CornuCSection *section, const CornuCPart *part,
                          const CornuProgramOp *op, const CornuCLoops *loops)
{
    const CornuDtype dtype = section->types[cornu_program_operands(section->program, op)[0]].dtype;
    const char      *formula = (*cornu__c_table[op->id])->formula;
    if (op->id == CORNU_OP_ABSOLUTE && !cornu_dtype_is_float(dtype)) formula = "x > 0 ? x : 0 - x";
    for (const char *at = formula; *at;) {
        size_t length = 0;
        while (isalnum((unsigned char)at[length]) || (at[length] == '.' && length > 0)) length++;
        if (length == 0) {
            cornu__c_print(to, "%c", *at++);
            continue;
        }
        if (isalpha((unsigned char)*at))
            print_word(to, section, part, op, loops, at, length);
        else cornu__c_print(to, "%.*s%s", (int)length, at, memchr(at, '.', length) ? "f" : "");
        at += length;
    }
}

/* What limits a conversion between integers: the least and the greatest of the new type that the
 * old one exceeds. */
static void print_narrowed(CornuCText *to, const char *x, CornuDtype from, CornuDtype dtype)
{
    const bool  is_signed = from == CORNU_I64 || from == CORNU_I32;
    const char *type = cornu__c_type(dtype);
    const char *most = dtype == CORNU_U8 ? "255" : dtype == CORNU_I32 ? "INT32_MAX" : "UINT32_MAX";
    const size_t wide = cornu_dtype_size(from), narrow = cornu_dtype_size(dtype);
    const bool   unsigned_to = dtype == CORNU_U8 || dtype == CORNU_U32;
    cornu__c_print(to, "(%s)(", type);
    if (is_signed && unsigned_to) cornu__c_print(to, "%s < 0 ? 0 : ", x);
    if (is_signed && dtype == CORNU_I32 && wide > narrow)
        cornu__c_print(to, "%s < INT32_MIN ? INT32_MIN : ", x);
    if (wide > narrow || (from == CORNU_U32 && dtype == CORNU_I32))
        cornu__c_print(to, "%s > %s ? %s : ", x, most, most);
    cornu__c_print(to, "%s)", x);
}

static void print_convert(CornuCText *to, CornuCSection *section, CornuDtype from,
                          CornuDtype dtype, const char *x)
{
    static const struct { CornuDtype dtype; int helper; const char *name; } whole[] = {
        { CORNU_I32, CORNU_C_HELPER_TO_I32, "int32" },
        { CORNU_I64, CORNU_C_HELPER_TO_I64, "int64" },
        { CORNU_U32, CORNU_C_HELPER_TO_U32, "uint32" },
        { CORNU_U8, CORNU_C_HELPER_TO_U8, "uint8" },
    };
    if (dtype == from) {
        cornu__c_print(to, "%s", x);
    } else if (dtype == CORNU_BOOL) {
        cornu__c_print(to, "%s != 0", x);
    } else if (cornu_dtype_is_float(dtype)) {
        cornu__c_print(to, "(%s)%s", cornu__c_type(dtype), x);
    } else if (from != CORNU_F32) {
        print_narrowed(to, x, from, dtype);
    } else {
        for (size_t i = 0; i < sizeof whole / sizeof *whole; i++) {
            if (whole[i].dtype != dtype) continue;
            cornu__c_helper(section->source, whole[i].helper);
            cornu__c_print(to, "%s_to_%s(%s)", cornu__c_prefix(section), whole[i].name, x);
        }
    }
}

static void write_member(CornuCText *to, CornuCSection *section, const CornuCPart *part,
                         const CornuProgramOp *op, const CornuCLoops *loops)
{
    const CornuValue made = op->out_first;
    const CornuDtype dtype = section->types[made].dtype;
    const char      *type = cornu__c_type(dtype);
    if (op->id == CORNU_OP_CONVERT) {
        const CornuValue in = cornu_program_operands(section->program, op)[0];
        cornu__c_print(to, "const %s a%d = ", cornu__c_type(section->types[in].dtype), made);
        print_operand(to, section, part, in, loops);
        char x[24];
        snprintf(x, sizeof x, "a%d", made);
        cornu__c_print(to, ";\n");
        cornu__c_print(to, "const %s t%d = ", type, made);
        print_convert(to, section, section->types[in].dtype, dtype, x);
        cornu__c_print(to, ";\n");
    } else {
        cornu__c_print(to, dtype == CORNU_F32 ? "const %s t%d = " : "const %s t%d = (%s)(", type,
                       made, type);
        print_formula(to, section, part, op, loops);
        cornu__c_print(to, dtype == CORNU_F32 ? ";\n" : ");\n");
    }
    if (!section->places[made].stored) return;
    const CornuCView dense = cornu__c_dense(made, section->types[made].shape);
    cornu__c_print(to, "%s[", cornu__c_label(section, made));
    cornu__c_index(to, &dense, loops);
    cornu__c_print(to, "] = t%d;\n", made);
}

/* All views that the group reads, and how its results lie. */
static const CornuCView **views_of(CornuCText *to, const CornuCSection *section,
                                   const CornuCPart *part, const CornuCView *dense, int *count)
{
    int n = 1;
    for (int i = 0; i < part->count; i++)
        n += section->program->ops[section->members[part->first + i]].in_count;
    const CornuCView **views = cornu__allocate((size_t)n, sizeof *views);
    if (!views) {
        to->status = CORNU_ERR_MEMORY;
        return NULL;
    }
    *count = 0;
    views[(*count)++] = dense;
    for (int i = 0; i < part->count; i++) {
        const CornuProgramOp *op = &section->program->ops[section->members[part->first + i]];
        const CornuValue     *in = cornu_program_operands(section->program, op);
        for (int k = 0; k < op->in_count; k++) views[(*count)++] = &section->views[in[k]];
    }
    return views;
}

void cornu__c_write_group(CornuCText *to, CornuCSection *section, const CornuCPart *part)
{
    const CornuProgram   *program = section->program;
    const CornuProgramOp *first = &program->ops[section->members[part->first]];
    const CornuShape      shape = section->types[first->out_first].shape;
    const CornuCView      dense = cornu__c_dense(first->out_first, shape);
    int                   count;
    const CornuCView    **views = views_of(to, section, part, &dense, &count);
    if (!views) return;
    const CornuCLoops loops = cornu__c_loops(shape, views, count);
    cornu__release(views);
    if (loops.rank == 0) {
        cornu__c_print(to, "{\n");
        to->depth++;
    }
    cornu__c_open(to, &loops);
    for (int i = 0; i < part->count; i++)
        write_member(to, section, part, &program->ops[section->members[part->first + i]], &loops);
    cornu__c_close(to, loops.rank > 0 ? loops.rank : 1);
}

void cornu__c_write_copy(CornuCText *to, CornuCSection *section, const CornuCPart *part)
{
    const CornuType   type = section->types[part->value];
    const CornuCView  dense = cornu__c_dense(part->value, type.shape);
    const CornuCView *const views[] = { &dense, &part->from };
    const CornuCLoops loops = cornu__c_loops(type.shape, views, 2);
    cornu__c_open(to, &loops);
    cornu__c_element(to, section, &dense, &loops, type.dtype);
    cornu__c_print(to, " = ");
    cornu__c_element(to, section, &part->from, &loops, type.dtype);
    cornu__c_print(to, ";\n");
    cornu__c_close(to, loops.rank);
}
