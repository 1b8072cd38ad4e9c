/*
 * Writing and reading .tflite files: FlatBuffers of LiteRT's schema, version 3.
 *
 * Written: one subgraph, the signature "serving_default", equal constants once, and the first
 * runtime that has all operators. Equal graphs give equal bytes.
 *
 * Read: the first subgraph, with others that it calls in place, branches as selections, loops turn
 * by turn, variables as such (graph.h), sparse constants in full; operators are those of
 * operators.def. Files are not trusted: every offset, length and number of a tensor is checked,
 * constants have the bytes of their shapes, and what is taken in memory is bounded by the size of
 * the file, or for loops by 256 MiB. What Cornu does not have (other operators, by their names, and
 * types, external data) is refused.
 * Source: github.com/google-ai-edge/LiteRT, tflite/converter/schema/schema.fbs.
 */
#ifndef CORNU_NN_LITE_FILE_H
#define CORNU_NN_LITE_FILE_H

#include "../../../device/files/protobuf_internal.h"
#include "../graph/graph.h"

/* Appends a file to an empty message, whose bytes the caller releases. CORNU_ERR_MEMORY;
 * CORNU_ERR_UNSUPPORTED for one of 2 GiB or more, which FlatBuffers cannot have. */
CornuStatus cornu__lite_write(const CornuLiteGraph *graph, CornuMessage *file);

/* The same to a path; the file appears whole or not at all. */
CornuStatus cornu__lite_save(const CornuLiteGraph *graph, const char *path);

/* The caller frees the graph, NULL on failure: CORNU_ERR_FORMAT for damage, CORNU_ERR_UNSUPPORTED
 * for what is not available. Messages do not name the file. */
CornuStatus cornu__lite_read(const void *bytes, size_t size, CornuLiteGraph **graph);
/* Messages name the file. */
CornuStatus cornu__lite_open(const char *path, CornuLiteGraph **graph);

#endif
