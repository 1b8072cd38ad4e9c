#include "translate_words.h"

#include <stdlib.h>
#include <string.h>

static CornuStatus no_memory(void)
{
    return cornu_error_set(CORNU_ERR_MEMORY, "no memory for the words");
}

/* ---- Sentences ---- */

/* ASCII alone, as TextVectorization. */
char *words_plain(const char *sentence)
{
    char  *plain = malloc(strlen(sentence) + 1);
    size_t used = 0;
    for (const char *c = sentence; plain && *c; c++) {
        const bool blank = *c == ' ' || (*c >= '\t' && *c <= '\r');
        if (strchr("!\"#$%&()*+,-./:;<=>?@[\\]^_`{|}~'", *c)) continue;
        if (blank && (used == 0 || plain[used - 1] == ' ')) continue;
        plain[used++] = blank ? ' ' : *c >= 'A' && *c <= 'Z' ? (char)(*c - 'A' + 'a') : *c;
    }
    if (used > 0 && plain[used - 1] == ' ') used--;
    if (plain) plain[used] = '\0';
    return plain;
}

static int64_t word_count(const char *sentence)
{
    int64_t count = 0;
    while (*(sentence += strspn(sentence, " \t\v\f"))) {
        sentence += strcspn(sentence, " \t\v\f");
        count++;
    }
    return count;
}

int64_t words_longest(const CornuPairs *pairs)
{
    int64_t longest = 0;
    for (int64_t i = 0; i < pairs->count; i++) {
        const int64_t source = word_count(pairs->source[i]), target = word_count(pairs->target[i]);
        if (source > longest) longest = source;
        if (target > longest) longest = target;
    }
    return longest;
}

char *words_decode(const Words *words, const int32_t *tokens)
{
    const int64_t known = words->target_words.count;
    size_t        size = 1;
    for (int64_t t = 0; t < words->length && tokens[t] > 0 && tokens[t] < known; t++)
        size += strlen(words->target_words.values[tokens[t]]) + 1;
    char *sentence = calloc(size, 1);
    size_t used = 0;
    for (int64_t t = 0; sentence && t < words->length && tokens[t] > 0 && tokens[t] < known; t++)
        used += (size_t)snprintf(sentence + used, size - used, "%s%s", t ? " " : "",
                                 words->target_words.values[tokens[t]]);
    return sentence;
}

/* ---- Vocabularies ---- */

static CornuStatus finish(Words *words)
{
    if (cornu_layer_vocabulary(words->source, &words->source_words) ||
        cornu_layer_vocabulary(words->target, &words->target_words))
        return cornu_error_status();
    words->start = (int32_t)words->target_words.count;
    words->end = words->start + 1;
    return CORNU_OK;
}

static CornuLayer *layer_of(int64_t length, int64_t most, CornuTexts vocabulary)
{
    return cornu_text_vectorization(.output_sequence_length = length, .max_tokens = most,
                                    .vocabulary = vocabulary);
}

CornuStatus words_learn(Words *words, const CornuPairs *pairs, int64_t count, int64_t most,
                        int64_t length)
{
    const CornuTexts none = { NULL, 0 };
    *words = (Words){ .length = length, .source = layer_of(length, most, none),
                      .target = layer_of(length, most, none) };
    if (!words->source || !words->target ||
        cornu_adapt(words->source, .x = cornu_array(pairs->source, CORNU_STRING, count)) ||
        cornu_adapt(words->target, .x = cornu_array(pairs->target, CORNU_STRING, count)))
        return cornu_error_status();
    return finish(words);
}

/* A note has a word in each line. */
static CornuStatus note(CornuModel *model, const char *key, CornuTexts texts)
{
    size_t size = 1;
    for (int64_t i = 0; i < texts.count; i++) size += strlen(texts.values[i]) + 1;
    char *text = malloc(size), *to = text;
    if (!text) return no_memory();
    for (int64_t i = 0; i < texts.count; i++) {
        const size_t length = strlen(texts.values[i]);
        memcpy(to, texts.values[i], length);
        to[length] = '\n';
        to += length + 1;
    }
    *to = '\0';
    const CornuStatus status = cornu_model_set_note(model, key, text);
    free(text);
    return status;
}

