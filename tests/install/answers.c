/* Prints what models answer, bit by bit: FILE... of Keras' JSON (weights as they are initialized)
 * or of formats with weights. It only loads and predicts, so that it links with
 * libcornu-inference. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cornu/cornu.h>

enum { ROWS = 4, TENSORS = 16 };

static CornuModel *load(const char *path)
{
    static char text[1 << 20];
    if (!strstr(path, ".json")) return cornu_model_load(path);
    FILE *file = fopen(path, "r");
    if (!file) return NULL;
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    return cornu_model_from_json(text);
}

/* Of ROWS rows: zeros, or numbers that the seed chooses, whole ones from 0 on. */
static CornuArray make_array(CornuType type, int seed, bool whole)
{
    type.shape.extent[0] = ROWS;
    CornuArray array = cornu_array_from(calloc(cornu_type_bytes(type), 1), type);
    for (int64_t i = 0; seed && i < cornu_type_count(type); i++) {
        const int value = (int)((uint64_t)(i + seed) * 2654435761U >> 16 & 63);
        cornu_array_set(array, i, whole ? value % 5 : value / 32.0 - 1);
    }
    return array;
}

static void print(const char *name, CornuArray y)
{
    const unsigned char *bytes = y.data;
    uint64_t             hash = 14695981039346656037U;
    for (size_t i = 0; i < cornu_type_bytes(y.type); i++)
        hash = (hash ^ bytes[i]) * 1099511628211U;
    printf(" %s %016llx %.9g", name, (unsigned long long)hash, cornu_array_get(y, 0));
}

static CornuStatus answer(CornuModel *model, bool whole)
{
    CornuArray      x[TENSORS], y[TENSORS];
    CornuPredictor *predictor = cornu_predictor(model, .max_batch_size = ROWS);
    const int       inputs = cornu_predictor_input_count(predictor);
    const int       outputs = cornu_predictor_output_count(predictor);
    for (int i = 0; i < inputs; i++)
        x[i] = make_array(cornu_predictor_input_type(predictor, i), i + 1, whole);
    for (int i = 0; i < outputs; i++)
        y[i] = make_array(cornu_predictor_output_type(predictor, i), 0, whole);
    CornuStatus status = predictor ? cornu_predictor_predict(predictor, x, y)
                                   : cornu_error_status();
    for (int i = 0; i < outputs && !status; i++) print("predictor", y[i]);
    if (!status) status = cornu_predict_on_batch_many(model, x, y);
    for (int i = 0; i < outputs && !status; i++) print("batch", y[i]);
    if (!status && inputs == 1 && outputs == 1)
        status = cornu_predict(model, .x = x[0], .to = y[0], .verbose = CORNU_SILENT);
    if (!status && inputs == 1 && outputs == 1) print("predict", y[0]);
    for (int i = 0; i < inputs; i++) free(x[i].data);
    for (int i = 0; i < outputs; i++) free(y[i].data);
    cornu_predictor_free(predictor);
    return status;
}

int main(int count, char **paths)
{
    for (int i = 1; i < count; i++) {
        CornuModel *model = load(paths[i]);
        printf("%s", paths[i]);
        CornuStatus status = model ? answer(model, false) : cornu_error_status();
        if (status == CORNU_ERR_VALUE) status = answer(model, true);   /* they are indices */
        if (status) {
            printf(" %s\n", cornu_error_message());
            return 1;
        }
        printf("\n");
        cornu_model_free(model);
    }
    return 0;
}
