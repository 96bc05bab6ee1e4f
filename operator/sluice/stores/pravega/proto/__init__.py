"""Code generated from `controller.proto` by `hack/genproto.py`. Do not edit it by hand."""
