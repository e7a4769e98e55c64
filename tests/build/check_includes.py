#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""check_includes.py - the rooms of the source tree, and which of them may include which

Each folder with source files has a README.md with a line that begins with "Includes:". The line lists the folders whose headers the
files may include, by their names below the top of the tree and between backquotes. Each file says its purpose in its first lines:
"name.c - purpose". The check fails where a file includes a header of a folder that is not in the list, where the lists contain a circle,
where files include each other in a circle (a .c file and the header of the same name count as one), and where a folder has no README
or a file no purpose.

    tests/build/check_includes.py             the check
    tests/build/check_includes.py --files     each file with its purpose
    tests/build/check_includes.py --graph     the folders in Graphviz' language, for `dot -Tsvg`
"""
import os
import re
import sys

TOP = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
ROOTS = ("src", "lib")
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)


def source_files():
    """All C files below ROOTS, as paths below TOP."""
    for root in ROOTS:
        for directory, _, names in os.walk(os.path.join(TOP, root)):
            for name in names:
                if name.endswith((".c", ".h")):
                    yield os.path.relpath(os.path.join(directory, name), TOP)


def included(path, files):
    """The project's own headers that the file at path includes, as paths below TOP; None for one that isn't found."""
    with open(os.path.join(TOP, path), encoding="utf-8") as file:
        names = INCLUDE.findall(file.read())
    for name in names:
        if name == "config.h":
            continue
        places = (os.path.normpath(os.path.join(os.path.dirname(path), name)), os.path.join("src", name), os.path.join("lib", name))
        yield name, next((place for place in places if place in files), None)


def circles(graph):
    """The strongly connected parts of graph, {node: set of nodes}, that have more than one node (Tarjan 1972)."""
    index, low, stack, found = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in sorted(graph.get(node, ())):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            part = []
            while not part or part[-1] != node:
                part.append(stack.pop())
            if len(part) > 1:
                found.append(sorted(part))

    for node in sorted(graph):
        if node not in index:
            visit(node)
    return found


def purpose(path):
    """The purpose that the first lines of the file at path state: "name.c - purpose"; None if they don't."""
    with open(os.path.join(TOP, path), encoding="utf-8") as file:
        text = file.read(1000)
    found = re.search(r"\b%s - ((?:[^\n*]|\*(?!/))+(?:\n \* [^\n*]+)*)" % re.escape(os.path.basename(path)), text)
    return " ".join(found.group(1).replace("\n *", " ").split()) if found else None


def room_of(path):
    """The folder that a file is in."""
    return os.path.dirname(path)


def shown(room):
    """A folder as READMEs name it: without src/ in front."""
    return room[4:] if room.startswith("src/") else room


def read_rooms(rooms, wrong):
    """{room: set of rooms that it may include}, out of the READMEs; adds what is wrong with those to wrong."""
    allowed = {}
    names = {shown(room): room for room in rooms}
    for room in rooms:
        path = os.path.join(room, "README.md")
        allowed[room] = set()
        try:
            with open(os.path.join(TOP, path), encoding="utf-8") as file:
                text = file.read()
        except FileNotFoundError:
            wrong.append("%s: isn't there; it says what is in the folder, and what the folder may include" % path)
            continue
        line = re.search(r"^Includes:(.*(?:\n.+)*)", text, re.MULTILINE)
        if line is None:
            wrong.append('%s: has no line that begins with "Includes:"' % path)
            continue
        for name in re.findall(r"`([^`]+)`", line.group(1)):
            if name in names:
                allowed[room].add(names[name])
            else:
                wrong.append("%s: includes `%s`, which is no folder with source files" % (path, name))
    return allowed


def main():
    """Returns 0 if the tree is as its READMEs say."""
    files = set(source_files())
    rooms, modules, uses, wrong = {}, {}, {}, []
    for path in sorted(files):
        rooms.setdefault(room_of(path), set()).add(os.path.splitext(os.path.basename(path))[0])
    for path in sorted(files):
        module = os.path.splitext(path)[0]
        for name, header in included(path, files):
            if header is None:
                wrong.append('%s: #include "%s": there is no such header below src/ or lib/' % (path, name))
                continue
            if os.path.splitext(header)[0] != module:
                modules.setdefault(module, set()).add(os.path.splitext(header)[0])
            if room_of(header) != room_of(path):
                uses.setdefault(room_of(path), {}).setdefault(room_of(header), []).append((path, header))
    allowed = read_rooms(rooms, wrong)
    purposes = {path: purpose(path) for path in sorted(files)}
    wrong += ['%s: its first lines don\'t say "%s - purpose"' % (path, os.path.basename(path)) for path in purposes if not purposes[path]]
    if "--files" in sys.argv[1:]:
        for path in purposes:
            print("%-48s %s" % (shown(path), purposes[path]))
        return 0
    if "--graph" in sys.argv[1:]:
        print("digraph rooms {\n  rankdir=BT; node [shape=box];")
        for room in sorted(uses):
            for other in sorted(uses[room]):
                print('  "%s" -> "%s";' % (shown(room), shown(other)))
        print("}")
        return 0
    for room in sorted(uses):
        for other in sorted(set(uses[room]) - allowed[room]):
            wrong += ["%s: includes %s, and %s/README.md doesn't allow `%s`" % (path, header, room, shown(other))
                      for path, header in uses[room][other]]
    wrong += ["folders that may include each other in a circle: %s" % " ".join(map(shown, part)) for part in circles(allowed)]
    wrong += ["files that include each other in a circle: %s" % " ".join(map(shown, part)) for part in circles(modules)]
    for line in wrong:
        print(line)
    print("%d files in %d folders: %s" % (len(files), len(rooms), "%d things are wrong" % len(wrong) if wrong else "as the READMEs say"))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
