#include "text_notes.h"

#include <stdlib.h>
#include <string.h>

#include "data.h"

static CornuStatus note_alphabet(CornuModel *model, const CornuTextData *text)
{
    char *letters = malloc(4 * (size_t)text->vocabulary + 1), *end = letters, bytes[5];
    if (!letters) return cornu_error_set(CORNU_ERR_MEMORY, "no memory for the alphabet");
    *end = '\0';
    for (int64_t token = 0; token < text->vocabulary; token++) {
        const int length = cornu_text_decode(text, token, bytes);
        memcpy(end, bytes, (size_t)length + 1);
        end += length;
    }
    const CornuStatus status = cornu_model_set_note(model, "alphabet", letters);
    free(letters);
    return status;
}

CornuStatus text_note(CornuModel *model, const CornuTextData *text)
{
    const CornuStatus status = cornu_model_set_note(model, "encoding",
                                                    data_encodings[text->encoding]);
    return status || text->encoding != CORNU_TEXT_ALPHABET ? status : note_alphabet(model, text);
}

CornuStatus text_noted(const CornuModel *model, CornuTextData **text)
{
    const char *encoding = cornu_model_note(model, "encoding");
    const char *letters = cornu_model_note(model, "alphabet");
    *text = NULL;
    for (int i = 0; encoding && data_encodings[i] && !*text; i++) {
        if (strcmp(encoding, data_encodings[i])) continue;
        *text = i != CORNU_TEXT_ALPHABET ? cornu_text_encoding((CornuTextEncoding)i)
                : letters ? cornu_text_parse(letters, strlen(letters), CORNU_TEXT_ALPHABET,
                                             cornu_model_name(model)) : NULL;
        if (!*text && cornu_error_pending()) return cornu_error_status();
    }
    return CORNU_OK;
}
