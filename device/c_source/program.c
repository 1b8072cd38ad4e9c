/* Writing a program: its units as functions, and the calls of these. */
#include <string.h>

#include "source_internal.h"

/* ---- Sections ---- */

CornuStatus cornu__c_extra(CornuCSection *s, CornuType type, CornuValue *out)
{
    const int n = s->value_count;
    if (n >= s->value_space)
        return cornu__fail(CORNU_ERR_MEMORY, "no room for another value");
    s->types[n] = type;
    s->places[n] = (CornuCPlace){ .made = -1, .last = -1, .into = -1 };
    s->value_count++;
    *out = n;
    return CORNU_OK;
}

/* The program's values, its outputs and a copy of each, and one for each op, which may need memory
 * of its own. */
static CornuStatus allocate(CornuCSection *s)
{
    const CornuProgram *p = s->program;
    const size_t values = (size_t)p->value_count + 2 * (size_t)p->output_count +
                          (size_t)p->op_count;
    if (values > INT32_MAX) return CORNU_ERR_MEMORY;
    s->value_space = (int)values;
    s->views = cornu__allocate(values, sizeof *s->views);
    s->types = cornu__allocate(values, sizeof *s->types);
    s->places = cornu__allocate(values, sizeof *s->places);
    s->labels = cornu__allocate(values, sizeof *s->labels);
    if (!s->views || !s->types || !s->places || !s->labels) return CORNU_ERR_MEMORY;
    CornuValue none;
    for (int v = 0; v < p->value_count; v++)
        CORNU__TRY(cornu__c_extra(s, cornu_program_type(p, v), &none));
    for (int i = 0; i < p->output_count; i++)
        CORNU__TRY(cornu__c_extra(s, cornu_program_type(p, p->outputs[i].value), &none));
    return CORNU_OK;
}

/* Whether the op's rule is for values of this type, operands or results. */
static bool takes(const CornuProgram *p, const CornuProgramOp *op, CornuDtype dtype)
{
    const CornuCRule *rule = *cornu__c_table[op->id];
    bool              known = true;
    const bool        calls = rule->formula && cornu__c_calls(rule->formula, &known);
    if (!cornu__c_type(dtype) || !known) return false;
    if (dtype != CORNU_F64 || rule == CORNU_C_SEEN) return true;
    if (op->id == CORNU_OP_CONVERT)
        return cornu_dtype_is_float(p->values[op->out_first].type.dtype);
    return rule->formula ? !calls : rule->any;
}

static CornuStatus check(const CornuProgram *p)
{
    for (int i = 0; i < p->op_count; i++) {
        const CornuProgramOp *op = &p->ops[i];
        const CornuCRule     *rule = *cornu__c_table[op->id];
        const char           *colon = *op->scope ? ": " : "";
        if (rule == CORNU_C_REFUSED || rule == CORNU_C_DECOMPOSED)
            return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s%s%s has no C source, and it is not "
                               "composed of other ops", op->scope, colon,
                               cornu_program_op_name(op));
        for (int k = 0; k < op->in_count + op->out_count; k++) {
            const CornuValue v = k < op->in_count ? cornu_program_operands(p, op)[k]
                                                  : op->out_first + k - op->in_count;
            const CornuDtype dtype = p->values[v].type.dtype;
            if (!takes(p, op, dtype))
                return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s%s%s of %s has no C source, expected "
                                   "f32, whole numbers or bool", op->scope, colon,
                                   cornu_program_op_name(op), cornu_dtype_name(dtype));
        }
    }
    return CORNU_OK;
}

static bool is_other_input(const CornuCSection *s, CornuValue v)
{
    const CornuProgram *p = s->program;
    for (int i = 0; i < p->input_count; i++)
        if (p->inputs[i] != v && !strcmp(s->labels[p->inputs[i]], s->labels[v])) return true;
    return false;
}

