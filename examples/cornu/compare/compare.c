/* cornu compare MODEL: trains it on several devices, in turns, and compares: measured, modelled,
 * published. Or in several numbers of processes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../commands.h"
#include "../common/mesh_flags.h"
#include "../common/objective.h"
#include "../common/session.h"
#include "race.h"
#include "race_advice.h"
#include "race_cost.h"
#include "race_scaling.h"

typedef struct {
    const char *devices, *json, *chart, *scaling, *price;
    bool        advise;
    double      target;
    DataFlags   data;
    Objective   objective;
} Wanted;

/* ---- Devices ---- */

/* Of each TPU among the devices. */
static CornuStatus advise(const Options *options, const Race *race)
{
    CornuStatus status = CORNU_OK;
    Options     modelled = *options;
    Advice      advice;
    modelled.batch_size = race->batch_size;
    if (cornu_process_rank(race->processes) > 0) return CORNU_OK;
    for (int i = 0; i < race->count && !status; i++) {
        if (strcmp(race_kind(&race->racers[i]), "emulated") != 0) continue;
        status = race_advise(&modelled, race->reference, race->racers[i].name, &advice);
        if (!status) race_advice_print(&advice, stdout);
    }
    return status;
}

static CornuStatus compare(const Options *options, Race *race, const Wanted *wanted)
{
    cornu_energy_open(&race->energy, getenv("CORNU_SYS_CLASS"));
    CornuStatus status = race_open(race, wanted->devices);
    if (!status) status = race_price(race, wanted->price);
    if (!status) status = race_run(race);
    if (status) return status;
    race_print(race, stdout);
    race_print_cost(race, stdout);
    if (wanted->advise) status = advise(options, race);
    if (status) return status;
    if (wanted->json) status = race_write(race, wanted->json);
    if (!status && wanted->chart) status = race_draw(race, wanted->chart);
    return status;
}

/* ---- Numbers of processes ---- */

/* Modelled for as many shards as there are processes. */
static CornuStatus model_slices(const Options *options, const Race *race, const char *list,
                                RanksScaling *scaling)
{
    Options modelled = *options;
    modelled.device = scaling->device;
    modelled.batch_size = race->batch_size;
    modelled.shards = 0;
    scaling->is_modelled =
        !race->own && !mesh_is_given(options) && strncmp(scaling->device, "tpu", 3) == 0;
    return scaling->is_modelled
               ? explain_scaling(&modelled, race->reference, list, &scaling->modelled) : CORNU_OK;
}

static CornuStatus check_scaling(const Options *options, const Wanted *wanted,
                                 int64_t ranks[RACE_RANKS], int *count)
{
    *count = race_read_ranks(wanted->scaling, ranks);
    if (*count == 0)
        return options_refuse("--scaling %s: expected up to %d ascending "
                              "numbers of processes, at most 256, such as 1,2,4", wanted->scaling,
                              RACE_RANKS);
    const int64_t shards = options->mesh ? mesh_shards(options) : options->shards;
    if (shards && shards < ranks[*count - 1])
        return cornu_error_set(CORNU_ERR_ARGUMENT, "%s%s: %lld shards and --scaling %s, expected a "
                               "shard for each process", options->mesh ? "--mesh " : "--shards",
                               options->mesh ? options->mesh : "", (long long)shards,
                               wanted->scaling);
    if (wanted->price || wanted->advise)
        return options_refuse("--%s and --scaling: expected only one of them",
                              wanted->price ? "price" : "advise");
    if (wanted->chart)
        return options_refuse("--chart and --scaling: expected only one of "
                              "them");
    return CORNU_OK;
}

/* The arguments are those of the program, whose groups of processes get them too. */
static CornuStatus scale(const Options *options, Race *race, const Wanted *wanted,
                         char *const *arguments)
{
    enum { MOST = RACE_DEVICES };
    RanksScaling *scalings = calloc(MOST, sizeof *scalings);
    int64_t       ranks[RACE_RANKS];
    int           count, done = 0;
    char          names[1024];
    CornuStatus   status = check_scaling(options, wanted, ranks, &count);
    if (!status && !scalings) status = cornu_error_set(CORNU_ERR_MEMORY, "no memory for tables");
    snprintf(names, sizeof names, "%s", wanted->devices);
    if (!status && !race->shards) race->shards = (int)ranks[count - 1];
    for (char *name = strtok(names, ","); name && !status; name = strtok(NULL, ",")) {
        if (done == MOST)
            status = cornu_error_set(CORNU_ERR_ARGUMENT, "more than %d devices", MOST);
        if (!status) status = race_scale(race, arguments, name, ranks, count, &scalings[done]);
        if (!status) status = model_slices(options, race, wanted->scaling, &scalings[done]);
        done += !status;
    }
    for (int i = 0; i < done && !status; i++) race_scaling_print(race, &scalings[i], stdout);
    if (!status && wanted->json) status = race_scaling_write(race, scalings, done, wanted->json);
    free(scalings);
    return status;
}

/* ---- The program ---- */

