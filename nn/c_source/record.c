/* The programs of a model: a prediction and, if it is trained, a step; and its variables. */
#include <stdlib.h>

#include "../../device/ops/rewrite.h"
#include "../explain/types.h"
#include "../losses/loss_internal.h"
#include "../model/compiled_internal.h"
#include "../optimizers/optimizer_internal.h"
#include "../saving/files.h"
#include "c_source_internal.h"

/* ---- Steps ---- */

static CornuStatus refuse_open(const CornuCModel *c)
{
    const CornuModel *model = c->config->model;
    CornuText         text;
    for (int i = 0; i < model->input_count && !c->config->extent; i++) {
        const CornuShape shape = cornu_symbol_type(model->inputs[i]).shape;
        for (int k = cornu_model_is_function(model) ? 0 : 1; k < shape.rank; k++)
            if (shape.extent[k] == CORNU_NONE)
                return cornu__fail(CORNU_ERR_SHAPE, "%s: its input is %s, expected known extents, "
                                   "or .extent for those that it leaves open",
                                   cornu_model_name(model), cornu_shape_print(&text, shape));
    }
    return CORNU_OK;
}

/* Numbers of classes have the outputs' shape without the classes. */
static CornuType label_type(const CornuModel *model, int i, CornuType output)
{
    const CornuLoss *loss = model->losses[i];
    output.dtype = CORNU_F32;
    if (!loss || !loss->kind || !loss->kind->whole_labels) return output;
    output.dtype = CORNU_I32;
    output.shape.extent[--output.shape.rank] = 0;
    return output;
}

static bool is_earlier(const CornuCData *data, int i)
{
    for (int k = 0; k < i; k++)
        if (!strcmp(data[k].name, data[i].name)) return true;
    return false;
}

/* Data i of these: "x", or of several "x_tokens"; of names that are alike in C "x_tokens_2". */
static void name_data(CornuCData *data, int i, int count, CornuType type, const char *letter,
                      const char *name)
{
    char  identifier[48];
    char *to = data[i].name;
    data[i].type = type;
    cornu__c_identifier(identifier, sizeof identifier, name);
    snprintf(to, sizeof data->name, "%s_%s", letter, *identifier ? identifier : "value");
    if (count == 1) snprintf(to, sizeof data->name, "%s", letter);
    const size_t length = strlen(to);
    for (int n = 2; is_earlier(data, i); n++)
        cornu__c_number_name(to, sizeof data->name, length, n);
}

static CornuStatus make_step(CornuCModel *c, CornuStepMode mode, int64_t rows, CornuStep **step,
                             CornuCData *x, CornuCData *y)
{
    CornuModelTypes types;
    CornuArray      xs[CORNU_MAX_MODEL_TENSORS], ys[CORNU_MAX_MODEL_TENSORS];
    CORNU__TRY(cornu_model_types(c->model, rows, c->config->extent, &types));
    for (int i = 0; i < types.input_count; i++) {
        CornuType type = types.inputs[i];
        if (types.rows_of[i] && cornu_dtype_is_float(type.dtype)) type.dtype = CORNU_I32;
        xs[i] = cornu_array_from(NULL, type);
        name_data(x, i, types.input_count, type, "x", cornu_model_input_name(c->model, i));
    }
    const bool trains = mode == CORNU_STEP_TRAIN;
    for (int i = 0; i < types.output_count; i++) {
        const CornuType type = trains ? label_type(c->model, i, types.outputs[i])
                                      : types.outputs[i];
        ys[i] = cornu_array_from(NULL, type);
        name_data(y, i, types.output_count, type, "y", cornu_model_output_name(c->model, i));
    }
    c->x_count = types.input_count;
    c->y_count = types.output_count;
    return cornu__step_make(c->model, mode, &(CornuArrays){ .x = xs, .y = ys }, false, step);
}

/* ---- Variables ---- */

