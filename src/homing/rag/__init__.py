"""Remember in the background, recall across collections, add what was recalled to a prompt."""
