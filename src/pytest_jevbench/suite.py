"""Suites: a folder with a manifest, cases, a rewrite bank and a frozen plan, verified by digest before it is used.

A name is one of the bundled suites, a folder (it contains a path separator), or `upstream:NAME`, a suite of the
installed package `jevbench`, read as data files without importing the package.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .case import parse_cases
from .errors import SuiteError, near, show
from .lines import decode, read_bytes
from .plan import Plan, parse_plan

UPSTREAM = "upstream:"
PLAN_FILE = "tests.jsonl.gz"
DEFAULT_MIN_N = 5


@dataclass(frozen=True, slots=True)
class Suite:
    """A verified suite: its plan, its cases, and what identifies it.

    `digests` maps each file (a sample's base files included, as `base/file`) to its SHA-256; `plan_sha256` is the
    digest of the plan's text, which does not depend on how it was compressed.
    """

    name: str
    edition: str
    version: str
    folder: Path
    cases_folder: Path
    min_n: int
    digests: Mapping[str, str]
    plan_sha256: str
    plan: Plan


def bundled_folder() -> Path:
    """Return where the bundled suites lie: inside the installed package, or beside `pyproject.toml` when editable."""
    package = Path(__file__).parent
    inside = package / "suites"
    return inside if inside.is_dir() else package.parent.parent / "suites"


def suite_names() -> list[str]:
    """Return the names of the bundled suites."""
    folder = bundled_folder()
    return sorted(path.parent.name for path in folder.glob("*/manifest.json")) if folder.is_dir() else []


def upstream_folder() -> Path:
    """Return the suites folder of the installed package `jevbench`, without importing it.

    Raises SuiteError when it is not installed.
    """
    spec = importlib.util.find_spec("jevbench")
    places = list(spec.submodule_search_locations or ()) if spec else []
    folder = Path(places[0], "suites") if places else None
    if folder is None or not folder.is_dir():
        raise SuiteError(
            "the package `jevbench` is not installed",
            "upstream",
            hint='Install it with: pip install "pytest-jevbench[upstream]"',
        )
    return folder


def upstream_names() -> list[str]:
    """Return the names of the suites in the installed package `jevbench`, none when it is not installed."""
    try:
        return sorted(path.parent.name for path in upstream_folder().glob("*/manifest.json"))
    except SuiteError:
        return []


def load_suite(name: str) -> Suite:
    """Load a suite by name. Raises SuiteError, CaseError or PlanError, each naming file and place."""
    if name.startswith(UPSTREAM):
        folder = upstream_folder()
        wanted = name.removeprefix(UPSTREAM)
        known = upstream_names()
        if wanted not in known:
            raise SuiteError(f"the package `jevbench` has no suite {wanted!r}", name, hint=near(wanted, known))
        return read_suite(folder / wanted, family="jevbench")
    if os.sep in name or "/" in name:
        return read_suite(Path(name))
    if name not in suite_names():
        raise SuiteError(f"there is no suite {name!r}", hint=_unknown(name))
    return read_suite(bundled_folder() / name)


def _unknown(name: str) -> str:
    known = [UPSTREAM + each for each in upstream_names()]
    if UPSTREAM + name in known:
        return f"Use {UPSTREAM}{name}, the suite of that name in the installed package `jevbench`."
    known = [*suite_names(), *known]
    folder = f" A folder needs a path separator: ./{name}" if Path(name).is_dir() else ""
    if not known:
        return f'For the official suites: pip install "pytest-jevbench[upstream]".{folder}'
    bare = {each.removeprefix(UPSTREAM): each for each in reversed(known)}
    close = near(name, list(bare))
    if not close.startswith("Did you mean"):
        return near(name, known) + folder
    return f"Did you mean {bare[close.split(chr(39))[1]]!r}?{folder}"


def read_suite(folder: Path, family: str = "") -> Suite:
    """Read and verify the suite in `folder`; `family` names the edition of manifests that name none.

    Raises SuiteError, CaseError or PlanError.
    """
    manifest_path = folder / "manifest.json"
    manifest = _manifest(manifest_path)
    files, digests = _verified(folder, manifest, str(manifest_path))
    name, version = manifest["name"], str(manifest.get("version", "0"))
    if PLAN_FILE not in files:
        raise SuiteError("the suite has no frozen plan", str(manifest_path), expected=f"a file {PLAN_FILE}")
    cases_path = folder / "cases.jsonl"
    if "base" in manifest:
        base, base_digests = _base(folder, manifest, str(manifest_path))
        cases_path = base / "cases.jsonl"
        digests |= {f"{manifest['base']}/{file}": digest for file, digest in base_digests.items()}
    elif "cases.jsonl" not in files:
        raise SuiteError("the suite has no cases", str(manifest_path), expected="a file cases.jsonl, or a `base`")
    cases = parse_cases(cases_path, read_bytes(cases_path, SuiteError))
    text = read_bytes(folder / PLAN_FILE, SuiteError)
    edition = manifest.get("edition") or f"{family or 'local'}-{version}"
    return Suite(
        name=name,
        edition=edition,
        version=version,
        folder=folder,
        cases_folder=cases_path.parent,
        min_n=manifest.get("min_n", DEFAULT_MIN_N),
        digests=digests,
        plan_sha256=hashlib.sha256(text).hexdigest(),
        plan=parse_plan(folder / PLAN_FILE, text, cases),
    )


def _manifest(path: Path) -> dict[str, Any]:
    if not path.parent.is_dir():
        what = "this is a file, a suite is a folder" if path.parent.exists() else "there is no such folder"
        raise SuiteError(what, str(path.parent))
    manifest = decode(read_bytes(path, SuiteError), str(path), SuiteError, whole=True)
    if not isinstance(manifest, dict):
        raise SuiteError("the manifest is no object", str(path), show(manifest))
    name, files, min_n = manifest.get("name"), manifest.get("files"), manifest.get("min_n", DEFAULT_MIN_N)
    if not isinstance(name, str) or not _is_name(name):
        raise SuiteError(
            "the manifest's name cannot be used",
            f"{path}: name",
            show(name),
            "text without /, \\, :, [, ], % and control characters",
        )
    if not isinstance(files, dict) or not files:
        raise SuiteError("`files` lists no files", f"{path}: files", show(files), "{file: SHA-256}")
    edition, version = manifest.get("edition", "local"), manifest.get("version", "0")
    if not isinstance(edition, str) or not edition:
        raise SuiteError("the edition is no text", f"{path}: edition", show(edition))
    if type(version) not in (str, int):
        raise SuiteError("the version is neither text nor a number", f"{path}: version", show(version))
    if type(min_n) is not int or min_n < 1:
        raise SuiteError("min_n is no number of tests", f"{path}: min_n", show(min_n), "an integer from 1")
    return manifest


def _is_name(name: str) -> bool:
    """Say whether ids that begin with a name can be typed: no path, no option, no argument file."""
    plain = name == name.strip() and name.isprintable() and not set(name) & set("/\\:[]%")
    return bool(name) and plain and name[0] not in ".-@"


def _verified(folder: Path, manifest: Mapping[str, Any], where: str) -> tuple[set[str], dict[str, str]]:
    """Compare the folder's data files with the manifest: a missing, extra or changed one is an error."""
    listed: dict[str, Any] = manifest["files"]
    present = {path.name for path in folder.iterdir() if path.name.endswith((".jsonl", ".jsonl.gz"))}
    digests = {}
    for file in sorted({*listed, *present}):
        if file not in present:
            raise SuiteError(f"the file {file} is missing", where, hint="Restore the folder, or freeze it again.")
        if file not in listed:
            raise SuiteError(
                f"the file {file} is not in the manifest", where, hint="Remove it, or freeze the suite again."
            )
        digests[file] = hashlib.sha256(read_bytes(folder / file, SuiteError, unzipped=False)).hexdigest()
        if digests[file] != listed[file]:
            raise SuiteError(
                f"the file {file} was changed after freezing",
                where,
                f"SHA-256 {digests[file]}",
                show(listed[file]),
                "Restore the file, or freeze the suite again.",
            )
    return present, digests


def _base(folder: Path, manifest: Mapping[str, Any], where: str) -> tuple[Path, dict[str, str]]:
    """Find and verify the suite a sample was drawn from: beside it, else bundled."""
    name, expected = manifest["base"], manifest.get("base_files")
    if not isinstance(name, str) or not isinstance(expected, dict) or "cases.jsonl" not in expected:
        raise SuiteError(
            "the sample does not say what it was drawn from",
            where,
            f"base {show(name)}, base_files {show(expected)}",
            "`base` and, in `base_files`, at least the digest of cases.jsonl",
        )
    places = [folder.parent / name, bundled_folder() / name]
    base = next((place for place in places if (place / "manifest.json").is_file()), None)
    if base is None:
        raise SuiteError(f"the base suite {name!r} is missing", where, f"neither {places[0]} nor {places[1]}")
    base_path = base / "manifest.json"
    _, digests = _verified(base, _manifest(base_path), str(base_path))
    for file, digest in expected.items():
        if digests.get(file) != digest:
            raise SuiteError(
                f"the base suite's {file} is another one than the sample was drawn from",
                str(base_path),
                show(digests.get(file)),
                show(digest),
            )
    return base, digests
