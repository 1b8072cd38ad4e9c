/* The parts of a translator: what runs on the device, and the search on the host. */
#ifndef CORNU_MODELS_TRANSLATION_INTERNAL_H
#define CORNU_MODELS_TRANSLATION_INTERNAL_H

#include "../device/memory_internal.h"
#include "../device/status_internal.h"
#include "translation.h"

enum { CORNU__MOST_BLOCKS = 32 };

/* Keys and values of a decoder block, of all rows: of the tokens so far and of the source. */
typedef struct {
    CornuVariable *keys, *values;              /* (R, N T H) */
    CornuVariable *cross_keys, *cross_values;  /* (R, N, S, H) */
} CornuBlockCache;

/* The two graphs of a translator. Row r is hypothesis r % beams of sentence r / beams. */
typedef struct {
    CornuModel      *model, *encoder;
    CornuGraph      *encode, *step;
    int64_t          sentences, beams, rows;   /* rows = sentences beams */
    int64_t          source_length, target_length, vocabulary;
    int              blocks;
    CornuBlockCache  caches[CORNU__MOST_BLOCKS];
    CornuVariable   *padding;                  /* (R, S): 0, or -1e9 where the source is padding */
    CornuTensor     *source;                   /* (sentences, S) i32 */
    CornuTensor     *tokens, *parents, *position;   /* (R, 1), (R) and () i32 */
    CornuTensor     *probabilities;            /* (R, V) f32 */
} CornuDecoding;

CornuStatus cornu__decoding_open(CornuDecoding *decoding, const CornuTranslatorConfig *config);
void        cornu__decoding_close(CornuDecoding *decoding);

/* Computes keys and values of the sources. */
CornuStatus cornu__decoding_encode(CornuDecoding *decoding, const int32_t *sources);

/* The probabilities (R, V) of the token after `tokens` (R), which are number `position` of
 * hypotheses that continue those of the rows `parents` (R). */
CornuStatus cornu__decoding_step(CornuDecoding *decoding, int32_t position, const int32_t *tokens,
                                 const int32_t *parents, float *probabilities);

#endif
