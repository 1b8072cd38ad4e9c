#include "string_index_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Places ---- */

static int64_t oov_start(const CornuStringIndex *index)
{
    return index->mask_token && index->mode == CORNU_INT_OUTPUT ? 1 : 0;
}

int64_t cornu__string_index_start(const CornuStringIndex *index)
{
    return oov_start(index) + index->oov;
}

int64_t cornu__string_index_depth(const CornuStringIndex *index)
{
    return index->pad ? index->max_tokens
         : index->tokens.count || !index->places ? cornu__string_index_start(index) +
                                                   index->tokens.count
                                                 : index->places;
}

CornuStatus cornu__string_index_find(const CornuStringIndex *index, const char *text,
                                     size_t length, int64_t *place)
{
    const char *mask = index->mask_token;
    if (mask && strlen(mask) == length && !memcmp(mask, text, length)) {
        *place = index->mode == CORNU_INT_OUTPUT ? 0 : -1;
        return CORNU_OK;
    }
    const int64_t found = cornu__tokens_find(&index->tokens, text, length);
    if (found >= 0) *place = cornu__string_index_start(index) + found;
    else if (index->oov > 0)
        *place = oov_start(index) + (index->oov == 1 ? 0
                 : cornu__hash_bin(text, length, index->salted ? index->key : NULL, index->oov));
    else
        return cornu__fail(CORNU_ERR_VALUE, "\"%.*s\" is not in the vocabulary, and "
                           ".num_oov_indices is 0", length < 60 ? (int)length : 60, text);
    return CORNU_OK;
}

static const char *special(const CornuStringIndex *index, int64_t place)
{
    return place < oov_start(index) ? index->mask_token : index->oov_token;
}

const char *cornu__string_index_text(const CornuStringIndex *index, int64_t place)
{
    const int64_t start = cornu__string_index_start(index);
    if (place >= start && place < start + index->tokens.count)
        return index->tokens.items[place - start].text;
    return place == 0 ? special(index, 0) : index->oov_token;
}

CornuStatus cornu__string_index_list(const CornuStringIndex *index, CornuTexts *texts)
{
    const int64_t count = cornu__string_index_start(index) + index->tokens.count;
    const char  **values = cornu__allocate((size_t)count, sizeof *values);
    if (!values) return CORNU_ERR_MEMORY;
    for (int64_t i = 0; i < count; i++)
        values[i] = i < cornu__string_index_start(index) ? special(index, i)
                                                         : cornu__string_index_text(index, i);
    *texts = (CornuTexts){ values, count };
    return CORNU_OK;
}

/* ---- A given vocabulary ---- */

/* The number of special strings at the start: all or none. */
static int64_t specials_in(const CornuStringIndex *index, CornuTexts texts)
{
    const int64_t start = cornu__string_index_start(index);
    if (texts.count < start) return 0;
    for (int64_t i = 0; i < start; i++)
        if (!special(index, i) || strcmp(texts.values[i], special(index, i))) return 0;
    return start;
}

/* The weights of all places: given ones of the vocabulary, or of the special strings, too. */
static CornuStatus set_idf(CornuStringIndex *index, const double *given, bool of_specials)
{
    const int64_t depth = cornu__string_index_depth(index), count = index->tokens.count;
    const int64_t start = cornu__string_index_start(index);
    double        sum = 0.0;
    double       *idf = cornu__allocate((size_t)depth, sizeof *idf);
    if (!idf) return CORNU_ERR_MEMORY;
    for (int64_t i = 0; i < count && !of_specials; i++) sum += given[i];
    for (int64_t i = 0; i < start + count; i++)
        idf[i] = of_specials ? given[i] : i < start ? sum / (double)count : given[i - start];
    cornu__release(index->idf);
    index->idf = idf;
    return CORNU_OK;
}

CornuStatus cornu__string_index_set(CornuStringIndex *index, const char *layer, CornuTexts texts,
                                    const CornuNumbers *idf)
{
    const int64_t first = specials_in(index, texts), count = texts.count - first;
    const char   *mask = index->mask_token, *oov = index->oov_token;
    int64_t       place;
    bool          added;
    if (index->max_tokens && cornu__string_index_start(index) + count > index->max_tokens)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .vocabulary makes %lld tokens, expected at "
                           "most .max_tokens, %lld", layer,
                           (long long)(cornu__string_index_start(index) + count),
                           (long long)index->max_tokens);
    for (int64_t i = first; i < texts.count; i++) {
        const char *text = texts.values[i];
        if ((mask && !strcmp(text, mask)) || (index->invert && oov && !strcmp(text, oov)))
            return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .vocabulary has \"%.60s\" as its string "
                               "%lld, which stands for %s", layer, text, (long long)i,
                               mask && !strcmp(text, mask) ? ".mask_token" : ".oov_token");
        CORNU__TRY(cornu__tokens_add(&index->tokens, text, strlen(text), &place, &added));
        if (!added)
            return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .vocabulary has \"%.60s\" twice", layer,
                               text);
    }
    if (!idf || !idf->values) return CORNU_OK;
    if (idf->shape.rank != 1 || idf->shape.extent[0] != texts.count)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .idf_weights are for the output mode "
                           "\"tf_idf\", one for each of the %lld strings", layer,
                           (long long)texts.count);
    return set_idf(index, idf->values, first > 0);
}

