#include "comma.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool comma_begin(const char *folder)
{
    static const char text[] = "comment_char %\nescape_char /\nLC_NUMERIC\ndecimal_point \",\"\n"
                               "thousands_sep \".\"\ngrouping 3;3\nEND LC_NUMERIC\n";
    char path[600], command[1400];
    snprintf(path, sizeof path, "%s/comma.source", folder);
    FILE *file = fopen(path, "w");
    if (!file || fputs(text, file) < 0 || fclose(file)) return false;
    snprintf(command, sizeof command, "localedef -c -i '%s' '%s/comma' >/dev/null 2>&1", path,
             folder);
    (void)!system(command);    /* warns of the categories that it does not have */
    setenv("LOCPATH", folder, 1);
    const bool there = setlocale(LC_NUMERIC, "comma") != NULL;
    unsetenv("LOCPATH");
    remove(path);
    return there && !strcmp(localeconv()->decimal_point, ",");
}
