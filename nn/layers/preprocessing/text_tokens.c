#include "text_tokens_internal.h"

#include <string.h>

#include "../../../datasets/text/text_internal.h"
#include "../../../device/memory_internal.h"
#include "../../../device/status_internal.h"

/* ---- Characters: ASCII in every locale, as TensorFlow ---- */

static bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

static bool is_punctuation(char c)
{
    return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') ||
           (c >= '{' && c <= '~');
}

static char lower(char c) { return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c; }

/* Appends the standardized string, and its parts. */
static CornuStatus add_part(CornuTextScratch *s, int begin, int length)
{
    CORNU__TRY(cornu__reserve(&s->parts, &s->part_space, s->count, 1, sizeof *s->parts));
    s->parts[s->count++] = (struct CornuTextPart){ begin, length };
    return CORNU_OK;
}

static const char replacement[] = "\xEF\xBF\xBD";     /* U+FFFD for what is not UTF-8 */

static CornuStatus split_characters(CornuTextScratch *s, int *used, int begin, int length)
{
    for (int at = begin; at < begin + length;) {
        uint32_t  code;
        const int bytes = cornu__utf8_read((const unsigned char *)s->text + at,
                                           (size_t)(begin + length - at), &code);
        if (bytes == 0) {
            CORNU__TRY(cornu__reserve(&s->text, &s->text_space, *used, sizeof replacement, 1));
            memcpy(s->text + *used, replacement, sizeof replacement);
            CORNU__TRY(add_part(s, *used, (int)sizeof replacement - 1));
            *used += (int)sizeof replacement;
        } else {
            CORNU__TRY(add_part(s, at, bytes));
        }
        at += bytes ? bytes : 1;
    }
    return CORNU_OK;
}

/* ---- Functions of the caller's ---- */

CornuStatus cornu_text_add(CornuTextStrings *out, const char *string)
{
    const size_t size = string ? strlen(string) : 0;
    if (!string || size > INT32_MAX / 8 || out->used > INT32_MAX / 8)
        return cornu__fail(CORNU_ERR_ARGUMENT, "cornu_text_add: %s, expected a string",
                           string ? "the strings are too long" : "NULL");
    CORNU__TRY(cornu__reserve(&out->bytes, &out->space, out->used, (int)size + 1, 1));
    memcpy(out->bytes + out->used, string, size + 1);
    out->used += (int)size + 1;
    out->count++;
    return CORNU_OK;
}

static CornuStatus run(const CornuTextFunction *function, const char *string,
                       CornuTextStrings *out)
{
    out->used = out->count = 0;
    return function->call(function, string, out);
}

/* The string itself, or what the function makes of it, which `added` holds. */
static CornuStatus standardized(const CornuTextRules *rules, const char **text,
                                CornuTextStrings *added)
{
    if (!rules->standardize_by.call) return CORNU_OK;
    CORNU__TRY(run(&rules->standardize_by, *text, added));
    if (added->count != 1)
        return cornu__fail(CORNU_ERR_ARGUMENT, "standardize adds %d strings, expected 1",
                           added->count);
    *text = added->bytes;
    return CORNU_OK;
}

/* The tokens that a function adds for the standardized string from `begin` on. */
static CornuStatus split_by(const CornuTextRules *rules, CornuTextScratch *s, int *used, int begin)
{
    CORNU__TRY(cornu__reserve(&s->text, &s->text_space, *used, 1, 1));
    s->text[(*used)++] = 0;
    CORNU__TRY(run(&rules->split_by, s->text + begin, &s->added));
    CORNU__TRY(cornu__reserve(&s->text, &s->text_space, *used, s->added.used, 1));
    if (s->added.used) memcpy(s->text + *used, s->added.bytes, (size_t)s->added.used);
    for (int i = 0; i < s->added.count; i++) {
        const int length = (int)strlen(s->text + *used);
        CORNU__TRY(add_part(s, *used, length));
        *used += length + 1;
    }
    return CORNU_OK;
}

static CornuStatus add_text(const CornuTextRules *rules, const char *text, CornuTextScratch *s,
                            int *used)
{
    CORNU__TRY(standardized(rules, &text, &s->added));
    const size_t size = strlen(text);
    const int    begin = *used;
    const bool   lowers = rules->standardize == CORNU_LOWER ||
                        rules->standardize == CORNU_LOWER_AND_STRIP_PUNCTUATION;
    const bool   strips = rules->standardize == CORNU_STRIP_PUNCTUATION ||
                        rules->standardize == CORNU_LOWER_AND_STRIP_PUNCTUATION;
    if (size > INT32_MAX / 8 || *used > INT32_MAX / 8)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "a string of %zu bytes", size);
    CORNU__TRY(cornu__reserve(&s->text, &s->text_space, *used, (int)size + 1, 1));
    for (size_t i = 0; i < size; i++)
        if (!strips || !is_punctuation(text[i]))
            s->text[(*used)++] = lowers ? lower(text[i]) : text[i];
    const int end = *used;
    if (rules->split_by.call) return split_by(rules, s, used, begin);
    if (rules->split == CORNU_NO_SPLIT) return add_part(s, begin, end - begin);
    if (rules->split == CORNU_SPLIT_CHARACTER)
        return split_characters(s, used, begin, end - begin);
    for (int at = begin; at < end;) {
        const int first = at;
        while (at < end && !is_blank(s->text[at])) at++;
        if (at > first) CORNU__TRY(add_part(s, first, at - first));
        while (at < end && is_blank(s->text[at])) at++;
    }
    return CORNU_OK;
}

/* All n-grams of `size` parts, joined with a blank. */
static CornuStatus join(CornuTextScratch *s, int64_t size, CornuTokenFunction *each, void *context)
{
    for (int64_t first = 0; first + size <= s->count; first++) {
        int used = 0;
        for (int64_t i = first; i < first + size; i++) {
            const struct CornuTextPart part = s->parts[i];
            CORNU__TRY(cornu__reserve(&s->joined, &s->joined_space, used, part.length + 1, 1));
            if (i > first) s->joined[used++] = ' ';
            memcpy(s->joined + used, s->text + part.begin, (size_t)part.length);
            used += part.length;
        }
        CORNU__TRY(each(context, s->joined, (size_t)used));
    }
    return CORNU_OK;
}

CornuStatus cornu__each_token(const CornuTextRules *rules, const char *const *texts, int64_t count,
                              CornuTextScratch *scratch, CornuTokenFunction *each, void *context)
{
    int used = 0;
    scratch->count = 0;
    for (int64_t i = 0; i < count; i++)
        CORNU__TRY(add_text(rules, texts[i] ? texts[i] : "", scratch, &used));
    for (int i = 0; i < CORNU__MAX_NGRAM_SIZES && rules->ngrams[i]; i++)
        CORNU__TRY(join(scratch, rules->ngrams[i], each, context));
    for (int i = 0; i < scratch->count && !rules->ngrams[0]; i++)
        CORNU__TRY(each(context, scratch->text + scratch->parts[i].begin,
                        (size_t)scratch->parts[i].length));
    return CORNU_OK;
}

void cornu__text_scratch_free(CornuTextScratch *scratch)
{
    cornu__release(scratch->text);
    cornu__release(scratch->parts);
    cornu__release(scratch->joined);
    cornu__release(scratch->added.bytes);
    *scratch = (CornuTextScratch){ 0 };
}
