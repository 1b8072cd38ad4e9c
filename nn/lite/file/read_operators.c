/* The operators of .tflite files: read_internal.h. */
#include <stdio.h>

#include "../../../device/memory_internal.h"
#include "read_internal.h"

enum { CODE_IN_BYTE = 127 };

/* An operator code of the file. */
static CornuStatus read_code(CornuLiteReader *reader, const CornuFlatTable *op, int *code,
                             CornuFlatTable *held)
{
    CornuFlat     *from = &reader->from;
    const uint64_t index = cornu__flat_bits(from, op, 0, 4, 0);
    if (index >= reader->codes.count) return cornu__lite_damaged("an operator has no code");
    *held = cornu__flat_element(from, &reader->codes, (size_t)index);
    const int byte = (int)(int8_t)cornu__flat_bits(from, held, 0, 1, 0);
    const int number = cornu__flat_i32(from, held, 3, 0);
    *code = byte < CODE_IN_BYTE && byte > number ? byte : number;
    return CORNU_OK;
}

static CornuStatus read_extents(CornuLiteReader *reader, const CornuFlatTable *table, int slot,
                                CornuLiteOptions *options)
{
    const CornuFlatVector extents = cornu__flat_vector_at(&reader->from, table, slot, 4);
    if (extents.count > CORNU_MAX_RANK) return cornu__lite_damaged("a list of too many extents");
    options->extent_count = (int32_t)extents.count;
    for (size_t i = 0; i < extents.count; i++)
        options->extents[i] = cornu__lite_integer(&extents, i);
    return CORNU_OK;
}

/* Windows have extents, and enumerations a name. */
static CornuStatus check_options(int code, const CornuLiteTable *kind,
                                 const CornuLiteOptions *options)
{
    static const size_t counted[] = {
        offsetof(CornuLiteOptions, stride_d), offsetof(CornuLiteOptions, stride_h),
        offsetof(CornuLiteOptions, stride_w), offsetof(CornuLiteOptions, dilation_d),
        offsetof(CornuLiteOptions, dilation_h), offsetof(CornuLiteOptions, dilation_w),
        offsetof(CornuLiteOptions, filter_h), offsetof(CornuLiteOptions, filter_w),
        offsetof(CornuLiteOptions, block_size),
    };
    bool good = (unsigned)options->padding <= CORNU_LITE_VALID && options->radius >= 0 &&
                (unsigned)options->mirror <= 1;
    for (int i = 0; i < kind->count; i++)
        for (size_t k = 0; k < sizeof counted / sizeof *counted; k++)
            good &= kind->fields[i].offset != counted[k] ||
                    cornu__lite_get(options, &kind->fields[i]) >= 1;
    if (!good)
        return cornu__fail(CORNU_ERR_FORMAT, "%s has a window, a block or a padding that there is "
                           "not", cornu__lite_code_name(code));
    if ((unsigned)options->fused_activation <= CORNU_LITE_FUSED_TANH && !options->weights_format)
        return CORNU_OK;
    return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s with the activation %d and the weights format %d "
                       "is not available", cornu__lite_code_name(code),
                       (int)options->fused_activation, (int)options->weights_format);
}

/* Of an operator without a table, all defaults; with that of another operator, damage. */
static CornuStatus read_options(CornuLiteReader *reader, const CornuFlatTable *op, int code,
                                CornuLiteOptions *options)
{
    CornuFlat            *from = &reader->from;
    const CornuLiteTable *kind = cornu__lite_table(code);
    const int             number = (int)cornu__flat_bits(from, op, 3, 1, 0);
    const CornuFlatTable  table = cornu__flat_table_at(from, op, 4);
    *options = (CornuLiteOptions){ 0 };
    if (number && kind->number && number != kind->number)
        return cornu__fail(CORNU_ERR_FORMAT, "%s has the options %d, expected %d",
                           cornu__lite_code_name(code), number, kind->number);
    for (int i = 0; i < kind->count && number; i++) {
        const CornuLiteField *field = &kind->fields[i];
        switch (field->kind) {
        case CORNU_LITE_EXTENTS:
            CORNU__TRY(read_extents(reader, &table, field->slot, options));
            break;
        case CORNU_LITE_BYTE:
        case CORNU_LITE_FLAG:
            cornu__lite_set(options, field,
                            (int8_t)cornu__flat_bits(from, &table, field->slot, 1, 0));
            break;
        default:   /* the bits of a float as well */
            cornu__lite_set(options, field,
                            cornu__flat_i32(from, &table, field->slot,
                                            field->kind == CORNU_LITE_ONE));
        }
    }
    return check_options(code, kind, options);
}

