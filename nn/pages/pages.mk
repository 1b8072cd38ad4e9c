# The parts of pages for browsers (nn/pages/page_internal.h) as one C file, by name.

page_parts := $(sort $(wildcard nn/pages/*.html nn/pages/*.css nn/pages/*.js nn/pages/*/*.js))

$(BUILD)/obj/nn/pages/parts.c: $(page_parts) nn/pages/pages.mk
	@mkdir -p $(@D)
	@{ echo '#include "nn/pages/page_internal.h"'; \
	   for part in $(page_parts); do \
	       echo "static const unsigned char $$(basename $$part | tr . _)[] = {"; \
	       od -An -v -tu1 $$part | sed 's/ *\([0-9][0-9]*\)/\1,/g'; echo '};'; \
	   done; \
	   echo 'const CornuPagePart cornu__page_parts[] = {'; \
	   for part in $(page_parts); do \
	       name=$$(basename $$part | tr . _); \
	       echo "    { \"$$(basename $$part)\", $$name, sizeof $$name },"; \
	   done; echo '    { 0 },'; echo '};'; } > $@

$(BUILD)/obj/nn/pages/parts.o: $(BUILD)/obj/nn/pages/parts.c $(BUILD)/flags \
        | build/include/cornu/cornu.h
	$(call say,cc,nn/pages/parts.c)$(CC) $(all_cflags) -I. -c $< -o $@
