/* Numbers as Python prints them. */
#ifndef CORNU_NN_DECIMAL_INTERNAL_H
#define CORNU_NN_DECIMAL_INTERNAL_H

typedef struct { char text[32]; } CornuDecimal;

/* repr(value): the shortest decimal that reads back as the same number, "0.001", "1e-05",
 * "100000.0", "nan", "-inf". Returns a string that is valid as long as *to, so that one printf can
 * take several. */
const char *cornu__decimal(CornuDecimal *to, double value);

#endif
