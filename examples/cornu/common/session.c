#include "session.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "data.h"
#include "mesh_flags.h"
#include "pictures.h"

CornuPrecision session_precision(const Options *options)
{
    const char    *name = options->precision;
    CornuPrecision precision = CORNU_PRECISION_HIGHEST;
    while (name && strcmp(name, cornu_precision_name(precision)) != 0) precision++;
    return precision;
}

/* ---- Processes ---- */

static CornuProcesses *processes;
static CornuStrategy  *pipeline;   /* of --pipeline; whoever opens its device closes that */

CornuProcesses *session_processes(void) { return processes; }

int session_shards(const Options *options)
{
    const int count = cornu_process_count(processes), mesh = mesh_shards(options);
    if (mesh) return mesh;
    return !options->shards && count > 1 && !strcmp(options->device, "cpu") ? count
                                                                             : (int)options->shards;
}

/* All but the first keep quiet on stdout. */
static CornuStatus meet(const Options *options)
{
    processes = cornu_processes_open(.transport = options->transport,
                                     .timeout_s = options->rank_timeout);
    if (!processes) return cornu_error_take();
    if (cornu_process_count(processes) == 1) return CORNU_OK;
    if (cornu_process_rank(processes) == 0) printf("%s\n", cornu_processes_description(processes));
    else if (!freopen("/dev/null", "w", stdout))
        return cornu_error_set(CORNU_ERR_FILE, "/dev/null: %s", strerror(errno));
    return CORNU_OK;
}

/* ---- Device and data ---- */

/* The port, which --dashboard has as a string. */
static int64_t dashboard_port(const Options *options)
{
    return options->dashboard ? atoll(options->dashboard) : 0;
}

/* Of several processes the first one serves. */
static CornuStatus check_dashboard(const Options *options)
{
    if (options->dashboard_address && !options->dashboard)
        return options_refuse("--dashboard-address comes with --dashboard");
    if (!options->dashboard || cornu_process_rank(processes) != 0) return CORNU_OK;
    return cornu_dashboard_check(options->dashboard_address, dashboard_port(options));
}

CornuStatus session_begin(const Options *options)
{
    setlocale(LC_CTYPE, "");
    signal(SIGPIPE, SIG_IGN);
    if (mesh_check(options) || meet(options)) return cornu_error_status();
    if ((options->save && cornu_model_save_check(options->save)) ||
        (options->history && cornu_file_check(options->history)) ||
        (options->trace && cornu_file_check(options->trace)) ||
        (options->report && cornu_file_check(options->report)) ||
        (options->plots && pictures_check(options->plots)) || check_dashboard(options))
        return cornu_error_status();
    cornu_set_random_seed((uint64_t)options->seed);
    return cornu_set_dtype_policy(options->policy);
}

CornuDevice *session_device(const Options *options)
{
    if (session_begin(options)) return NULL;
    if (options->pipeline) {
        pipeline = pipeline_open(options, session_precision(options), processes);
        return pipeline ? cornu_strategy_device(pipeline) : NULL;
    }
    CornuDevice *device = cornu_device_open(
        options->device, .threads = (int)options->threads, .shards = session_shards(options),
        .precision = session_precision(options), .processes = processes);
    if (!device) mesh_blame(options, cornu_error_status());
    return device;
}

CornuDevice *session_open(const Options *options)
{
    CornuDevice *device = session_device(options);
    if (device) printf("%s\n", cornu_device_description(device));
    return device;
}

/* "train-images-idx3-ubyte.gz  4.2 of 9.9 MB", updated in place on a terminal. */
bool session_show_download(void *context, const CornuDataFile *file, int64_t received)
{
    (void)context;
    const bool done = received >= file->bytes;
    if (received == 0 || (!done && !isatty(STDERR_FILENO))) return true;
    fprintf(stderr, "%s%s  %.1f of %.1f MB%s", isatty(STDERR_FILENO) ? "\r" : "", file->name,
            1e-6 * (double)received, 1e-6 * (double)file->bytes, done ? "\n" : "");
    return true;
}

const char *session_folder(const Options *options)
{
    const bool named = options->data && data_set(options->data);
    return options->data && !named ? options->data : options->data_dir;
}

