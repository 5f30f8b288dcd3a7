"""Export: what was found in many images, in the formats of other tools; one file a format."""
