/* Objects of the caller's among the arguments that are read from JSON. */
#ifndef CORNU_NN_OWN_OBJECTS_H
#define CORNU_NN_OWN_OBJECTS_H

#ifdef __cplusplus
extern "C" {
#endif

/* For languages whose losses, metrics, schedules, initializers, regularizers and constraints are
 * functions: in JSON that this thread reads until the next call, {"class_name": "__own__",
 * "config": i} is objects[i], a pointer to what its place takes: CornuLoss, CornuMetric and
 * CornuSchedule, which are taken, CornuInitializer, CornuRegularizer, CornuConstraint,
 * CornuTextFunction, and CornuLayer, for the layers that a layer wraps, which it references. Files
 * never have them: they are read with none. The array is the caller's. count 0: none. */
void cornu_own_objects(void *const *objects, int count);

/* What JSON names and the library lacks: an object for {"class_name", "config", "module",
 * "registered_name"}, as above, or NULL where the program has none either. `kind` is "loss",
 * "metric", "schedule", "initializer", "regularizer" or "constraint"; `json` lives during the call.
 * An object that has a `record` is in files as that. */
typedef void *CornuResolver(void *context, const char *kind, const char *json);

/* Of the program, also for files; NULL: none. Set it before other threads use the library. */
void cornu_set_resolver(CornuResolver *resolver, void *context);

#ifdef __cplusplus
}
#endif
#endif