CornuTrainTest *session_load(const Options *options,
                             CornuTrainTest *(*load)(const CornuTrainTestConfig *config))
{
    const DataSet  *set = data_set(options->data);
    CornuTrainTest *data = (set ? set->load : load)(&(CornuTrainTestConfig){
        .data = session_folder(options), .limit = options->limit, .seed = (uint64_t)options->seed,
        .progress = session_show_download });
    if (data && options->labels && cornu_train_test_rename(data, options->labels)) {
        cornu_train_test_free(data);
        return NULL;
    }
    return data;
}

CornuTrainTest *session_data(const Options *options,
                             CornuTrainTest *(*load)(const CornuTrainTestConfig *config))
{
    CornuTrainTest *data = session_load(options, load);
    if (data) printf("%s\n", data->description);
    return data;
}

CornuTrainTest *session_mnist(const Options *options)
{
    return session_data(options, cornu_mnist_load_from);
}

int64_t session_steps(const Options *options, int64_t samples)
{
    return options->steps_per_epoch ? options->steps_per_epoch
                                    : (samples + options->batch_size - 1) / options->batch_size;
}

/* What session_prepare got, for the report. */
static const CornuModel     *prepared;
static const CornuTrainTest *prepared_data;

CornuStatus session_prepare(const Options *options, CornuModel *model, const CornuTrainTest *data)
{
    prepared = model;
    prepared_data = data;
    CornuStatus status = CORNU_OK;
    if (options->save && data)
        status = cornu_model_set_class_names(model, data->class_names, (int)data->classes);
    if (!status && options->load) status = cornu_model_load_weights(model, options->load);
    if (!status && pipeline && !cornu_keras_to_tpu_model(model, pipeline))
        status = cornu_error_take();
    return status;
}

CornuCallback *session_tensorboard(const Options *options)
{
    return options->tensorboard ? cornu_tensorboard(options->tensorboard, .histogram_freq = 1,
                                                    .profile_batch = options->profile_batch)
                                : cornu_lambda_callback();
}

CornuCallback *session_page(const Options *options)
{
    const CornuTrainTest *data = prepared_data;
    if (!options->report) return NULL;
    if (!data)
        return cornu_report(options->report, .command = options->command,
                            .price_per_hour = options->price_per_hour);
    return cornu_report(options->report, .command = options->command, .data = data->description,
                        .x = cornu_reference_input(prepared, data->test_x), .y = data->test_y,
                        .pictures = data->test_x, .names = data->class_names,
                        .classes = (int)data->classes,
                        .price_per_hour = options->price_per_hour);
}

CornuCallback *session_dashboard(const Options *options)
{
    const CornuTrainTest *data = prepared_data;
    if (!options->dashboard) return NULL;
    CornuDashboardConfig config = { .address = options->dashboard_address,
                                    .port = dashboard_port(options), .save = options->save,
                                    .command = options->command,
                                    .price_per_hour = options->price_per_hour };
    if (data) {
        config.data = data->description;
        config.x = cornu_reference_input(prepared, data->test_x);
        config.y = data->test_y;
        config.pictures = data->test_x;
        config.names = data->class_names;
        config.classes = (int)data->classes;
    }
    return cornu_dashboard_from(&config);
}

/* The report on each class. */
static CornuStatus report(const CornuTrainTest *data, const char *part, CornuArray predictions)
{
    const int64_t classes = data->classes;
    int64_t      *counts = calloc((size_t)(classes * classes), sizeof *counts);
    if (!counts) return cornu_error_set(CORNU_ERR_MEMORY, "no memory for %lld classes",
                                        (long long)classes);
    const CornuArray confusion = cornu_array(counts, CORNU_I64, classes, classes);
    CornuStatus      status = cornu_confusion(predictions, data->test_y, confusion);
    if (!status) printf("\nPer-class report on the %s%s %s:\n",
                        data->synthetic ? "synthetic " : "", part, data->things);
    if (!status) status = cornu_report_print(confusion, data->class_names, 4, stdout);
    if (!status) putchar('\n');
    free(counts);
    return status;
}

