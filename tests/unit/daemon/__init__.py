"""The daemon room: settings, places, locks, logs."""
