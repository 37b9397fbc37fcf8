"""The `homing` command: one file per command group."""