static const CornuGraphInput *input_of(const CornuGraph *graph, const CornuBuffer *buffer)
{
    for (int i = 0; i < graph->input_count; i++) {
        const CornuVariable *variable = graph->inputs[i].variable;
        if ((variable ? variable->buffer : graph->inputs[i].feed) == buffer)
            return &graph->inputs[i];
    }
    return NULL;
}

static void name_variable(CornuCModel *c, CornuCVariable *variable)
{
    char name[48];
    cornu__c_identifier(name, sizeof name, variable->variable
                        ? cornu_variable_name(variable->variable) : "numbers");
    if (!*name) snprintf(name, sizeof name, "value");
    for (int n = 1;; n++) {
        bool taken = false;
        if (n == 1) snprintf(variable->name, sizeof variable->name, "%s", name);
        else snprintf(variable->name, sizeof variable->name, "%s_%d", name, n);
        for (const CornuCVariable *v = c->variables; v < variable; v++)
            taken |= !strcmp(v->name, variable->name);
        if (!taken) return;
    }
}

static CornuStatus add_variable(CornuCModel *c, CornuVariable *variable, CornuBuffer *numbers,
                                int *index)
{
    for (*index = 0; *index < c->variable_count; ++*index)
        if (c->variables[*index].variable == variable && c->variables[*index].numbers == numbers)
            return CORNU_OK;
    CORNU__TRY(cornu__reserve(&c->variables, &c->variable_space, c->variable_count, 1,
                              sizeof *c->variables));
    CornuCVariable *added = &c->variables[c->variable_count++];
    *added = (CornuCVariable){ .variable = variable, .numbers = numbers,
                               .type = variable ? cornu_variable_type(variable)
                                                : cornu_buffer_type(numbers) };
    name_variable(c, added);
    return CORNU_OK;
}

/* The number that is fed for how many rows are valid, and which the first is; else -1. */
static int64_t number_of(const CornuStep *step, const CornuBuffer *buffer)
{
    const CornuTensor *const fed[] = { step->count, step->total, step->position };
    const CornuGraph  *graph = step->graph;
    for (int i = 0; i < 3; i++) {
        if (!fed[i] || graph->program->values[fed[i]->value].op >= 0) continue;
        const int input = graph->program->values[fed[i]->value].index;
        if (graph->inputs[input].feed == buffer) return i < 2 ? step->rows : 0;
    }
    return -1;
}

/* The data that an input is: its tensor among those that are fed. NULL: it is none. */
static const char *data_of(const CornuCModel *c, const CornuCFunction *f, const CornuBuffer *buffer)
{
    const CornuStep  *step = f->step;
    const bool        trains = f == &c->train;
    const CornuCData *x = trains ? c->fed_x : c->x, *y = trains ? c->fed_y : c->y;
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < (k ? step->y_count : step->x_count); i++) {
            const CornuTensor *fed = k ? step->y[i] : step->x[i];
            if (!fed) continue;
            const CornuProgramValue *value = &step->graph->program->values[fed->value];
            if (value->op < 0 && step->graph->inputs[value->index].feed == buffer)
                return k ? y[i].name : x[i].name;
        }
    return NULL;
}

static bool is_assigned(const CornuProgram *program, int input)
{
    for (int i = 0; i < program->output_count; i++)
        if (program->outputs[i].alias == input) return true;
    return false;
}

