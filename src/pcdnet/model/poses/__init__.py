"""Objects that turn, grow, are mirrored and lie at fractions of a pixel.

A prototype is learned once and painted in every pose. The search tries it in the coarse poses of the configuration, as
if each were a prototype of its own (`proposals`), moves what fits best until it fits as well as it can (`fitting`), and
then chooses among these posed candidates as ever: for the images at hand they are a bank (`instances`, `search`).
"""
