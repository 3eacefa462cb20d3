#!/usr/bin/env python3
# Moeyard. SPDX-License-Identifier: Apache-2.0
"""Writes the table of C functions that src/calls/functions.h describes.

usage: generate_table.py INCLUDE OUTPUT

INCLUDE is the folder of the public headers, OUTPUT the C++ file to write.
"""
import pathlib
import re
import sys

KINDS = {  # C type -> (kind, how the argument is handed on)
    "aclTensor*": ("tensor", "a[{}].tensor"),
    "aclTensorList*": ("tensor_list", "a[{}].tensor_list"),
    "aclIntArray*": ("integers", "a[{}].integers"),
    "aclFloatArray*": ("numbers", "a[{}].numbers"),
    "aclBoolArray*": ("flags", "a[{}].flags"),
    "aclScalar*": ("scalar", "a[{}].scalar"),
    "char*": ("text", "a[{}].text"),
    "bool": ("flag", "a[{}].integer != 0"),
    "float": ("number", "static_cast<float>(a[{}].number)"),
    "double": ("number", "a[{}].number"),
    "aclDataType": ("integer", "static_cast<aclDataType>(a[{}].integer)"),
    "int8_t": ("integer", "static_cast<int8_t>(a[{}].integer)"),
    "int32_t": ("integer", "static_cast<int32_t>(a[{}].integer)"),
    "uint32_t": ("integer", "static_cast<uint32_t>(a[{}].integer)"),
    "int64_t": ("integer", "a[{}].integer"),
    "uint64_t": ("integer", "static_cast<uint64_t>(a[{}].integer)"),
}
PROTOTYPE = re.compile(r"(?:ACL_FUNC_VISIBILITY\s+)?aclnnStatus\s+(aclnn\w+)GetWorkspaceSize\(([^)]*)\);")
CODES = {  # header -> constants that it defines
    "aclnn/aclnn_base.h": r"#define (ACLNN_\w+) (\d+)",
    "acl/acl_base_rt.h": r"static const int (ACL_ERROR_\w+) = (\d+);",
    "acl/error_codes/rt_error_codes.h": r"#define (ACL_ERROR_\w+) (\d+)",
    "hccl/hccl_types.h": r"\b(HCCL_E_\w+) = (\d+)",
}


def comment_before(text):
    """The comment that ends where `text` does, without its marks."""
    text = text.rstrip()
    if text.endswith("*/"):
        lines = text[text.rindex("/*") + 2:-2].splitlines()
        return "\n".join(re.sub(r"^ \* ?", "", line).rstrip() for line in lines).strip()
    lines = []
    for line in reversed(text.splitlines()):
        if not line.startswith("//"):
            break
        lines.insert(0, re.sub(r"^// ?", "", line).rstrip())
    return "\n".join(lines).strip()


def parameter(text):
    match = re.fullmatch(r"(const\s+)?(\w+)\s*(\*?)\s*(?:const\s+)?(\w+)", text.strip())
    if not match or match[2] + match[3] not in KINDS:
        raise SystemExit(f"generate_table.py does not know a parameter like '{text.strip()}'")
    return (match[1] or "").strip(), match[2] + match[3], match[4]


class Function:
    def __init__(self, include, header, match, text):
        self.name = match[1]
        self.header = header.relative_to(include).as_posix()
        self.comment = comment_before(text[:match.start()])
        self.prototype = re.sub(r"\s+", " ", match[0]).replace("ACL_FUNC_VISIBILITY ", "")
        parts = [re.sub(r"\s+", " ", part) for part in match[2].split(",")]
        if [part.split()[-1].lstrip("*") for part in parts[-2:]] != ["workspaceSize", "executor"]:
            raise SystemExit(f"{header}: {self.name}GetWorkspaceSize must end with workspaceSize and executor")
        self.parameters = [parameter(part) for part in parts[:-2]]

    def definitions(self):
        rows = [f'    {{"{name}", Kind::{KINDS[kind][0]}, "{(const + " " + kind).strip()}"}},'
                for const, kind, name in self.parameters]
        arguments = [KINDS[kind][1].format(i) for i, (_, kind, _) in enumerate(self.parameters)]
        for i, (const, kind, _) in enumerate(self.parameters):
            if kind == "char*" and not const:  # a document's slip: nobody writes to it
                arguments[i] = f"const_cast<char*>({arguments[i]})"
        return (f"constexpr Parameter kOf_{self.name}[] = {{\n" + "\n".join(rows) + "\n};\n"
                f"aclnnStatus plan_{self.name}(const Argument* a, uint64_t* size, aclOpExecutor** executor) {{\n"
                f"  return {self.name}GetWorkspaceSize({', '.join(arguments)}, size, executor);\n}}\n")

    def row(self):
        return (f'    {{"{self.name}", "{self.header}", R"moeyard({self.comment})moeyard",\n'
                f'     "{self.prototype}",\n'
                f"     kOf_{self.name}, plan_{self.name}, {self.name}}},")


def read_functions(include):
    found = []
    for header in sorted((include / "aclnnop").glob("*.h")):
        text = header.read_text()
        found += [Function(include, header, match, text) for match in PROTOTYPE.finditer(text)]
    return sorted(found, key=lambda function: function.name)


def read_codes(include):
    found = {}
    for header, pattern in CODES.items():
        for name, code in re.findall(pattern, (include / header).read_text()):
            found.setdefault((int(code), name), f'    {{{code}, "{name}"}},')
    return [found[key] for key in sorted(found)]


def main(include, output):
    functions = read_functions(include)
    text = "// Moeyard. SPDX-License-Identifier: Apache-2.0\n// Made by generate_table.py from the public headers.\n"
    text += "".join(f'#include "{header}"\n' for header in sorted({function.header for function in functions}))
    text += '#include "calls/functions.h"\n\nnamespace moeyard::calls {\nnamespace {\n\n'
    text += "\n".join(function.definitions() for function in functions)
    text += "\nconstexpr Function kFunctions[] = {\n" + "\n".join(function.row() for function in functions) + "\n};\n"
    text += "\nconstexpr CodeName kCodeNames[] = {\n" + "\n".join(read_codes(include)) + "\n};\n"
    text += ("\n}  // namespace\n\nstd::span<const Function> functions() { return kFunctions; }\n"
             "std::span<const CodeName> code_names() { return kCodeNames; }\n\n}  // namespace moeyard::calls\n")
    output.write_text(text)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
