/*
 * check_ahead TOPOLOGY: compiles every op case, a training step of every network, and one over a
 * mesh, for a TPU, "v3:2x2", or a GPU, "h100", that need not be there, and prints a line. Ends with
 * 0 if all compile, 1 if not, 77 without the plugin.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cornu/cornu.h>

#include "../../device/pjrt/plugin.h"
#include "../op_cases.h"

enum { SKIPPED = 77, PACK = 64, MOST_ROWS = 4096 };

/* ---- Op cases ---- */

/* Records the row; a program that has rows of others too. */
static CornuStatus add_row(CornuProgram *program, const OpCase *row)
{
    const int   count = op_case_in_count(row);
    CornuValue  in[CORNU_MAX_INPUTS], out[CORNU_MAX_OUTPUTS];
    CornuStatus status = CORNU_OK;
    for (int i = 0; !status && i < count; i++)
        status = cornu_program_input(program, row->in[i], &in[i]);
    if (!status) status = cornu_program_record(program, row->id, &row->attributes, in, count, out);
    if (status) return status;
    const int last = program->op_count - 1;
    for (int i = 0; !status && i < program->ops[last].out_count; i++)
        status = cornu_program_output(program, out[i], -1);
    return status;
}

/* Whether these rows compile as one program; a failure is told if `tells`. */
static bool compiles(CornuDevice *device, const OpCase *const *rows, int count, bool tells)
{
    CornuProgram    *program = cornu_program_create();
    CornuStatus      status = program ? CORNU_OK : cornu_error_status();
    CornuExecutable *executable = NULL;
    for (int i = 0; !status && i < count; i++) status = add_row(program, rows[i]);
    if (!status) executable = cornu_device_compile(device, program);
    if (!executable && tells) {
        int         number;
        const char *family = op_case_place(rows[0], &number);
        fprintf(stderr, "%s, row %d, %s: %s\n", family, number, cornu_op_name(rows[0]->id),
                cornu_error_message());
    }
    cornu_error_take();
    cornu_executable_release(executable);
    cornu_program_free(program);
    return executable;
}

/* How many of all rows compile, many per program, which is faster; one by one where those fail. */
static int compile_rows(CornuDevice *device, int *rows)
{
    static const OpCase *all[MOST_ROWS];
    int                  count = 0, good = 0;
    for (int i = 0; op_case(i) && count < MOST_ROWS; i++)
        if (op_case(i)->refused == CORNU_OK && !op_case(i)->by_reference) all[count++] = op_case(i);
    for (int first = 0; first < count; first += PACK) {
        const int pack = count - first < PACK ? count - first : PACK;
        if (compiles(device, all + first, pack, false)) good += pack;
        else for (int i = 0; i < pack; i++) good += compiles(device, all + first + i, 1, true);
    }
    *rows = count;
    return good;
}

/* ---- Networks ---- */

static bool compile_step(CornuDevice *device, const CornuReferenceModel *reference)
{
    const int64_t batch = reference->batch_size;
    CornuModel   *model = reference->build(&(CornuNetworkConfig){ 0 });
    CornuStatus   status = cornu_compile(
        model, .device = device, .loss = cornu_loss(reference->loss),
        .metrics = { CORNU_ACCURACY },
        .optimizer = cornu_reference_optimizer(reference, reference->epoch_samples / batch + 1,
                                               0.0));
    const bool good = !status && cornu_model_train_step(
        model, cornu_reference_input_type(model, batch), cornu_reference_label_type(model, batch));
    if (!good) fprintf(stderr, "%s: %s\n", reference->name, cornu_error_message());
    cornu_error_take();
    cornu_model_free(model);
    return good;
}

/* A step whose weights are cut over half of the replicas, the batch over the other half. */
static bool compile_mesh(CornuDevice *device)
{
    static const CornuLayoutRow cut[] = {
        { "up/kernel", { NULL, "model" } }, { "up/bias", { "model" } },
        { "down/kernel", { "model" } }, { 0 }
    };
    const int       shards = cornu_device_shards(device), rows = shards > 1 ? 2 : 1;
    const CornuMesh mesh = cornu_device_mesh(.shape = { rows, shards / rows });
    CornuModel     *model = cornu_sequential(.name = "mlp", .input_shape = { 256 });
    cornu_model_add(model, cornu_dense(1024, .activation = CORNU_RELU, .name = "up"));
    cornu_model_add(model, cornu_dense(256, .name = "down"));
    const bool good = !cornu_device_set_mesh(device, &mesh, NULL, cut) &&
        !cornu_compile(model, .device = device, .loss = CORNU_MEAN_SQUARED_ERROR) &&
        cornu_model_train_step(model, cornu_type(CORNU_F32, 64, 256),
                               cornu_type(CORNU_F32, 64, 256));
    if (!good) fprintf(stderr, "mesh: %s\n", cornu_error_message());
    cornu_error_take();
    cornu_model_free(model);
    return good;
}

/* On as many replicas as the topology has, at most 8. */
static CornuDevice *open_all(const char *name)
{
    CornuDevice *device = NULL;
    for (int shards = 8; !device && shards >= 1; shards /= 2) {
        cornu_error_take();
        device = cornu_device_open(name, .shards = shards);
    }
    return device;
}

/* Those named, or all. */
static int compile_networks(CornuDevice *device, char *const *named, int *networks)
{
    int                        count, good = 0;
    const CornuReferenceModel *references = cornu_reference_models(&count);
    *networks = 0;
    for (int i = 0; i < count; i++) {
        bool wanted = !named[0] && !references[i].large;
        for (int k = 0; named[k]; k++) wanted |= strcmp(named[k], references[i].name) == 0;
        *networks += wanted;
        good += wanted && compile_step(device, &references[i]);
    }
    return good;
}

int main(int argc, char **argv)
{
    char path[CORNU_PJRT_PATH], name[256];
    int  rows, networks;
    if (argc < 2) {
        fputs("expected: check_ahead TOPOLOGY [NETWORK...]\n", stderr);
        return 2;
    }
    const char *plugin = strchr(argv[1], ':') ? "tpu" : "cuda";   /* GPUs have no shape */
    if (cornu__pjrt_find(plugin, path)) {
        printf("%s: skipped: %s\n", argv[1], cornu_error_message());
        return SKIPPED;
    }
    snprintf(name, sizeof name, "pjrt:%s,topology=%s", plugin, argv[1]);
    CornuDevice *one = cornu_device_open(name, .shards = 1), *all = one ? open_all(name) : NULL;
    if (!all) {
        printf("%s: %s\n", argv[1], cornu_error_message());
        return 1;
    }
    const int good_rows = compile_rows(one, &rows);
    printf("%s: %d of %d op cases", argv[1], good_rows, rows);
    fflush(stdout);
    const int shards = cornu_device_shards(all);
    const int good_networks = compile_networks(all, argv + 2, &networks);
    const bool good_mesh = compile_mesh(all);
    printf(", %d of %d training steps on %d replicas, %s over a mesh\n", good_networks, networks,
           shards, good_mesh ? "one" : "none");
    cornu_device_close(all);
    cornu_device_close(one);
    return good_rows == rows && good_networks == networks && good_mesh ? 0 : 1;
}
