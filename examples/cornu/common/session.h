/*
 * What the examples do around their models: open the device, load the data and describe them, write
 * what the flags ask for, and end with a message when something fails.
 *
 *     CornuDevice    *device = session_open(&options);
 *     CornuTrainTest *mnist = device ? session_mnist(&options) : NULL;
 *     ... the model is built, and then compiled for `device` ...
 *     if (session_prepare(&options, model, mnist)) return cornu_error_status();
 *     CornuHistory *history = cornu_fit(..., .callbacks = { SESSION_CALLBACKS(&options) });
 *     CornuStatus   status = session_conclude(&options, model, history, mnist);
 *     ... everything is freed ...
 *     return session_end("mnist_cnn", status);
 */
#ifndef CORNU_EXAMPLES_SESSION_H
#define CORNU_EXAMPLES_SESSION_H

#include <cornu/cornu.h>

#include "options.h"

/* ---- Device and data ---- */

/* Sets the user's locale, the seed and the policy; ignores SIGPIPE, so that a reader of stdout who
 * leaves does not end a training. Meets the other processes, of which the first alone prints.
 * Checks that --save, --history, --trace, --plots and --report can
 * be written, and --dashboard can listen, which is better known now than after the training. */
CornuStatus session_begin(const Options *options);

/* session_begin, then opens the device and prints its description. */
CornuDevice *session_open(const Options *options);

/* The processes that session_begin met, as mpirun, srun or cornu run started them; NULL: this one
 * was started alone. And the shards of a device for them: --shards, those of --mesh, else one a
 * process on a cpu. */
CornuProcesses *session_processes(void);
int             session_shards(const Options *options);

/* The value of --precision. */
CornuPrecision session_precision(const Options *options);

/* session_open without a description, for commands whose stdout is for results. */
CornuDevice *session_device(const Options *options);

/* Where sets lie, or "synthetic", as the library's loaders take it: --data-dir, else --data unless
 * that is the name of a set. NULL: searched for. */
const char *session_folder(const Options *options);

/* The set that --data names, else the one that `load` loads (cornu_mnist_load_from), by --data-dir,
 * --limit, --seed and --labels. A download shows its progress on stderr. */
CornuTrainTest *session_load(const Options *options,
                             CornuTrainTest *(*load)(const CornuTrainTestConfig *config));
/* The same, and prints where they come from. */
CornuTrainTest *session_data(const Options *options,
                             CornuTrainTest *(*load)(const CornuTrainTestConfig *config));
CornuTrainTest *session_mnist(const Options *options);   /* the digits */

/* Shows the progress of a download, on stderr. */
bool session_show_download(void *context, const CornuDataFile *file, int64_t received);

/* The training data in full batches, shuffled anew in each epoch and prefetched by a thread; read
 * where this process' shards of the device need them. */
CornuIterator *session_batches(const Options *options, CornuTrainTest *data,
                               const CornuDevice *device);

/* The steps of an epoch: --steps-per-epoch, or as many as `samples` have batches. */
int64_t session_steps(const Options *options, int64_t samples);

/* ---- Training ---- */

/* For a compiled model: --load reads its weights, and if it is to be saved its file gets the names
 * of the classes of `data`, which may be NULL. */
CornuStatus session_prepare(const Options *options, CornuModel *model,
                            const CornuTrainTest *data);

/* The callbacks of the flags: --tensorboard, --trace, --report and --dashboard of what
 * session_prepare got, signals, --backup. Once session_watch is called SIGINT, SIGTERM and SIGHUP
 * end fit after the current step, with CORNU_ERR_INTERRUPTED; a second signal ends the program at
 * once. */
#define SESSION_CALLBACKS(options)                                      \
    session_tensorboard(options),                                       \
        (options)->trace ? cornu_trace((options)->trace) : NULL,        \
        session_page(options), session_dashboard(options), session_watch(options),             \
        session_backup(options)
CornuCallback *session_tensorboard(const Options *options);
CornuCallback *session_page(const Options *options);      /* NULL without --report */
CornuCallback *session_dashboard(const Options *options);   /* NULL without --dashboard */
CornuCallback *session_watch(const Options *options);
CornuCallback *session_backup(const Options *options);   /* NULL without --backup */

/* After fit: saves the model, evaluates it on the test data and prints a report on each class,
 * writes the files that are asked for. Frees the history; NULL is fit's failure. */
CornuStatus session_conclude(const Options *options, CornuModel *model, CornuHistory *history,
                             const CornuTrainTest *data);

/* Prepares a compiled model, trains it on data of the user's own, by the flags, and evaluates it on
 * `held_out`, into results[]: loss, and accuracy if the model has it; NAN where held_out is NULL.
 * `things` is what the data are: "pictures". */
CornuStatus session_train(const Options *options, CornuModel *model, CornuDataset *data,
                          CornuDataset *held_out, const char *things, double results[2]);

/* ---- The parts of session_conclude, in the order in which they are called ---- */

/* After fit has failed. If steps have run that no backup holds, --save writes the model as it is,
 * and the message says so; a model whose loss is NaN or infinite is not saved. Returns fit's
 * status. */
CornuStatus session_stopped(const Options *options, CornuModel *model);

/* --save FILE. Signals end the program again from now on; one that came since fit ended ends it
 * here, with CORNU_ERR_INTERRUPTED. */
CornuStatus session_save(const Options *options, CornuModel *model);

/* Evaluates on the test data, into test[]: loss and accuracy; prints both. Returns the predictions,
 * f32 (N, classes), their data to be freed with free(); NULL on failure. */
CornuArray session_evaluate(CornuModel *model, const CornuTrainTest *data, int64_t batch_size,
                            double test[2]);

/* Prints the report on each class, unless --verbose 0, and writes what --plots shows of the test
 * data: predictions.png and confusion.png. predictions: f32 (N, classes), of all of them; `part`:
 * "test" or "validation". */
CornuStatus session_show(const Options *options, const CornuModel *model,
                         const CornuTrainTest *data, const char *part, CornuArray predictions);

/* Prints what a training cost that was dealt over several processes; the stages of a pipeline; and
 * if ops of the step ran on their slow reference kernels, how many and which, but for the reference
 * device, which has no others. */
void session_remarks(CornuModel *model);

/* --history FILE: what fit measured, and the loss and accuracy of the test. --plots DIR: the curves
 * and filters of pictures.h. */
CornuStatus session_record(const Options *options, CornuModel *model,
                           const CornuHistory *history, const CornuTrainTest *data,
                           const double *test);

/* After all files are written: removes the backups. */
CornuStatus session_finish(const Options *options);

/* ---- The end ---- */

/* Prints how an epoch of a hand-written loop ended; CORNU_ERR_VALUE if the loss is not finite. */
CornuStatus session_epoch(int64_t epoch, double loss);

/* Leaves the other processes, who are told of a failure; the device is closed by then. Returns the
 * exit status. */
int session_end(const char *program, CornuStatus status);

/* The exit status: 0; 1 after a message on stderr if `status` is a failure, or if stdout could not
 * be written and its reader has not left; 2 if it is that of a flag (options_refuse); 128 and the
 * signal's number after one that stopped the training. */
int session_report(const char *program, CornuStatus status);

#endif
