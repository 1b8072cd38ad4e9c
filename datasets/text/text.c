/* Reading text and encoding it as tokens. */
#include "text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../device/log_internal.h"
#include "../../device/memory_internal.h"
#include "../../device/open.h"
#include "../../device/text/print.h"
#include "../synthetic/synthetic.h"
#include "text_internal.h"

enum { MOST_BYTES = 1 << 29, NARROW = 256, FIRST_DROPPED = 255 };

static const CornuDataSource shakespeare = {
    .folder = "shakespeare",
    .addresses = (const char *const[]){
        "https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare/",
        NULL,
    },
    .files = (const CornuDataFile[]){
        { "input.txt", 1115394,
          "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed" },
    },
    .count = 1,
    .otherwise = ".data = \"synthetic\" needs none, .file names another text",
};

/* ---- UTF-8 ---- */

int cornu__utf8_read(const unsigned char *s, size_t left, uint32_t *code)
{
    static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
    const int length = s[0] < 0x80 ? 1 : s[0] < 0xC2 ? 0 : s[0] < 0xE0 ? 2 : s[0] < 0xF0 ? 3
                     : s[0] < 0xF5 ? 4 : 0;
    if (length == 0 || (size_t)length > left) return 0;
    *code = length == 1 ? s[0] : s[0] & (0x7FU >> length);
    for (int i = 1; i < length; i++) {
        if ((s[i] & 0xC0) != 0x80) return 0;
        *code = *code << 6 | (s[i] & 0x3F);
    }
    const bool surrogate = *code >= 0xD800 && *code < 0xE000;
    return *code < least[length] || surrogate || *code > 0x10FFFF ? 0 : length;
}

static int write_character(uint32_t code, char to[5])
{
    const int length = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const unsigned char mark[] = { 0, 0, 0xC0, 0xE0, 0xF0 };
    for (int i = length - 1; i > 0; i--, code >>= 6) to[i] = (char)(0x80 | (code & 0x3F));
    to[0] = (char)(mark[length] | code);
    to[length] = '\0';
    return length;
}

/* Decodes all characters; *codes is the caller's. */
static CornuStatus read_characters(const unsigned char *bytes, size_t size, const char *name,
                                   uint32_t **codes, int64_t *count)
{
    static const unsigned char mark[] = { 0xEF, 0xBB, 0xBF };
    size_t at = size >= sizeof mark && memcmp(bytes, mark, sizeof mark) == 0 ? sizeof mark : 0;
    *count = 0;
    *codes = cornu__allocate(size, sizeof **codes);
    if (!*codes) return CORNU_ERR_MEMORY;
    while (at < size) {
        const int length = cornu__utf8_read(bytes + at, size - at, &(*codes)[*count]);
        if (length == 0 || bytes[at] == 0) {
            cornu__release(*codes);
            *codes = NULL;
            return cornu__fail(CORNU_ERR_FORMAT, "%s: byte %zu, 0x%02X, %s; text in another "
                               "encoding can be read as bytes", name, at, bytes[at],
                               length ? "is not a text character" : "is not valid UTF-8");
        }
        at += (size_t)length;
        ++*count;
    }
    return CORNU_OK;
}

/* ---- Tokens ---- */

