"""``aucmax info`` and ``aucmax export``: what is in a model file, and the same for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from aucmax.cli.model_arguments import (
    check_output,
    print_columns,
    print_json,
    print_table,
    table_model,
    told,
)
from aucmax.persistence.model_file import read_manifest
from aucmax.runtime.memory import format_bytes


def run_info(path: Path, as_json: bool) -> None:
    """Print the manifest; the model itself is not loaded."""
    manifest = read_manifest(path)
    if as_json:
        print_json(manifest)
        return
    columns = manifest.get("columns") or []
    lines = [(name, _text(value)) for name, value in manifest.items() if name != "columns"]
    print_table(("what", ""), lines, left=2)
    if columns:
        print()
        print_columns(columns, "name", "type", "kind", "treatment")


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_text(each)}" for key, each in value.items())
    return f"{value:.4f}" if isinstance(value, float) else str(value)


def run_export(path: Path, onnx: Path, force: bool, as_json: bool) -> None:
    """Write the ONNX graph, which is compared with Python's scores first."""
    from aucmax.persistence.onnx_export import to_onnx

    check_output(onnx, path, force=force)
    model = table_model(path)
    to_onnx(model, onnx)
    if as_json:
        print_json({"onnx": onnx, "bytes": onnx.stat().st_size})
    else:
        size = format_bytes(onnx.stat().st_size)
        told().print(f"{onnx}: {size}, with the preparation of the columns.")
