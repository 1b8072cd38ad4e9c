/*
 * TFRecord files: records of bytes, which are tf.train.Examples as a rule, as data sets; and their
 * writer.
 *
 *     8 bytes    N, little-endian           4 bytes    masked CRC-32C of these 8
 *     N bytes    the record                 4 bytes    masked CRC-32C of these N
 *
 * Source: TensorFlow, tensorflow/core/lib/io/record_writer.cc and the guide "TFRecord and
 * tf.train.Example", section "TFRecords format details".
 */
#ifndef CORNU_DATASETS_TFRECORD_H
#define CORNU_DATASETS_TFRECORD_H

#include "../pipeline/dataset.h"
#include "feature.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    char                unset;
    const char         *file;           /* a path, or a pattern such as "train-*.tfrecord", whose
                                           files are sorted by byte, or "train-{00..37}"; or an
                                           address, gs://bucket/train-*, see ../README.md */
    const CornuFeature *features;       /* what becomes of an Example or SequenceExample, see
                                           feature.h; NULL: the bytes of the record */
    const char *const  *files;          /* instead of .file: several, NULL-terminated */
    int64_t             record_length;  /* without features: bytes of the longest record */
    int64_t             cycle_length;   /* files that records are taken from in turn, as interleave
                                           of tf.data does; default 1: one file after the other */
    int64_t             block_length;   /* records taken from a file in its turn; default 1 */
} CornuTfrecordConfig;

/*
 * The records of files as elements. Files are plain, or compressed by gzip or zlib, which their
 * first bytes say.
 *
 *     CornuDataset *train = cornu_tfrecord_dataset("train-*.tfrecord", features);
 *     train = cornu_dataset_shuffle(train, seed);
 *
 * Of plain files the headers of all records are read and checked here, and 8 bytes for each record
 * are kept, 12 if files are taken in turn; then records are read in any order, and the count is
 * known. Of compressed files and of those on other machines, even if only some are, records are
 * read in order, one file after the other or in turn, and the count is CORNU_UNKNOWN: shuffle them
 * within a window, or cache them. Of a compressed file of this machine that has more than 1 MB,
 * places where it can be entered, 32 KB for every 8 MB that it inflates to, are noted in the user's
 * cache while it is read (CORNU_CACHE, ../README.md): a training that goes on in the middle of an
 * epoch begins at the last one. The checksum of a record is verified when it is read.
 *
 * Without features an element is the record, u8 (record_length), padded with zeros, and its length,
 * i32: for a map that parses it.
 *
 * NULL and a pending error: CORNU_ERR_FILE for files that cannot be read, CORNU_ERR_DATA for a
 * pattern that matches none, CORNU_ERR_FORMAT, naming file, record and byte, for a file that is
 * damaged or truncated, and CORNU_ERR_ARGUMENT, CORNU_ERR_DTYPE or CORNU_ERR_SHAPE for settings.
 * A record that is damaged, lacks a feature or has others than the table says fails its element,
 * naming file, record, byte and feature.
 */
CornuDataset *cornu_tfrecord_dataset_from(const CornuTfrecordConfig *config);
#define cornu_tfrecord_dataset(...) \
    cornu_tfrecord_dataset_from(&(CornuTfrecordConfig){ .unset = 0, __VA_ARGS__ })

/* ---- Writing ---- */

typedef struct CornuTfrecordWriter CornuTfrecordWriter;

/* A new file, compressed by gzip if its name ends in .gz, which is there once it is closed; an old
 * one stays until then. NULL with a pending CORNU_ERR_FILE if it cannot be written. */
CornuTfrecordWriter *cornu_tfrecord_writer_open(const char *path);

/* Adds a record. What fails here or before is reported by close. */
void cornu_tfrecord_writer_write(CornuTfrecordWriter *writer, const void *bytes, size_t size);

/* A feature of an Example. */
typedef struct {
    const char *name;     /* required */
    CornuArray  values;   /* i64, i32, u32, u8, bool: int64; f32, f64: float, rounded; strings */
    const void *bytes;    /* instead of values: one string of `size` bytes, such as an image */
    size_t      size;
} CornuExampleFeature;

/* Adds a tf.train.Example. */
void cornu_tfrecord_writer_example(CornuTfrecordWriter *writer, const CornuExampleFeature *features,
                                   int count);

/* Finishes the file and frees the writer. Equal records give equal bytes. Of several processes rank
 * 0 alone writes. CORNU_ERR_FILE if the file could not be written, which then is not there. */
CornuStatus cornu_tfrecord_writer_close(CornuTfrecordWriter *writer);

#ifdef __cplusplus
}
#endif
#endif
