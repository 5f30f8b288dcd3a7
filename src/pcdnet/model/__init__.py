"""The model: from images to objects and back, one file a stage."""