CornuArray session_evaluate(CornuModel *model, const CornuTrainTest *data, int64_t batch_size,
                            double test[2])
{
    const int64_t samples = data->test_x.type.shape.extent[0];
    CornuArray    predictions = cornu_array(malloc((size_t)(samples * data->classes) *
                                                   sizeof(float)),
                                            CORNU_F32, samples, data->classes);
    CornuStatus   status = predictions.data ? CORNU_OK
        : cornu_error_set(CORNU_ERR_MEMORY, "no memory for %lld predictions", (long long)samples);
    if (!status)
        status = cornu_evaluate(model, .x = cornu_reference_input(model, data->test_x),
                                .y = data->test_y, .results = test, .to = predictions,
                                .batch_size = batch_size, .verbose = CORNU_SILENT);
    if (!status) {
        printf("Test loss: %.4f\nTest accuracy%s%s: %.4f\n", test[0],
               data->synthetic ? " on synthetic " : "", data->synthetic ? data->things : "",
               test[1]);
        return predictions;
    }
    free(predictions.data);
    predictions.data = NULL;
    return predictions;
}

CornuStatus session_show(const Options *options, const CornuModel *model,
                         const CornuTrainTest *data, const char *part, CornuArray predictions)
{
    const CornuStatus status = options->verbose == CORNU_SILENT ? CORNU_OK
                                                                : report(data, part, predictions);
    if (status || !options->plots) return status;
    return pictures_of_test(options->plots, model, data, part, predictions);
}

static CornuStatus test_model(const Options *options, CornuModel *model,
                              const CornuTrainTest *data, double test[2])
{
    const CornuArray predictions = session_evaluate(model, data, options->batch_size, test);
    if (!predictions.data) return cornu_error_status();
    const CornuStatus status = session_show(options, model, data, "test", predictions);
    free(predictions.data);
    return status;
}

CornuStatus session_record(const Options *options, CornuModel *model,
                           const CornuHistory *history, const CornuTrainTest *data,
                           const double *test)
{
    if (options->plots && pictures_of_training(options->plots, model, history, data))
        return cornu_error_status();
    if (!options->history) return CORNU_OK;
    const CornuStatistics *step = cornu_model_statistics(model);
    const CornuDevice     *device = cornu_model_device(model);
    const CornuRunRecord   run = {
        .model = cornu_model_name(model), .device = cornu_device_name(device),
        .policy = cornu_model_policy(model)->name, .threads = cornu_device_threads(device),
        .shards = cornu_device_shards(device),
        .processes = cornu_process_count(cornu_device_processes(device)),
        .parameters = cornu_model_parameters(model),
        .data = { .name = data->name, .synthetic = data->synthetic,
                  .train = data->train_x.type.shape.extent[0],
                  .test = data->test_x.type.shape.extent[0] },
        .history = history,
        .flops_per_sample = step ? (double)step->flops / (double)options->batch_size : NAN,
        .test_loss = test[0], .test_accuracy = test[1],
    };
    return cornu_record_write(&run, options->history);
}

CornuStatus session_conclude(const Options *options, CornuModel *model, CornuHistory *history,
                             const CornuTrainTest *data)
{
    if (!history) return session_stopped(options, model);
    double      test[2];
    CornuStatus status = session_save(options, model);
    if (!status) status = test_model(options, model, data, test);
    if (!status) session_remarks(model);
    if (!status) status = session_record(options, model, history, data, test);
    if (!status) status = session_finish(options);
    cornu_history_free(history);
    return status;
}

CornuStatus session_train(const Options *options, CornuModel *model, CornuDataset *data,
                          CornuDataset *held_out, const char *things, double results[2])
{
    if (session_prepare(options, model, NULL)) return cornu_error_status();
    CornuHistory *history = cornu_fit(
        model, data, .batch_size = options->batch_size, .epochs = options->epochs,
        .steps_per_epoch = options->steps_per_epoch, .validation_data = { .data = held_out },
        .verbose = options->verbose, .callbacks = { SESSION_CALLBACKS(options) });
    if (!history) return session_stopped(options, model);
    results[0] = results[1] = NAN;
    CornuStatus status = session_save(options, model);
    if (!status && held_out)
        status = cornu_evaluate(model, held_out, .batch_size = options->batch_size,
                                .verbose = CORNU_SILENT, .results = results);
    if (!status) session_remarks(model);
    const CornuTrainTest told = {
        .name = options->argument_count ? options->arguments[0] : options->data,
        .things = things,
        .train_x.type = cornu_type(CORNU_U8, cornu_dataset_count(data)),
        .test_x.type = cornu_type(CORNU_U8, held_out ? cornu_dataset_count(held_out) : 0),
    };
    if (!status) status = session_record(options, model, history, &told, results);
    if (!status) status = session_finish(options);
    cornu_history_free(history);
    return status;
}

