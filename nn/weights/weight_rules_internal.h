/*
 * The rules that a weight is given: initializers, regularizers and constraints. Each of the three
 * is a family of classes with Keras' names; a rule is a struct of the family, whose first member is
 * its kind, and its numbers.
 */
#ifndef CORNU_NN_WEIGHT_RULES_INTERNAL_H
#define CORNU_NN_WEIGHT_RULES_INTERNAL_H

#include "../fields/field_internal.h"
#include "../layers/layer.h"

typedef struct {
    const char       *class_name;        /* Keras': "MaxNorm" */
    const char       *name;              /* "max_norm" */
    const CornuField *fields;            /* its arguments, in the struct of the family */
} CornuWeightRuleClass;

typedef struct {
    const char *alias, *name;            /* Keras' second name for a class, and the first one */
} CornuWeightRuleAlias;

typedef struct CornuWeightRuleFamily {
    const char                 *word;    /* "constraint"; Keras' module is "keras.constraints" */
    const CornuWeightRuleClass *classes; /* of kinds 1, 2, … */
    int                         count;
    const CornuWeightRuleAlias *aliases; /* ends with NULLs; or NULL */
    size_t                      size;    /* of a rule, which begins with `unsigned kind` */
    unsigned                    own;     /* the kind of one that is a function; */
    size_t                      call, record; /* where it has that, and what files have of it */
    void                      (*miss)(void *rule); /* makes it one of a function that fails */
    /* Replaces arguments of 0 by their defaults, CORNU_ZERO by 0, and checks them. */
    CornuStatus               (*resolve)(void *rule);
} CornuWeightRuleFamily;

extern const CornuWeightRuleFamily cornu__initializers, cornu__regularizers, cornu__constraints;

/* The class of a rule; NULL for none. */
const CornuWeightRuleClass *cornu__weight_rule_class(const CornuWeightRuleFamily *family,
                                                     const void *rule);

/* Sets *rule to the class of this name (or class name, or alias) with its defaults. */
CornuStatus cornu__weight_rule_find(const CornuWeightRuleFamily *family, const char *name,
                                    void *rule);

/* CORNU_ERR_SHAPE where the rule does not apply to a weight of this shape. */
CornuStatus cornu__regularizer_check(const CornuRegularizer *regularizer, CornuShape shape);
CornuStatus cornu__constraint_check(const CornuConstraint *constraint, CornuShape shape);
/* Also CORNU_ERR_VALUE where the generator or the element count overflows the random counter. */
CornuStatus cornu__initializer_check(const CornuInitializer *initializer, CornuShape shape,
                                     int64_t generator);

/* Whether its kind is a known one. */
bool cornu__initializer_valid(const CornuInitializer *initializer);

enum { CORNU__RECORD_DEPTH = 32 };   /* of the JSON of a record, which has fewer levels */

/* Fails, where a rule is needed that a file names and the program lacks. */
void cornu__weight_rule_missed(const CornuWeightRuleFamily *family, const char *record);

/* Whether it is a function that files cannot name. */
bool cornu__weight_rule_is_unnamed(const CornuWeightRuleFamily *family, const void *rule);

/* A rule as JSON, null for none; NULL when out of memory. */
json_t *cornu__weight_rule_to_json(const CornuWeightRuleFamily *family, const void *rule);

/* A rule from null, an object, or a name with default arguments; `name` is for messages. */
CornuStatus cornu__read_weight_rule(const CornuWeightRuleFamily *family, const json_t *value,
                                    const char *name, void *rule);

#endif
