# SPDX-License-Identifier: BSD-3-Clause
"""palette.py - one colour, one marker and one kind of line for each system, the same in all plots

Ours are drawn thick in a strong vermilion that nothing else comes near to; direct TCP is dark grey, as the base line that it is. The other
colours are Okabe and Ito's and Tol's, which people who see few colours can tell apart. There are more systems than such colours,
so that each has a marker and a kind of line as well.
"""

# name: (colour, marker, line)
SYSTEMS = {
    "libconvert": ("#d94801", "o", "-"),
    "libconvert, early data": ("#7f2704", "D", "-"),
    "convertd": ("#d94801", "o", "-"),
    "convertd, response": ("#d94801", "s", "--"),
    "convertd, early data": ("#7f2704", "D", "-"),
    "convertgw": ("#d94801", "o", "-"),
    "direct TCP": ("#404040", "s", "-"),
    "direct": ("#404040", "s", "-"),
    "plain routing": ("#404040", "s", "-"),
    "SOCKS5": ("#0072b2", "^", "-"),
    "SOCKS5, password": ("#56b4e9", "v", "-"),
    "shadowsocks": ("#009e73", "P", "-"),
    "ss-redir": ("#009e73", "P", "-"),
    "hev-socks5-tproxy": ("#0072b2", "^", "-"),
    "redsocks": ("#cc79a7", "X", "-"),
    "haproxy": ("#332288", "<", "-"),
    "haproxy-splice": ("#7a6fc0", ">", "-"),
    "nginx": ("#117733", "h", "-"),
    "dante": ("#aa4499", "d", "-"),
    "microsocks": ("#999933", "p", "-"),
    "socat": ("#c9b458", "*", "-"),
    "socat 256K": ("#c9b458", "*", "-"),
    "plain MPTCP": ("#6a51a3", "^", "-"),
    "TCP over WiFi": ("#2171b5", "s", "-"),
    "TCP over 3G": ("#1b9e77", "v", "-"),
    "TCP over LTE": ("#44aa99", "v", "-"),
    "TCP over 5G": ("#e0a800", "X", "-"),
}
OURS = ("libconvert", "convertd", "convertgw")
# for names that are no system's, in this order
REST = (("#0072b2", "o", "-"), ("#e0a800", "s", "-"), ("#009e73", "^", "-"), ("#aa4499", "v", "-"), ("#56b4e9", "D", "-"),
        ("#404040", "P", "-"), ("#999933", "<", "-"))
SEPARATORS = (", ", " (", ": ")


def system(name):
    """The longest of the known names that this one is, or begins with in front of a comma, a parenthesis or a colon; None if there is none."""
    found = [known for known in SYSTEMS if name == known or name.startswith(tuple(known + mark for mark in SEPARATORS))]
    return max(found, key=len, default=None)


def is_ours(name):
    """Is this a series of libconvert's or convertd's?"""
    return (system(name) or "").startswith(OURS)


def styles(names):
    """{name: {"color", "marker", "line"}} for the series of one plot; what is no system's name gets a colour that is left."""
    found, rest = {}, []
    taken = {SYSTEMS[system(name)][0] for name in names if system(name)}
    for name in names:
        if not rest:
            rest = [style for style in REST if style[0] not in taken] or list(REST)
        color, marker, line = SYSTEMS[system(name)] if system(name) else rest.pop(0)
        found[name] = {"color": color, "marker": marker, "line": line}
    return _told_apart(found)


def _told_apart(found):
    """Series of one system keep its colour; the second and later ones of a plot have lines of other kinds."""
    seen = {}
    for style in found.values():
        kinds = ("-", "--", "-.", ":")
        number = seen[style["color"]] = seen.get(style["color"], -1) + 1
        style["line"] = kinds[number % len(kinds)]
        style["nth"] = number
    return found
