/* What does a model's step compile to, where does its time go, and how long would a TPU take? */
#include <stdlib.h>
#include <string.h>

#include <cornu/cornu.h>

#include "../commands.h"
#include "../common/session.h"
#include "ahead.h"
#include "explained.h"
#include "input.h"
#include "mesh.h"
#include "scaling.h"

typedef struct {
    CornuExplainConfig config;
    const char        *json, *page, *topology, *scaling;
    MeshFlags          mesh;
    DataFlags          data;
    bool               all, check, no_run;
    char               device[512];   /* that of the topology */
} Flags;

static CornuStatus write_json(const CornuExplanation *explanation, const char *path)
{
    char       *text = cornu_explanation_to_json(explanation);
    CornuStatus status = text ? cornu_file_write(path, text, strlen(text)) : cornu_error_status();
    free(text);
    return status;
}

static CornuStatus explain(const Options *options, const Flags *flags, CornuDevice *device)
{
    CornuExplainConfig config = flags->config;
    config.device = device;
    config.no_run = flags->check || flags->no_run;
    config.others = !flags->check && (flags->all || flags->json);
    CornuExplanation *explanation = cornu_explain_from(&config);
    if (!explanation) return cornu_error_status();
    CornuStatus status = cornu_explanation_print(explanation, flags->check ? CORNU_EXPLAIN_OPS
                                                            : flags->all   ? CORNU_EXPLAIN_ALL
                                                            : CORNU_EXPLAIN_OVERVIEW, stdout);
    if (!status && flags->json) status = write_json(explanation, flags->json);
    if (!status && flags->page) status = cornu_explanation_save_page(explanation, flags->page);
    if (!status && data_given(options, &flags->data))
        status = explain_input(options, &flags->data, &config,
                               cornu_explanation_seconds(explanation), stdout);
    cornu_explanation_free(explanation);
    return status;
}

/* Compiled ahead of time; and on the tpu device of the same generation, on as many shards, for its
 * plan and its model. Nothing runs. */
static CornuStatus explain_ahead(const Options *options, const Flags *flags, CornuDevice *device)
{
    const char            *topology = explain_topology(options->device);
    const CornuTpuProfile *profile = explain_topology_profile(topology);
    const int              shards = cornu_device_shards(device);
    CornuExplainConfig     config = flags->config;
    CornuExplanation      *emulated = NULL;
    CornuDevice           *tpu = NULL;
    char                   name[32];
    config.no_run = true;
    config.device = device;
    CornuExplanation *ahead = cornu_explain_from(&config);
    CornuStatus       status = ahead ? CORNU_OK : cornu_error_status();
    if (!status && profile && shards <= (int)profile->replicas.value) {
        snprintf(name, sizeof name, "tpu:%s", profile->name);
        config.device = tpu = cornu_device_open(name, .threads = (int)options->threads,
                                                .shards = shards,
                                                .precision = session_precision(options));
        emulated = tpu ? cornu_explain_from(&config) : NULL;
        if (!emulated) status = cornu_error_status();
    }
    const Ahead both = { .ahead = cornu_explanation_executable(ahead), .topology = topology,
                         .emulated = cornu_explanation_executable(emulated),
                         .model = cornu_explanation_model(emulated) };
    if (!status) explain_ahead_print(&both, stdout);
    cornu_explanation_free(emulated);
    cornu_device_close(tpu);
    cornu_explanation_free(ahead);
    return status;
}

/* On slices of the device's TPU; nothing runs. */
static CornuStatus explain_slices(Options *options, const Flags *flags)
{
    Scaling     scaling;
    CornuStatus status = session_begin(options);
    if (!options->batch_size)
        options->batch_size = flags->config.batch_size ? flags->config.batch_size : 32;
    if (!status) status = explain_scaling_of(options, &flags->config, flags->scaling, &scaling);
    if (!status) explain_scaling_print(&scaling, stdout);
    return status || !flags->json ? status : explain_scaling_write(&scaling, flags->json);
}

static CornuStatus run(Options *options, Flags *flags)
{
    Subject subject;
    if ((flags->json && cornu_file_check(flags->json)) ||
        (flags->page && cornu_file_check(flags->page)))
        return cornu_error_status();
    const char *ignored = flags->check        ? "check"
                        : flags->config.remat ? "remat"
                        : flags->all          ? "all"
                        : flags->topology     ? "topology"
                        : flags->scaling      ? "scaling" : NULL;
    const char *untimed = flags->check           ? "check"
                        : flags->topology        ? "topology"
                        : flags->scaling         ? "scaling"
                        : flags->mesh.mesh       ? "mesh"
                        : flags->mesh.pipeline   ? "pipeline" : NULL;
    if (untimed && data_given(options, &flags->data))
        return options_refuse("data are given with --%s, which times no input", untimed);
    if (explain_mesh_check(&flags->mesh, options, ignored)) return cornu_error_status();
    if (subject_find(&subject, options->arguments[0])) return cornu_error_status();
    if (flags->topology) {
        if (explain_topology_device(options->device, flags->topology, flags->device,
                                    sizeof flags->device))
            return cornu_error_status();
        options->device = flags->device;
    }
    const bool   meshed = flags->mesh.mesh || flags->mesh.pipeline;
    const bool   modelled = flags->scaling || meshed;
    CornuStatus  status = CORNU_OK;
    CornuDevice *device = modelled ? NULL : session_open(options);
    if (!modelled && !device) return cornu_error_status();
    if (modelled) status = cornu_set_dtype_policy(options->policy);
    flags->mesh.json = flags->json;
    if (!status) status = explained_open(&subject, options, &flags->config);
    if (!status) status = flags->scaling ? explain_slices(options, flags)
                        : meshed ? explain_mesh(&flags->mesh, options, &flags->config)
                        : explain_topology(options->device) && !flags->check
                            ? explain_ahead(options, flags, device)
                            : explain(options, flags, device);
    cornu_model_free(flags->config.model);
    cornu_device_close(device);
    return status;
}

