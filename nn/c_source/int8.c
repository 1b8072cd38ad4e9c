/* A model of 8 bits as C: each operator a function with its constants, in the graph's order. */
#include "../lite/quantize_internal.h"
#include "int8_internal.h"

/* ---- The graph ---- */

static CornuStatus prepare(CornuCInt8 *c)
{
    const CornuLiteGraph *graph = c->graph;
    const size_t          tensors = (size_t)graph->tensor_count + 1;
    c->steps = cornu__allocate((size_t)graph->operator_count + 1, sizeof *c->steps);
    c->functions = cornu__allocate((size_t)graph->operator_count + 1, sizeof *c->functions);
    c->lives = cornu__allocate(tensors, sizeof *c->lives);
    c->at = cornu__allocate(tensors, sizeof *c->at);
    if (!c->steps || !c->functions || !c->lives || !c->at) return CORNU_ERR_MEMORY;
    while (c->step_count < graph->operator_count) {
        const int o = c->step_count++;
        CORNU__TRY(cornu__step_prepare(graph, o, &c->steps[o]));
        if (!c->steps[o].in || cornu__c_int8_writer(&c->steps[o])) continue;
        CornuLitePlace place;
        cornu__lite_place(graph, o, &place);
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s: has no C source of 8 bits", place.text);
    }
    return CORNU_OK;
}

static const char *type_of(const CornuLiteTensor *tensor)
{
    return tensor->dtype == CORNU_LITE_F32 ? "float"
         : tensor->dtype == CORNU_LITE_U8 ? "uint8_t" : "int8_t";
}

/* The operands that a step computes with: of sums and joins several. */
static int operands_of(const CornuLiteStep *step)
{
    switch (step->op->code) {
    case CORNU_LITE_CONCATENATION: return step->op->in_count;
    case CORNU_LITE_ADD: case CORNU_LITE_SUB: case CORNU_LITE_MUL: case CORNU_LITE_MAXIMUM:
    case CORNU_LITE_MINIMUM: case CORNU_LITE_PRELU: return 2;
    default: return 1;
    }
}

static int operand(const CornuLiteStep *step, int i)
{
    return operands_of(step) > 1 ? step->op->in[i] : step->op->in[step->product.x];
}

/* Where each tensor is: the caller's, a constant, or in scratch. */
static CornuStatus place(CornuCInt8 *c)
{
    const CornuLiteGraph *graph = c->graph;
    for (int t = 0; t < graph->tensor_count; t++) c->lives[t] = (CornuCLife){ -1, -2, 0, 0 };
    for (int o = 0; o < c->step_count; o++) {
        const CornuLiteStep *step = &c->steps[o];
        if (!step->in) continue;
        for (int i = 0; i < operands_of(step); i++) c->lives[operand(step, i)].last = o;
        CornuCLife *y = &c->lives[step->op->out[0]];
        *y = (CornuCLife){ o, y->last > o ? y->last : o,
                           (size_t)cornu__lite_count(step->out->shape, 1) *
                               cornu__lite_dtype_size(step->out->dtype), 0 };
    }
    for (int i = 0; i < graph->output_count; i++)
        c->lives[graph->outputs[i].tensor].last = graph->operator_count;
    CORNU__TRY(cornu__c_place(c->lives, graph->tensor_count, &c->scratch));
    for (int t = 0; t < graph->tensor_count; t++) {
        if (graph->tensors[t].data)
            snprintf(c->at[t], sizeof c->at[t], "%s_tensor_%d", c->prefix, t);
        else snprintf(c->at[t], sizeof c->at[t], "(%s *)(void *)(s + %zu)",
                      type_of(&graph->tensors[t]), c->lives[t].offset);
    }
    for (int i = 0; i < graph->input_count; i++)
        snprintf(c->at[graph->inputs[i].tensor], sizeof *c->at,
                 graph->input_count > 1 ? "x%d" : "x", i);
    return CORNU_OK;
}

/* ---- Writing ---- */

static void write_function(CornuCInt8 *c, int o)
{
    const CornuLiteStep *step = &c->steps[o];
    CornuText            from, to_shape;
    char                 name[48];
    if (!step->in) return;
    cornu__c_identifier(name, sizeof name, step->out->name);
    snprintf(c->functions[o], sizeof *c->functions, "%s_%s_%d", c->prefix, name, o);
    CornuCText *to = &c->text;
    cornu__c_print(to, "/* %s of %s is %s */\n", cornu__lite_operator_name(step->op),
                   cornu_shape_print(&from, step->in->shape),
                   cornu_shape_print(&to_shape, step->out->shape));
    cornu__c_print(to, "static void %s(", c->functions[o]);
    for (int i = 0; i < operands_of(step); i++) {
        const CornuLiteTensor *x = &c->graph->tensors[operand(step, i)];
        cornu__c_print(to, "const %s *%s_RESTRICT ", type_of(x), c->prefix);
        cornu__c_print(to, operands_of(step) > 1 ? "x%d, " : "x, ", i);
    }
    cornu__c_print(to, "%s *%s_RESTRICT y)\n{\n", type_of(step->out), c->prefix);
    to->depth = 1;
    cornu__c_int8_writer(step)(c, step);
    to->depth = 0;
    cornu__c_print(to, "}\n\n");
}

/* Tensors that are constants and operands of sums. */
static void write_constants(FILE *to, const CornuCInt8 *c)
{
    for (int o = 0; o < c->step_count; o++) {
        for (int i = 0; c->steps[o].in && i < operands_of(&c->steps[o]); i++) {
            const int              t = operand(&c->steps[o], i);
            const CornuLiteTensor *tensor = &c->graph->tensors[t];
            if (!tensor->data || c->lives[t].last != o) continue;
            fprintf(to, "static const int8_t %s[%zu] = {", c->at[t], tensor->bytes);
            for (size_t k = 0; k < tensor->bytes; k++)
                fprintf(to, "%s%d", k ? ", " : " ", ((const int8_t *)tensor->data)[k]);
            fprintf(to, " };\n\n");
        }
    }
}

