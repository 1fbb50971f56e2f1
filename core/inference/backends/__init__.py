"""Evaluators one by one: padding (batch sizes), netless_backends (uniform, random, material),
onnx_backend, openvino_backend, torch_backend (on a GPU as CUDA graphs),
composite_backends (several evaluators as one)."""
