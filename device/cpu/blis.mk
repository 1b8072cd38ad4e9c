# BLIS as one object with hidden names: what the cpu device calls, with malloc, free and getenv
# replaced (blis.c). On x86-64 three of its fourteen sets of kernels are kept, a third of the size;
# the names of the others stand for the generic set. Elsewhere it has one set.

debian_target = $(target:%-pc-linux-gnu=%-linux-gnu)
BLIS         ?= $(firstword $(wildcard $(SYSROOT)/usr/lib/$(debian_target)/blis-serial/libblis.a \
                                       $(SYSROOT)/usr/lib/*/blis-serial/libblis.a))
blis_entries := bli_init bli_sgemm bli_arch_query_id bli_arch_string bli_info_get_version_str
blis_calls   := malloc free getenv
blis_dropped_x86_64 := knl sandybridge penryn zen3 zen2 zen excavator steamroller piledriver \
                       bulldozer

$(BUILD)/blis.o: $(BLIS) device/cpu/blis.mk | build/include/cornu/cornu.h
	@mkdir -p $(@D)
	$(call say,ld,$@)$(CROSS)ld -r -d -o $@.all $(blis_entries:%=-u %) \
	    $(foreach d,$(blis_dropped_$(processor)),$(foreach k,@ _ref _ind,\
	        --defsym=bli_cntx_init_$(d)$(k:@=)=bli_cntx_init_generic$(k:@=))) $(BLIS)
	@$(CROSS)objcopy --strip-debug $(blis_entries:%=--keep-global-symbol=%) $@.all
	@$(CROSS)objcopy $(foreach e,$(blis_entries),--redefine-sym $(e)=cornu__$(e)) \
	    $(foreach c,$(blis_calls),--redefine-sym $(c)=cornu__blis_$(c)) $@.all $@
	@rm $@.all