static int compare_codes(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* The token of a character, -1 if it has none. */
static int64_t token_of(const CornuTextData *text, uint32_t code)
{
    if (!text->alphabet) return code < FIRST_DROPPED ? (int64_t)code : -1;
    const uint32_t *found = bsearch(&code, text->alphabet, (size_t)text->vocabulary,
                                    sizeof code, compare_codes);
    return found ? found - text->alphabet : -1;
}

static CornuDtype token_dtype(const CornuTextData *text)
{
    return text->vocabulary <= NARROW ? CORNU_U8 : CORNU_I32;
}

static void set_token(CornuArray tokens, int64_t i, int64_t token)
{
    if (tokens.type.dtype == CORNU_U8) ((uint8_t *)tokens.data)[i] = (uint8_t)token;
    else ((int32_t *)tokens.data)[i] = (int32_t)token;
}

/* Memory for `count` tokens. */
static CornuStatus make_tokens(const CornuTextData *text, int64_t count, CornuArray *tokens)
{
    const CornuDtype dtype = token_dtype(text);
    void *data = cornu__allocate((size_t)count, cornu_dtype_size(dtype));
    *tokens = cornu_array(data, dtype, count);
    return data ? CORNU_OK : CORNU_ERR_MEMORY;
}

static CornuStatus make_alphabet(CornuTextData *text, const uint32_t *codes, int64_t count)
{
    enum { CODES = 0x110000 };
    unsigned char *occurs = cornu__allocate(CODES, 1);
    if (!occurs) return CORNU_ERR_MEMORY;
    text->vocabulary = 0;
    for (int64_t i = 0; i < count; i++) {
        text->vocabulary += !occurs[codes[i]];
        occurs[codes[i]] = 1;
    }
    text->alphabet = cornu__allocate((size_t)text->vocabulary, sizeof *text->alphabet);
    for (uint32_t code = 0, next = 0; text->alphabet && code < CODES; code++)
        if (occurs[code]) text->alphabet[next++] = code;
    cornu__release(occurs);
    return text->alphabet ? CORNU_OK : CORNU_ERR_MEMORY;
}

static CornuStatus fill_bytes(CornuTextData *text, const char *bytes, size_t size)
{
    CORNU__TRY(make_tokens(text, (int64_t)size, &text->tokens));
    memcpy(text->tokens.data, bytes, size);
    return CORNU_OK;
}

static CornuStatus fill_characters(CornuTextData *text, const char *bytes, size_t size,
                                   const char *name)
{
    uint32_t *codes;
    int64_t   count, kept = 0;
    CORNU__TRY(read_characters((const unsigned char *)bytes, size, name, &codes, &count));
    CornuStatus status = CORNU_OK;
    if (text->encoding == CORNU_TEXT_ALPHABET) status = make_alphabet(text, codes, count);
    if (!status) status = make_tokens(text, count, &text->tokens);
    for (int64_t i = 0; !status && i < count; i++) {
        const int64_t token = token_of(text, codes[i]);
        if (token < 0) text->dropped++;
        else set_token(text->tokens, kept++, token);
    }
    cornu__release(codes);
    if (!status) text->tokens.type.shape.extent[0] = kept;
    return status;
}

/* ---- Text ---- */

CornuTextData *cornu_text_encoding(CornuTextEncoding encoding)
{
    if (cornu__refused()) return NULL;
    if (encoding != CORNU_TEXT_CODE_POINTS && encoding != CORNU_TEXT_BYTES)
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "encoding %d has no alphabet without text",
                                (int)encoding);
    CornuTextData *text = cornu__allocate(1, sizeof *text);
    if (!text) return cornu__null();
    text->encoding = encoding;
    text->vocabulary = NARROW;
    text->tokens = cornu_array(NULL, CORNU_U8, 0);
    return text;
}

void cornu_text_free(CornuTextData *text)
{
    if (!text) return;
    cornu__release(text->tokens.data);
    cornu__release(text->alphabet);
    cornu__release(text);
}

static CornuStatus fill_text(CornuTextData *text, const char *bytes, size_t size, const char *name,
                             int64_t limit)
{
    if (text->encoding == CORNU_TEXT_BYTES) CORNU__TRY(fill_bytes(text, bytes, size));
    else CORNU__TRY(fill_characters(text, bytes, size, name));
    int64_t *count = &text->tokens.type.shape.extent[0];
    if (limit && *count > limit) *count = limit;
    const long long tokens = (long long)*count;
    if (tokens == 0)
        return cornu__fail(CORNU_ERR_FORMAT, "%s: the text is empty, expected characters%s", name,
                           text->dropped ? " below code point 255" : "");
    int length = snprintf(text->description, sizeof text->description,
                          "%s: %lld %s, vocabulary %lld", name, tokens,
                          text->encoding == CORNU_TEXT_BYTES ? "bytes" : "characters",
                          (long long)text->vocabulary);
    if (text->dropped && length < (int)sizeof text->description)
        snprintf(text->description + length, sizeof text->description - (size_t)length,
                 ", dropped %lld with code points of 255 or more", (long long)text->dropped);
    cornu__show_controls(text->description, sizeof text->description);
    cornu__log(CORNU_LOG_INFO, "%s", text->description);
    return CORNU_OK;
}

static CornuTextData *parse(const char *bytes, size_t size, CornuTextEncoding encoding,
                            const char *name, int64_t limit)
{
    if ((unsigned)encoding > CORNU_TEXT_BYTES)
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "text: encoding %d is not known, expected "
                                "CORNU_TEXT_CODE_POINTS, ALPHABET or BYTES", (int)encoding);
    if (size > MOST_BYTES)
        return cornu__fail_null(CORNU_ERR_FORMAT, "%s: has %zu bytes, expected at most %d", name,
                                size, MOST_BYTES);
    CornuTextData *text = cornu__allocate(1, sizeof *text);
    if (!text) return cornu__null();
    text->encoding = encoding;
    text->vocabulary = NARROW;
    if (fill_text(text, bytes, size, name, limit) == CORNU_OK) return text;
    cornu_text_free(text);
    return cornu__null();
}

CornuTextData *cornu_text_parse(const char *bytes, size_t size, CornuTextEncoding encoding,
                                const char *name)
{
    CORNU__NEED_TO_LOAD(bytes);
    return cornu__refused() ? NULL : cornu__loaded(parse(bytes, size, encoding, name, 0));
}

