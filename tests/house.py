"""The structure of the package, counted: pairs of groups with an import between them, modules in each folder.

python tests/house.py
"""

import ast
from collections import Counter
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src"


def modules():
    """Every module of the package: its dotted name, and its path."""
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


def imports(path):
    """The dotted names of this package that a module imports."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("iclab"):
            for alias in node.names:
                yield f"{node.module}.{alias.name}"


def group(name, room):
    """The folder or file of a room that a dotted name lies in; None for another room and for the room itself."""
    return name.removeprefix(f"{room}.").split(".")[0] if name.startswith(f"{room}.") else None


def pairs(room):
    """Pairs of groups of a room of which one imports the other. The door of the room imports all, and is left out."""
    known = {name for name, _ in modules()}
    found = set()
    for name, path in modules():
        for imported in imports(path):
            ends = group(name, room), group(imported, room)
            if None not in ends and ends[0] != ends[1] and f"{room}.{ends[1]}" in known:
                found.add(ends)
    return sorted(found)


def sizes():
    """Modules in each folder, its door and the folders in it left out."""
    return Counter(
        str(path.parent.relative_to(SOURCE))
        for _, path in modules()
        if path.name not in ("__init__.py", "__main__.py")
    )


if __name__ == "__main__":
    for room in ("theory", "studies", "simulation", "spectra"):
        found = pairs(f"iclab.{room}")
        print(f"{room}: {len(found)} pairs: {', '.join('→'.join(pair) for pair in found)}")
    for folder, count in sizes().most_common(8):
        print(f"{count:3} modules in {folder}")
