/*
 * Text as sequences of tokens, for models that predict the next one.
 *
 *     CornuTextData *text = cornu_text_load(.file = "shakespeare/complete.txt");
 *     CornuDataset  *train = cornu_text_dataset(text, 100, .count = nine_tenths);
 *     CornuDataset  *test = cornu_text_dataset(text, 100, .first = nine_tenths);
 *     cornu_text_free(text);
 *
 * An element of such a data set is x (T), T tokens, and y (T), the token that follows each.
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
    CORNU_TEXT_CODE_POINTS,  /* UTF-8; a character's token is its code point. Code points of 255
                                or more are dropped and counted. 256 tokens */
    CORNU_TEXT_ALPHABET,     /* UTF-8; the characters that occur, numbered by code point */
    CORNU_TEXT_BYTES         /* arbitrary bytes, each a token. 256 tokens */
} CornuTextEncoding;

/* Plain data; cornu_text_free frees it. */
typedef struct {
    CornuArray        tokens;      /* (N,) u8; i32 for an alphabet of more than 256 characters */
    int64_t           vocabulary;  /* tokens are below it */
    CornuTextEncoding encoding;
    uint32_t         *alphabet;    /* the code point of each token, ascending; NULL if tokens
                                      are code points or bytes */
    int64_t           dropped;     /* number of characters dropped */
    bool              synthetic;   /* drawn by code; say so wherever a score is printed */
    char              description[CORNU_PATH_SIZE + 256]; /* one line: size, source */
} CornuTextData;

typedef struct {
    char              unset;
    const char       *file;      /* a path, or a file in the data directory; default
                                    shakespeare/input.txt, downloaded if necessary */
    const char       *data;      /* the data directory; NULL: search as in find.h; "synthetic":
                                    if .file is not given, text drawn by code, as long as the
                                    default */
    CornuTextEncoding encoding;
    int64_t           limit;     /* maximum number of tokens; default all */
    uint64_t          seed;      /* of synthetic text */
    CornuDownloadProgress *progress; /* default: a download is silent */
    void                  *context;  /* for progress */
} CornuTextConfig;

/*
 * Reads a file of at most 512 MiB. A byte-order mark at its start is skipped. NULL with
 * CORNU_ERR_DATA or CORNU_ERR_FILE if it cannot be found or read; CORNU_ERR_FORMAT if it is larger,
 * empty, not valid UTF-8 (the message names the first bad byte), or contains a NUL, as UTF-16 does.
 * CORNU_TEXT_BYTES accepts any bytes.
 */
#define cornu_text_load(...) \
    cornu_text_load_from(&(CornuTextConfig){ .unset = 0, __VA_ARGS__ })
CornuTextData *cornu_text_load_from(const CornuTextConfig *config);

/* The same from memory; `name` is for messages and the description. */
CornuTextData *cornu_text_parse(const char *bytes, size_t size, CornuTextEncoding encoding,
                                const char *name);

/* Once; NULL is ignored. */
void cornu_text_free(CornuTextData *text);

/* Encodes `bytes` with the encoding of text: *tokens gets (n,) of the dtype of text->tokens, data
 * to be freed with free(). CORNU_ERR_VALUE names the first character without a token. */
CornuStatus cornu_text_encode(const CornuTextData *text, const char *bytes, size_t size,
                              CornuArray *tokens);

/* Writes the UTF-8 of a token (its byte, with CORNU_TEXT_BYTES) and a NUL; returns the number of
 * bytes before that. */
int cornu_text_decode(const CornuTextData *text, int64_t token, char bytes[5]);

/* An encoding without text, for generation: the tokens are empty. Not for CORNU_TEXT_ALPHABET,
 * whose alphabet comes from the text. */
CornuTextData *cornu_text_encoding(CornuTextEncoding encoding);

/* ---- Data sets ---- */

typedef enum {
    /* Consecutive blocks of T + 1 tokens without overlap; an incomplete last block is dropped. May
     * be shuffled. */
    CORNU_TEXT_BLOCKS,
    /* T + 1 tokens from a random position, `samples` times an epoch, given by (seed, epoch,
     * index). */
    CORNU_TEXT_RANDOM,
    /* For stateful layers, in batches of batch_size, not shuffled: the text is divided into
     * batch_size parts, and row b of a batch continues part b where the previous batch ended. */
    CORNU_TEXT_CONTINUED
} CornuTextSampling;

typedef struct {
    char                 unset;
    const CornuTextData *text;
    int64_t              sequence_length;  /* T */
    CornuTextSampling    sampling;
    int64_t              first, count;     /* the range of tokens; default all, to the end */
    int64_t              samples;          /* of CORNU_TEXT_RANDOM, required */
    uint64_t             seed;             /* likewise */
    int64_t              batch_size;       /* of CORNU_TEXT_CONTINUED, required: equal to that of
                                              cornu_dataset_batch */
} CornuTextDatasetConfig;

/* Copies the range of tokens; text remains the caller's. NULL, pending: CORNU_ERR_ARGUMENT for
 * settings out of range; CORNU_ERR_DATA if the range has less than T + 1 tokens, or less than a
 * batch needs. */
#define cornu_text_dataset(...) \
    cornu_text_dataset_from(&(CornuTextDatasetConfig){ .unset = 0, __VA_ARGS__ })
CornuDataset *cornu_text_dataset_from(const CornuTextDatasetConfig *config);

#ifdef __cplusplus
}
#endif
#endif
