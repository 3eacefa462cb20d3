# Moeyard. SPDX-License-Identifier: Apache-2.0
"""The King James Bible as the Debian package bible-kjv prints it: the text the models learn and read."""

import re
import shutil
import subprocess

_CHAPTER = re.compile(r"^(\S.*) (\d+)$")
_VERSE = re.compile(r"^ +\d+ (.*)$")


def read_chapters():
    """Returns {"Genesis 1": "In the beginning ...\\nAnd the earth ...\\n", ...} in the order of the book."""
    if shutil.which("bible") is None:
        raise SystemExit("the program `bible` is missing: install the Debian package bible-kjv")
    printed = subprocess.run(
        ["bible", "-l20000", "gen1:1-rev22:21"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=True,
        text=True,
    ).stdout
    chapters = {}
    verses = None
    for line in printed.splitlines():
        verse = _VERSE.match(line)
        if verse:
            verses.append(verse[1])
        elif _CHAPTER.match(line):
            verses = chapters.setdefault(line, [])
        elif line:
            raise SystemExit(f"bible printed a line that is neither a chapter nor a verse: {line!r}")
    return {name: "\n".join(lines) + "\n" for name, lines in chapters.items()}


def package_version():
    query = ["dpkg-query", "-W", "-f", "${Version}", "bible-kjv-text"]
    return subprocess.run(query, capture_output=True, check=True, text=True).stdout