static CornuStatus run(const Options *options, Race *race, const Wanted *wanted,
                       char *const *arguments)
{
    if (race_is_scaled()) return race_measure_row(race, wanted->devices);
    if (!wanted->scaling) return compare(options, race, wanted);
    return scale(options, race, wanted, arguments);
}

/* --scaling starts its own processes. */
static CornuStatus check(const Options *options, const Wanted *wanted)
{
    const int ranks = cornu_process_count(session_processes());
    CornuStatus status = CORNU_OK;
    if (wanted->scaling && ranks > 1 && !race_is_scaled())
        return cornu_error_set(CORNU_ERR_ARGUMENT, "started as one of %d processes, and --scaling "
                               "starts its own: expected only one of both", ranks);
    if (wanted->advise && mesh_is_given(options))
        return options_refuse("--advise and --%s: expected only one of them",
                              options->mesh ? "mesh" : "fully-sharded");
    if (wanted->json) status = cornu_file_check(wanted->json);
    return status || !wanted->chart ? status : cornu_file_check(wanted->chart);
}

/* ---- A network of models/ on its data ---- */

static CornuStatus compare_published(const Options *options, const Wanted *wanted, Race *race,
                                     char *const *arguments)
{
    const Objective *given = &wanted->objective;
    const DataFlags *flags = &wanted->data;
    if (given->loss || given->optimizer || given->metrics)
        return options_refuse("--loss, --optimizer and --metrics are not for "
                              "networks of models/ on their own data");
    if (flags->y.count || flags->test_x.count || flags->test_y.count || flags->target ||
        flags->encoding || flags->scale != DATA_BY_MODEL || flags->offset != 0.0)
        return cornu_error_set(
            CORNU_ERR_ARGUMENT,
            "--y, --test-x, --test-y, --target, --encoding, "
            "--scale and --offset are not for networks of models/ on their own data");
    CornuTrainTest   *data = session_data(options, race->reference->load);
    race->data = data;
    if (!race->batch_size) race->batch_size = race->reference->batch_size;
    const CornuStatus status = data ? run(options, race, wanted, arguments) : cornu_error_status();
    race_close(race);
    cornu_train_test_free(data);
    return status;
}

/* ---- Any model, on any data ---- */

enum { OWN_BATCH = 32, RANDOM_STEPS = 8 };

typedef struct {
    const Options *options;
    const Subject *subject;
    Objective      objective;
} Making;

static CornuModel *make(const Race *race, CornuDevice *device)
{
    const Making *making = race->context;
    return objective_model(&making->objective, making->options, making->subject, device);
}

/* A model for the shapes of the data. Without a loss of its own, and without data whose labels it
 * would have to fit, it is trained on mean squared errors. */
static CornuModel *first_model(Making *making, bool any_loss, CornuDevice *device)
{
    Objective  *objective = &making->objective;
    CornuModel *model = objective_model(objective, making->options, making->subject, device);
    if (model || !any_loss || objective->loss || cornu_error_status() != CORNU_ERR_ARGUMENT)
        return model;
    cornu_error_take();
    objective->loss = "mse";
    model = objective_model(objective, making->options, making->subject, device);
    if (model) printf("%s has no loss in it: mean squared error\n", making->subject->name);
    return model;
}

static CornuStatus load_own(const Options *options, const Wanted *wanted, Making *making,
                            Race *race, Data *data)
{
    const bool    given = data_given(options, &wanted->data);
    CornuDevice  *device = cornu_device_open("cpu", .threads = 1, .shards = 1);
    CornuModel   *model = device ? first_model(making, !given, device) : NULL;
    if (model) race->batch_size = objective_batch(options, model, OWN_BATCH);
    if (model && cornu_model_batch_size(model) > 0 && !race->shards) {
        race->shards = 1;
        printf("One shard: %s fixes batches of %lld\n", making->subject->name,
               (long long)cornu_model_batch_size(model));
    }
    const int64_t rows = options->limit ? options->limit : RANDOM_STEPS * race->batch_size;
    CornuStatus   status = !model ? cornu_error_status()
                           : given ? data_load(data, options, &wanted->data, model, DATA_LABELS)
                                   : data_random(data, model, rows, (uint64_t)options->seed);
    if (!status) printf("%s\n", data->about);
    if (!status) status = objective_logits(&making->objective, options, model, device, data->x);
    if (!status && race->enough > 0.0 && !data->test_x[0].data)
        status = options_refuse("--until: %s has no data for validation, expected "
                                "--test-x and --test-y, or a set that has them",
                                data->name);
    cornu_model_free(model);
    cornu_device_close(device);
    return status;
}

