"""Own pictures: sets as users bring them, made by seed, learned by the automatic path and scored."""
