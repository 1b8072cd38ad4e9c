# A file in an isa/ folder is compiled once per instruction set, with CORNU_ISA_NAME naming it, and
# nothing else is compiled with those flags; NAME_bf16.c only for the sets that multiply bf16,
# NAME_amx.c for AMX, NAME_vnni.c for products of int8. device/host/machine/isa.h lists the same sets.

isas_x86_64      := avx2 avx512
bf16_isas_x86_64 := avx512bf16
amx_isas_x86_64  := amx
vnni_isas_x86_64 := avx512vnni
isas_aarch64      := neon
bf16_isas_aarch64 := neonbf16

isas      := portable $(isas_$(processor))
bf16_isas := $(bf16_isas_$(processor))
amx_isas  := $(amx_isas_$(processor))
vnni_isas := $(vnni_isas_$(processor))
all_isas  := $(isas) $(bf16_isas) $(amx_isas) $(vnni_isas)

isa_files  := $(foreach f,$(sources),$(if $(findstring /isa/,$(f)),$(f)))
isas_of     = $(if $(filter %_bf16.c,$(1)),$(bf16_isas),\
                $(if $(filter %_amx.c,$(1)),$(amx_isas),\
                $(if $(filter %_vnni.c,$(1)),$(vnni_isas),$(isas))))
isa_objects = $(foreach f,$(isa_files),\
                $(foreach isa,$(call isas_of,$(f)),$(f:%.c=$(BUILD)/obj/%.$(isa).o)))

# Tiles are unrolled whole; with sanitizers' checks in them -O3 takes minutes a file.
isa_flags = $(if $(SANITIZE),-O1,-O3) -ffp-contract=fast -fopenmp-simd -fno-math-errno \
            -fno-trapping-math
isa_flags_portable =
isa_flags_avx2     = -mavx2 -mfma
isa_flags_avx512   = -mavx512f -mavx512bw -mavx512dq -mavx512vl -mfma -mprefer-vector-width=512
# gcc 12 would replace a tile's few pointers by one for each row, and run out of registers.
isa_flags_avx512vnni = $(isa_flags_avx512) -mavx512vnni \
                       $(if $(findstring clang,$(CC)),,-fno-ivopts)
isa_flags_avx512bf16 = $(isa_flags_avx512) -mavx512bf16
isa_flags_amx      = $(isa_flags_avx512bf16) -mamx-tile -mamx-bf16
# Every compiler for arm64 assumes NEON, so a macro tells code written for it from portable code.
# gcc 12 would move all loads of a tile's step before its products, and run out of registers.
isa_flags_neon     = -DCORNU_NEON $(if $(findstring clang,$(CC)),,-fno-schedule-insns)
isa_flags_neonbf16 = $(isa_flags_neon) -march=armv8.2-a+bf16
all_isa_flags      = $(isa_flags) $(foreach i,$(all_isas),$(isa_flags_$(i)))

define isa_rule
$(BUILD)/obj/%.$(1).o: %.c $(BUILD)/flags | build/include/cornu/cornu.h
	@mkdir -p $$(@D)
	$$(call say,cc,$$< ($(1)))$$(CC) $$(all_cflags) $$(isa_flags) $$(isa_flags_$(1)) \
	    -DCORNU_ISA_NAME=$(1) -c $$< -o $$@
endef
$(foreach isa,$(all_isas),$(eval $(call isa_rule,$(isa))))
