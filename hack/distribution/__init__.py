"""The files of a release: packages, the chart, manifests, a bill of materials, checksums.

python -m distribution build --into dist    make dist
python -m distribution notes 1.2.3          make release-notes VERSION=1.2.3
"""
