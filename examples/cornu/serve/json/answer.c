/* Source: tensorflow/serving, util/json_tensor.cc: MakeJsonFromTensors and its neighbours, with
 * their line breaks where rows are concerned. */
#include "answer.h"

#include <ctype.h>

#include "tensor.h"

/* Elements from `first` on, below axis `axis`; the number of them. */
static int64_t add_values(Text *to, const float *values, const CornuShape *shape, int axis)
{
    if (axis == shape->rank) {
        text_add_float(to, values[0]);
        return 1;
    }
    int64_t count = 0;
    text_add(to, "[");
    for (int64_t i = 0; i < shape->extent[axis]; i++) {
        if (i > 0) text_add(to, ", ");
        count += add_values(to, values + count, shape, axis + 1);
    }
    text_add(to, "]");
    return count;
}

/* The output's shape for an answer: without a trailing axis of extent 1, if the request came
 * without one. */
static CornuShape shape_of(const CornuArray *y, const Rows *rows)
{
    CornuShape shape = y->type.shape;
    if (rows->squeezed && shape.rank > 1 && shape.extent[shape.rank - 1] == 1) shape.rank--;
    return shape;
}

static void add_columns(Text *to, const Served *served, const Rows *rows, const CornuArray *y)
{
    const bool several = served->output_count > 1;
    text_add(to, "{\n    \"outputs\": %s", several ? "{" : "");
    for (int i = 0; i < served->output_count; i++) {
        const CornuShape shape = shape_of(&y[i], rows);
        if (several) {
            text_add(to, "%s\n        ", i ? "," : "");
            text_add_quoted(to, served->outputs[i].name);
            text_add(to, ": ");
        }
        add_values(to, y[i].data, &shape, 0);
    }
    text_add(to, "%s\n}\n", several ? "\n    }" : "");
}

void answer_predict(Text *to, const Served *served, const Rows *rows, const CornuArray *y)
{
    const bool several = served->output_count > 1;
    if (rows->columns) {
        add_columns(to, served, rows, y);
        return;
    }
    text_add(to, "{\n    \"predictions\": [");
    for (int64_t row = 0; row < rows->count; row++) {
        if (row > 0) text_add(to, ", ");
        if (several) text_add(to, "{");
        for (int i = 0; i < served->output_count; i++) {
            const CornuShape shape = shape_of(&y[i], rows);
            const int64_t    size = cornu_type_count(y[i].type) / rows->count;
            if (several) {
                text_add(to, i ? ", " : "");
                text_add_quoted(to, served->outputs[i].name);
                text_add(to, ": ");
            }
            add_values(to, (const float *)y[i].data + row * size, &shape, 1);
        }
        if (several) text_add(to, "}");
    }
    text_add(to, "\n    ]\n}\n");
}

void answer_classify(Text *to, const Served *served, const CornuArray *y)
{
    const int64_t rows = y->type.shape.extent[0], classes = y->type.shape.extent[1];
    const float  *score = y->data;
    text_add(to, "{\n    \"results\": [");
    for (int64_t row = 0; row < rows; row++) {
        text_add(to, row > 0 ? ", [" : "[");
        for (int64_t c = 0; c < classes; c++) {
            const char *label = cornu_model_class_name(cornu_predictor_model(served->predictor), c);
            text_add(to, c > 0 ? ", [" : "[");
            text_add_quoted(to, label ? label : "");
            text_add(to, ", ");
            text_add_float(to, *score++);
            text_add(to, "]");
        }
        text_add(to, "]");
    }
    text_add(to, "\n    ]\n}\n");
}

void answer_regress(Text *to, const CornuArray *y)
{
    const float *value = y->data;
    text_add(to, "{\n    \"results\": [");
    for (int64_t row = 0; row < y->type.shape.extent[0]; row++) {
        if (row > 0) text_add(to, ", ");
        text_add_float(to, value[row]);
    }
    text_add(to, "]\n}\n");
}

/* ---- Metadata ---- */

/* DT_FLOAT, …: as tensorflow/core/framework/types.proto names what is "float" elsewhere. */
static void add_dtype(Text *to, CornuDtype dtype)
{
    text_add(to, "DT_");
    for (const char *c = tensor_dtype_name(dtype); *c; c++)
        text_add(to, "%c", toupper((unsigned char)*c));
}

static void add_tensors(Text *to, const char *what, const ServedTensor *tensors, int count,
                        const char *name)
{
    text_add(to, "     \"%s\": {\n", what);
    for (int i = 0; i < count; i++) {
        const CornuShape shape = tensors[i].type.shape;
        text_add(to, "      ");
        text_add_quoted(to, name ? name : tensors[i].name);
        text_add(to, ": {\n       \"dtype\": \"");
        add_dtype(to, tensors[i].type.dtype);
        text_add(to, "\",\n       \"tensor_shape\": {\n        \"dim\": [");
        for (int axis = 0; axis < shape.rank; axis++)
            text_add(to, "%s\n         { \"size\": \"%lld\", \"name\": \"\" }", axis ? "," : "",
                     (long long)shape.extent[axis]);
        text_add(to, "\n        ],\n        \"unknown_rank\": false\n       },\n       \"name\": ");
        text_add_quoted(to, tensors[i].name);
        text_add(to, "\n      }%s\n", i < count - 1 ? "," : "");
    }
    text_add(to, "     },\n");
}

static void add_signature(Text *to, const Served *served, const char *name, const char *method,
                          const char *output)
{
    text_add(to, "    \"%s\": {\n", name);
    add_tensors(to, "inputs", served->inputs, served->input_count, NULL);
    add_tensors(to, "outputs", served->outputs, served->output_count, output);
    text_add(to, "     \"method_name\": \"tensorflow/serving/%s\",\n     \"defaults\": {}\n    }",
             method);
}

void answer_metadata(Text *to, const Served *served)
{
    text_add(to, "{\n \"model_spec\": {\n  \"name\": ");
    text_add_quoted(to, served->name);
    text_add(to, ",\n  \"signature_name\": \"\",\n  \"version\": \"%lld\"\n },\n \"metadata\": {\n"
             "  \"signature_def\": {\n   \"signature_def\": {\n", (long long)served->version);
    add_signature(to, served, "serving_default", "predict", NULL);
    if (served_classifies(served)) {
        text_add(to, ",\n");
        add_signature(to, served, "tensorflow/serving/classify", "classify", "scores");
    }
    if (served_regresses(served)) {
        text_add(to, ",\n");
        add_signature(to, served, "tensorflow/serving/regress", "regress", "outputs");
    }
    text_add(to, "\n   }\n  }\n }\n}\n");
}
