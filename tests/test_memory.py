import pytest

from aucmax._memory import available_bytes, check_fits, format_bytes, parse_bytes


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("4GB", 4 * 10**9),
        ("4 GiB", 4 * 2**30),
        ("500mb", 5 * 10**8),
        ("1.5K", 1500),
        (12, 12),
        ("7", 7),
    ],
)
def test_parse(text, expected):
    assert parse_bytes(text) == expected


@pytest.mark.parametrize("text", ["many", "", "-3GB", -1, 0, True, "4 XB"])
def test_what_is_no_size(text):
    with pytest.raises(ValueError, match="max_memory must be"):
        parse_bytes(text)


def test_format():
    assert [format_bytes(n) for n in (12, 1200, 5 * 10**6, 2**40)] == [
        "12 B",
        "1.2 kB",
        "5 MB",
        "1.1 TB",
    ]


def test_what_is_free_is_the_limit_by_default():
    free = available_bytes()
    assert free is None or free > 10**6
    check_fits("A trifle", 1, None)
    if free:
        with pytest.raises(MemoryError, match=r"^A giant needs 1e.* TB, and .* is free"):
            check_fits("A giant", 10**18, None)
