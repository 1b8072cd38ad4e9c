/* Registered ops: their definitions, recording, and the gradient. */
#include "../custom.h"

#include <stdio.h>
#include <string.h>

#include "../../device/definition_internal.h"
#include "../graph_internal.h"
#include "custom_internal.h"

/* ---- Registering ---- */

CornuOp *cornu_op_register(const CornuOpDefinition *definition)
{
    CORNU__NEED_TO_MAKE(definition);
    if (cornu__refused()) return NULL;
    const char  *name = definition->name ? definition->name : "";
    const size_t length = strlen(name) + 1;
    CornuOp     *op = cornu__allocate(1, sizeof *op + length);
    if (!op) return cornu__null();
    memcpy(op->name, name, length);
    op->composition = definition->composition;
    op->gradient = definition->gradient;
    op->base = (CornuDefinition){
        .name = definition->name ? op->name : NULL,
        .inputs = definition->inputs ? definition->inputs : 1,
        .outputs = definition->outputs ? definition->outputs : 1,
        .type = definition->type, .flops = definition->flops,
        .reference = definition->reference, .kernel = definition->kernel,
        .is_composed = definition->composition != NULL,
    };
    if (cornu__definition_add(&op->base) == CORNU_OK) return op;
    cornu__release(op);
    return cornu__null();
}

CornuOp *cornu_op_find(const char *name)
{
    return name ? (CornuOp *)cornu__definition_find(name) : NULL;
}

/* ---- Recording ---- */

/* Records the composition for operands of these types; NULL, pending, after a failure. The caller
 * frees the graph, of which the program is the body. */
static CornuGraph *compose(const CornuOp *op, CornuDevice *device, const CornuOpArguments *call)
{
    CornuTensor *in[CORNU_MAX_INPUTS], *out[CORNU_MAX_OUTPUTS] = { NULL };
    char         who[100];
    CornuGraph  *template = cornu_graph_create(device);
    if (!template) return NULL;
    for (int i = 0; i < call->in_count; i++)
        if (!(in[i] = cornu__graph_parameter(template, call->in[i]))) goto fail;
    op->composition(call, in, out);
    if (cornu_error_pending()) {
        cornu__fail_prefix(cornu_error_take(), op->name);
        cornu__null();
        goto fail;
    }
    for (int i = 0; i < op->base.outputs; i++)
        if (!out[i] || out[i]->graph != template) {
            cornu__fail_null(CORNU_ERR_ARGUMENT, "%s: result %d of its composition is %s",
                             op->name, i, out[i] ? "a tensor of another graph" : "NULL");
            goto fail;
        }
    snprintf(who, sizeof who, "%s: its composition", op->name);
    if (!cornu__graph_close(template, call->in_count, out, op->base.outputs, who, "operands"))
        return template;
    cornu__null();
fail:
    cornu_graph_free(template);
    return NULL;
}

static CornuTensor *record_custom(const CornuOp *op, CornuTensor *const *in,
                                  const CornuOpArguments *call, CornuTensor **out)
{
    CornuAttributes attributes = { .custom = { .definition = &op->base,
                                               .number_count = call->number_count } };
    CornuGraph     *template = NULL;
    if (call->number_count)
        memcpy(attributes.custom.numbers, call->numbers,
               (size_t)call->number_count * sizeof(double));
    CornuType         types[CORNU_MAX_OUTPUTS];
    const CornuOpCall typed = { CORNU_OP_CUSTOM, &attributes, call->in_count, call->in };
    /* What the definition refuses is not composed: recording fails, and says where. */
    if (op->composition && cornu__op_type(&typed, types) == CORNU_OK) {
        if (!(template = compose(op, in[0]->graph->device, call))) return NULL;
        attributes.custom.body = template->program;
    }
    CornuTensor *made = cornu__record(CORNU_OP_CUSTOM, &attributes, in, call->in_count, out);
    cornu_graph_free(template);
    return made;
}

CornuTensor *cornu_op_custom(const CornuOp *op, CornuTensor *const *in, int in_count,
                             const double *numbers, int number_count, CornuTensor **out)
{
    CornuType    types[CORNU_MAX_INPUTS];
    CornuTensor *made[CORNU_MAX_OUTPUTS];
    CORNU__NEED_TO_MAKE(op);
    CORNU__NEED_TO_MAKE(in);
    const int expected = op->base.inputs;
    if (expected < 0 ? in_count < 1 || in_count > CORNU_MAX_INPUTS : in_count != expected)
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "%s: %d operands, expected %s%d", op->name,
                                in_count, expected < 0 ? "1 to " : "",
                                expected < 0 ? (int)CORNU_MAX_INPUTS : expected);
    if (number_count < 0 || number_count > CORNU_OP_NUMBERS || (number_count && !numbers))
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "%s: %d numbers%s, expected 0 to %d", op->name,
                                number_count, number_count && !numbers ? ", NULL" : "",
                                CORNU_OP_NUMBERS);
    for (int i = 0; i < in_count; i++) {
        if (!in[i])
            return cornu__fail_null(CORNU_ERR_ARGUMENT, "%s: operand %d is NULL", op->name, i);
        types[i] = cornu_tensor_type(in[i]);
    }
    const CornuOpArguments call = { .name = op->name, .in = types, .in_count = in_count,
                                    .numbers = numbers, .number_count = number_count };
    return record_custom(op, in, &call, out ? out : made);
}

CornuGraph *cornu__op_compose(const CornuOp *op, CornuDevice *device,
                              const CornuOpArguments *call)
{
    return compose(op, device, call);
}

