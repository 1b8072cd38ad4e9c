/* What rows.c and examples.c share. */
#ifndef CORNU_SERVE_ROWS_PARTS_H
#define CORNU_SERVE_ROWS_PARTS_H

#include "rows.h"
#include "tensor.h"

/* "[2,3]", with -1 for an open extent. */
const char *rows_show_shape(char text[200], const int64_t *extent, int rank);

/* Whether it is an object that is not bytes in base64. */
bool rows_is_object(Json value);

/* found[i] = the member of an object that is input i, or NULL. False with a problem if one comes
 * twice. */
bool rows_find_inputs(const Served *served, Json object, Json *found, Problem *problem);

/* Makes empty tensors for all inputs. */
void rows_start(Tensor *tensors, Rows *rows, const Served *served);

/* If all is good, hands the tensors to the rows as the model's inputs, whose shapes they must have.
 * Frees them otherwise, and the rows. */
bool rows_give_all(Rows *rows, const Served *served, Tensor *tensors, bool good,
                   Problem *problem);

#endif
