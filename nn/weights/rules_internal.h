/* Initializers, regularizers and constraints: families of rules for weights, each a kind and its
 * numbers. */
#ifndef CORNU_NN_RULES_INTERNAL_H
#define CORNU_NN_RULES_INTERNAL_H

#include "../layers/layer.h"

typedef struct {
    const char       *class_name;  /* Keras': "MaxNorm" */
    const char       *name;        /* "max_norm" */
    const CornuField *fields;      /* its numbers, in the struct of the family */
} CornuRuleClass;

typedef struct {
    const char *alias, *name;      /* Keras' second name for a class, and the other one */
} CornuRuleAlias;

typedef struct {
    const char           *word;    /* "constraint"; Keras' module is "keras.constraints" */
    const CornuRuleClass *classes; /* of kinds 1, 2, …; `kind`, an unsigned, begins each rule */
    int                   count;
    const CornuRuleAlias *aliases; /* up to one of NULLs; or NULL */
    size_t                size;    /* of a rule */
    /* Turns numbers as they were given, where 0 is a default, into what they stand for. */
    CornuStatus         (*resolve)(void *rule);
} CornuRuleFamily;

extern const CornuRuleFamily cornu__initializers, cornu__regularizers, cornu__constraints;

/* The class of a rule; NULL for none. */
const CornuRuleClass *cornu__rule_class(const CornuRuleFamily *family, const void *rule);

/* Makes the rule of this kind with its defaults, by its class, its other name or an alias. */
CornuStatus cornu__rule_find(const CornuRuleFamily *family, const char *name, void *rule);

/* Whether they can be had with a weight of this shape: CORNU_ERR_SHAPE. */
CornuStatus cornu__regularizer_check(const CornuRegularizer *regularizer, CornuShape shape);
CornuStatus cornu__constraint_check(const CornuConstraint *constraint, CornuShape shape);
/* Or CORNU_ERR_VALUE, where the random numbers would not do. */
CornuStatus cornu__initializer_check(const CornuInitializer *initializer, CornuShape shape,
                                     int64_t generator);

/* Whether its kind is one of those there are. */
bool cornu__initializer_valid(const CornuInitializer *initializer);

/* "fan_in", "uniform"; NULL for a number that is none. */
const char *cornu__fan_mode_name(CornuFanMode mode);
const char *cornu__distribution_name(CornuDistribution distribution);

#endif
