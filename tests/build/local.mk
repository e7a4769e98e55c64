# SPDX-License-Identifier: BSD-3-Clause
# checks of what is built and installed (hardening, use by other programs, the manual), of the sources (folders, pages, linters, other
# compilers), of the tools for packages, kernels and releases, and of the release tarball
BUILD_TESTS = tests/build/check_api.py tests/build/check_hardening.py tests/build/check_manual.py
# They check sources and tools, or the names of the libraries' functions: sanitizers change nothing there, or add functions.
PLAIN_BUILD_TESTS = tests/build/check_abi.py tests/build/check_includes.py \
	tests/build/check_install_needs.py tests/build/check_kernels.py tests/build/check_links.py tests/build/check_release.py \
	tests/build/check_scripts.py
# These compile the whole tree: "make check-long" runs them.
LONG_BUILD_TESTS = tests/build/check_tarball.py tests/build/check_compilers.py
dist_check_SCRIPTS += $(BUILD_TESTS) $(PLAIN_BUILD_TESTS) $(LONG_BUILD_TESTS)
EXTRA_DIST += RELEASING.md build-tools/release lib/convertproto.abi src/shim/libconvert.abi
if !SANITIZED
if !THREAD_SANITIZED
BUILD_TESTS += $(PLAIN_BUILD_TESTS)
endif
endif
TESTS += $(BUILD_TESTS)

# Debian's packages, built and used in clean roots: run by hand in a clone, as tarballs have no debian/, which is the distribution's.
EXTRA_DIST += tests/packages/debian tests/packages/life

# of what is installed
installcheck-local:
	'$(DESTDIR)$(bindir)/convertize' --version
	'$(DESTDIR)$(sbindir)/convertd' --version
	'$(DESTDIR)$(sbindir)/convertd' --config '$(DESTDIR)$(sysconfdir)/convertd/convertd.conf' --check-config
if HAVE_PYTHON
	$(AM_TESTS_ENVIRONMENT) $(PYTHON) $(top_srcdir)/tests/build/check_hardening.py '$(DESTDIR)$(bindir)/convertize' \
		'$(DESTDIR)$(sbindir)/convertd' '$(DESTDIR)$(pkglibdir)/libconvert.so' '$(DESTDIR)$(libdir)/libconvertproto.so' || test $$? -eq 77
endif
