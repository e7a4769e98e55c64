#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""check_api.py - can other programs use libconvertproto as its documents say?

The programs are built with what "make install" installs alone: the header, in a directory of its own, and the flags of
convertproto.pc. The check fails

- where the functions that the header declares aren't those that the library exports and lib/convertproto.map lists;
- where a C or C++ compiler has a warning about the header, in any of the languages' versions;
- where the compiler has a warning about a program of examples/, or about an example of the manual;
- where section 3 of the manual lacks a function, describes one that doesn't exist, or declares one differently.
"""
import glob
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

TOP = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
BUILD = os.environ.get("CONVERT_BUILDDIR") or TOP
HEADER = os.path.join(TOP, "lib", "convert", "convert.h")
SKIP = 77
WARNINGS = ["-pedantic", "-Wall", "-Wextra", "-Werror"]
C_VERSIONS = ("c99", "c11", "c17", "gnu99", "gnu11", "gnu17")
CXX_VERSIONS = ("c++11", "c++14", "c++17", "c++20", "gnu++17")
# compiled as C and as C++: as C++ it links only if the functions have C linkage
PROGRAM = """
#include <convert/convert.h>

int main(void)
{
	uint8_t buf[CONVERT_MESSAGE_MAX];
	struct convert_writer writer;
	struct convert_request request;
	ssize_t len;

	convert_writer_init(&writer, buf, sizeof(buf));
	convert_write_info(&writer);
	len = convert_writer_finish(&writer);
	if (convert_library_version() != CONVERT_LIBRARY_VERSION)
		return 2;
	return len == 8 && convert_request_parse(buf, (size_t)len, &request) == CONVERT_STATUS_OK && request.has_info ? 0 : 1;
}
"""


def makefile_variables():
    """The variables that configure has put into the Makefile."""
    with open(os.path.join(BUILD, "Makefile"), encoding="utf-8") as file:
        return dict(re.findall(r"^(\w+) = (.*)$", file.read(), re.MULTILINE))


def declared():
    """The functions that the header declares."""
    with open(HEADER, encoding="utf-8") as file:
        text = re.sub(r"/\*.*?\*/", "", file.read(), flags=re.DOTALL)
    return set(re.findall(r"^CONVERT_API\s[^;(]*?\b(\w+)\(", text, re.MULTILINE))


def normal(declaration):
    """With one blank at most between words, and none elsewhere."""
    return re.sub(r"\s*([*(),])\s*", r"\1", " ".join(declaration.split()))


def prototypes():
    """{name: declaration} of the header."""
    with open(HEADER, encoding="utf-8") as file:
        text = re.sub(r"/\*.*?\*/", "", file.read(), flags=re.DOTALL)
    return {name: normal(said) for said, name in re.findall(r"^CONVERT_API\s+([^;(]*?\b(\w+)\([^;]*\));", text, re.MULTILINE)}


class Page:
    """A page of the manual's section 3, written in mdoc."""

    def __init__(self, path):
        self.name = os.path.basename(path)
        with open(path, encoding="utf-8") as file:
            text = file.read()
        self.sections = dict(re.findall(r"^\.Sh (.*)\n((?:(?!\.Sh ).*\n?)*)", text, re.MULTILINE))
        self.names = re.findall(r"^\.Nm (\S+)", self.sections["NAME"], re.MULTILINE)
        self.references = re.findall(r"^\.Xr (\S+) 3\b", text, re.MULTILINE)
        # each can be compiled
        self.examples = [example.replace("\\e", "\\") for example in
                         re.findall(r"^\.Bd -literal.*\n((?:(?!\.Ed).*\n)*)", self.sections.get("EXAMPLES", ""), re.MULTILINE)]

    def prototypes(self):
        """{name: declaration} of the synopsis."""
        found = {}
        for result, name, rest in re.findall(r"^\.Ft (.*)\n\.Fn (\w+) ?(.*)", self.sections["SYNOPSIS"], re.MULTILINE):
            found[name] = normal("%s %s(%s)" % (result, name, ", ".join(shlex.split(rest))))
        return found


def pages():
    """All pages of section 3 but those that only name another."""
    for path in sorted(glob.glob(os.path.join(TOP, "man", "*.3"))):
        with open(path, encoding="utf-8") as file:
            if not file.read().startswith(".so "):
                yield Page(path)


def exported(library):
    """{name: version} of what the library exports."""
    said = subprocess.run(["nm", "-D", "--defined-only", library], check=True, stdout=subprocess.PIPE, text=True).stdout
    symbols = (line.split()[-1].partition("@@") for line in said.splitlines() if " A " not in line)
    return {name: version for name, _, version in symbols}


def mapped():
    """{name: version} of lib/convertproto.map."""
    with open(os.path.join(TOP, "lib", "convertproto.map"), encoding="utf-8") as file:
        text = re.sub(r"#.*", "", file.read())
    found = {}
    for version, body in re.findall(r"(\w+)\s*\{(.*?)\}", text, re.DOTALL):
        found.update((name, version) for name in re.findall(r"\bconvert_\w+(?=;)", body))
    return found