/* "dense_kernel" of "w->dense_kernel"; "conv2d_12" of a value of the program. */
static void name_value(CornuCSection *s, CornuValue v)
{
    const CornuProgram *p = s->program;
    char               *label = s->labels[v];
    if (v >= p->value_count && v < p->value_count + p->output_count) {
        snprintf(label, sizeof *s->labels, "to_%d", v - p->value_count);
    } else if (v >= p->value_count) {
        snprintf(label, sizeof *s->labels, "memory_%d", v);
    } else if (p->values[v].op >= 0) {
        const int op = p->values[v].op;
        char      name[32];
        cornu__c_identifier(name, sizeof name, cornu_program_op_name(&p->ops[op]));
        snprintf(label, sizeof *s->labels, "%s_%d", name, v);
    } else {
        const char *name = s->how->in[p->values[v].index];
        for (const char *at = name; *at; at++)
            if (*at == '>' || *at == '.' || *at == '&') name = at + 1;
        snprintf(label, sizeof *s->labels, "%.*s", (int)strcspn(name, " [("), name);
    }
    const size_t length = strlen(label);
    for (int n = v; is_other_input(s, v); n++)
        cornu__c_number_name(label, sizeof *s->labels, length, n);
}

CornuStatus cornu__c_section(CornuCSection *s, CornuCSource *source, CornuProgram *program,
                             const CornuCCalls *how)
{
    *s = (CornuCSection){ .source = source, .program = program, .how = how, .named = how->what };
    CORNU__TRY(check(program));
    CORNU__TRY(allocate(s));
    for (CornuValue v = 0; v < s->value_count; v++) name_value(s, v);
    CORNU__TRY(cornu__c_parts(s));
    for (CornuValue v = s->value_count - 1; v >= program->value_count; v--) name_value(s, v);
    return cornu__c_memory(s);
}

void cornu__c_section_free(CornuCSection *s)
{
    for (int i = 0; i < s->part_count; i++) {
        if (!s->parts[i].body) continue;
        cornu__c_section_free(s->parts[i].body);
        cornu__release(s->parts[i].body);
    }
    cornu_program_free(s->program);
    cornu__release(s->views);
    cornu__release(s->types);
    cornu__release(s->places);
    cornu__release(s->labels);
    cornu__release(s->parts);
    cornu__release(s->members);
    cornu__release(s->text.text);
    *s = (CornuCSection){ 0 };
}

/* ---- Functions ---- */

/* A parameter: what lies in its memory. */
typedef struct { CornuValue value; bool written; } Parameter;

typedef struct {
    Parameter *of;
    int        count, space;
} Parameters;

/* What a value's memory is called: that of an input that it replaces. */
static CornuValue memory_of(const CornuCSection *s, CornuValue root)
{
    const CornuCPlace *place = &s->places[root];
    return place->into >= 0 ? s->program->inputs[place->into] : root;
}

static CornuStatus add(const CornuCSection *s, Parameters *to, CornuValue root, bool written)
{
    const CornuValue value = memory_of(s, root);
    for (int i = 0; i < to->count; i++)
        if (to->of[i].value == value) {
            to->of[i].written |= written;
            return CORNU_OK;
        }
    CORNU__TRY(cornu__reserve(&to->of, &to->space, to->count, 1, sizeof *to->of));
    to->of[to->count++] = (Parameter){ value, written };
    return CORNU_OK;
}

static bool in_group(const CornuCSection *s, const CornuCPart *part, CornuValue root)
{
    if (part->kind != CORNU_C_GROUP || root >= s->program->value_count) return false;
    for (int i = 0; i < part->count; i++)
        if (s->program->values[root].op == s->members[part->first + i]) return true;
    return false;
}

