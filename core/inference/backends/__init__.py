"""Evaluators one by one: padding (batch sizes), material_backend, uniform_backend,
onnx_backend, openvino_backend, torch_backend (on a GPU as CUDA graphs),
composite_backends (several evaluators as one)."""
