#include "labels.h"

#include <stdlib.h>
#include <string.h>

int64_t labels_number(const OptionTexts *labels, const char *name, const char *label)
{
    for (int i = 0; i < labels->count; i++) {
        const char  *text = labels->text[i];
        const size_t a = settings_name(text, ':'), b = settings_name(text + a + 1, '=');
        if (strlen(name) == a && !memcmp(name, text, a) && strlen(label) == b &&
            !memcmp(label, text + a + 1, b))
            return strtoll(text + a + b + 2, NULL, 10);
    }
    return -1;
}

bool labels_has(const OptionTexts *labels, const char *name, int64_t number)
{
    for (int i = 0; i < labels->count; i++) {
        const char  *text = labels->text[i];
        const size_t a = settings_name(text, ':');
        if (strlen(name) == a && !memcmp(name, text, a) &&
            strtoll(strchr(text, '=') + 1, NULL, 10) == number)
            return true;
    }
    return false;
}