static CornuStatus add_part(const CornuCSection *s, Parameters *to, const CornuCPart *part)
{
    if (part->kind == CORNU_C_COPY) {
        if (part->value == CORNU_NO_VALUE) return CORNU_OK;
        if (!part->from.literal) CORNU__TRY(add(s, to, part->from.root, false));
        return add(s, to, part->value, true);
    }
    for (int i = 0; i < part->count; i++) {
        const CornuProgramOp *op = &s->program->ops[s->members[part->first + i]];
        for (int k = 0; k < op->in_count; k++) {
            const CornuCView *view = &s->views[cornu_program_operands(s->program, op)[k]];
            if (!view->literal && !in_group(s, part, view->root))
                CORNU__TRY(add(s, to, view->root, false));
        }
        for (int k = 0; k < op->out_count; k++)
            if (s->places[op->out_first + k].stored)
                CORNU__TRY(add(s, to, op->out_first + k, true));
    }
    return part->body ? add(s, to, part->value, true) : CORNU_OK;
}

static void print_parameters(CornuCText *to, const CornuCSection *s, const Parameters *p,
                             bool calls)
{
    for (int i = 0; i < p->count; i++) {
        const CornuValue v = p->of[i].value;
        cornu__c_print(to, "%s", i == 0 ? "" : calls ? ", " : ",\n        ");
        if (calls) cornu__c_print(to, "%s", s->places[v].at);
        else cornu__c_print(to, "%s%s *%s_RESTRICT %s", p->of[i].written ? "" : "const ",
                            cornu__c_type(s->types[v].dtype), cornu__c_prefix(s), s->labels[v]);
    }
}

/* A name that no other function has: PREFIX_LAYER, PREFIX_LAYER_2. */
static CornuStatus name_function(CornuCSource *source, const char *what, const char *scope,
                                 char *name, size_t size)
{
    char layer[64];
    cornu__c_identifier(layer, sizeof layer, *scope ? scope : "values");
    snprintf(name, size, "%s_%s%s%s", source->prefix, what, *what ? "_" : "", layer);
    return cornu__c_take_name(source, name, size);
}

/* What the op does, above its loops: "conv2d(x (1, 28, 28, 1), kernel (3, 3, 1, 32)) -> ...". */
static void print_comment(CornuCText *to, const CornuCSection *s, const CornuCPart *part)
{
    CornuText shape;
    if (part->kind == CORNU_C_COPY) {
        cornu__c_print(to, "/* %s %s */\n", s->labels[part->value],
                       cornu_shape_print(&shape, s->types[part->value].shape));
        return;
    }
    cornu__c_print(to, "/*");
    for (int i = 0; i < part->count; i++) {
        const CornuProgramOp *op = &s->program->ops[s->members[part->first + i]];
        cornu__c_print(to, "%s %s", i ? "," : "", cornu_program_op_name(op));
        for (int k = 0; k < op->in_count && part->kind == CORNU_C_OP; k++)
            cornu__c_print(to, "%s%s", k ? ", " : " of ",
                           cornu_shape_print(&shape, s->types[cornu_program_operands(
                                                         s->program, op)[k]].shape));
        if (i == part->count - 1)
            cornu__c_print(to, "%s %s */\n", part->kind == CORNU_C_OP ? " is" : ":",
                           cornu_shape_print(&shape, s->types[op->out_first].shape));
    }
}

static void write_op(CornuCSection *s, const CornuCPart *part)
{
    CornuCText           *to = &s->text;
    const CornuProgramOp *op = &s->program->ops[s->members[part->first]];
    CornuType            *in_type = cornu__allocate((size_t)op->in_count + 1, sizeof *in_type);
    const CornuCView    **in = cornu__allocate((size_t)op->in_count + 1, sizeof *in);
    char                (*name)[64] = cornu__allocate((size_t)op->in_count + 1, sizeof *name);
    CornuCCall            call = { .section = s, .part = part, .record = op, .in = in, .name = name,
                                   .out_type = &s->types[op->out_first] };
    if (in_type && in && name) {
        call.op = cornu_program_call(s->program, op, in_type);
        for (int k = 0; k < op->in_count; k++) {
            in[k] = &s->views[cornu_program_operands(s->program, op)[k]];
            if (in[k]->literal) continue;
            const char *label = cornu__c_label(s, in[k]->root);
            if (in[k]->offset == 0) snprintf(name[k], sizeof *name, "%s", label);
            else snprintf(name[k], sizeof *name, "(%s + %lld)", label, (long long)in[k]->offset);
        }
        for (int k = 0; k < op->out_count; k++)
            call.out[k] = s->places[op->out_first + k].stored ? cornu__c_label(s, op->out_first + k)
                                                              : NULL;
        (*cornu__c_table[op->id])->write(to, &call);
    } else {
        to->status = CORNU_ERR_MEMORY;
    }
    cornu__release(name);
    cornu__release(in);
    cornu__release(in_type);
}

