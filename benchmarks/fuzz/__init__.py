"""Fuzz: inputs from strangers, mutated without end; nothing but a PcdnetError may leave, in bounded time and memory."""
