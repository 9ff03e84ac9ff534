"""The records of a zip, as the PKWARE APPNOTE 6.3.10 lays them out (all little-endian)."""

from __future__ import annotations

from struct import Struct
from typing import Final

__all__ = ["CENTRAL", "CENTRAL_MAGIC", "DEFLATED", "END", "END_MAGIC", "LOCAL", "LOCAL_MAGIC", "STORED", "UTF8_FLAG"]

# 4.3.7: magic, version needed, flags, method, time, date, CRC, sizes packed and unpacked, lengths of name and extra.
LOCAL: Final = Struct("<4s5H3L2H")
LOCAL_MAGIC: Final = b"PK\x03\x04"

# 4.3.12: magic, versions made by and needed, then as above from the flags, length of the comment, disk,
# internal and external attributes, offset of the local header.
CENTRAL: Final = Struct("<4s6H3L5H2L")
CENTRAL_MAGIC: Final = b"PK\x01\x02"

# 4.3.16: magic, this disk, the directory's disk, entries here and in all, the directory's size and offset,
# length of the comment.
END: Final = Struct("<4s4H2LH")
END_MAGIC: Final = b"PK\x05\x06"

# 4.4.5 and 4.4.4.
STORED: Final = 0
DEFLATED: Final = 8
UTF8_FLAG: Final = 0x0800
