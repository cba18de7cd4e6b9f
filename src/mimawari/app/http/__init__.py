"""The HTTP listener: admission, keys, errors, and the routes that belong to no watch."""
