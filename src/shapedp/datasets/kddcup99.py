"""KDD Cup 1999, the 10 % file, with fixed lists of protocols, services, flags and attacks."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shapedp.datasets.base import DataFormatError, Dataset, build, limits
from shapedp.datasets.cards import CARDS
from shapedp.datasets.files import Folder, read
from shapedp.datasets.formats import set_one_hot
from shapedp.numerics.checks import one_of

Index = NDArray[np.int64]


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


# kddcup.names: the 41 features, in the order of the file.
COLUMNS = _words(
    """duration protocol_type service flag src_bytes dst_bytes land wrong_fragment urgent hot num_failed_logins
    logged_in num_compromised root_shell su_attempted num_root num_file_creations num_shells num_access_files
    num_outbound_cmds is_host_login is_guest_login count srv_count serror_rate srv_serror_rate rerror_rate
    srv_rerror_rate same_srv_rate diff_srv_rate srv_diff_host_rate dst_host_count dst_host_srv_count
    dst_host_same_srv_rate dst_host_diff_srv_rate dst_host_same_src_port_rate dst_host_srv_diff_host_rate
    dst_host_serror_rate dst_host_srv_serror_rate dst_host_rerror_rate dst_host_srv_rerror_rate"""
)
SYMBOLIC = (1, 2, 3)
NUMERIC = tuple(k for k in range(41) if k not in SYMBOLIC)
RATES = [k for k, column in enumerate(NUMERIC) if COLUMNS[column].endswith("_rate")]
WHOLE = [k for k in range(len(NUMERIC)) if k not in RATES]
RATE_COLUMNS, WHOLE_COLUMNS = [NUMERIC[k] for k in RATES], [NUMERIC[k] for k in WHOLE]
BINARY = ("land", "logged_in", "root_shell", "is_host_login", "is_guest_login")

# kddcup.names leaves the values open. These are the lists of the header of NSL-KDD (Tavallaee et al. 2009), which
# describe the whole competition data, not those that occur in this file (66 of the 70 services do).
CATEGORIES = {
    "protocol_type": _words("icmp tcp udp"),
    "service": _words(
        """IRC X11 Z39_50 aol auth bgp courier csnet_ns ctf daytime discard domain domain_u echo eco_i ecr_i efs exec
        finger ftp ftp_data gopher harvest hostnames http http_2784 http_443 http_8001 imap4 iso_tsap klogin kshell ldap
        link login mtp name netbios_dgm netbios_ns netbios_ssn netstat nnsp nntp ntp_u other pm_dump pop_2 pop_3 printer
        private red_i remote_job rje shell smtp sql_net ssh sunrpc supdup systat telnet tftp_u tim_i time urh_i urp_i
        uucp uucp_path vmnet whois"""
    ),
    "flag": _words("OTH REJ RSTO RSTOS0 RSTR S0 S1 S2 S3 SF SH"),
}

# The published list of training attack types, and normal traffic.
LABELS = _words(
    """back buffer_overflow ftp_write guess_passwd imap ipsweep land loadmodule multihop neptune nmap normal perl phf
    pod portsweep rootkit satan smurf spy teardrop warezclient warezmaster"""
)

BLOCK = 1 << 22
WIDTH = 18
DIGITS = 15


def load_kddcup99(
    folder: Folder = None, *, target: str = "label", rows: ArrayLike | None = None, dtype: Any = np.float32
) -> Dataset:
    """Network connections: x (494021, 122), y one of 23 labels (target="label") or 1 for an attack (target="attack").

    Columns: 38 numbers as published, then one 0/1 column per protocol, service and flag. rows: positions to keep, in
    that order. float32 rounds byte counts above 2^24; dtype=numpy.float64 keeps them all.
    """
    one_of("target", target, ("label", "attack"))
    card = CARDS["kddcup99"]
    values, codes, labels = parse(read(card, "kddcup99/kddcup.data_10_percent.gz", folder), dtype)
    if rows is not None:
        keep = np.asarray(rows)
        try:
            values, codes, labels = values[keep], codes[keep], labels[keep]
        except IndexError:
            raise ValueError(f"rows must be positions, integers from 0 to {len(labels) - 1}") from None
    widths = [len(names) for names in CATEGORIES.values()]
    x = np.zeros((len(labels), len(NUMERIC) + sum(widths)), dtype=dtype)
    x[:, : len(NUMERIC)] = values
    start = len(NUMERIC)
    for k, width in enumerate(widths):
        set_one_hot(x[:, start : start + width], codes[:, k])
        start += width
    numeric = [COLUMNS[k] for k in NUMERIC]
    upper = [1.0 if name in BINARY or name.endswith("_rate") else math.inf for name in numeric] + [1.0] * sum(widths)
    classes = LABELS if target == "label" else ("normal", "attack")
    y = labels if target == "label" else (labels != LABELS.index("normal")).astype(np.int64)
    one_hot = [f"{column}={name}" for column, names in CATEGORIES.items() for name in names]
    return build(
        card,
        x,
        y,
        feature_names=(*numeric, *one_hot),
        classes=classes,
        bounds=limits(np.zeros(len(upper)), upper),
    )


def parse(content: bytes, dtype: Any = np.float64) -> tuple[NDArray[Any], NDArray[np.int64], NDArray[np.int64]]:
    """Numbers (n, 38), codes of protocol, service and flag (n, 3), and labels (n,) of the text, block by block."""
    content = content if content.endswith(b"\n") else content + b"\n"
    rows = content.count(b"\n")
    values = np.empty((rows, len(NUMERIC)), dtype=dtype)
    codes, labels = np.empty((rows, 3), dtype=np.int64), np.empty(rows, dtype=np.int64)
    begin = row = 0
    while begin < len(content):
        end = content.rfind(b"\n", begin, begin + BLOCK) + 1 or content.index(b"\n", begin) + 1
        text = content[begin:end]
        marks = np.frombuffer(text, np.uint8)
        lines = np.flatnonzero(marks == ord("\n"))
        part = slice(row, row + len(lines))
        places = np.flatnonzero(marks == ord(","))
        if not np.array_equal(np.searchsorted(places, lines), 41 * np.arange(1, lines.size + 1)):
            raise DataFormatError("KDD Cup 1999: every line must have 42 fields")
        commas: Index = places.reshape(-1, 41)
        for k, names in enumerate(CATEGORIES.values()):
            codes[part, k] = _lookup(marks, commas[:, k] + 1, commas[:, k + 1], names)
        labels[part] = _lookup(marks, commas[:, 40] + 1, lines - 1, LABELS)
        starts = np.concatenate([np.concatenate(([0], lines[:-1] + 1))[:, None], commas[:, :40] + 1], axis=1)
        values[part, WHOLE] = _whole(marks, starts[:, WHOLE_COLUMNS], commas[:, WHOLE_COLUMNS])
        values[part, RATES] = _rates(marks, starts[:, RATE_COLUMNS], commas[:, RATE_COLUMNS])
        begin, row = end, part.stop
    return values, codes, labels


def _whole(marks: NDArray[np.uint8], start: Index, stop: Index) -> NDArray[np.float64]:
    """Whole numbers of at most 15 digits, digit by digit; float64 holds them all."""
    length = stop - start
    if length.min(initial=1) < 1 or length.max(initial=1) > DIGITS:
        raise DataFormatError(f"KDD Cup 1999: a count must have 1 to {DIGITS} digits")
    values = _digit(marks[start]).astype(np.float64)
    for place in range(1, int(length.max(initial=1))):
        more = np.nonzero(length > place)
        values[more] = 10 * values[more] + _digit(marks[start[more] + place])
    return values


def _rates(marks: NDArray[np.uint8], start: Index, stop: Index) -> NDArray[np.float64]:
    """Numbers written as d.dd; the quotient by 100 is the float64 nearest to the decimal."""
    if np.any(stop - start != 4) or np.any(marks[start + 1] != ord(".")):
        raise DataFormatError("KDD Cup 1999: a rate must have two decimals")
    units, tenths, hundredths = (_digit(marks[start + place]).astype(np.int16) for place in (0, 2, 3))
    return (100 * units + 10 * tenths + hundredths) / 100


def _digit(letters: NDArray[np.uint8]) -> NDArray[np.uint8]:
    digits = letters - np.uint8(ord("0"))
    if digits.max(initial=0) > 9:
        raise DataFormatError("KDD Cup 1999: a number holds something else than digits")
    return digits


def _lookup(marks: NDArray[np.uint8], start: Index, stop: Index, names: tuple[str, ...]) -> Index:
    """Positions in the sorted list `names` of the strings between start and stop."""
    sorted_names = np.array(names, dtype=f"S{WIDTH}")
    if (stop - start).max(initial=1) > WIDTH:
        raise DataFormatError(f"KDD Cup 1999: a symbolic field is longer than {WIDTH} characters")
    place = start[:, None] + np.arange(WIDTH)
    letters = np.where(place < stop[:, None], marks[np.minimum(place, marks.size - 1)], 0).astype(np.uint8)
    words = np.ascontiguousarray(letters).view(f"S{WIDTH}")[:, 0]
    found = np.minimum(np.searchsorted(sorted_names, words), len(names) - 1)
    wrong = np.flatnonzero(sorted_names[found] != words)
    if wrong.size:
        raise DataFormatError(f"KDD Cup 1999: {words[wrong[0]].decode('latin-1')!r} is none of the documented values")
    return found
