"""Read a hooks file: TOML that describes an engine as a block device and some commands.

docs/test-your-own-engine.md describes the file; examples are conformance/examples/*.toml.
"""

import json
import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import fastjsonschema

LARGEST_FILE = 1 << 20  # bytes
SCHEMA = Path(__file__).with_name("hooks.schema.json")

Hooks = dict[str, Any]


class BadHooks(Exception):
    """The file is no valid hooks file. One line that starts with its name."""


def read(path: Path) -> Hooks:
    """Return the hooks in the file. Raises BadHooks if it is invalid."""
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise BadHooks(f"{path}: larger than {LARGEST_FILE >> 20} MiB")
        hooks = tomllib.loads(path.read_text(encoding="utf-8"))
        _schema()(hooks)
        for pattern in hooks.get("refusals", {}):
            re.compile(pattern)
    except OSError as error:
        raise BadHooks(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise BadHooks(f"{path}: not UTF-8 (byte {error.start + 1})") from None
    except RecursionError:
        raise BadHooks(f"{path}: nested too deeply") from None
    except re.error as error:
        raise BadHooks(
            f"{path}: refusals: {error.pattern!r} is no regular expression: {error.msg}"
        ) from None
    except fastjsonschema.JsonSchemaValueException as error:
        raise BadHooks(f"{path}: {_complaint(error)}") from None
    except ValueError as error:  # such as tomllib's
        raise BadHooks(f"{path}: not TOML: {error}") from None
    commands = hooks["commands"]
    if "snapshot" in commands and "view" not in hooks:
        raise BadHooks(
            f"{path}: commands.snapshot, but nothing says where a snapshot is read: give view"
        )
    if "crash" in commands and "crash_profile" not in hooks:
        raise BadHooks(
            f"{path}: commands.crash, but crash_profile does not say what a power cut keeps"
        )
    return hooks


@cache
def _schema() -> Any:
    return fastjsonschema.compile(json.loads(SCHEMA.read_text(encoding="utf-8")))


def _complaint(error: fastjsonschema.JsonSchemaValueException) -> str:
    name = error.name or ""
    where = name.removeprefix("data").removeprefix(".") or "the file"
    if error.rule == "required":
        lacking = sorted(set(error.rule_definition) - set(error.value))
        return f"{where} lacks {', '.join(lacking)}"
    if error.rule == "additionalProperties" and error.rule_definition is False:
        unknown = sorted(set(error.value) - set(error.definition["properties"]))
        return f"{where} has unknown keys: {', '.join(unknown)}"[:300]
    return f"{where} {error.message.removeprefix(name).strip()}"[:300]
