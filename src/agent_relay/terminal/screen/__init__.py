"""The screen of a program: its contents, the emulation they come from, the state they show, and the dialogs on it."""
