# SPDX-License-Identifier: BSD-3-Clause
"""documents.py - finds the blocks of a Markdown page that the lab can run: their hosts, their output, and the events between them

The info string of a fenced block names its kind:

    ```sh HOST                   commands for a shell on that host of the lab, which must succeed
    ```console HOST              commands after "$ ", and their output; "…" matches anything, and alone in a line any lines
    ```conf HOST PATH            a file to write to that path on that host (the first word may be any that highlights it well)
    ```sh unrun TOOL REASON      commands that the lab can't run, for that reason; TOOL still checks them (test_documents.py)
    ```text                      a drawing

Between blocks, HTML comments, which readers don't see, tell the lab what to do:

    <!-- lab: NAME -->           make a new lab of that name (scenes.py) for the following blocks
    <!-- on HOST: COMMAND -->    run a command on a host
    <!-- link NAME: SETTINGS --> take a link down (down=1), or set fields of links.Link, such as strip_mptcp=1; none: the link works again

Anything else that looks like code is an error, so that no command is forgotten.
"""
import dataclasses
import re

FENCE = re.compile(r"^(`{3,}|~{3,})\s*(.*)$")
COMMENT = re.compile(r"^<!--\s*(lab|on|link)\b\s*([^:]*):\s*(.*?)\s*-->$")


class DocumentError(Exception):
    """The page says something that can't be understood; the text names the line."""


@dataclasses.dataclass
class Step:
    """One thing to do. kind: lab, on, link, sh, console, file, unrun or text."""

    kind: str
    place: str   # page and line, for messages
    host: str    # the host, the link, or, if unrun, the tool
    detail: str  # the name of a lab, a command, the settings of a link, the path of a file, or the reason
    text: str    # what stands in the block


def _block(info, text, place):
    """The Step of a fenced block."""
    words = info.split(None, 2)
    if words == ["text"]:
        if re.search(r"^\s*[$#] ", text, re.MULTILINE):
            raise DocumentError("%s: a drawing with commands in it" % place)
        return Step("text", place, "", "", text)
    if len(words) < 2:
        raise DocumentError("%s: the block \"%s\" doesn't say which host runs it" % (place, info))
    if words[1] == "unrun":
        tool, _, reason = words[2].partition(" ") if len(words) == 3 else ("", "", "")
        if not reason:
            raise DocumentError("%s: a block that isn't run needs a tool that checks it, and a reason" % place)
        return Step("unrun", place, tool, reason, text)
    if words[0] in ("sh", "console"):
        if len(words) != 2:
            raise DocumentError("%s: unexpected words behind the host: %s" % (place, words[2]))
        return Step(words[0], place, words[1], "", text)
    if len(words) != 3 or not words[2].startswith("/"):
        raise DocumentError("%s: the file in \"%s\" has no path" % (place, info))
    return Step("file", place, words[1], words[2], text)


def read(path, name):
    """Returns the Steps of a page, in order."""
    with open(path, encoding="utf-8") as file:
        lines = file.read().splitlines()
    steps, fence, start, info = [], None, 0, ""
    for number, line in enumerate(lines, 1):
        place = "%s:%d" % (name, number)
        if fence:
            if line.strip() == fence:
                text = "".join(each + "\n" for each in lines[start:number - 1])
                steps.append(_block(info, text, "%s:%d" % (name, start)))
                fence = None
            continue
        opening = FENCE.match(line)
        if opening:
            fence, info, start = opening[1], opening[2], number
        elif line.startswith(("    ", "\t")):
            raise DocumentError("%s: indented text, which is code without a host" % place)
        elif line.startswith("<!--"):
            comment = COMMENT.match(line)
            if not comment:
                raise DocumentError("%s: a comment that means nothing here: %s" % (place, line))
            steps.append(Step(comment[1], place, comment[2], comment[3], ""))
    if fence:
        raise DocumentError("%s:%d: the block has no end" % (name, start))
    return steps


def commands(step):
    """[(command, [lines that it prints]), …] of a console block. A command goes on behind a backslash at the end of its line."""
    found, continues = [], False
    for line in step.text.splitlines():
        if continues:
            found[-1][0] += "\n" + line
        elif line.startswith("$ "):
            found.append([line[2:], []])
        elif not found:
            raise DocumentError("%s: begins with something else than a command: %s" % (step.place, line))
        else:
            found[-1][1].append(line)
        continues = line.endswith("\\") and not found[-1][1]
    return [(command, shown) for command, shown in found]


def shows(output, shown):
    """Tells whether the output matches the lines of the page, except for "…" and the number of blanks."""
    pattern = ""
    for line in shown:
        if line.strip() == "…":
            pattern += r"(?:.*\n)*?"
        else:
            words = [".*?".join(re.escape(part) for part in word.split("…")) for word in line.split()]
            pattern += r"[ \t]*" + r"[ \t]+".join(words) + r"[ \t]*\n"
    return re.fullmatch(pattern, output if output.endswith("\n") or not output else output + "\n") is not None
