"""Convolutions and pooling in one to three dimensions."""
from case import Case, case, distinct, s, t


def conv(n: int) -> Case:
    """Plain, bias, stride, padding, string padding, dilation, groups, no batch, depthwise, empty batch."""
    def x(channels, size, batch=(2,)):
        return t(*batch, channels, *(size,) * n)

    def w(out, into, k=3):
        return t(out, into, *(k,) * n)
    size = 6 if n < 3 else 4
    k = 3 if n < 3 else 2
    return case(f"nn.functional.conv{n}d", s(x(3, size), w(4, 3, k)), s(x(3, size), w(4, 3, k), t(4)), s(x(3, size),
        w(4, 3, k), t(4), 2, 1), s(x(2, size), w(2, 2, k), None, 1, "same"), s(x(2, size), w(2, 2, k),
        padding="valid"), s(x(2, size), w(2, 2, 2), dilation=2), s(x(4, size), w(4, 2, k), t(4), padding=1, groups=2),
        s(x(3, size), w(6, 1, k), groups=3, padding=1), s(x(2, size, ()), w(3, 2, k), t(3)), s(x(2, size, (0,)), w(3,
        2, k)), s(x(2, size), w(3, 2, 1)), s(x(2, 5), w(2, 2, k), None, (2,) * n, (1,) * n, 1, 1), errors=(s(x(3,
        size), w(4, 2, k)), s(x(2, 1), w(2, 2, 3)), s(t(2), w(2, 2)), s(x(3, size), w(4, 3, k), t(3)), s(x(2, size),
        w(3, 1, k), groups=2), s(x(2, size), w(2, 2, k), stride=0), s(x(2, size), w(2, 2, k), padding=-1), s(x(2,
        size), w(2, 2, k), stride=2, padding="same"), s(x(2, size), w(2, 2, k), padding="x"), s(x(2, size), t(2, 2,
        *(k,) * n, dtype="float64")), s(x(2, size), w(2, 2, k), groups=0), s(x(2, size), w(0, 2, k))), vmap=False, tol=5)


def conv_transpose(n: int) -> Case:
    size, k = (4, 3) if n < 3 else (3, 2)

    def x(channels, batch=(2,)):
        return t(*batch, channels, *(size,) * n)

    def w(into, out):
        return t(into, out, *(k,) * n)
    return case(f"nn.functional.conv_transpose{n}d", s(x(3), w(3, 2)), s(x(3), w(3, 2), t(2), 2), s(x(3), w(3, 2),
        t(2), stride=2, padding=1, output_padding=1), s(x(4), w(4, 1), groups=2), s(x(2), w(2, 2), dilation=2), s(x(2,
        ()), w(2, 3)), errors=(s(x(3), w(2, 2)), s(x(2), w(2, 2), output_padding=2), s(x(3), w(3, 2), t(3))),
        vmap=False, tol=5)


def max_pool(n: int) -> Case:
    def x(size):
        return distinct(1, 2, *(size,) * n)
    size = 6 if n < 3 else 4
    return case(f"nn.functional.max_pool{n}d", s(x(size), 2), s(x(size), 3, 2), s(x(size), 3, 1, 1), s(x(size), 2,
        dilation=2), s(x(5), 2, ceil_mode=True), s(x(size), 2, return_indices=True), s(x(size), (2,) * n,
        stride=(1,) * n), s(distinct(2, *(size,) * n), 2), s(x(5), 3, stride=2, padding=1, ceil_mode=True),
        errors=(s(x(size), 0), s(x(size), 2, padding=2), s(x(2), 5), s(t(3), 2), s(x(size), 2, -1), s(x(size), 3, 1, 2, 2, False, True)), vmap=False,
        gradgrad=n == 2)


def avg_pool(n: int) -> Case:
    def x(size):
        return t(1, 2, *(size,) * n)
    size = 6 if n < 3 else 4
    return case(f"nn.functional.avg_pool{n}d", s(x(size), 2), s(x(size), 3, 2), s(x(size), 3, 1, 1), s(x(size), 3, 1,
        1, count_include_pad=False), s(x(5), 2, ceil_mode=True), s(x(5), 3, 2, 1, True, False), s(t(2, *(size,) * n),
        2), *((s(x(size), 2, divisor_override=3),) if n > 1 else ()), errors=(s(x(size), 0), s(x(size), 2, padding=2),
        s(x(2), 5), s(t(3), 2)), vmap=False)


CASES = [
    *[conv(n) for n in (1, 2, 3)],
    *[conv_transpose(n) for n in (1, 2, 3)],
    *[max_pool(n) for n in (1, 2, 3)],
    *[avg_pool(n) for n in (1, 2, 3)],
    case("torch.conv1d", s(t(1, 2, 5), t(3, 2, 3))),
    case("torch.conv2d", s(t(1, 2, 5, 5), t(3, 2, 3, 3))),
    case("torch.conv3d", s(t(1, 2, 3, 3, 3), t(3, 2, 2, 2, 2))),
    case("nn.functional.conv2d",
         s(t(2, 3, 5, 4, layout="channels_last"), t(4, 3, 3, 2), None, (2, 1), (1, 0), (1, 2)), tag="uneven",
         vmap=False, tol=5),
    case("torch.conv_tbc", s(t(5, 2, 3), t(2, 3, 4), t(4)), vmap=False, gradgrad=False, tol=5),
    *[case(f"nn.functional.adaptive_avg_pool{n}d", s(t(1, 2, *(5,) * n), 1), s(t(1, 2, *(5,) * n), 3),
         s(t(2, *(4,) * n), 2), s(t(1, 2, *(3,) * n), 5), errors=(s(t(1, 2, *(5,) * n), -1), s(t(3), 2)),
         vmap=False) for n in (1, 2, 3)],
    case("nn.functional.adaptive_avg_pool2d", s(t(1, 2, 5, 6), (2, None)), s(t(1, 2, 5, 6), (1, 3)), tag="uneven",
         vmap=False),
    *[case(f"nn.functional.adaptive_max_pool{n}d", s(distinct(1, 2, *(5,) * n), 1), s(distinct(1, 2, *(5,) * n), 3),
         s(distinct(1, 2, *(4,) * n), 2, return_indices=True), vmap=False, gradgrad=False) for n in (1, 2, 3)],
    *[case(f"nn.functional.lp_pool{n}d", s(t(1, 2, *(6,) * n, low=0.2), 2, 3), s(t(1, 2, *(4,) * n), float("inf"), 2), s(t(1, 2, *(4,) * n), float("-inf"), 2),
         s(t(1, 2, *(6,) * n, low=0.2), 1, 2, 1), vmap=False, gradgrad=False, tol=5) for n in (1, 2)],
    *[case(f"nn.functional.max_unpool{n}d", s(distinct(1, 1, *(4,) * n)), fn=lambda torch, x,
         n=n: getattr(torch.nn.functional,
         f"max_unpool{n}d")(*getattr(torch.nn.functional, f"max_pool{n}d")(x, 2, return_indices=True), 2), vmap=False,
         gradgrad=False) for n in (1, 2, 3)],
    case("nn.functional.fractional_max_pool2d", s(distinct(1, 2, 6, 6), 2, output_size=3), vmap=False, gradgrad=False),
]
