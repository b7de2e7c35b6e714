"""torch.ops.quantized_decomposed: quantizing as arithmetic on integers and scales."""
import importlib

import pytest
from same import same

CALLS = [
    "quantize_per_tensor(x, 0.1, 3, -128, 127, i8)", "quantize_per_tensor(x.half(), 0.1, 3, 0, 255, u8)", "quantize_per_tensor(x.bfloat16(), 0.03, -3, -8, 7, i8)",
    "quantize_per_tensor(x.double(), 0.1, 3, -128, 127, i8)", "quantize_per_tensor(x, 0.1, 3, -129, 127, i8)", "quantize_per_tensor(x, 0.1, 3, -128, 128, i8)",
    "quantize_per_tensor(x, 0.1, 3, -128, 128, torch.float32)", "quantize_per_tensor(x, 0.001, 3, -32768, 32767, torch.int16)",
    "quantize_per_tensor(x, 0.1, 0, -448, 448, torch.float8_e4m3fn).float()", "quantize_per_tensor(x, T(0.1), T(3), -128, 127, i8)",
    "quantize_per_tensor(x, T([0.1, 0.2]), T([3]), -128, 127, i8)", "quantize_per_tensor(x, T(0.1), T(3), T(-128), T(127), i8)",
    "dequantize_per_tensor(z, 0.1, 3, -128, 127, i8)", "dequantize_per_tensor(z, 0.1, 3, -128, 127, i8, out_dtype=torch.bfloat16)",
    "dequantize_per_tensor(z, 0.1, 3, -128, 127, u8)", "dequantize_per_tensor(z, T(0.1), T(3), -128, 127, i8)", "dequantize_per_tensor(z.long(), 0.1, 3, -128, 127, torch.int64)",
    "dequantize_per_tensor(z, T(0.1), T(3), T(-128), T(127), i8)", "choose_qparams(x, -128, 127, 1e-5, i8)", "choose_qparams(x, 0, 255, 1e-5, u8)",
    "choose_qparams(x * 0, 0, 255, 1e-5, u8)", "choose_qparams(x.abs(), -8, 7, 1e-5, i8)", "choose_qparams(x, -8, 7, 1e-5, torch.float32)",
    "choose_qparams(x, 7, -8, 1e-5, i8)", "choose_qparams(x.double(), -8, 7, 1e-5, i8)", "choose_qparams(x.bfloat16(), -8, 7, 1e-5, i8)",
    "choose_qparams_symmetric(x, -128, 127, 1e-5, i8)", "choose_qparams_symmetric(x, 0, 255, 1e-5, u8)", "choose_qparams_symmetric(x, -2**31, 2**31 - 1, 1e-5, torch.int32)",
    "quantize_per_channel(x, s[:4], p[:4], 0, -128, 127, i8)", "quantize_per_channel(x, s, p, 1, -128, 127, i8)", "quantize_per_channel(x, s, p, -1, -128, 127, i8)",
    "quantize_per_channel(x, s, p, 3, -128, 127, i8)", "quantize_per_channel(x, s.double(), p, 1, -128, 127, i8)", "quantize_per_channel(x, s, p, 1, -129, 127, i8)",
    "dequantize_per_channel(z, s, p, 1, -128, 127, i8)", "dequantize_per_channel(z, s[:4], None, 0, -128, 127, i8)", "dequantize_per_channel(z, s, p, 1, -128, 127, u8)",
    "dequantize_per_channel(z, s, p, 1, -128, 127, i8, out_dtype=torch.bfloat16)", "fake_quant_per_channel(x, s, p, 1, -128, 127)",
    "choose_qparams_per_token(x, i8)", "choose_qparams_per_token(x.half(), i8)", "choose_qparams_per_token(x, u8)", "choose_qparams_per_token_asymmetric(x, i8)",
    "choose_qparams_per_token_asymmetric(x.bfloat16(), i8)", "choose_qparams_per_token_asymmetric(x * 0, i8)", "choose_qparams_per_token_asymmetric(x.abs(), i8)",
    "quantize_per_token(x, ts, tz, -128, 127, i8)", "quantize_per_token(x, ts[:2], tz, -128, 127, i8)", "dequantize_per_token(z, ts, tz, -128, 127, i8, torch.bfloat16)",
    "quantize_per_channel_group(x, gs, gz, -8, 7, i8, 3)", "quantize_per_channel_group(x, gs, gz, -8, 7, i8, 4)", "quantize_per_channel_group(x, gs, gz, -8, 7, i8, 1)",
    "quantize_per_channel_group(x * float('nan'), gs, gz, -8, 7, i8, 3)", "quantize_per_channel_group(x, gs[:, :1], gz[:, :1], -8, 7, i8, 12)",
    "dequantize_per_channel_group(z, gs, gz, -8, 7, i8, 3, torch.float32)", "dequantize_per_channel_group(z, gs, None, -8, 7, i8, 3, torch.bfloat16)",
    "convert_element_type.no_fuse(x, torch.float16)",
]


