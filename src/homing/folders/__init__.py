"""A folder of text files, searched by paragraph: what `homing search` stands on."""
