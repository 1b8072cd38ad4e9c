/* FILE ROWS: opens a model and predicts for the floats of the standard input, those of each input
 * of the model in turn; writes those of each output. */
#include <stdio.h>
#include <stdlib.h>

#include "../../nn/cornu.h"

static CornuArray rows_of(const CornuSymbol *end, int64_t rows)
{
    CornuType type = cornu_symbol_type(end);
    type.dtype = CORNU_F32;
    type.shape.extent[0] = rows;
    return cornu_array_from(calloc((size_t)cornu_type_count(type), sizeof(float)), type);
}

int main(int count, char **arguments)
{
    CornuArray  x[4], y[4];
    CornuModel *model = count == 3 ? cornu_model_load(arguments[1]) : NULL;
    for (int i = 0; model && i < cornu_model_input_count(model); i++) {
        x[i] = rows_of(cornu_model_input(model, i), atol(arguments[2]));
        fread(x[i].data, sizeof(float), (size_t)cornu_type_count(x[i].type), stdin);
    }
    for (int i = 0; model && i < cornu_model_output_count(model); i++)
        y[i] = rows_of(cornu_model_output(model, i), atol(arguments[2]));
    if (!model || cornu_predict_on_batch_many(model, x, y)) {
        fprintf(stderr, "%s\n", cornu_error_message());
        return 1;
    }
    for (int i = 0; i < cornu_model_output_count(model); i++)
        fwrite(y[i].data, sizeof(float), (size_t)cornu_type_count(y[i].type), stdout);
    cornu_model_free(model);
    return 0;
}
