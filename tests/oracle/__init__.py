"""The paper's equations written literally: the judge of the engine, and the baseline of its speed."""
