"""A GGUF file (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md): metadata and tensors.

Read here and not by the `gguf` package's reader, which believes the lengths that a file claims:
an array of 2 ** 60 numbers would be looked for until memory ends. Here nothing is allocated that
the rest of the file could not hold. The package says what a tensor type is and dequantises it.
"""

import mmap
import struct
from dataclasses import dataclass
from math import prod

import gguf
import numpy as np

from compiler.model.config import ModelError
from compiler.model.files import size_of

MAGIC = b"GGUF"
VERSIONS = (2, 3)
TYPE_NAMES = {kind.value: kind.name for kind in gguf.GGMLQuantizationType}
#: Tensor types that are read.
TYPES = ("F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1")
#: Format of each scalar type of the metadata by its number; 8 is a string, 9 an array.
SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q",
           12: "d"}
STRING, ARRAY = 8, 9
#: Dimensions that a tensor may have.
MAX_DIMENSIONS = 4


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A tensor in the file.

    Parameters
    ----------
    shape : tuple of int
        [outputs, inputs] of a matrix.
    type : str
        One of `TYPES`, or the name or number of another.
    offset : int
        From the start of the tensors.
    """

    shape: tuple[int, ...]
    type: str
    offset: int


class GgufFile:
    """An open file.

    Parameters
    ----------
    path : pathlib.Path

    Attributes
    ----------
    metadata : dict of str to int, float, bool, str or list
    entries : dict of str to Entry

    Raises
    ------
    ModelError
        It is no GGUF file, or damaged.
    """

    def __init__(self, path):
        self._path = path
        if size_of(path) < len(MAGIC):
            raise ModelError(f"{path}: truncated or not a GGUF file")
        with path.open("rb") as file:
            self._data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._at = 0
        try:
            self._parse()
        except (struct.error, UnicodeDecodeError) as error:
            raise ModelError(f"{path}: truncated or not a GGUF file ({error})") from None
        except ModelError as error:
            raise ModelError(f"{path}: {error}") from None

    def _parse(self):
        if self._data[:len(MAGIC)] != MAGIC:
            raise ModelError("not a GGUF file")
        self._at = len(MAGIC)
        version = self._take("I")
        if version not in VERSIONS:
            raise ModelError(f"GGUF version must be {' or '.join(map(str, VERSIONS))}, not "
                             f"{version}")
        tensors, values = self._take("Q"), self._take("Q")
        self.metadata, self.entries = {}, {}
        for _ in range(values):
            key = self._string()
            if key in self.metadata:
                raise ModelError(f"{key} is there twice")
            self.metadata[key] = self._value(self._take("I"))
        for _ in range(tensors):
            self._entry()
        alignment = self.metadata.get("general.alignment", gguf.GGUF_DEFAULT_ALIGNMENT)
        if not isinstance(alignment, int) or alignment < 1:
            raise ModelError(f"general.alignment must be a positive number, not {alignment!r}")
        self._start = -(-self._at // alignment) * alignment

    def _take(self, code):
        """The next number, or bytes."""
        value, = self._take_all(code)
        return value

    def _take_all(self, code):
        """The next values, a tuple; struct.error, before anything is made, where the file ends."""
        values = struct.unpack_from(f"<{code}", self._data, self._at)
        self._at += struct.calcsize(f"<{code}")
        return values

    def _string(self):
        return self._take(f"{self._take('Q')}s").decode("utf-8")

    def _value(self, kind):
        if kind in SCALARS:
            return self._take(SCALARS[kind])
        if kind == STRING:
            return self._string()
        if kind != ARRAY:
            raise ModelError(f"metadata of unknown type {kind}")
        kind, count = self._take("I"), self._take("Q")
        if kind == STRING:
            return [self._string() for _ in range(count)]
        if kind not in SCALARS:
            raise ModelError(f"metadata of an array of type {kind}")
        return list(self._take_all(f"{count}{SCALARS[kind]}"))

    def _entry(self):
        """Read the entry of one tensor."""
        name, dimensions = self._string(), self._take("I")
        if dimensions > MAX_DIMENSIONS:
            raise ModelError(f"tensor {name} has {dimensions} dimensions, at most "
                             f"{MAX_DIMENSIONS} are possible")
        if name in self.entries:
            raise ModelError(f"tensor {name} is there twice")
        shape = self._take_all(f"{dimensions}Q")[::-1]     # the innermost comes first
        number, offset = self._take("I"), self._take("Q")
        kind = TYPE_NAMES.get(number, f"number {number}")
        self.entries[name] = Entry(shape=shape, type=kind, offset=offset)

    def values(self, name):
        """A tensor as float32, dequantised.

        Parameters
        ----------
        name : str
            Of an entry.

        Returns
        -------
        np.ndarray, float32, [shape of the entry]

        Raises
        ------
        ModelError
            Its type is not one of `TYPES`, it is not in the file, or a value is not finite.
        """
        entry, where = self.entries[name], f"{self._path}: tensor {name}"
        if entry.type not in TYPES:
            raise ModelError(f"{where} is of type {entry.type}, must be one of {', '.join(TYPES)}")
        kind = gguf.GGMLQuantizationType[entry.type]
        block, size = gguf.GGML_QUANT_SIZES[kind]
        if entry.shape[-1] % block:
            raise ModelError(f"{where} has rows of {entry.shape[-1]} values, {entry.type} needs a "
                             f"multiple of {block}")
        count = prod(entry.shape) // block * size
        begin = self._start + entry.offset
        if begin + count > len(self._data):
            raise ModelError(f"{where}: truncated: {count} bytes at offset {begin} do not fit the "
                             "file")
        data = np.frombuffer(self._data, np.uint8, count, begin)
        rows = data.reshape(*entry.shape[:-1], entry.shape[-1] // block * size)
        with np.errstate(all="ignore"):                     # what is not finite is refused below
            values = gguf.dequantize(rows, kind).astype(np.float32)
        if not np.isfinite(values).all():
            raise ModelError(f"{where} holds values that are not finite")
        return values.reshape(entry.shape)