CornuStatus words_note(const Words *words, CornuModel *model)
{
    const CornuStatus status = note(model, "source_words", words->source_words);
    return status ? status : note(model, "target_words", words->target_words);
}

static CornuLayer *read_note(const CornuModel *model, const char *key, int64_t length)
{
    const char *text = cornu_model_note(model, key);
    int64_t     count = 0, lines = 0;
    for (const char *c = text; c && *c; c++) lines += *c == '\n';
    const size_t size = text ? strlen(text) + 1 : 0;
    char        *copy = lines ? malloc(size) : NULL;
    const char **values = copy ? malloc((size_t)lines * sizeof *values) : NULL;
    if (!values) {
        free(copy);
        cornu_error_set(CORNU_ERR_FORMAT, "%s has no %s, expected a model that this program saved",
                        cornu_model_name(model), key);
        return NULL;
    }
    memcpy(copy, text, size);
    for (char *line = copy, *end; (end = strchr(line, '\n')); line = end + 1) {
        *end = '\0';
        values[count++] = line;
    }
    CornuLayer *layer = layer_of(length, 0, (CornuTexts){ values, count });
    free(values);
    free(copy);
    return layer;
}

CornuStatus words_read(Words *words, const CornuModel *model)
{
    const int64_t length = cornu_model_input_shape(model).extent[1];
    *words = (Words){ .length = length, .source = read_note(model, "source_words", length) };
    if (words->source) words->target = read_note(model, "target_words", length);
    return words->target ? finish(words) : cornu_error_status();
}

void words_free(Words *words)
{
    cornu_layer_free(words->source);
    cornu_layer_free(words->target);
    free((void *)(uintptr_t)words->source_words.values);
    free((void *)(uintptr_t)words->target_words.values);
    *words = (Words){ .length = 0 };
}

/* ---- Data ---- */

CornuStatus words_encode(const Words *words, const char *const *sentences, int64_t count,
                         CornuArray *tokens)
{
    const CornuArray in = cornu_array((void *)(uintptr_t)sentences, CORNU_STRING, count);
    return cornu_layer_compute(words->source, &in, 1, tokens);
}

/* The decoder gets the target from the start on, and is taught its next token, at last the end. */
static CornuStatus teach(void *context, CornuSample sample, const CornuArray *in,
                         const CornuArray *out)
{
    const Words   *words = context;
    const int64_t  T = words->length;
    const int32_t *target = in[1].data;
    int32_t       *so_far = out[1].data, *next = out[2].data;
    int64_t        count = 0;
    (void)sample;
    memcpy(out[0].data, in[0].data, cornu_type_bytes(in[0].type));
    while (count < T - 1 && target[count]) count++;
    memset(so_far, 0, (size_t)T * sizeof *so_far);
    memset(next, 0, (size_t)T * sizeof *next);
    so_far[0] = words->start;
    memcpy(so_far + 1, target, (size_t)count * sizeof *target);
    memcpy(next, target, (size_t)count * sizeof *target);
    next[count] = words->end;
    return CORNU_OK;
}

CornuDataset *words_dataset(Words *words, const CornuPairs *pairs, int64_t first, int64_t count)
{
    const CornuType  row = cornu_type(CORNU_I32, words->length), types[] = { row, row, row };
    const CornuArray texts[] = { cornu_array(pairs->source + first, CORNU_STRING, count),
                                 cornu_array(pairs->target + first, CORNU_STRING, count) };
    CornuDataset *data = cornu_dataset_from_arrays(texts, 2);
    data = cornu_dataset_layer(data, words->source, 0, 1);
    data = cornu_dataset_layer(data, words->target, 1, 1);
    return cornu_dataset_cache(cornu_dataset_map(data, teach, words, types, 3));
}