CornuIterator *session_batches(const Options *options, CornuTrainTest *data,
                               const CornuDevice *device)
{
    CornuDataset *train = cornu_train_test_take_train(data);
    train = cornu_dataset_shuffle(train, (uint64_t)options->seed);
    train = cornu_dataset_prefetch(cornu_dataset_batch(train, options->batch_size, true), 2);
    CornuIterator *iterator = cornu_iterator_begin_for(train, 0, device);
    cornu_dataset_free(train);   /* the iterator keeps it */
    return iterator;
}

/* What this process has of the training, and what it cost to be one of several. */
static void remark_on_processes(const CornuDevice *device)
{
    const CornuTraffic traffic = cornu_processes_traffic(processes);
    const double       slots = (double)cornu_device_memory(device).uses[CORNU_USE_SLOTS].now;
    const int          shards = cornu_device_shards(device);
    int                first, own;
    cornu_device_own_shards(device, &first, &own);
    if (own == shards) return;
    printf("%d processes; the first has %d of %d shards and %.1f of %.1f kB of the optimizer's "
           "slots, sent %.1f MB, and waited %.2f s for the others\n",
           cornu_process_count(processes), own, shards, 1e-3 * slots * own, 1e-3 * slots * shards,
           1e-6 * (double)traffic.bytes_sent, traffic.wait_seconds);
}

static void remark_on_fallbacks(const CornuDevice *device, const CornuStatistics *step)
{
    if (!step->fallbacks || !strcmp(cornu_device_name(device), "reference")) return;
    printf("%lld op%s fell back to the reference kernels, which are slow",
           (long long)step->fallbacks, step->fallbacks == 1 ? "" : "s");
    const char *before = ": ";
    for (int id = 0; id < CORNU_OP_COUNT; id++) {
        if (!step->fell_back[id]) continue;
        printf("%s%s", before, step->fell_back[id]);
        before = ", ";
    }
    putchar('\n');
}

void session_remarks(CornuModel *model)
{
    remark_on_processes(cornu_model_device(model));
    if (pipeline && cornu_pipeline_print(model, stdout)) cornu_error_take();
    remark_on_fallbacks(cornu_model_device(model), cornu_model_statistics(model));
}

CornuStatus session_epoch(int64_t epoch, double loss)
{
    if (!isfinite(loss))
        return cornu_error_set(CORNU_ERR_VALUE, "the loss at the end of epoch %lld is not finite: "
                               "a smaller --learning-rate or --batch-size may help",
                               (long long)epoch + 1);
    printf("Epoch %lld: loss of the last batch %.4f\n", (long long)epoch + 1, loss);
    return CORNU_OK;
}

/* ---- Signals ---- */

static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
enum { SIGNALS = sizeof signals / sizeof *signals };

/* The signal that has arrived, or 0. */
static volatile sig_atomic_t stop;

static void end_by_signals(void)
{
    for (int i = 0; i < SIGNALS; i++) signal(signals[i], SIG_DFL);
}

/* The next signal has its default effect. */
static void on_signal(int number)
{
    stop = number;
    end_by_signals();
}

/* SIGHUP stays ignored under nohup. */
static void catch_signals(void)
{
    struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART }, old;
    sigemptyset(&action.sa_mask);
    for (int i = 0; i < SIGNALS; i++)
        if (signals[i] != SIGHUP || sigaction(SIGHUP, NULL, &old) || old.sa_handler != SIG_IGN)
            sigaction(signals[i], &action, NULL);
}

/* The progress of the training. */
static struct {
    int64_t epoch;              /* the current one */
    int64_t steps;              /* run in this process */
    bool    has_backup;
} trained;

/* Whether any process has been asked to stop, so that all do at the same step: else some would wait
 * for those that have stopped. */
static CornuStatus find_stopping(bool *stopping)
{
    *stopping = stop;
    return cornu_processes_any(processes, stopping);
}

static CornuStatus count_step(CornuCallback *self, CornuModel *model, int64_t batch,
                              const CornuLogs *logs)
{
    (void)model, (void)logs;
    bool        stopping = false;
    CornuStatus status = trained.has_backup ? CORNU_OK : find_stopping(&stopping);
    trained.steps++;
    if (status || !stopping) return status;
    return cornu_error_set(CORNU_ERR_INTERRUPTED, "stopped after %lld of %lld steps in epoch %lld "
                           "of %lld", (long long)batch + 1, (long long)self->params.steps,
                           (long long)trained.epoch + 1, (long long)self->params.epochs);
}

