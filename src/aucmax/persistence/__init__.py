"""Models outside of Python's memory: model files and ONNX graphs."""
