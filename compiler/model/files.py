"""What every importer asks of a file before it reads it."""

import json

from compiler.model.config import ModelError

#: Bytes that a file may have beyond its tensors (header), and that a JSON file may have.
HEADER_LIMIT = 1 << 24
#: Bytes that a file with a tokenizer may have.
TOKENIZER_LIMIT = 1 << 28


def size_of(path, limit=None):
    """Bytes of a file that must be there, and may have to be no larger than ``limit``."""
    if not path.parent.is_dir():
        raise ModelError(f"{path.parent}: no such directory")
    if not path.is_file():
        raise ModelError(f"{path}: no such file")
    size = path.stat().st_size
    if limit is not None and size > limit:
        raise ModelError(f"{path}: larger than {limit} bytes")
    return size


def read_json(path):
    """The object in a JSON file."""
    size_of(path, HEADER_LIMIT)
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{path}: not valid JSON ({error})") from None
    if not isinstance(data, dict):
        raise ModelError(f"{path}: must hold a JSON object")
    return data