def names(torch):
    importlib.import_module(f"{torch.__name__}.ao.quantization.fx._decomposed")
    ops = torch.ops.quantized_decomposed
    x = torch.tensor([[-3.4, -3.5, -0.75, -1.3, 2.55, 2.08], [-0.95, -6.34, 1.4, -0.47, 4.33, 0.8], [0.5, 2.62, -0.43, -0.33, 2.8, 4.0], [6.0, 0.2, 1.95, -1.15, -2.4, -6.9]])
    ts, tz = ops.choose_qparams_per_token_asymmetric(x, torch.int8)
    found = {"torch": torch, "T": torch.tensor, "x": x, "i8": torch.int8, "u8": torch.uint8, "s": torch.tensor([0.3, 0.01, 0.7, 0.22, 0.5, 0.11]),
             "p": torch.tensor([2, -3, 0, 1, -1, 2]), "z": (x * 10).round().to(torch.int8), "ts": ts, "tz": tz,
             "gs": torch.tensor([[0.5, 0.1], [0.7, 0.2], [0.3, 0.9], [0.05, 0.4]]), "gz": torch.tensor([[1.0, 0.0], [-2.0, 1.0], [2.0, -3.0], [0.0, 1.0]])}
    return ops, found


@pytest.mark.parametrize("call", CALLS)
def test_the_same_integers_scales_and_errors(oracle, subject, call):
    found = []
    for torch in (oracle, subject):
        ops, known = names(torch)
        try:
            made = eval(f"ops.{call}", {**known, "ops": ops})
            found.append([(str(t.dtype), t.tolist()) for t in (made if isinstance(made, tuple) else (made,))])
        except Exception as error:
            found.append((type(error).__name__, str(error)))
    assert found[0] == found[1]


@same
def test_only_the_faked_one_has_a_gradient(torch):
    ops, known = names(torch)
    x = known["x"].clone().requires_grad_()
    out = ops.fake_quant_per_channel(x, known["s"], known["p"], 1, -8, 7)
    out.sum().backward()
    quantized = ops.quantize_per_tensor(x, 0.1, 0, -128, 127, torch.int8)
    return out.detach(), x.grad, ops.dequantize_per_tensor(quantized, 0.1, 0, -128, 127, torch.int8).requires_grad


@same
def test_on_the_meta_device(torch):
    ops, _ = names(torch)
    x, one = torch.ones(2, 3, device="meta"), torch.ones((), device="meta")
    made = (ops.quantize_per_tensor(x, 0.1, 0, -128, 127, torch.int8), ops.quantize_per_tensor(x, one, one, -128, 127, torch.int8),
            *ops.choose_qparams(x, -128, 127, 1e-5, torch.int8), ops.quantize_per_channel(x, x[0, :2], x[0, :2], 0, -128, 127, torch.int8))
    return [(str(t.dtype), tuple(t.shape), t.device.type) for t in made]


@same
def test_libraries_define_more_of_them(torch):
    names(torch)
    library = torch.library.Library("quantized_decomposed", "FRAGMENT")
    library.define("twice_for_a_test(Tensor x) -> Tensor")
    library.impl("twice_for_a_test", lambda x: x * 2, "CompositeExplicitAutograd")
    return torch.ops.quantized_decomposed.twice_for_a_test(torch.ones(2)), importlib.import_module(
        f"{torch.__name__}.ao.quantization.fx._decomposed").quantized_decomposed_lib.ns