static void write_prototype(FILE *to, const CornuCInt8 *c)
{
    const CornuLiteGraph *graph = c->graph;
    fprintf(to, "void %s_predict(void *scratch", c->prefix);
    for (int i = 0; i < graph->input_count; i++)
        fprintf(to, graph->input_count > 1 ? ", const %s *x%d" : ", const %s *x",
                type_of(&graph->tensors[graph->inputs[i].tensor]), i);
    for (int i = 0; i < graph->output_count; i++)
        fprintf(to, graph->output_count > 1 ? ", %s *y%d" : ", %s *y",
                type_of(&graph->tensors[graph->outputs[i].tensor]), i);
    fprintf(to, ")");
}

static void write_ports(FILE *to, const CornuCInt8 *c, const CornuLitePort *ports, int count,
                        char letter)
{
    for (int i = 0; i < count; i++) {
        const CornuLiteTensor *t = &c->graph->tensors[ports[i].tensor];
        CornuShape             shape = t->shape;
        CornuText              text;
        CornuCText             scale = { 0 };
        char                   number[16] = "";
        if (shape.rank > 0 && shape.extent[0] == CORNU_NONE) shape.extent[0] = 1;   /* the row */
        if (count > 1) snprintf(number, sizeof number, "%d", i);
        fprintf(to, "/* %c%s: %s %s */\n", letter, number, type_of(t),
                cornu_shape_print(&text, shape));
        if (t->dtype != CORNU_LITE_I8 || t->quantization.count != 1) continue;
        cornu__c_number(&scale, CORNU_F32, t->quantization.scales[0]);
        fprintf(to, "#define %s_%c%s_SCALE %s\n#define %s_%c%s_ZERO (%d)\n", c->capitals,
                letter - 32, number, scale.text ? scale.text : "1.0f", c->capitals, letter - 32,
                number, (int)t->quantization.zero_points[0]);
        cornu__release(scale.text);
    }
}

static void write_header(FILE *to, const CornuCInt8 *c)
{
    cornu__c_begin_header(to, c->capitals);
    fprintf(to, "#define %s_SCRATCH_BYTES %zu\n\n", c->capitals, c->scratch ? c->scratch : 1);
    fprintf(to, "/* A real number is SCALE (integer - ZERO). */\n");
    write_ports(to, c, c->graph->inputs, c->graph->input_count, 'x');
    write_ports(to, c, c->graph->outputs, c->graph->output_count, 'y');
    fprintf(to, "\n/* A prediction; `scratch` has %s_SCRATCH_BYTES. */\n", c->capitals);
    write_prototype(to, c);
    fprintf(to, ";\n\n");
    cornu__c_end_header(to);
}

static void write_calls(FILE *to, const CornuCInt8 *c)
{
    const CornuLiteGraph *graph = c->graph;
    write_prototype(to, c);
    fprintf(to, "\n{\n    unsigned char *const s = (unsigned char *)scratch;\n");
    for (int o = 0; o < c->step_count; o++) {
        const CornuLiteStep *step = &c->steps[o];
        if (!step->in) continue;
        fprintf(to, "    %s(", c->functions[o]);
        for (int i = 0; i < operands_of(step); i++)
            fprintf(to, "%s, ", c->at[operand(step, i)]);
        fprintf(to, "%s);\n", c->at[step->op->out[0]]);
    }
    for (int i = 0; i < graph->output_count; i++) {
        const int t = graph->outputs[i].tensor;
        char      name[16] = "y";
        if (graph->output_count > 1) snprintf(name, sizeof name, "y%d", i);
        fprintf(to, "    for (ptrdiff_t i = 0; i < %lld; i++) %s[i] = (%s)[i];\n",
                (long long)cornu__lite_count(graph->tensors[t].shape, 1), name, c->at[t]);
    }
    fprintf(to, "    (void)s;\n}\n");
}

static CornuStatus write(CornuCInt8 *c, const char *path)
{
    CornuCFiles files;
    for (int o = 0; o < c->step_count; o++) write_function(c, o);
    CORNU__TRY(c->text.status);
    cornu__c_tidy(&c->text);
    CORNU__TRY(cornu__c_files_open(&files, path, NULL));
    write_header(files.header.stream, c);
    FILE *to = files.source.stream;
    cornu__c_begin_source(to, c->prefix, files.name);
    cornu__c_int8_prelude(to, c);
    write_constants(to, c);
    fprintf(to, "%s", c->text.text ? c->text.text : "");
    write_calls(to, c);
    return cornu__c_files_close(&files, CORNU_OK);
}

CornuStatus cornu__c_int8_write(const CornuLiteGraph *graph, const char *path, const char *name)
{
    CornuCInt8  c = { .graph = graph };
    CornuStatus status = cornu__c_names(path, name, c.prefix, c.capitals);
    if (!status) status = prepare(&c);
    if (!status) status = place(&c);
    if (!status) status = write(&c, path);
    for (int o = 0; o < c.step_count; o++) cornu__lite_step_free(&c.steps[o]);
    cornu__release(c.steps);
    cornu__release(c.functions);
    cornu__release(c.lives);
    cornu__release(c.at);
    cornu__release(c.text.text);
    return status;
}

CornuStatus cornu_int8_compile_to_c(const CornuInt8Model *model, const char *path, const char *name)
{
    CORNU__NEED(model);
    CORNU__NEED(path);
    return cornu__c_int8_write(cornu__int8_graph(model), path, name);
}
