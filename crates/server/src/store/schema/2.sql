-- SHA-256 of what was asked with the key: of another request it is refused.
ALTER TABLE keys ADD COLUMN body BLOB;