static CornuStatus begin_epoch(CornuCallback *self, CornuModel *model, int64_t epoch,
                               const CornuLogs *logs)
{
    (void)self, (void)model, (void)logs;
    trained.epoch = epoch;
    return CORNU_OK;
}

/* A batch of the validation. */
static CornuStatus test_step(CornuCallback *self, CornuModel *model, int64_t batch,
                             const CornuLogs *logs)
{
    (void)model, (void)batch, (void)logs;
    bool        stopping = false;
    CornuStatus status = trained.has_backup ? CORNU_OK : find_stopping(&stopping);
    if (status || !stopping) return status;
    return cornu_error_set(CORNU_ERR_INTERRUPTED, "stopped after epoch %lld of %lld",
                           (long long)trained.epoch + 1, (long long)self->params.epochs);
}

static bool is_stopping(CornuCallback *self)
{
    (void)self;
    return stop;
}

CornuCallback *session_watch(const Options *options)
{
    static CornuCallback watch = { .epoch_begin = begin_epoch, .train_batch_end = count_step,
                                   .test_batch_end = test_step, .interrupted = is_stopping };
    trained.has_backup = options->backup != NULL;
    trained.steps = 0;
    catch_signals();
    return &watch;
}

CornuCallback *session_backup(const Options *options)
{
    if (!options->backup) return NULL;
    return cornu_backup_and_restore(options->backup, options->backup_freq, .stop = &stop,
                                    .keep_checkpoint = true,
                                    .verbose = options->verbose != CORNU_SILENT);
}

CornuStatus session_stopped(const Options *options, CornuModel *model)
{
    const CornuStatus status = cornu_error_take();
    const bool        kept = status == CORNU_ERR_INTERRUPTED && trained.has_backup;
    char              why[1000];
    snprintf(why, sizeof why, "%s", cornu_error_message());
    if (kept || status == CORNU_ERR_VALUE || trained.steps == 0) return status;
    if (status == CORNU_ERR_PROCESS) {   /* which could not save together any more */
        if (trained.has_backup) return status;
        return cornu_error_set(status, "%s; nothing is kept of it. --backup DIR would have kept a "
                               "training to go on with", why);
    }
    if (!options->save)
        return cornu_error_set(status, "%s; nothing is kept of it. --save FILE would have kept the "
                               "model, --backup DIR a training to go on with", why);
    if (cornu_model_save(model, options->save))
        return cornu_error_set(status, "%s; nor could the model be saved: %s", why,
                               cornu_error_message());
    return cornu_error_set(status, "%s; the model as it stood then is saved in %s", why,
                           options->save);
}

CornuStatus session_save(const Options *options, CornuModel *model)
{
    const CornuStatus status = options->save ? cornu_model_save(model, options->save) : CORNU_OK;
    end_by_signals();
    if (status || !stop) return status;
    return cornu_error_set(CORNU_ERR_INTERRUPTED, "stopped after the training%s%s",
                           options->save ? "; the model is saved in " : "",
                           options->save ? options->save : "");
}

CornuStatus session_finish(const Options *options)
{
    return options->backup ? cornu_backup_remove(options->backup) : CORNU_OK;
}

/* Whether stdout is a pipe whose reader has left, as head does. */
static bool reader_left(void)
{
    struct pollfd out = { .fd = STDOUT_FILENO };
    return poll(&out, 1, 0) > 0 && (out.revents & POLLERR);
}

int session_end(const char *program, CornuStatus status)
{
    cornu_processes_leave(processes, status);
    processes = NULL;
    return session_report(program, status);
}

int session_report(const char *program, CornuStatus status)
{
    if (status) fprintf(stderr, "%s: %s\n", program, options_translate(cornu_error_message()));
    if (status == CORNU_ERR_INTERRUPTED && stop) {
        if (trained.has_backup)
            fprintf(stderr, "%s: the same command goes on from there\n", program);
        return 128 + stop;
    }
    const bool before = ferror(stdout);   /* then errno is of something else by now */
    if ((fflush(stdout) == 0 && !before) || reader_left())
        return !status ? 0 : options_refused() ? OPTIONS_BAD_USAGE : 1;
    fprintf(stderr, "%s: standard output cannot be written%s%s\n", program, before ? "" : ": ",
            before ? "" : strerror(errno));
    return 1;
}
