#include "mesh.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../common/mesh_flags.h"

/* ---- What is asked for ---- */

static bool is_auto(const MeshFlags *flags) { return flags->mesh && !strcmp(flags->mesh, "auto"); }

static bool is_layout_auto(const MeshFlags *flags)
{
    return flags->layouts.count == 1 && !strcmp(flags->layouts.text[0], "auto");
}

/* "v3-8" of --profile, or of --device tpu:v3-8. */
static const char *profile_of(const MeshFlags *flags, const Options *options)
{
    const char *colon = strchr(options->device, ':');
    return flags->profile ? flags->profile : colon ? colon + 1 : "v3-8";
}

CornuStatus explain_mesh_check(const MeshFlags *flags, const Options *options,
                               const char *ignored)
{
    CornuMesh                   mesh;
    CornuPipelineParallelConfig stages;
    const char                 *what = flags->mesh ? "--mesh" : "--pipeline";
    if (!flags->mesh && (flags->layouts.count || (flags->profile && !flags->pipeline)))
        return options_refuse("--%s without --mesh: expected both",
                              flags->layouts.count ? "layout" : "profile");
    if (!flags->mesh && !flags->pipeline) return CORNU_OK;
    if (ignored)
        return options_refuse("%s and --%s: expected only one of them", what, ignored);
    if (flags->pipeline && pipeline_read(flags->pipeline, &stages)) return cornu_error_status();
    if (flags->pipeline && (is_auto(flags) || is_layout_auto(flags)))
        return options_refuse("--pipeline and auto: expected --mesh AXIS=N,... or none");
    if (is_auto(flags) && flags->layouts.count)
        return options_refuse("--mesh auto and --layout: expected only one of "
                              "them");
    if (!is_auto(flags) && options->shards)
        return options_refuse("%s and --shards: expected only one of them, or --mesh batch=N",
                              what);
    if (strcmp(options->device, "cpu") != 0 && strncmp(options->device, "tpu", 3) != 0)
        return options_refuse("%s, but the device is %s: expected --device tpu, or one of its "
                              "profiles", what, options->device);
    return is_auto(flags) || !flags->mesh ? CORNU_OK : mesh_read(flags->mesh, &mesh);
}

/* ---- The answers ---- */

static CornuStatus write_json(const CornuExplanation *explanation, const char *path)
{
    char       *text = cornu_explanation_to_json(explanation);
    CornuStatus status = text ? cornu_file_write(path, text, strlen(text)) : cornu_error_status();
    free(text);
    return status;
}

/* A page of one mesh with one layout map. */
static CornuStatus show(const MeshFlags *flags, const Options *options,
                        const CornuExplainConfig *config, CornuMesh mesh,
                        const CornuLayoutRow *rows, bool page)
{
    CornuExplainConfig          one = *config;
    CornuPipelineParallelConfig stages = { .unset = 0 };
    char                        device[64];
    if (flags->pipeline && pipeline_read(flags->pipeline, &stages)) return cornu_error_status();
    if (flags->pipeline) one.pipeline = &stages;
    snprintf(device, sizeof device, "tpu:%s", profile_of(flags, options));
    one.device_name = device;
    one.mesh = mesh;
    one.layout_map = rows;
    CornuExplanation *explanation = cornu_explain_from(&one);
    CornuStatus       status = explanation ? CORNU_OK : cornu_error_status();
    if (!status && page)
        status = cornu_explanation_print(explanation, flags->pipeline ? CORNU_EXPLAIN_PIPELINE
                                                                      : CORNU_EXPLAIN_MESH, stdout);
    if (!status && flags->json) status = write_json(explanation, flags->json);
    cornu_explanation_free(explanation);
    return status;
}

/* The mesh has no axes where it is to be chosen, too. */
static CornuAutoLayout *choose(const MeshFlags *flags, const Options *options,
                               const CornuExplainConfig *config, CornuMesh mesh)
{
    CornuAutoLayoutConfig from = { .model = config->model, .mesh = mesh,
                                   .profile = profile_of(flags, options),
                                   .shards = (int)options->shards,
                                   .batch_size = config->batch_size, .extent = config->extent,
                                   .loss = config->loss };
    memcpy(from.inputs, config->inputs, sizeof from.inputs);
    memcpy(from.labels, config->labels, sizeof from.labels);
    return cornu_auto_layout_from(&from);
}

static CornuStatus show_chosen(const MeshFlags *flags, const Options *options,
                               const CornuExplainConfig *config, CornuMesh mesh)
{
    CornuAutoLayout         *chosen = choose(flags, options, config, mesh);
    const CornuLayoutChoice *best = chosen ? cornu_auto_layout_choice(chosen, 0) : NULL;
    if (!best) return cornu_error_status();
    CornuStatus status = cornu_auto_layout_print(chosen, stdout);
    if (!is_auto(flags)) putchar('\n');
    if (!status && (!is_auto(flags) || flags->json))
        status = show(flags, options, config, best->mesh, best->layout_map, !is_auto(flags));
    cornu_auto_layout_free(chosen);
    return status;
}

CornuStatus explain_mesh(const MeshFlags *flags, const Options *options,
                         const CornuExplainConfig *config)
{
    CornuMesh   mesh = { .axes = 0 };
    MeshLayouts layouts = { .rows = NULL };
    if (!is_auto(flags) && flags->mesh && mesh_read(flags->mesh, &mesh))
        return cornu_error_status();
    if (is_auto(flags) || is_layout_auto(flags)) return show_chosen(flags, options, config, mesh);
    CornuStatus status = flags->mesh
                       ? mesh_layouts(&flags->layouts, config->model, mesh, &layouts) : CORNU_OK;
    if (!status) status = show(flags, options, config, mesh, layouts.rows, true);
    mesh_free_layouts(&layouts);
    return status == CORNU_ERR_ARGUMENT || status == CORNU_ERR_SHAPE ? options_blame(status)
                                                                     : status;
}
