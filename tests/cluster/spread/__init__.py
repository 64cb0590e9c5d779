"""The wire contract with its clients on different hosts: each that connects comes to another host than the one before."""