/* ---- Gradient ---- */

/* Calls the gradient that the op was registered with. */
static void own_gradient(const CornuOp *own, const CornuRecorded *op,
                         const CornuOpArguments *call, CornuTensor *const *d_y, CornuTensor **d_x)
{
    CornuText is, expected;
    own->gradient(call, op->in, op->out, d_y, d_x);
    for (int i = 0; i < op->in_count && !cornu_error_pending(); i++) {
        if (!d_x[i]) continue;
        const CornuShape shape = cornu_tensor_shape(op->in[i]);
        if (d_x[i]->graph != op->graph)
            cornu__fail_null(CORNU_ERR_ARGUMENT, "%s: its gradient with respect to operand %d is a "
                             "tensor of another graph", own->name, i);
        else if (!cornu_shape_equal(cornu_tensor_shape(d_x[i]), shape))
            cornu__fail_null(CORNU_ERR_SHAPE, "%s: its gradient with respect to operand %d is %s, "
                             "expected %s, the operand's", own->name, i,
                             cornu_shape_print(&is, cornu_tensor_shape(d_x[i])),
                             cornu_shape_print(&expected, shape));
    }
}

/* The operands that are wanted, and the results that the loss depends on. */
typedef struct {
    int x[CORNU_MAX_INPUTS], x_count;
    int y[CORNU_MAX_OUTPUTS], y_count;
} Parts;

static Parts parts_of(const CornuRecorded *op, CornuTensor *const *d_y)
{
    Parts parts = { .x_count = 0 };
    for (int i = 0; i < op->in_count; i++)
        if (op->wanted[i] && cornu_dtype_is_float(cornu_tensor_type(op->in[i]).dtype))
            parts.x[parts.x_count++] = i;
    for (int i = 0; i < op->out_count; i++)
        if (d_y[i]) parts.y[parts.y_count++] = i;
    return parts;
}

/* Records the gradient of the body in a template: its inputs are the operands, then the gradients
 * of the results; its outputs those of the operands that are wanted. */
static bool differentiate(CornuGraph *template, const CornuRecorded *op, const Parts *parts,
                          CornuTensor *const *d_y)
{
    CornuTensor *in[CORNU_MAX_INPUTS], *out[CORNU_MAX_OUTPUTS], *x[CORNU_MAX_INPUTS];
    CornuTensor *y[CORNU_MAX_OUTPUTS], *d[CORNU_MAX_OUTPUTS], *d_x[CORNU_MAX_INPUTS];
    for (int i = 0; i < op->in_count; i++)
        if (!(in[i] = cornu__graph_parameter(template, cornu_tensor_type(op->in[i]))))
            return false;
    for (int i = 0; i < parts->y_count; i++)
        if (!(d[i] = cornu__graph_parameter(template, cornu_tensor_type(d_y[parts->y[i]]))))
            return false;
    if (!cornu__record_body(template, op->attributes->custom.body, in, out)) return false;
    for (int i = 0; i < parts->x_count; i++) x[i] = in[parts->x[i]];
    for (int i = 0; i < parts->y_count; i++) {
        y[i] = out[parts->y[i]];
        d[i] = cornu_op_convert(d[i], cornu_tensor_type(y[i]).dtype);
    }
    if (cornu_error_pending()) return false;
    if (!op->gradients(y, d, parts->y_count, x, parts->x_count, d_x) &&
        !cornu__graph_close(template, op->in_count + parts->y_count, d_x, parts->x_count,
                            "the gradient", "operands"))
        return true;
    cornu__null();
    return false;
}

/* Repeats the gradient of the body on the operands: where the op itself is decomposed, what both
 * compute is computed once. */
static void body_gradient(const CornuRecorded *op, CornuTensor *const *d_y, CornuTensor **d_x)
{
    CornuTensor *in[CORNU_MAX_INPUTS + CORNU_MAX_OUTPUTS], *out[CORNU_MAX_INPUTS];
    const Parts  parts = parts_of(op, d_y);
    CornuGraph  *template = cornu_graph_create(op->graph->device);
    for (int i = 0; i < op->in_count; i++) in[i] = op->in[i];
    for (int i = 0; i < parts.y_count; i++) in[op->in_count + i] = d_y[parts.y[i]];
    if (template && differentiate(template, op, &parts, d_y) &&
        cornu__record_body(op->graph, template->program, in, out))
        for (int i = 0; i < parts.x_count; i++) d_x[parts.x[i]] = out[i];
    cornu_graph_free(template);
}

static void custom_gradient(const CornuRecorded *op, CornuTensor *const *d_y, CornuTensor **d_x)
{
    const CornuAttributes_CUSTOM *custom = &op->attributes->custom;
    const CornuOp                *own = (const CornuOp *)custom->definition;
    CornuType                     types[CORNU_MAX_INPUTS];
    for (int i = 0; i < op->in_count; i++) types[i] = cornu_tensor_type(op->in[i]);
    const CornuOpCall      call = { op->id, op->attributes, op->in_count, types };
    const CornuOpArguments arguments = cornu__definition_arguments(&call);
    if (own->gradient) own_gradient(own, op, &arguments, d_y, d_x);
    else if (custom->body) body_gradient(op, d_y, d_x);
    else
        cornu__fail_null(CORNU_ERR_UNSUPPORTED, "%s: has neither .gradient nor .composition, "
                         "expected one of them to differentiate it", own->name);
}
CornuGradient *const cornu__custom_gradient = custom_gradient;