class Program:
    """Compiles and links programs against the library as if it were installed below a directory."""

    def __init__(self, directory):
        self.directory = directory
        self.variables = makefile_variables()
        os.makedirs(os.path.join(directory, "include", "convert"))
        shutil.copy(HEADER, os.path.join(directory, "include", "convert"))
        library = os.path.join(BUILD, ".libs")
        said = subprocess.run(["pkg-config", "--cflags", "--libs", "--define-variable=includedir=" + os.path.join(directory, "include"),
                               "--define-variable=libdir=" + library, "convertproto"], check=True, stdout=subprocess.PIPE,
                              text=True, env={**os.environ, "PKG_CONFIG_PATH": os.path.join(BUILD, "lib")}).stdout
        # a library that was built with sanitizers needs their run-time libraries
        self.flags = shlex.split(said) + shlex.split(self.variables.get("SANITIZER_CFLAGS", ""))
        self.env = {**os.environ, "LD_LIBRARY_PATH": library}

    def compilers(self):
        """The commands of the C compiler, and of the C++ compiler or None."""
        c = shlex.split(self.variables["CC"])
        kin = "clang++" if "clang" in c[-1] else "g++"
        cxx = next((name for name in (os.environ.get("CXX"), kin, "c++", "g++", "clang++") if name and shutil.which(name.split()[0])), None)
        return c, shlex.split(cxx) if cxx else None

    def build(self, compiler, source, *flags):
        """The compiler's complaints about a program; "" if it has made it, as "program"."""
        command = [*compiler, *WARNINGS, *flags, "-o", os.path.join(self.directory, "program"), source, *self.flags]
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout

    def run(self):
        """What is wrong with the program that was built last; "" if nothing."""
        done = subprocess.run([os.path.join(self.directory, "program")], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              env=self.env)
        return "" if done.returncode == 0 else "it ends with %d: %s" % (done.returncode, done.stdout)


def knows(compiler, flag, suffix):
    """Does the compiler know this version of the language?"""
    return subprocess.run([*compiler, flag, "-E", "-x", {"c": "c", "cc": "c++"}[suffix], "/dev/null"], stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL).returncode == 0


def differences(what, names, other, others):
    """What one set has and the other hasn't."""
    for name in sorted(set(names) - set(others)):
        yield "%s: %s has it, %s hasn't" % (name, what, other)
    for name in sorted(set(others) - set(names)):
        yield "%s: %s has it, %s hasn't" % (name, other, what)


def check_symbols():
    """Header, library and map."""
    library = exported(os.path.join(BUILD, ".libs", "libconvertproto.so"))
    yield from differences("convert.h", declared(), "libconvertproto.so", library)
    yield from differences("convert.h", declared(), "lib/convertproto.map", mapped())
    for name in sorted(set(library) & set(mapped())):
        if library[name] != mapped()[name]:
            yield "%s: its version is %s, not %s as in lib/convertproto.map" % (name, library[name] or "missing", mapped()[name])


def check_languages(program):
    """The header in all versions of C and C++."""
    c, cxx = program.compilers()
    for compiler, suffix, versions in ((c, "c", C_VERSIONS), (cxx, "cc", CXX_VERSIONS)):
        source = os.path.join(program.directory, "program." + suffix)
        with open(source, "w", encoding="utf-8") as file:
            file.write(PROGRAM)
        for version in versions if compiler else ():
            flag = "-std=" + version
            if not knows(compiler, flag, suffix):
                continue
            said = program.build(compiler, source, flag) or program.run()
            if said:
                yield "%s %s: %s" % (" ".join(compiler), flag, said)


def check_examples(program):
    """The examples, which are GNU C as they use what is Linux's own."""
    compiler = program.compilers()[0]
    for source in sorted(glob.glob(os.path.join(TOP, "examples", "*.c"))):
        said = program.build(compiler, source, "-std=gnu11")
        if said:
            yield "%s: %s" % (os.path.relpath(source, TOP), said)


def check_pages(program):
    """The manual against the header; its examples."""
    declarations = prototypes()
    described = {}
    for page in pages():
        if page.name != "convertproto.3":
            described.update(page.prototypes())
            yield from differences("%s, NAME" % page.name, page.names, "its SYNOPSIS", page.prototypes())
        for name in page.references:
            if name.startswith("convert") and name != "convertproto" and name not in declarations:
                yield "%s: .Xr %s 3 is no function" % (page.name, name)
        for example in page.examples:
            source = os.path.join(program.directory, "example.c")
            with open(source, "w", encoding="utf-8") as file:
                file.write(example)
            said = program.build(program.compilers()[0], source, "-std=c99", "-c")
            if said:
                yield "%s: its example: %s" % (page.name, said)
    yield from differences("convert.h", declarations, "the manual", described)
    for name in sorted(set(declarations) & set(described)):
        if declarations[name] != described[name]:
            yield "%s: %s in convert.h, %s in the manual" % (name, declarations[name], described[name])
        if not any(os.path.exists(os.path.join(where, "man", name + ".3")) for where in (TOP, BUILD)):
            yield "man/%s.3: make has not made it; add it to API_LINKS in lib/local.mk" % name


def main():
    missing = []
    wrong = list(check_symbols())
    with tempfile.TemporaryDirectory() as directory:
        program = Program(directory)
        wrong += check_languages(program)
        wrong += check_examples(program)
        wrong += check_pages(program)
        if not program.compilers()[1]:
            missing.append("no C++ compiler; on Debian: apt-get install g++")
    for line in wrong:
        print(line)
    print("check_api.py: %d functions, %d things are wrong" % (len(declared()), len(wrong)))
    if wrong:
        return 1
    if missing:
        print("SKIP: " + "; ".join(missing))
        return 1 if os.environ.get("CONVERT_NO_SKIP") else SKIP
    return 0


if __name__ == "__main__":
    sys.exit(main())