/* ---- One operator ---- */

/* "node 7, RFFT2D of \"spectrum\"", by its number in the subgraph and its first result. */
typedef struct { char text[CORNU_LITE_MOST_NAME + 100]; } Place;
static const char *place_of(const CornuLiteReader *reader, size_t node, const char *name,
                            const int *out, int out_count, Place *place)
{
    const bool named = out_count > 0 && out[0] >= 0;
    snprintf(place->text, sizeof place->text, named ? "node %zu, %.80s of \"%.150s\""
                                                    : "node %zu, %.80s%s", node, name,
             named ? reader->graph->tensors[out[0]].name : "");
    return place->text;
}

static CornuStatus check_tensors(const int *in, int in_count, const int *out, int out_count)
{
    for (int i = 0; i < in_count; i++)
        if (in[i] < CORNU_LITE_OMITTED)
            return cornu__fail(CORNU_ERR_UNSUPPORTED, "its operand %d is the handle of a resource",
                               i);
    for (int i = 0; i < out_count; i++)
        if (out[i] < 0)
            return cornu__fail(CORNU_ERR_UNSUPPORTED, "its result %d is the handle of a resource",
                               i);
    return CORNU_OK;
}

static CornuStatus set_custom(CornuLiteReader *reader, int op, const char *name,
                              const CornuFlatTable *table)
{
    const CornuFlatVector options = cornu__flat_vector_at(&reader->from, table, 5, 1);
    CORNU__TRY(cornu__lite_take(reader, options.count + CORNU_LITE_MOST_NAME));
    cornu__lite_set_custom(reader->graph, op, name, options.bytes, options.count);
    return reader->graph->status;
}

static CornuStatus add(CornuLiteReader *reader, const CornuFlatTable *table, int code,
                       const char *custom, const int *in, int in_count, const int *out,
                       int out_count)
{
    CornuLiteOptions options;
    if (cornu__lite_is_control(code))
        return cornu__lite_read_control(reader, code, table, in, in_count, out, out_count);
    if (reader->initial)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "the first values of variables must be "
                           "constants");
    if (!cornu__lite_table(code))
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "this operator of LiteRT, builtin %d, is not "
                           "available in this version", code);
    CORNU__TRY(check_tensors(in, in_count, out, out_count));
    CORNU__TRY(read_options(reader, table, code, &options));
    if (reader->loops && out_count == 1) {
        bool folded;
        CORNU__TRY(cornu__lite_fold_number(reader, code, in, in_count, out[0], &folded));
        if (folded) return CORNU_OK;
    }
    CORNU__TRY(cornu__lite_take(reader, sizeof(CornuLiteOperator)));
    const int op = cornu__lite_add_operator(reader->graph, (CornuLiteCode)code, in, in_count, out,
                                            out_count, &options);
    CORNU__TRY(reader->graph->status);
    return custom ? set_custom(reader, op, custom, table) : CORNU_OK;
}

CornuStatus cornu__lite_read_operator(CornuLiteReader *reader, const CornuFlatTable *table,
                                      size_t node)
{
    CornuFlatTable held;
    CornuLiteText  text;
    Place          place = { .text = "" };
    int            code = 0, *in = NULL, *out = NULL, in_count = 0, out_count = 0;
    CORNU__TRY(read_code(reader, table, &code, &held));
    const char *custom = code == CORNU_LITE_CUSTOM
                             ? cornu__lite_text(reader, &text, &held, 1, "") : NULL;
    const char *name = custom ? custom : cornu__lite_code_name(code);
    CornuStatus status = cornu__lite_read_numbers(reader, table, 1, true, &in, &in_count);
    if (!status) status = cornu__lite_read_numbers(reader, table, 2, false, &out, &out_count);
    if (!status) {
        status = add(reader, table, code, custom, in, in_count, out, out_count);
        cornu__fail_prefix(status, place_of(reader, node, name ? name : "an unknown operator", out,
                                            out_count, &place));
    }
    cornu__release(in);
    cornu__release(out);
    return status;
}
