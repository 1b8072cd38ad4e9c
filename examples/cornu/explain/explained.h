/* The MODEL of explain, with what it trains with. */
#ifndef CORNU_EXAMPLES_EXPLAINED_H
#define CORNU_EXAMPLES_EXPLAINED_H

#include <cornu/cornu.h>

#include "../common/options.h"
#include "../common/subject.h"

/* Sets config->model, which the caller frees, and what else is known of it: of a network of models/
 * its published optimizer, loss, batch size and data; a .keras or .h5 file is loaded with what it
 * was compiled with, if it was, unless config->loss or .predict is set. */
CornuStatus explained_open(const Subject *subject, const Options *options,
                           CornuExplainConfig *config);

#endif
