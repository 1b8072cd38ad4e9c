/* Real Keras, for tests in which it reads our files. */
#ifndef CORNU_TESTS_NN_SAVING_KERAS_PYTHON_H
#define CORNU_TESTS_NN_SAVING_KERAS_PYTHON_H

#include <stdio.h>
#include <stdlib.h>

#include "../../skip.h"
#include "golden_files.h"

/* The Python that has Keras; skips the test without one. */
static inline const char *keras_python(void)
{
    const char *python = getenv("CORNU_PYTHON") ? getenv("CORNU_PYTHON") : "python3";
    char        command[600];
    snprintf(command, sizeof command, "%s -c 'import importlib.util as u; "
             "exit(not u.find_spec(\"keras\"))' 2>/dev/null", python);
    if (!has_hdf5() || system(command) != 0) SKIP_FOR(!has_hdf5() ? SKIP_HDF5 : SKIP_KERAS);
    return python;
}

#endif
