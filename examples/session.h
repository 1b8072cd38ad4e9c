/*
 * What every example does around its model: opens the device, loads the data and says what they
 * are, writes the record of the run, and ends with a message when something fails.
 */
#ifndef CORNU_EXAMPLES_SESSION_H
#define CORNU_EXAMPLES_SESSION_H

#include <cornu/cornu.h>

#include "options.h"

/* The locale of the user, the seed, the policy. SIGPIPE is ignored, so that a reader of stdout who
 * leaves ends no training. Also sees that --save, --history, --trace and
 * --plots can be written, which is better known now than after the training. */
CornuStatus session_begin(const Options *options);

/* Begins, and opens the device; the run's first line names the processor, its instruction set,
 * BLAS, kernels and threads. */
CornuDevice *session_open(const Options *options);

/* What --precision says. */
CornuPrecision session_precision(const Options *options);

/* The images that `load` loads (cornu_mnist_load_from), by --data, --limit, --seed and --labels;
 * prints where they come from. A download shows its progress on stderr. */
CornuTrainTest *session_data(const Options *options,
                             CornuTrainTest *(*load)(const CornuTrainTestConfig *config));
CornuTrainTest *session_mnist(const Options *options);   /* those of the digits */

/* A download's progress, on stderr. */
bool session_show_download(void *context, const CornuDataFile *file, int64_t received);

/* For --save: the classes' names go into the model's file. */
CornuStatus session_name_classes(const Options *options, CornuModel *model,
                                 const CornuTrainTest *data);

/* --tensorboard DIR: writes there, with the weights' histograms; a callback that does nothing
 * without the flag. */
CornuCallback *session_tensorboard(const Options *options);

/* Evaluates on the test data, into test[]: loss and accuracy; prints both. Returns the predictions
 * that they come from, f32 (N, classes), their data to be freed with free(); NULL on failure. */
CornuArray session_evaluate(CornuModel *model, const CornuTrainTest *data, int64_t batch_size,
                            double test[2]);

/* Does so in batches of --batch-size. Unless --verbose 0, prints a report on each class, and with
 * --plots writes the pictures of the test (pictures.h), from the same predictions. */
CornuStatus session_test(const Options *options, CornuModel *model, const CornuTrainTest *data,
                         double test[2]);

/* --history FILE.json: everything fit measured, and the test's loss and accuracy. --plots DIR: the
 * curves and filters of pictures.h. Does nothing without these flags. */
CornuStatus session_record(const Options *options, CornuModel *model,
                           const CornuHistory *history, const CornuTrainTest *data,
                           const double *test);

/* Trains a compiled model on data of the user's own, as the flags of fit say, and evaluates it on
 * `held_out`, into results[]: loss, and accuracy if the model has it; NAN where held_out is NULL.
 * `things` is what the data are: "pictures". */
CornuStatus session_train(const Options *options, CornuModel *model, CornuDataset *data,
                          CornuDataset *held_out, const char *things, double results[2]);

/* For each training, in this order:
 *
 *     cornu_fit(..., .callbacks = { ..., session_watch(options), session_backup(options) });
 *     if (!history) return session_stopped(options, model);
 *     session_save(options, model);
 *     ... what else is written ...
 *     session_finish(options);
 *
 * session_watch: from now on SIGINT, SIGTERM and SIGHUP let fit end after the step at hand, with
 * CORNU_ERR_INTERRUPTED; a second one ends the program at once. */
CornuCallback *session_watch(const Options *options);

/* --backup DIR: keeps what a stopped training goes on from, and goes on from it; NULL without the
 * flag. What it keeps stays until session_finish. */
CornuCallback *session_backup(const Options *options);

/* After fit has failed: if steps have run and no backup has kept them, whether a signal came or
 * something could not be written (a backup, too), --save gets the model as it stands, and the
 * message says so. Returns fit's status. A model whose loss is no number is not saved. */
CornuStatus session_stopped(const Options *options, CornuModel *model);

/* --save FILE. From then on signals do what they usually do; one that came since fit ended ends the
 * program here, with CORNU_ERR_INTERRUPTED. */
CornuStatus session_save(const Options *options, CornuModel *model);

/* All files are written: removes the backups. */
CornuStatus session_finish(const Options *options);

/* The training data, shuffled anew each epoch, in whole batches that a thread gathers ahead. */
CornuIterator *session_batches(const Options *options, CornuTrainTest *data);

/* If ops of the step had to be run by their slow reference kernels, says how many and which;
 * nothing on the reference device, which has no others. */
void session_fallbacks(const CornuDevice *device, const CornuStatistics *step);

/* Says how an epoch of a loop of one's own ended; CORNU_ERR_VALUE if the loss is no number. */
CornuStatus session_epoch(int64_t epoch, double loss);

/* The exit status: 0, or 1 after a message on stderr if `status` is a failure, the library's, or
 * what went to stdout could not be written, unless its reader has left; 128 and the signal's number
 * after one that stopped the training. */
int session_end(const char *program, CornuStatus status);

#endif
