# Cornu: `make` builds build/libcornu.{a,so} and every program as build/NAME. A new file needs
# no edit here: folders are searched, and a rule per kind of file says how it is built.

CC      ?= cc
CFLAGS  ?= -O2 -g
BUILD   ?= build
WARNINGS = -Wall -Wextra -Wpedantic -Werror
ALL_CFLAGS = -std=c11 -D_POSIX_C_SOURCE=200809L $(WARNINGS) -fPIC -ffp-contract=off \
             -I$(BUILD)/include -MMD -MP $(CFLAGS)
LIBS = -lz -ljansson -lpthread -lm

.DEFAULT_GOAL := all

library_sources := $(sort $(foreach d,device tensor nn datasets models,\
                     $(wildcard $(d)/*.c $(d)/*/*.c)))
isa_sources     := $(sort $(wildcard device/host/isa/*.c))
library_objects := $(library_sources:%.c=$(BUILD)/obj/%.o) \
                   $(foreach isa,portable avx2 avx512,$(isa_sources:%.c=$(BUILD)/obj/%.$(isa).o))
# examples/NAME.c is a program; options.c is shared by them.
program_sources := $(filter-out examples/options.c,$(sort $(wildcard examples/*.c)))
programs        := $(program_sources:examples/%.c=$(BUILD)/%)

# A file in an isa/ folder is compiled once per instruction set, with CORNU_ISA_NAME naming it.
isa_flags_portable =
isa_flags_avx2     = -mavx2 -mfma
isa_flags_avx512   = -mavx512f -mavx512bw -mavx512dq -mavx512vl -mfma -mprefer-vector-width=512

all: $(BUILD)/libcornu.a $(programs)

$(BUILD)/libcornu.a: $(library_objects)
	@rm -f $@
	ar rcs $@ $^

$(BUILD)/obj/%.o: %.c | $(BUILD)/include/cornu
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -c $< -o $@

define isa_rule
$(BUILD)/obj/%.$(1).o: %.c | $(BUILD)/include/cornu
	@mkdir -p $$(@D)
	$$(CC) $$(ALL_CFLAGS) -O3 -ffp-contract=fast $$(isa_flags_$(1)) -DCORNU_ISA_NAME=$(1) -c $$< -o $$@
endef
$(foreach isa,portable avx2 avx512,$(eval $(call isa_rule,$(isa))))

# The headers as `make install` would lay them out.
$(BUILD)/include/cornu:
	@mkdir -p $@
	@ln -sfn ../../../device $@/device
	@ln -sfn ../../../tensor $@/tensor
	@ln -sfn ../../../datasets $@/datasets
	@ln -sfn ../../../models $@/models
	@ln -sfn ../../../nn $@/nn
	@echo '#include "nn/cornu.h"' > $@/cornu.h

$(BUILD)/%: $(BUILD)/obj/examples/%.o $(BUILD)/obj/examples/options.o $(BUILD)/libcornu.a
	$(CC) $(CFLAGS) $^ -o $@ $(LIBS)

clean:
	rm -rf $(BUILD)

.PHONY: all clean
-include $(shell find $(BUILD)/obj -name '*.d' 2>/dev/null)
