/*
 * tf.train.Example and SequenceExample.
 *
 *     Example          { features: 1 Features }
 *     SequenceExample  { context: 1 Features, feature_lists: 2 { map<string, FeatureList> 1 } }
 *     Features         { map<string, Feature> 1 }        FeatureList { Feature 1, repeated }
 *     Feature          { one of bytes_list: 1, float_list: 2, int64_list: 3 }, each a list 1
 *
 * An entry of a map is a message with its key, 1, and its value, 2. The last of several fields that
 * are not repeated counts.
 * Source: TensorFlow, tensorflow/core/example/example.proto and feature.proto.
 */
#ifndef CORNU_DATASETS_EXAMPLE_INTERNAL_H
#define CORNU_DATASETS_EXAMPLE_INTERNAL_H

#include "../../device/files/protobuf_internal.h"
#include "feature_internal.h"

enum { CORNU__BYTES_LIST = 1, CORNU__FLOAT_LIST = 2, CORNU__INT64_LIST = 3 };

/* Parses a record into an element. CORNU_ERR_FORMAT, naming the feature but not the record. */
CornuStatus cornu__example_parse(const CornuFeatureTable *table, const unsigned char *bytes,
                                 size_t size, void *const *to);

#endif