/* Reads a file; *bytes is the caller's, even on failure. */
static CornuStatus read_file(const char *path, char **bytes, size_t *size)
{
    *bytes = NULL;
    *size = 0;
    FILE *file;
    CORNU__TRY(cornu__open_to_read(path, &file));
    CornuStatus status = CORNU_OK;
    int         space = 0;
    for (size_t got = 1; !status && got > 0; *size += got) {
        enum { AT_ONCE = 1 << 16 };
        got = 0;
        if (*size > MOST_BYTES)
            status = cornu__fail(CORNU_ERR_FORMAT, "%s: has more than %d bytes", path, MOST_BYTES);
        else
            status = cornu__reserve(bytes, &space, (int)*size, AT_ONCE, 1);
        if (!status) got = fread(*bytes + *size, 1, AT_ONCE, file);
        if (ferror(file))
            status = cornu__fail(CORNU_ERR_FILE, "%s: cannot be read: %s", path, strerror(errno));
    }
    fclose(file);
    return status;
}

static CornuStatus find_text(const CornuTextConfig *config, char path[2 * CORNU_PATH_SIZE])
{
    const CornuDataSearch search = { .data = config->data, .progress = config->progress,
                                     .context = config->context };
    char folder[CORNU_PATH_SIZE];
    if (config->file) return cornu_data_find_file(config->file, &search, path);
    CORNU__TRY(cornu_data_find(&shakespeare, &search, folder));
    snprintf(path, 2 * CORNU_PATH_SIZE, "%s/%s", folder, shakespeare.files[0].name);
    return CORNU_OK;
}

/* A synthetic text of the length of the published one. */
static CornuTextData *draw_text(const CornuTextConfig *config)
{
    const int64_t count = shakespeare.files[0].bytes;
    char         *bytes = cornu__allocate((size_t)count, 1), name[80];
    if (!bytes) return cornu__null();
    cornu_synthetic_text(config->seed, count, bytes);
    snprintf(name, sizeof name, "synthetic text, drawn by code with seed %llu",
             (unsigned long long)config->seed);
    CornuTextData *text = parse(bytes, (size_t)count, config->encoding, name, config->limit);
    cornu__release(bytes);
    if (text) text->synthetic = true;
    return text;
}

static CornuTextData *load_text(const CornuTextConfig *config)
{
    char   path[2 * CORNU_PATH_SIZE], *bytes = NULL;
    size_t size;
    if (config->limit < 0)
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "text: limit is %lld, expected 1 or more, or "
                                "0 for all", (long long)config->limit);
    CornuTextData *text = NULL;
    if (!config->file && config->data && strcmp(config->data, "synthetic") == 0)
        return draw_text(config);
    if (find_text(config, path) == CORNU_OK && read_file(path, &bytes, &size) == CORNU_OK)
        text = parse(bytes, size, config->encoding, path, config->limit);
    cornu__release(bytes);
    return text;
}

CornuTextData *cornu_text_load_from(const CornuTextConfig *config)
{
    return cornu__refused() ? NULL : cornu__loaded(load_text(config));
}

/* ---- Encoding and decoding ---- */

static CornuStatus encode_characters(const CornuTextData *text, const uint32_t *codes,
                                     int64_t count, CornuArray *tokens)
{
    CORNU__TRY(make_tokens(text, count, tokens));
    for (int64_t i = 0; i < count; i++) {
        const int64_t token = token_of(text, codes[i]);
        if (token >= 0) {
            set_token(*tokens, i, token);
            continue;
        }
        char character[5];
        write_character(codes[i], character);
        cornu__release(tokens->data);
        tokens->data = NULL;
        return cornu__fail(CORNU_ERR_VALUE, "character %lld, \"%s\" (U+%04lX), is not in the "
                           "alphabet of %lld characters", (long long)i + 1, character,
                           (unsigned long)codes[i], (long long)text->vocabulary);
    }
    return CORNU_OK;
}

CornuStatus cornu_text_encode(const CornuTextData *text, const char *bytes, size_t size,
                              CornuArray *tokens)
{
    if (text->encoding == CORNU_TEXT_BYTES) {
        CORNU__TRY(make_tokens(text, (int64_t)size, tokens));
        memcpy(tokens->data, bytes, size);
        return CORNU_OK;
    }
    uint32_t *codes;
    int64_t   count;
    CORNU__TRY(read_characters((const unsigned char *)bytes, size, "text", &codes, &count));
    CornuStatus status = encode_characters(text, codes, count, tokens);
    cornu__release(codes);
    return status;
}

int cornu_text_decode(const CornuTextData *text, int64_t token, char bytes[5])
{
    if (text->encoding != CORNU_TEXT_BYTES)
        return write_character(text->alphabet ? text->alphabet[token] : (uint32_t)token, bytes);
    bytes[0] = (char)token;
    bytes[1] = '\0';
    return 1;
}
