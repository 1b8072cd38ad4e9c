/*
 * Event files, which TensorBoard reads: records appended one by one.
 *
 *     CornuEventFile *events = cornu__event_file_open("logs/train");
 *     CORNU__TRY(cornu__event_file_scalar(events, "epoch_loss", 0, 0.25));
 *     CORNU__TRY(cornu__event_file_flush(events));
 *     cornu__event_file_close(events);
 *
 * A record is its length (u64), the length's checksum (u32), bytes, their checksum (u32); numbers
 * are little-endian, a checksum is CRC-32C, rotated and shifted. The bytes are a protobuf Event:
 * wall time, step, and a summary of one tagged tensor, as tf.summary of TensorFlow 2 writes it.
 * The first record holds only the version, "brain.Event:2".
 * Sources: tensorflow/core/lib/io/record_writer.cc; tensorflow/core/util/event.proto;
 * tensorflow/core/framework/summary.proto, tensor.proto; tensorboard/plugins/{scalar,histogram,
 * image}/summary_v2.py.
 *
 * A write allocates only if its event is larger than all before it. A failed write is reported by
 * the next flush.
 */
#ifndef CORNU_NN_EVENT_FILE_INTERNAL_H
#define CORNU_NN_EVENT_FILE_INTERNAL_H

#include "../../device/status_internal.h"
#include "../../device/type.h"

typedef struct CornuEventFile CornuEventFile;

/* Creates events.out.tfevents.SECONDS.HOST.PID.NUMBER.v2 in the folder, which is made if absent;
 * the number counts the files of this process. NULL and CORNU_ERR_FILE, not pending. */
CornuEventFile *cornu__event_file_open(const char *folder);
void         cornu__event_file_close(CornuEventFile *events);   /* NULL does nothing */

/* A number, as f32. */
CornuStatus cornu__event_file_scalar(CornuEventFile *events, const char *tag, int64_t step,
                                     double value);

/* A histogram: the number of values in each of 30 equal parts of their range. Values that are not
 * finite are left out; nothing is written if none is left. */
CornuStatus cornu__event_file_histogram(CornuEventFile *events, const char *tag, int64_t step,
                                        const float *values, int64_t count);

/* The first 3 of K images (K, H, W, C) in f32, C 1, 3 or 4: 0 is black, 1 white; values beyond are
 * clipped. */
CornuStatus cornu__event_file_images(CornuEventFile *events, const char *tag, int64_t step,
                                     CornuArray images);

/* A Keras model's JSON, which TensorBoard draws as its conceptual graph. */
CornuStatus cornu__event_file_keras_model(CornuEventFile *events, const char *tag,
                                          const char *json);

CornuStatus cornu__event_file_flush(CornuEventFile *events);

#endif