static CornuStatus find_variables(CornuCModel *c, CornuCFunction *f)
{
    const CornuPrepared *prepared = f->step->graph->last;
    const CornuProgram  *p = prepared->program;
    const bool           trains = f == &c->train;
    f->variable = cornu__allocate((size_t)p->input_count + 1, sizeof *f->variable);
    if (!f->variable) return CORNU_ERR_MEMORY;
    for (int i = 0; i < p->input_count; i++) {
        CornuBuffer           *buffer = prepared->inputs[i];
        const CornuGraphInput *input = input_of(f->step->graph, buffer);
        CornuVariable         *of = input ? input->variable : NULL;
        f->variable[i] = -1;
        if (!of && (number_of(f->step, buffer) >= 0 || data_of(c, f, buffer))) continue;
        if (!cornu__c_is_read(p, p->inputs[i]) && !is_assigned(p, i)) continue;
        CORNU__TRY(add_variable(c, of, of ? NULL : buffer, &f->variable[i]));
        CornuCVariable *variable = &c->variables[f->variable[i]];
        *(trains ? &variable->trains : &variable->predicts) = true;
        variable->assigned |= is_assigned(p, i);
        if (!trains && variable->assigned)
            return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s: a prediction assigns %s, expected "
                               "layers without a state that goes on from batch to batch",
                               cornu_model_name(c->model), cornu_variable_name(of));
    }
    return CORNU_OK;
}

/* ---- Programs ---- */

/* The program with full batches, so that nothing is fed but data. */
static CornuStatus with_constants(CornuCFunction *f)
{
    const CornuPrepared *prepared = f->step->graph->last;
    const CornuProgram  *p = prepared->program;
    CornuRewrite         rewrite;
    CornuStatus          status = cornu__rewrite_begin(&rewrite, p, false);
    for (int i = 0; i < p->input_count && !status; i++) {
        const int64_t   number = number_of(f->step, prepared->inputs[i]);
        CornuAttributes constant = { .constant = { CORNU_I64, (double)number } };
        if (number >= 0)
            status = cornu_program_record(rewrite.to, CORNU_OP_CONSTANT, &constant, NULL, 0,
                                          &rewrite.map[p->inputs[i]]);
    }
    for (int i = 0; i < p->op_count && !status; i++) {
        status = cornu__program_follow(rewrite.to, &p->ops[i]);
        if (!status) status = cornu__rewrite_keep(&rewrite, &p->ops[i]);
    }
    f->program = cornu__rewrite_end(&rewrite, status);
    return f->program ? CORNU_OK : status ? status : cornu_error_take();
}

static CornuStatus name_operands(CornuCModel *c, CornuCFunction *f)
{
    const bool           trains = f == &c->train;
    const CornuPrepared *prepared = f->step->graph->last;
    f->in = cornu__allocate((size_t)f->program->input_count + 1, sizeof *f->in);
    f->out = cornu__allocate((size_t)f->program->output_count + 1, sizeof *f->out);
    if (!f->in || !f->out) return CORNU_ERR_MEMORY;
    for (int i = 0; i < f->program->input_count; i++) {
        const char *data = data_of(c, f, prepared->inputs[i]);
        f->in[i] = f->variable[i] >= 0 ? c->variables[f->variable[i]].at[trains]
                   : data ? data : "NULL";   /* nothing reads it */
    }
    for (int i = 0, k = 0; i < f->program->output_count; i++)
        if (f->program->outputs[i].alias < 0) f->out[i] = c->y[k++].name;
    return CORNU_OK;
}

/* ---- The model ---- */

/* A step does not change a learning rate, but whoever trains may. */
static bool is_rate(const CornuCVariable *variable)
{
    return strstr(variable->name, "learning_rate") != NULL;
}

/* Arguments, which may not be functions' names where the prefix is "x" or "y". */
static CornuStatus take_data_names(CornuCModel *c)
{
    for (int i = 0; i < c->x_count; i++) {
        CORNU__TRY(cornu__c_take_name(&c->source, c->x[i].name, sizeof c->x[i].name));
        memcpy(c->fed_x[i].name, c->x[i].name, sizeof c->x[i].name);
    }
    for (int i = 0; i < c->y_count; i++) {
        CORNU__TRY(cornu__c_take_name(&c->source, c->y[i].name, sizeof c->y[i].name));
        memcpy(c->fed_y[i].name, c->y[i].name, sizeof c->y[i].name);
    }
    return CORNU_OK;
}

