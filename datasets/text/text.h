/*
 * Text as sequences of tokens, for models that predict the next one.
 *
 *     CornuTextData *text = cornu_text_load(.file = "shakespeare/complete.txt");
 *     CornuDataset  *train = cornu_text_dataset(text, 100, .count = nine_tenths);
 *     CornuDataset  *test = cornu_text_dataset(text, 100, .first = nine_tenths);
 *     cornu_text_free(text);
 *
 * An element of such a data set is x (T), T tokens, and y (T), the tokens that follow each.
 */
#ifndef CORNU_DATASETS_TEXT_H
#define CORNU_DATASETS_TEXT_H

#include "../../device/type.h"
#include "../pipeline/dataset.h"
#include "../fetching/find.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Characters and tokens ---- */

typedef enum {
    CORNU_TEXT_CODE_POINTS,  /* UTF-8; a character's token is its code point. Characters from 255
                                on are dropped and counted. 256 tokens */
    CORNU_TEXT_ALPHABET,     /* UTF-8; the characters that occur, numbered by their code points */
    CORNU_TEXT_BYTES         /* any bytes, each a token. 256 tokens */
} CornuTextEncoding;

/* Plain data; cornu_text_free frees it. */
typedef struct {
    CornuArray        tokens;      /* (N,) u8; i32 for an alphabet of more than 256 characters */
    int64_t           vocabulary;  /* tokens are below it */
    CornuTextEncoding encoding;
    uint32_t         *alphabet;    /* the code point of each token, ascending; NULL where tokens
                                      are code points or bytes */
    int64_t           dropped;     /* characters that have no token */
    bool              synthetic;   /* drawn by code, and so said wherever a score is printed */
    char              description[CORNU_PATH_SIZE + 256]; /* one line: how many, whence */
} CornuTextData;

typedef struct {
    char              unset;
    const char       *file;      /* looked for here, then in the data directory; default
                                    shakespeare/input.txt, which is downloaded if need be */
    const char       *data;      /* the data directory; NULL: search as find.h says; "synthetic":
                                    without a .file, one drawn by code, as long as the default */
    CornuTextEncoding encoding;
    int64_t           limit;     /* at most so many tokens; default all */
    uint64_t          seed;      /* of a synthetic text */
    CornuDownloadProgress *progress; /* default: a download is silent */
    void                  *context;  /* for progress */
} CornuTextConfig;

/*
 * Reads a file of at most 512 MiB. A byte-order mark at its start is skipped. NULL:
 * CORNU_ERR_DATA or CORNU_ERR_FILE if it is not to be had, CORNU_ERR_FORMAT if it is larger, is
 * empty, is no UTF-8 (the message names the first bad byte) or holds a NUL, which no text does but
 * one in UTF-16. CORNU_TEXT_BYTES takes any bytes.
 */
#define cornu_text_load(...) \
    cornu_text_load_from(&(CornuTextConfig){ .unset = 0, __VA_ARGS__ })
CornuTextData *cornu_text_load_from(const CornuTextConfig *config);

/* The same from memory; `name` stands in messages and in the description. */
CornuTextData *cornu_text_parse(const char *bytes, size_t size, CornuTextEncoding encoding,
                                const char *name);

void cornu_text_free(CornuTextData *text);

/* The tokens of `bytes` by the encoding of text: *tokens gets (n,) of the dtype of text->tokens,
 * data that free() frees. CORNU_ERR_VALUE names the first character without a token. */
CornuStatus cornu_text_encode(const CornuTextData *text, const char *bytes, size_t size,
                              CornuArray *tokens);

/* The UTF-8 of a token (its byte, with CORNU_TEXT_BYTES) and a terminating 0; how many bytes. */
int cornu_text_decode(const CornuTextData *text, int64_t token, char bytes[5]);

/* The encoding without a text, to generate with: tokens are empty. Not for an alphabet, which only
 * a text has. */
CornuTextData *cornu_text_encoding(CornuTextEncoding encoding);

/* ---- Data sets ---- */

typedef enum {
    /* Blocks of T + 1 tokens, one after the other without overlap; what is left at the end is not
     * used. Shuffled as any data set. */
    CORNU_TEXT_BLOCKS,
    /* T + 1 tokens from a random place, `samples` times an epoch: drawn by (seed, epoch, index). */
    CORNU_TEXT_RANDOM,
    /* For stateful layers, in batches of batch_size and not shuffled: the text is cut into
     * batch_size parts, row b of every batch goes on in part b where the last batch ended. */
    CORNU_TEXT_CONTINUED
} CornuTextSampling;

typedef struct {
    char                 unset;
    const CornuTextData *text;
    int64_t              sequence_length;  /* T */
    CornuTextSampling    sampling;
    int64_t              first, count;     /* this part of the tokens; default all, to the end */
    int64_t              samples;          /* of CORNU_TEXT_RANDOM, required */
    uint64_t             seed;             /* likewise */
    int64_t              batch_size;       /* of CORNU_TEXT_CONTINUED, required: what the caller
                                              then gives to cornu_dataset_batch, too */
} CornuTextDatasetConfig;

/* Copies its part of the tokens; text stays the caller's. NULL, pending: CORNU_ERR_ARGUMENT for
 * settings out of range; CORNU_ERR_DATA for a part with less than T + 1 tokens, or than a batch
 * needs. */
#define cornu_text_dataset(...) \
    cornu_text_dataset_from(&(CornuTextDatasetConfig){ .unset = 0, __VA_ARGS__ })
CornuDataset *cornu_text_dataset_from(const CornuTextDatasetConfig *config);

#ifdef __cplusplus
}
#endif
#endif