int command_explain(int argc, char **argv)
{
    Options      options = { .device = "cpu" };
    Flags        flags = { .config = { .steps = 5 }, .data = DATA_FLAGS };
    const Option extra[] = {
        { "batch-size", OPTION_WHOLE, &options.batch_size, "N",
          "samples per step; default the model's, else 32", 1, 1e6, NULL },
        { "extent", OPTION_WHOLE, &flags.config.extent, "N",
          "in place of extents that the model leaves open; default 224 for images, else 128", 1,
          1e6, NULL },
        { "loss", OPTION_TEXT, &flags.config.loss, "NAME",
          "Keras' name, as mse; default what the model was compiled with, else one that fits its "
          "output", 0, 0, NULL },
        { "predict", OPTION_SWITCH, &flags.config.predict, "", "explain the prediction step, not "
          "that of training", 0, 0, NULL },
        { "remat", OPTION_SWITCH, &flags.config.remat, "", "also the memory of the step with each "
          "mode of --remat of cornu train", 0, 0, NULL },
        { "steps", OPTION_WHOLE, &flags.config.steps, "N", "steps to measure", 1, 1000, NULL },
        { "no-run", OPTION_SWITCH, &flags.no_run, "",
          "compile and model the step, and do not run it", 0, 0, NULL },
        { "all", OPTION_SWITCH, &flags.all, "", "show every step, and other TPUs, in 120 columns",
          0, 0, NULL },
        { "check", OPTION_SWITCH, &flags.check, "", "instead, list how the device computes each "
          "op: natively, decomposed or by a reference kernel, and why", 0, 0, NULL },
        { "topology", OPTION_TEXT, &flags.topology, "TOPOLOGY",
          "with --device pjrt:tpu or pjrt:cuda: compile for this machine without it, "
          "v3:2x2 or h100", 0, 0, NULL },
        { "scaling", OPTION_TEXT, &flags.scaling, "LIST",
          "with --device tpu: instead, model the step on slices of so many shards, such as "
          "8,32,128,512,2048", 0, 0, NULL },
        { "mesh", OPTION_TEXT, &flags.mesh.mesh, "AXIS=N,...",
          "instead, model the step on a TPU whose shards are a mesh, such as batch=2,model=4: how "
          "it cuts weights, what shards exchange; auto: the best meshes and layouts", 0, 0, NULL },
        { "layout", OPTION_TEXTS, &flags.mesh.layouts, "PATTERN=AXIS,...",
          "with --mesh: the axes of the mesh that cut those of weights of this name, or in whose "
          "names the regular expression is found, such as dense/kernel=,model; auto: those that "
          "make the modelled step shortest; default those of cornu train", 0, 0, NULL },
        { "pipeline", OPTION_TEXT, &flags.mesh.pipeline, "S[,M]",
          "instead, the S stages of layers of cornu train --pipeline, with M microbatches: their "
          "layers, modelled times, bytes, what crosses between them; with --mesh on its shards",
          0, 0, NULL },
        { "profile", OPTION_TEXT, &flags.mesh.profile, "NAME",
          "with --mesh or --pipeline: the TPU; default that of --device, else v3-8", 0, 0, NULL },
        DATA_OPTIONS(flags.data),
        DATA_LABEL_OPTIONS(flags.data),
        { "json", OPTION_TEXT, &flags.json, "FILE", "write everything as JSON", 0, 0, NULL },
        { "page", OPTION_TEXT, &flags.page, "FILE.html",
          "write a page for a browser: a timeline of the step, a roofline, products in the MXU", 0,
          0, NULL },
        OPTION_END,
    };
    const Program program = { .name = "cornu explain", .extra = extra, .arguments = "MODEL",
                              .least_arguments = 1, .groups = OPTIONS_MACHINE | OPTIONS_DATA,
                              .data = DATA_HELP,
                              .purpose = "Explains a model's step on a device, and what to change."
                                         "\n\nShown are its ops, its memory, and where its time "
                                         "goes." };
    const int     usage = options_parse(&options, &program, argc, argv);
    return usage >= 0 ? usage : session_end("cornu explain", run(&options, &flags));
}
