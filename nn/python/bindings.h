/*
 * The C interface as JSON, for bindings that call libcornu without a compiler: the layouts of
 * structs, the functions and their types, constants, and which function makes which callback. All
 * of it comes from the compiler that built the library (bindings.def), so that it cannot differ
 * from it.
 *
 *     {"version": "0.1.0",
 *      "structs": {"CornuShape": {"size": 72, "fields": [["rank", 0, 4, "i32"],
 *                                                        ["extent", 8, 64, "i64"]]}, …},
 *      "functions": {"cornu_model_clone": ["pointer", "pointer"],
 *                    "cornu_fit_from": ["pointer", "pointer"], …},
 *      "slow": ["cornu_fit_from", …],
 *      "constants": {"CORNU_MAX_RANK": 8, …},
 *      "callbacks": [["EarlyStopping", "cornu_early_stopping_from", "CornuEarlyStoppingConfig"],
 *                    …],
 *      "statuses": [["ERR_SHAPE", "shapes do not fit the operation"], …],
 *      "dtypes": ["f32", …]}
 *
 * A field is its name, offset and size in bytes, and type; it is an array of that type if its size
 * is larger. A function is the type of its result, then those of its arguments. Types are "void",
 * "bool", "i32", "u32", "i64", "u64", "f64", "text" (const char *), "pointer", names of structs,
 * which functions take by value, and, of results, "status" (CornuStatus). Functions that are not
 * slow return at once: a binding may call them with its interpreter's lock held. Fields that are
 * not listed are left zero.
 */
#ifndef CORNU_NN_BINDINGS_H
#define CORNU_NN_BINDINGS_H

#ifdef __cplusplus
extern "C" {
#endif

/* The caller frees the string by free(). NULL with a pending error when out of memory, or if one is
 * pending. */
char *cornu_bindings_to_json(void);

#ifdef __cplusplus
}
#endif
#endif
