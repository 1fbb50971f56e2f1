"""Evaluators one by one: padding (batch sizes), material_backend, uniform_backend,
onnx_backend, openvino_backend, torch_backend,
composite_backends (several evaluators as one)."""
