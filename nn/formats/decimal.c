/* Source: Python, Objects/floatobject.c, float_repr, and Python/pystrtod.c, format_float_short. */
#include "decimal_internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../device/text/print.h"

const char *cornu__decimal(CornuDecimal *to, double value)
{
    if (isnan(value)) return "nan";
    if (isinf(value)) return value > 0.0 ? "inf" : "-inf";

    char scientific[32];
    int  digits = 0;    /* after the first */
    do cornu__format(scientific, sizeof scientific, "%.*e", digits, value);
    while (cornu__parse_number(scientific, NULL) != value && ++digits < 17);

    char     *e = strchr(scientific, 'e');
    const int exponent = atoi(e + 1);
    if (exponent < -4 || exponent >= 16)
        snprintf(to->text, sizeof to->text, "%s", scientific);
    else
        cornu__format(to->text, sizeof to->text, "%.*f",
                      digits > exponent ? digits - exponent : 1, value);
    return to->text;
}
