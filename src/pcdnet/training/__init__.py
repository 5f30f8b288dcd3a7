"""Training: learn a bank of prototypes from images, watch its health, survive interruptions."""
