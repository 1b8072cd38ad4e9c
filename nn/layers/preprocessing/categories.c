/* CategoryEncoding, and the encoding of indices. */
#include "../../fields/field_internal.h"
#include "categories_internal.h"

const CornuFieldKind cornu_field_output_mode = {
    .name = "output_mode", CORNU__FIELD_OF_WORDS(CornuOutputMode),
    .words = { [CORNU_INT_OUTPUT] = "int", [CORNU_ONE_HOT_OUTPUT] = "one_hot",
               [CORNU_MULTI_HOT_OUTPUT] = "multi_hot", [CORNU_COUNT_OUTPUT] = "count",
               [CORNU_TF_IDF_OUTPUT] = "tf_idf" },
};

const char *cornu_output_mode_name(CornuOutputMode mode)
{
    return cornu__field_word(CORNU_FIELD_OUTPUT_MODE, (int)mode);
}

CornuStatus cornu__check_output_mode(const char *layer, CornuOutputMode *mode,
                                     CornuOutputMode usual, CornuOutputMode first,
                                     CornuOutputMode last)
{
    if (*mode == CORNU_DEFAULT_OUTPUT) *mode = usual;
    if (*mode >= first && *mode <= last) return CORNU_OK;
    return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .output_mode is %d, expected %d (%s) to %d (%s)",
                       layer, (int)*mode, (int)first, cornu_output_mode_name(first), (int)last,
                       cornu_output_mode_name(last));
}

CornuStatus cornu__check_encoded(CornuShape input, CornuOutputMode mode)
{
    CornuText text;
    if (input.rank >= 2 || mode == CORNU_INT_OUTPUT || mode == CORNU_ONE_HOT_OUTPUT)
        return CORNU_OK;
    return cornu__fail(CORNU_ERR_SHAPE, "the input is %s, expected (B, T, …) for the output mode "
                       "\"%s\"", cornu_shape_print(&text, input), cornu_output_mode_name(mode));
}

/* (…, depth): 1 where the index is the place. */
static CornuTensor *one_hot(CornuTensor *indices, int64_t depth, CornuDtype dtype)
{
    if (!indices) return NULL;
    const bool       whole = !cornu_dtype_is_float(cornu_tensor_type(indices).dtype);
    const CornuDtype compared = whole ? CORNU_I64 : CORNU_F32;
    CornuShape       each = cornu_tensor_shape(indices), line = { .rank = each.rank + 1 };
    if (each.rank == CORNU_MAX_RANK)
        return cornu__fail_null(CORNU_ERR_SHAPE, "the input has %d axes, expected at most %d",
                                each.rank, CORNU_MAX_RANK - 1);
    for (int i = 0; i < each.rank; i++) line.extent[i] = 1;
    each.extent[each.rank++] = 1;
    line.extent[line.rank - 1] = depth;
    indices = cornu_op_reshape(cornu_op_convert(indices, compared), each);
    CornuTensor *place = indices ? cornu_op_iota(cornu_tensor_graph(indices),
                                                 cornu_type_from(compared, line), line.rank - 1)
                                 : NULL;
    return cornu_op_convert(cornu_op_compare(indices, CORNU_EQUAL, place), dtype);
}

CornuTensor *cornu__encode(const CornuLayer *layer, CornuTensor *indices, CornuOutputMode mode,
                           int64_t depth, CornuTensor *weights)
{
    if (mode == CORNU_INT_OUTPUT) return cornu_op_convert(indices, CORNU_I32);
    if (!indices) return NULL;
    CornuShape shape = cornu_tensor_shape(indices);
    if (mode == CORNU_ONE_HOT_OUTPUT) {
        if (shape.rank > 1 && shape.extent[shape.rank - 1] == 1) {
            shape.rank--;
            indices = cornu_op_reshape(indices, shape);
        }
        return one_hot(indices, depth, layer->compute);
    }
    if (mode == CORNU_MULTI_HOT_OUTPUT)      /* as Keras, which truncates floats only here */
        indices = cornu_op_convert(indices, CORNU_I64);
    CornuTensor *hot = one_hot(indices, depth, CORNU_F32);
    if (weights) {
        shape.extent[shape.rank++] = 1;
        weights = cornu_op_reshape(cornu_op_convert(weights, CORNU_F32), shape);
        hot = cornu_op_multiply(hot, weights);
    }
    hot = mode == CORNU_MULTI_HOT_OUTPUT ? cornu_op_reduce_max(hot, 1 << 1, false)
                                         : cornu_op_reduce_sum(hot, 1 << 1, false);
    return cornu_op_convert(hot, layer->compute);
}

/* ---- CategoryEncoding ---- */

typedef CORNU__LAYER(CornuCategoryEncodingConfig) CategoryEncoding;

static CornuStatus categories_build(CornuLayer *layer, const CornuShape *in, int in_count)
{
    const CornuCategoryEncodingConfig *config = &((CategoryEncoding *)layer)->config;
    if (in_count > 2 || (in_count == 2 && config->output_mode != CORNU_COUNT_OUTPUT))
        return cornu__fail(CORNU_ERR_ARGUMENT, "got %d tensors, expected %s", in_count,
                           config->output_mode == CORNU_COUNT_OUTPUT ? "1 or 2" : "1, as weights "
                           "are for the output mode \"count\"");
    return cornu__check_encoded(in[0], config->output_mode);
}

static CornuTensor *categories_call(CornuLayer *layer, const CornuCall *call,
                                    CornuTensor *const *in, int in_count, CornuTensor **out)
{
    const CornuCategoryEncodingConfig *config = &((CategoryEncoding *)layer)->config;
    CornuTensor *x = cornu__refuse_nan(call, in[0]);
    return out[0] = cornu__encode(layer, x, config->output_mode, config->num_tokens,
                                  in_count > 1 ? in[1] : NULL);
}

static CornuStatus categories_resolve(CornuLayer *layer)
{
    CornuCategoryEncodingConfig *config = &((CategoryEncoding *)layer)->config;
    const char                  *name = cornu_layer_name(layer);
    CORNU__TRY(cornu__positive(name, "num_tokens", config->num_tokens));
    return cornu__check_output_mode(name, &config->output_mode, CORNU_MULTI_HOT_OUTPUT,
                                    CORNU_ONE_HOT_OUTPUT, CORNU_COUNT_OUTPUT);
}

static const CornuField fields[] = {
    { "num_tokens", CORNU_FIELD_INTEGER, offsetof(CornuCategoryEncodingConfig, num_tokens) },
    { "output_mode", CORNU_FIELD_OUTPUT_MODE, offsetof(CornuCategoryEncodingConfig, output_mode) },
    { 0 },
};

const CornuLayerClass cornu__category_encoding_class = {
    .class_name = "CategoryEncoding", .size = sizeof(CategoryEncoding),
    .build_many = categories_build,
    .call_many = categories_call, .mask = cornu__no_mask, .takes_integers = true,
    .keras = &(const CornuKerasClass){ CORNU__CONFIG(fields, CategoryEncoding, categories_resolve),
                                       .operands = "count_weights", .one_operand = true },
};

CORNU__CONSTRUCTOR(category_encoding, CornuCategoryEncodingConfig)
