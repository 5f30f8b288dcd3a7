"""napari: results and models as layers, and a widget that decomposes an image. `napari.yaml` beside it is the manifest.

Only what napari calls imports napari: the extra `napari`.
"""
