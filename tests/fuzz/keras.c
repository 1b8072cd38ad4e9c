/* .keras files whose config.json, compile arguments included, is the input; the other members are
 * those of a model saved here. */
#include "fuzz.h"

#include "../../device/memory_internal.h"
#include "../../device/files/zip_internal.h"

static CornuDevice   *device;
static CornuZipMember saved[3];

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    const char *path = fuzz_path("model.keras");
    (void)argc, (void)argv;
    device = cornu_device_open("reference");
    CornuModel *model = cornu_sequential(.name = "model", .input_shape = { 3 });
    cornu_model_add(model, cornu_dense(2));
    cornu_compile(model, .optimizer = cornu_sgd(), .loss = CORNU_MEAN_SQUARED_ERROR,
                  .device = device);
    if (!fuzz_done(cornu_model_save(model, path))) return 0;   /* without libhdf5 */
    cornu_model_free(model);
    CornuZip *zip = cornu__zip_open(path);
    for (int i = 0; i < 3; i++) {
        unsigned char *bytes;
        saved[i].name = cornu__copy_text(cornu__zip_name(zip, i));
        cornu__zip_read(zip, i, &bytes, &saved[i].size);
        saved[i].bytes = bytes;
    }
    cornu__zip_close(zip);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *path = fuzz_path("a.keras");
    if (!saved[0].name) return 0;
    const CornuZipMember members[] = { saved[0], { saved[1].name, data, size }, saved[2] };
    fuzz_expect(fuzz_done(cornu__zip_write(path, members, 3)), "an archive");
    CornuModel *model = cornu_model_load_compiled(path, device);
    fuzz_loaded(model);
    cornu_model_free(model);
    return 0;
}
