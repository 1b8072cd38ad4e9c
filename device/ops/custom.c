/*
 * custom: an op that a user has registered; its attributes have the definition, whose functions say
 * what it means, and a body that computes the same of other ops, or none.
 */
#include <string.h>

#include "../definition_internal.h"
#include "body.h"

static CornuStatus check_counts(const CornuOpCall *call)
{
    const CornuAttributes_CUSTOM *custom = &call->attributes->custom;
    const int                     inputs = custom->definition->inputs;
    if (inputs < 0 ? call->in_count > CORNU_MAX_INPUTS : call->in_count != inputs)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%d operands, expected %s%d", call->in_count,
                           inputs < 0 ? "at most " : "",
                           inputs < 0 ? (int)CORNU_MAX_INPUTS : inputs);
    if (custom->number_count < 0 || custom->number_count > CORNU_OP_NUMBERS)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%lld numbers, expected 0 to %d",
                           (long long)custom->number_count, CORNU_OP_NUMBERS);
    return CORNU_OK;
}

static CornuStatus expect_type(const char *what, int i, CornuType type, CornuType of_body)
{
    CornuText own, made;
    if (cornu_type_equal(type, of_body)) return CORNU_OK;
    return cornu__fail(type.dtype == of_body.dtype ? CORNU_ERR_SHAPE : CORNU_ERR_DTYPE,
                       "%s %d is %s, its composition has %s", what, i,
                       cornu_type_print(&own, type), cornu_type_print(&made, of_body));
}

/* The body is for operands and results of these types. */
static CornuStatus check_body(const CornuOpCall *call, const CornuType *out)
{
    const CornuProgram *body = call->attributes->custom.body;
    const int           outputs = call->attributes->custom.definition->outputs;
    CORNU__TRY(cornu__body_check(body, "registered op", false));
    if (body->input_count != call->in_count || body->output_count != outputs)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%d operands and %d results, its composition has %d "
                           "and %d", call->in_count, outputs, body->input_count,
                           body->output_count);
    for (int i = 0; i < call->in_count; i++)
        CORNU__TRY(expect_type("operand", i, call->in[i],
                               cornu_program_type(body, body->inputs[i])));
    for (int i = 0; i < outputs; i++)
        CORNU__TRY(expect_type("result", i, out[i],
                               cornu_program_type(body, body->outputs[i].value)));
    return CORNU_OK;
}

static CornuStatus custom_type(const CornuOpCall *call, CornuType *out)
{
    const CornuAttributes_CUSTOM *custom = &call->attributes->custom;
    const CornuDefinition        *definition = custom->definition;
    CORNU__TRY(check_counts(call));
    const CornuOpArguments arguments = cornu__definition_arguments(call);
    for (int i = 0; i < definition->outputs; i++)
        out[i] = definition->by_body
                     ? cornu_program_type(custom->body, custom->body->outputs[i].value)
                     : call->in[0];
    if (definition->type) CORNU__TRY(definition->type(&arguments, out));
    return custom->body ? check_body(call, out) : CORNU_OK;
}

static int64_t custom_flops(const CornuOpCall *call)
{
    const CornuAttributes_CUSTOM *custom = &call->attributes->custom;
    const CornuOpArguments        arguments = cornu__definition_arguments(call);
    if (custom->definition->flops) return custom->definition->flops(&arguments);
    return custom->body ? cornu_program_flops(custom->body) : cornu__flops_per_element(call);
}

static CornuStatus run_body(const CornuReferenceCall *call, CornuBodyMemory *memory)
{
    const CornuProgram *body = call->op.attributes->custom.body;
    CORNU__TRY(cornu__body_take(memory, body));
    for (int i = 0; i < body->input_count; i++)
        memcpy(memory->value[body->inputs[i]], call->in[i],
               (size_t)cornu__body_count(body, body->inputs[i]) * sizeof(double));
    CORNU__TRY(cornu__reference_program(body, memory->value, memory->in, memory->in_type));
    for (int i = 0; i < body->output_count; i++)
        memcpy(call->out[i], memory->value[body->outputs[i].value],
               (size_t)cornu__body_count(body, body->outputs[i].value) * sizeof(double));
    return CORNU_OK;
}

static CornuStatus custom_reference(const CornuReferenceCall *call)
{
    const CornuAttributes_CUSTOM *custom = &call->op.attributes->custom;
    const CornuOpArguments        arguments = cornu__definition_arguments(&call->op);
    CornuBodyMemory               memory = { 0 };
    if (custom->definition->reference)
        return custom->definition->reference(&arguments, call->in, call->out_type, call->out);
    const CornuStatus status = run_body(call, &memory);
    cornu__body_release(&memory);
    return status;
}

const CornuOpRules cornu__custom_rules = {
    custom_type, custom_flops, CORNU_BODY, custom_reference,
};
