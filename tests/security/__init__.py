"""Attacks on the relay, one file per way in: each test makes the attack and checks that it fails."""
