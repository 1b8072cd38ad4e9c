# make wheel: $(BUILD)/wheel/cornu-VERSION-py3-none-PLATFORM.whl, which pip installs where NumPy is
# and no compiler. It holds the package nn/python/cornu, the library, stripped, and libjansson beside
# it; of the system it needs glibc, as new as the one here, which the name says, and zlib.

wheel_folder = $(BUILD)/wheel
jansson      = $(realpath $(shell $(CC) -print-file-name=libjansson.so 2>/dev/null))

$(wheel_folder)/libcornu.so: $(BUILD)/libcornu.so nn/python/wheel.mk
	@mkdir -p $(@D)
	$(call say,so,$@)$(CC) -shared -s $(CFLAGS) $(sanitizer) $(LDFLAGS) -Wl,-soname,libcornu.so.0 \
	    -Wl,--version-script=$(BUILD)/exports '-Wl,-rpath,$$ORIGIN' $(filter %.o,$(objects)) -o $@ \
	    $(libraries)

wheel: deps-wheel
	$(again) $(wheel_folder)/libcornu.so
	@rm -f $(wheel_folder)/*.whl
	@$(PYTHON) nn/python/make_wheel.py $(version) $(processor) $(wheel_folder) \
	    libcornu.so=$(wheel_folder)/libcornu.so libjansson.so.4=$(jansson)

deps-wheel: ; @$(call find_needs,$(firstword $(PYTHON)):python3)

.PHONY: wheel deps-wheel