/* What the files define besides the layers' functions. */
static CornuStatus take_names(CornuCModel *c)
{
    static const char *const names[] = { "weights", "trained", "predict", "state", "init", "step",
                                         "save", "load" };
    char name[160];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(name, sizeof name, "%s_%s", c->prefix, names[i]);
        CORNU__TRY(cornu__c_take_name(&c->source, name, sizeof name));
    }
    CORNU__TRY(take_data_names(c));
    for (int i = 0; i < c->variable_count; i++) {
        CornuCVariable *v = &c->variables[i];
        if (v->where == CORNU_C_WEIGHT) continue;
        snprintf(name, sizeof name, "%s_%s%s", c->prefix, v->name,
                 v->where == CORNU_C_STATE ? "_0" : "");   /* what it begins with */
        CORNU__TRY(cornu__c_take_name(&c->source, name, sizeof name));
        for (int k = 0; k < 2 && v->where == CORNU_C_CONSTANT; k++)
            memcpy(v->at[k], name, sizeof name);
    }
    return CORNU_OK;
}

static void place_variables(CornuCModel *c)
{
    for (int i = 0; i < c->variable_count; i++) {
        CornuCVariable *v = &c->variables[i];
        const bool file = c->config->weights && v->predicts;   /* frozen ones, too */
        const bool held = v->variable && (!c->config->train || file ? v->predicts
                                                                    : v->assigned || is_rate(v));
        v->where = !held ? CORNU_C_CONSTANT : v->predicts ? CORNU_C_WEIGHT : CORNU_C_STATE;
        const char *const weights[] = { "weights->", "state->weights." };
        for (int k = 0; k < 2; k++)
            snprintf(v->at[k], sizeof v->at[k], "%s%s",
                     v->where == CORNU_C_WEIGHT ? weights[k]
                                                : v->where == CORNU_C_STATE ? "state->" : "",
                     v->name);
    }
}

static CornuStatus compile_copy(CornuCModel *c)
{
    const CornuModel *model = c->config->model;
    c->device = cornu_device_open("cpu", .shards = 1);
    c->model = c->device ? cornu_model_clone(model) : NULL;
    if (!c->model) return cornu_error_take();
    CORNU__TRY(cornu_model_copy_weights(c->model, model));
    if (!c->config->train) return cornu__model_predict_on(c->model, c->device);
    if (!cornu_model_compiled(model))
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .train of a model that is not compiled, "
                           "expected a loss and an optimizer", cornu_model_name(model));
    char *json = cornu_compile_to_json(model);
    if (!json) return cornu_error_take();
    const CornuStatus status = cornu_compile_from_json(c->model, json, c->device);
    free(json);
    return status;
}

static CornuStatus write_function(CornuCModel *c, CornuCFunction *f, const char *what)
{
    CORNU__TRY(with_constants(f));
    CORNU__TRY(name_operands(c, f));
    f->calls.depth = 1;
    return cornu__c_program(&c->source, f->program,
                            &(CornuCCalls){ .what = what, .in = f->in, .out = f->out }, &f->calls,
                            &f->scratch);
}

CornuStatus cornu__c_record(CornuCModel *c)
{
    const int64_t batch = c->config->batch_size ? c->config->batch_size : 32;
    const int64_t rows = c->config->rows ? c->config->rows : 1;
    const bool    trains = c->config->train;
    CORNU__TRY(refuse_open(c));
    CORNU__TRY(compile_copy(c));
    if (trains)
        CORNU__TRY(make_step(c, CORNU_STEP_TRAIN, batch, &c->train.step, c->fed_x, c->fed_y));
    CORNU__TRY(make_step(c, CORNU_STEP_PREDICT, rows, &c->predict.step, c->x, c->y));
    CORNU__TRY(find_variables(c, &c->predict));
    if (trains) CORNU__TRY(find_variables(c, &c->train));
    place_variables(c);
    CORNU__TRY(take_names(c));
    CORNU__TRY(write_function(c, &c->predict, ""));
    return trains ? write_function(c, &c->train, "step") : CORNU_OK;
}
