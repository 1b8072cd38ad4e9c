/* data_format: layers are written for channels last; of one with channels first, inputs and outputs
 * are transposed. Those of adjacent layers cancel, see cornu_op_transpose. */
#include "../fields/field_internal.h"
#include "layer_internal.h"

const CornuFieldKind cornu_field_data_format = {
    .name = "data_format", CORNU__FIELD_OF_WORDS(CornuDataFormat),
    .words = { [CORNU_CHANNELS_LAST] = "channels_last", [CORNU_CHANNELS_FIRST] = "channels_first" },
};

const char *cornu_data_format_name(CornuDataFormat format)
{
    return cornu__field_word(CORNU_FIELD_DATA_FORMAT, (int)format);
}

bool cornu__channels_first(const CornuLayer *layer)
{
    const CornuField *field = cornu__keras_class(layer)->fields;
    while (field && field->name && field->kind != CORNU_FIELD_DATA_FORMAT) field++;
    if (!field || !field->name) return false;
    const void *at = (const char *)cornu__config(layer) + field->offset;
    return *(const CornuDataFormat *)at == CORNU_CHANNELS_FIRST;
}

CornuShape cornu__shape_channels_last(const CornuLayer *layer, CornuShape shape)
{
    if (shape.rank < 3 || !cornu__channels_first(layer)) return shape;
    const int64_t channels = shape.extent[1];
    for (int i = 1; i < shape.rank - 1; i++) shape.extent[i] = shape.extent[i + 1];
    shape.extent[shape.rank - 1] = channels;
    return shape;
}

CornuTensor *cornu__move_axis(CornuTensor *x, int from, int to)
{
    const int rank = x ? cornu_tensor_shape(x).rank : 0, step = from < to ? 1 : -1;
    int       axes[CORNU_MAX_RANK];
    if (!x || from == to) return x;
    for (int i = 0; i < rank; i++) axes[i] = i;
    for (int i = from; i != to; i += step) axes[i] = i + step;
    axes[to] = from;
    return cornu_op_transpose(x, axes);
}

CornuTensor *cornu__to_channels_last(const CornuLayer *layer, CornuTensor *x)
{
    const int rank = x ? cornu_tensor_shape(x).rank : 0;
    return rank < 3 || !cornu__channels_first(layer) ? x : cornu__move_axis(x, 1, rank - 1);
}

CornuTensor *cornu__from_channels_last(const CornuLayer *layer, CornuTensor *x)
{
    const int rank = x ? cornu_tensor_shape(x).rank : 0;
    return rank < 3 || !cornu__channels_first(layer) ? x : cornu__move_axis(x, rank - 1, 1);
}