static CornuStatus compare_own(const Options *options, const Wanted *wanted, const Subject *subject,
                               Race *race, char *const *arguments)
{
    const char *slash = strrchr(subject->name, '/');
    Data        data = { .set = NULL };
    Options     whole = *options;   /* of the model that the data are loaded for */
    Making      making = { &whole, subject, wanted->objective };
    whole.mesh = NULL;
    whole.fully_sharded = false;
    if (wanted->advise)
        return options_refuse("--advise is for networks of models/ on their own "
                              "data; cornu explain %s --device tpu says what it would take",
                              subject->name);
    race->name = slash ? slash + 1 : subject->name;
    race->make = make;
    race->context = &making;
    race->own = &data;
    CornuStatus status = load_own(options, wanted, &making, race, &data);
    making.options = options;
    if (!status && race_rows(race) < race->batch_size) race->batch_size = race_rows(race);
    if (!status) status = run(options, race, wanted, arguments);
    race_close(race);
    race->context = NULL;
    race->own = NULL;
    data_free(&data);
    return status;
}

static CornuStatus start(const Options *options, const Wanted *wanted, char *const *arguments)
{
    Subject     subject;
    CornuStatus status = session_begin(options);
    if (!status) status = check(options, wanted);
    if (!status) status = subject_find(&subject, options->arguments[0]);
    if (status) return status;
    const CornuReferenceModel *reference = subject.reference;
    Race                       race = { .reference = reference,
                                        .epochs = options->epochs,
                                        .batch_size = options->batch_size,
                                        .steps = options->steps_per_epoch,
                                        .seed = options->seed,
                                        .threads = options->threads,
                                        .learning_rate = options->learning_rate,
                                        .enough = wanted->target,
                                        .processes = session_processes(),
                                        .shards = options->mesh ? mesh_shards(options)
                                                                : (int)options->shards,
                                        .meshed = mesh_is_given(options) ? options : NULL };
    const bool text = reference && !strcmp(reference->target, "character");
    return reference && data_is_published(options, &wanted->data, text)
               ? compare_published(options, wanted, &race, arguments)
               : compare_own(options, wanted, &subject, &race, arguments);
}

/* The arguments as they were given: parsing moves those that are not flags to the front. */
static char **copy_arguments(int argc, char **argv)
{
    char **copy = calloc((size_t)argc + 1, sizeof *copy);
    if (copy) memcpy(copy, argv, (size_t)argc * sizeof *copy);
    return copy;
}

int command_compare(int argc, char **argv)
{
    Wanted       wanted = { .devices = "cpu,tpu", .data = DATA_FLAGS };
    Options      options = { .epochs = 4 };
    const Option extra[] = {
        { "devices", OPTION_TEXT, &wanted.devices, "LIST", "devices to compare, separated by "
          "commas, such as cpu,tpu:v3-8,pjrt:cpu; a pjrt device has no options here", 0, 0, NULL },
        { "shards", OPTION_WHOLE, &options.shards, "N", "replicas that share each batch; default "
          "the devices', with --scaling its largest number", 1, CORNU_MAX_SHARDS, NULL },
        { "scaling", OPTION_TEXT, &wanted.scaling, "LIST", "instead, measure the steps in so many "
          "processes of this machine, such as 1,2,4,8", 0, 0, NULL },
        { "steps-per-epoch", OPTION_WHOLE, &options.steps_per_epoch, "N",
          "end each epoch after N steps", 1, 1e9, NULL },
        { "price", OPTION_TEXT, &wanted.price, "LIST", "what devices cost an hour, such as "
          "cpu=0.08,tpu:v3-8=8.00: prints what epochs cost, and the energy that they use", 0, 0,
          NULL },
        { "until", OPTION_NUMBER, &wanted.target, "X", "end, after --epochs at the latest, when "
          "all devices have this val_accuracy; costs are also those until then", 1e-6, 1.0, NULL },
        { "advise", OPTION_SWITCH, &wanted.advise, "", "say how many shards of each TPU the batch "
          "is worth, modelled", 0, 0, NULL },
        { "json", OPTION_TEXT, &wanted.json, "FILE", "write all results as JSON", 0, 0, NULL },
        { "chart", OPTION_TEXT, &wanted.chart, "FILE.png", "draw a chart", 0, 0, NULL },
        DATA_OPTIONS(wanted.data),
        DATA_LABEL_OPTIONS(wanted.data),
        DATA_TEST_OPTIONS(wanted.data),
        OBJECTIVE_OPTIONS(wanted.objective),
        OPTION_END,
    };
    const Program program = { .name = "cornu compare", .extra = extra, .arguments = "MODEL",
                              .least_arguments = 1, .data = DATA_HELP,
                              .groups = OPTIONS_THREADS | OPTIONS_PROCESSES | OPTIONS_DATA |
                                        OPTIONS_TRAINING | OPTIONS_MESH,
                              .purpose = "Trains a model on several devices in turns, and compares "
                                         "their times.\n\nWithout data it is trained on random "
                                         "numbers." };
    char      **arguments = copy_arguments(argc, argv);
    const int   usage = arguments ? options_parse(&options, &program, argc, argv) : 1;
    CornuStatus status = CORNU_OK;
    if (usage < 0) {
        setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
        status = start(&options, &wanted, arguments);
    }
    free(arguments);
    return usage >= 0 ? usage : session_end("cornu compare", status);
}