CornuStatus cornu__string_index_read(CornuStringIndex *index, const char *layer, const char *bytes,
                                     size_t size)
{
    int64_t lines = 1, count = 0;
    while (size > 0 && bytes[size - 1] == '\n') size--;
    for (size_t i = 0; i < size; i++) lines += bytes[i] == '\n';
    char        *text = cornu__allocate(size + 1, 1);
    const char **values = cornu__allocate((size_t)lines, sizeof *values);
    CornuStatus  status = text && values ? CORNU_OK : CORNU_ERR_MEMORY;
    if (!status && size) memcpy(text, bytes, size);
    for (char *at = text; !status && count < lines; count++) {
        values[count] = at;
        char *end = at + strcspn(at, "\n");
        if (end > at && end[-1] == '\r') end[-1] = '\0';
        at = end + 1;
        *end = '\0';
    }
    if (!status)
        status = cornu__string_index_set(index, layer, (CornuTexts){ values, lines }, NULL);
    cornu__release(values);
    cornu__release(text);
    return status;
}

/* ---- A vocabulary from data ---- */

CornuStatus cornu__string_counts_add(CornuStringCounts *counts, const char *text, size_t length)
{
    int64_t place;
    bool    added;
    CORNU__TRY(cornu__tokens_add(&counts->seen, text, length, &place, &added));
    CornuToken *token = &counts->seen.items[place];
    token->count++;
    token->documents += token->last != counts->documents;
    token->last = counts->documents;
    return CORNU_OK;
}

/* The most frequent first, of equally frequent ones the larger. */
static int by_count(const void *a, const void *b)
{
    const CornuToken *x = a, *y = b;
    return x->count != y->count ? x->count > y->count ? -1 : 1 : strcmp(y->text, x->text);
}

static bool is_special(const CornuStringIndex *index, const char *text)
{
    return (index->mask_token && !strcmp(text, index->mask_token)) ||
           (index->oov_token && !strcmp(text, index->oov_token));
}

CornuStatus cornu__string_index_learn(CornuStringIndex *index, CornuStringCounts *counts)
{
    CornuTokens  *seen = &counts->seen;
    CornuTokens   learnt = { 0 };
    const int64_t start = cornu__string_index_start(index);
    const int64_t most = index->max_tokens ? index->max_tokens - start : INT32_MAX;
    double       *idf = cornu__allocate((size_t)seen->count, sizeof *idf);
    CornuStatus   status = idf ? CORNU_OK : CORNU_ERR_MEMORY;
    if (!status && seen->count)
        qsort(seen->items, (size_t)seen->count, sizeof *seen->items, by_count);
    for (int i = 0; !status && i < seen->count && learnt.count < most; i++) {
        const CornuToken *token = &seen->items[i];
        int64_t           place;
        bool              added;
        if (is_special(index, token->text)) continue;
        idf[learnt.count] = log(1.0 + (double)counts->documents / (1.0 + (double)token->documents));
        status = cornu__tokens_add(&learnt, token->text, strlen(token->text), &place, &added);
    }
    cornu__tokens_free(seen);
    if (!status) {
        cornu__tokens_free(&index->tokens);
        index->tokens = learnt;
        learnt = (CornuTokens){ 0 };
        if (index->mode == CORNU_TF_IDF_OUTPUT) status = set_idf(index, idf, false);
    }
    cornu__tokens_free(&learnt);
    cornu__release(idf);
    return status;
}

/* ---- Files and copies ---- */

CornuNumbers cornu__string_index_array(const CornuStringIndex *index)
{
    return (CornuNumbers){ index->idf, cornu_shape(cornu__string_index_depth(index)) };
}

CornuStatus cornu__string_index_set_array(CornuStringIndex *index, CornuArray array)
{
    const int64_t depth = cornu__string_index_depth(index);
    if (cornu_type_count(array.type) != depth)
        return cornu__fail(CORNU_ERR_SHAPE, "has %lld numbers, expected %lld, one for each place",
                           (long long)cornu_type_count(array.type), (long long)depth);
    double *idf = cornu__allocate((size_t)depth, sizeof *idf);
    if (!idf) return CORNU_ERR_MEMORY;
    for (int64_t i = 0; i < depth; i++) idf[i] = cornu_array_get(array, i);
    cornu__release(index->idf);
    index->idf = idf;
    return CORNU_OK;
}

CornuStatus cornu__string_index_arguments(const CornuStringIndex *index, CornuLayer *layer,
                                          CornuTexts *vocabulary, CornuNumbers *idf)
{
    const int64_t start = cornu__string_index_start(index), count = index->tokens.count;
    const char  **texts = cornu__allocate((size_t)count, sizeof *texts);
    double       *numbers = cornu__allocate((size_t)count, sizeof *numbers);
    CornuStatus   status = texts && numbers ? CORNU_OK : CORNU_ERR_MEMORY;
    for (int64_t i = 0; i < count && !status; i++) {
        texts[i] = index->tokens.items[i].text;
        numbers[i] = index->idf ? index->idf[start + i] : 0.0;
    }
    *vocabulary = (CornuTexts){ count ? texts : NULL, count };
    *idf = (CornuNumbers){ index->idf && count ? numbers : NULL, cornu_shape(count) };
    if (!status) status = cornu__layer_copy_texts(layer, vocabulary);
    if (!status) status = cornu__layer_copy_numbers(layer, idf);
    if (status) *vocabulary = (CornuTexts){ NULL, 0 };
    cornu__release(texts);
    cornu__release(numbers);
    return status;
}

void cornu__string_index_free(CornuStringIndex *index)
{
    cornu__tokens_free(&index->tokens);
    cornu__release(index->idf);
    index->idf = NULL;
}