static void write_part(CornuCSection *s, const CornuCPart *part)
{
    if (part->kind == CORNU_C_COPY && part->value == CORNU_NO_VALUE) return;
    print_comment(&s->text, s, part);
    if (part->kind == CORNU_C_COPY) cornu__c_write_copy(&s->text, s, part);
    else if (part->kind == CORNU_C_GROUP) cornu__c_write_group(&s->text, s, part);
    else write_op(s, part);
}

/* The parts from `first` on that are one unit. */
static CornuStatus write_unit(CornuCSection *s, int first, int end, CornuCText *calls)
{
    Parameters  parameters = { 0 };
    char        name[192];
    CornuStatus status = CORNU_OK;
    for (int i = first; i < end && !status; i++) status = add_part(s, &parameters, &s->parts[i]);
    if (status || parameters.count == 0) goto done;
    if ((status = name_function(s->source, s->named, s->parts[first].scope, name, sizeof name)))
        goto done;
    s->text.size = 0;
    s->text.depth = 0;
    cornu__c_print(&s->text, "static void %s(", name);
    print_parameters(&s->text, s, &parameters, false);
    cornu__c_print(&s->text, ")\n{\n");
    s->text.depth = 1;
    for (int i = first; i < end; i++) write_part(s, &s->parts[i]);
    s->text.depth = 0;
    cornu__c_print(&s->text, "}\n\n");
    cornu__c_print(calls, "%s(", name);
    print_parameters(calls, s, &parameters, true);
    cornu__c_print(calls, ");\n");
    status = s->text.status ? s->text.status : calls->status;
    cornu__c_tidy(&s->text);
    CornuCText *to = &s->source->functions;
    for (size_t at = 0; !status && at < s->text.size; at += 512) {
        cornu__c_print(to, "%.512s", s->text.text + at);
        status = to->status;
    }
done:
    cornu__release(parameters.of);
    return status;
}

CornuStatus cornu__c_write_section(CornuCSection *s, CornuCText *calls)
{
    for (CornuValue v = 0; v < s->program->value_count; v++)   /* in place: the input's name */
        if (s->places[v].into >= 0 && s->program->values[v].op >= 0)
            memcpy(s->labels[v], s->labels[s->program->inputs[s->places[v].into]],
                   sizeof *s->labels);
    for (int first = 0, end = 0; first < s->part_count; first = end) {
        while (end < s->part_count && s->parts[end].unit == s->parts[first].unit) end++;
        CORNU__TRY(write_unit(s, first, end, calls));
    }
    return CORNU_OK;
}

CornuStatus cornu__c_program(CornuCSource *source, const CornuProgram *program,
                             const CornuCCalls *how, CornuCText *calls, size_t *scratch)
{
    CornuCSection section = { 0 };
    CornuProgram *lowered = cornu__c_lower(program);
    if (!lowered) return cornu_error_take();
    CornuStatus status = cornu__c_section(&section, source, lowered, how);
    if (!status) status = cornu__c_write_section(&section, calls);
    if (!status) cornu__c_tidy(calls);
    *scratch = section.scratch;
    cornu__c_section_free(&section);
    return status;
}
