# SPDX-License-Identifier: BSD-3-Clause
# the third front end: convertgw, a transparent gateway
EXTRA_DIST += src/gateway/README.md src/gateway/gateway_rules.h src/gateway/gateway_settings.h
